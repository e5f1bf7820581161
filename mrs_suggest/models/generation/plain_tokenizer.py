"""The tokenizer of a saved generator on the library tokenizers alone, so that answering needs no transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tokenizers import Tokenizer

from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.checkpoint_loading import from_pretrained, loading

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def saved_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a saved generator; of transformers only if it has no `tokenizer.json` (ByT5, M2M100).

    Raises:
        InputError: its files are missing or damaged.
        ModuleNotFoundError: it needs transformers, which is not installed.
    """
    path, found = folder / "tokenizer.json", None
    with loading("the tokenizer", folder, "", again(folder)):
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        if path.is_file():
            found = PlainTokenizer(Tokenizer.from_file(str(path)), settings)
    found = found or from_pretrained("AutoTokenizer", folder, option="", advice=again(folder))
    return cast("PreTrainedTokenizerBase", found)


# What transformers' `clean_up_tokenization` writes without the spaces, in its order.
SPACED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")


class PlainTokenizer:
    """What a `TextCoder` uses of a transformers tokenizer; `settings` are those of `tokenizer_config.json`."""

    def __init__(self, tokenizer: Tokenizer, settings: dict[str, Any]) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer, self._cuts_left = tokenizer, settings.get("truncation_side") == "left"
        self._cleans = bool(settings.get("clean_up_tokenization_spaces")) and type(tokenizer.model).__name__ != "BPE"
        self.convert_tokens_to_ids = tokenizer.token_to_id
        named = [settings.get(f"{name}_token") for name in ("eos", "cls", "sep", "unk")]
        texts = [token["content"] if isinstance(token, dict) else token for token in named]  # older files have mappings
        self.eos_token_id, self.cls_token_id, self.sep_token_id, self.unk_token_id = (
            None if text is None else tokenizer.token_to_id(text) for text in texts
        )

    def __call__(
        self, texts: str | list[str], add_special_tokens: bool, split_special_tokens: bool = False,
        truncation: bool = False, max_length: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """The `input_ids` of a text, or of each of several."""
        if self._tokenizer.encode_special_tokens != split_special_tokens:  # another thread may be reading it
            self._tokenizer.encode_special_tokens = split_special_tokens
        given = [texts] if isinstance(texts, str) else texts
        found = [one.ids for one in self._tokenizer.encode_batch_fast(given, add_special_tokens=add_special_tokens)]
        if truncation:
            found = [ids[-max_length:] if self._cuts_left else ids[:max_length] for ids in found]
        return {"input_ids": found[0] if isinstance(texts, str) else found}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        text = str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))
        for spaced in SPACED if self._cleans else ():
            text = text.replace(spaced, spaced.strip())
        return text
