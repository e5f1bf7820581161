"""Translation language modelling of an encoder (Conneau and Lample 2019, section 3.4; XGLUE, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrs_suggest.training.pretraining.mlm import MaskedLanguageModelling
from mrs_suggest.training.pretraining.objective import Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.rows import Encoded, encode_pairs


class TranslationLanguageModelling(MaskedLanguageModelling):
    """Hides 15 % of the tokens of two translations in one row; both are there to predict them from."""

    about = "translation language modelling (Conneau and Lample 2019, section 3.4; XGLUE, section 3.2)"
    reads = "parallel"
    packs = False

    def encode(
        self, sentences: Sequence[Any], parts: Pretrained, options: PretrainingArguments, pack: bool, where: str
    ) -> Encoded:
        return encode_pairs(sentences, parts.tokenizer, options.max_tokens, where)
