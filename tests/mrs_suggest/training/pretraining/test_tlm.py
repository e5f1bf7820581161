"""Masked translations from the options to the loss."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.training.pretraining.mixture import OBJECTIVES, mixture
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.texts import Splits, TextData

PAIRS = [("aa bb cc", "xx yy zz"), ("bb cc", "yy zz"), ("aa", "xx")]
DATA = TextData({"ht": ["xx yy zz", "zz zz"]}, pairs=Splits({"en-ht": PAIRS}))
TRAINING: Any = SimpleNamespace(seed=0, process_index=0)


def test_an_encoder_gets_tokens_and_positions_alone() -> None:
    options = PretrainingArguments(objective=["mlm", "tlm"], max_tokens=20, packing=False)
    for part in mixture(options, OBJECTIVES["mlm"].build(options, TRAINING, DATA)):
        objective, parts = part.objective, part.parts
        ((_, texts),) = part.texts(DATA).train.items()
        rows = objective.encode(texts, parts, options, options.packing, "--text").rows
        batch = objective.collator(parts, options, 0)([rows[n] for n in range(len(rows))])
        assert batch.keys() == {"input_ids", "attention_mask", "labels"}
        labels = batch.pop("labels")
        assert (labels != IGNORED).any(1).all()
        with objective.forward(parts, labels), torch.no_grad():
            assert float(objective.loss(parts.model(**batch), labels)) > 0
        assert parts.tokenizer.convert_tokens_to_ids("▁xx") != parts.tokenizer.unk_token_id, "of the pairs, too"
