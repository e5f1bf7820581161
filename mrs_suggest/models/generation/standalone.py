"""Files for plain transformers, so that `AutoModelForSeq2SeqLM.from_pretrained(...).generate()` uses a saved generator.

Our own decoding gives every message its prompt and hides the checkpoint's generation config. With transformers alone,
the files give the same: the tokenizer puts the row's tokens around a message, and the generation config starts a
reply in one language (English where the model has it), ends it, and searches with the same beams. Other languages pass
their token; the card says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.generation.decoding.beam_search import ends_and_pad
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.language_tokens import BEGIN, END, LANGUAGE, LanguageTokens

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase


def default_language(languages: Sequence[str]) -> str:
    return "en" if "en" in languages else languages[0]


def generation_config(model: Any, prompt: Sequence[int], decoding: Decoding) -> GenerationConfig:
    """The settings with which plain `generate` answers in the language of a prompt.

    Groups become plain beams. At the longest reply the end is forced, without its own probability in the score.

    Args:
        prompt: the decoder's first ids, one or two: a start token, or an end token and the language's.
    """
    from transformers import GenerationConfig

    ends, pad = ends_and_pad(model)
    start, *forced = prompt
    return GenerationConfig(
        decoder_start_token_id=start if model.config.is_encoder_decoder else None,
        forced_bos_token_id=forced[0] if forced else None,
        forced_eos_token_id=ends[0],
        eos_token_id=ends if len(ends) > 1 else ends[0],
        pad_token_id=pad,
        suppress_tokens=None if pad in ends else [pad],
        num_beams=decoding.beams,
        num_return_sequences=min(SUGGESTIONS, decoding.beams),
        max_new_tokens=decoding.max_tokens + 1 + len(forced),
        min_new_tokens=decoding.min_tokens + len(forced) if decoding.min_tokens else None,
        no_repeat_ngram_size=decoding.no_repeat_ngram or None,
        length_penalty=decoding.length_penalty if decoding.beams > 1 else None,
    )


def complete_tokenizer(tokenizer: PreTrainedTokenizerBase, row: LanguageTokens, language: str) -> None:
    """Make the tokenizer put the row's tokens around a message by itself, in place.

    Where the row has a language there, the library does that itself (`src_lang`), and only the default is set.
    """
    from tokenizers import Tokenizer, processors

    # Not token_type_ids, which generate refuses.
    tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = ["input_ids", "attention_mask"]
    if LANGUAGE in (*row.before, *row.after):
        if row.tag and hasattr(tokenizer, "src_lang"):
            tokenizer.src_lang = tokenizer.init_kwargs["src_lang"] = row.tag(language)
        return
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if isinstance(backend, Tokenizer):
        named = {BEGIN: tokenizer.cls_token, END: tokenizer.eos_token}
        before, after = (
            [str(named.get(place, tokenizer.sep_token)) for place in places] for places in (row.before, row.after)
        )
        ids = [(token, cast(int, tokenizer.convert_tokens_to_ids(token))) for token in {*before, *after}]
        backend.post_processor = processors.TemplateProcessing(single=[*before, "$A", *after], special_tokens=ids)
