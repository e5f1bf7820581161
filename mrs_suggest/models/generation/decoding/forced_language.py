"""Whether a generator's decoder starts with the token of the language that it is to write.

mBART gives the decoder the language's token first (Liu et al. 2020, section 2.2), and so do the other checkpoints with
such tokens. A model that is trained on English can then be asked for another language; zero-shot training decides
whether it obeys. T5's families do not have such a token: it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mrs_suggest.models.checkpoint_loading import drawn
from mrs_suggest.models.generation.language_tokens import LANGUAGE, ROWS, LanguageTokens, untold

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SEED = 42  # of the added tokens' vectors: equal for equal checkpoints, whatever a run's seed


def with_forced_token(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    row: LanguageTokens,
    languages: Sequence[str],
    forced: bool,
) -> LanguageTokens:
    """The row whose decoder starts with the language's token, or with an end token whatever the language.

    If the checkpoint lacks such tokens and one is to be forced, they are added to the tokenizer, and their vectors to
    the model, in place; they are drawn like the checkpoint's own, and learn only from pairs and text in their language.
    """
    if not forced:
        return untold(row)
    told = ROWS["told"]
    if LANGUAGE in row.prompt and row != told:
        return row
    assert told.tag is not None
    tokenizer.add_special_tokens(
        {"additional_special_tokens": [told.tag(code) for code in dict.fromkeys(languages)]},
        replace_extra_special_tokens=False,
    )
    table: Any = model.get_input_embeddings()
    if len(tokenizer) > table.num_embeddings:  # mT5's table has rows to spare
        with drawn(SEED):
            model.resize_token_embeddings(len(tokenizer))
    return told
