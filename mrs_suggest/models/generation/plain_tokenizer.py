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

FILE = "tokenizer.json"


def saved_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a saved generator, by transformers only if no other library has it (ByT5, M2M100).

    Raises:
        InputError: its files are missing or damaged.
        ModuleNotFoundError: it needs transformers, which is not installed.
    """
    with loading("the tokenizer", folder, "", again(folder)):
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        if (folder / FILE).is_file() and not settings.get("clean_up_tokenization_spaces"):
            return cast("PreTrainedTokenizerBase", PlainTokenizer(Tokenizer.from_file(str(folder / FILE)), settings))
    return cast("PreTrainedTokenizerBase", from_pretrained("AutoTokenizer", folder, option="", advice=again(folder)))


class PlainTokenizer:
    """The methods and special tokens of a transformers tokenizer that a `TextCoder` uses.

    Args:
        settings: of `tokenizer_config.json`.
    """

    def __init__(self, tokenizer: Tokenizer, settings: dict[str, Any]) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer, self._cuts_left = tokenizer, settings.get("truncation_side") == "left"
        self.eos_token_id, self.cls_token_id, self.sep_token_id, self.unk_token_id = (
            self._special(settings.get(f"{name}_token")) for name in ("eos", "cls", "sep", "unk")
        )

    def __call__(
        self,
        texts: str | list[str],
        add_special_tokens: bool,
        split_special_tokens: bool = False,
        truncation: bool = False,
        max_length: int = 0,
    ) -> dict[str, Any]:
        """The `input_ids` of a text, or of each of several, without special tokens."""
        if self._tokenizer.encode_special_tokens != split_special_tokens:  # another thread may be reading it
            self._tokenizer.encode_special_tokens = split_special_tokens
        given = [texts] if isinstance(texts, str) else texts
        found = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(given, add_special_tokens=False)]
        if truncation:
            found = [ids[-max_length:] if self._cuts_left else ids[:max_length] for ids in found]
        return {"input_ids": found[0] if isinstance(texts, str) else found}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def _special(self, token: Any) -> int | None:
        """The id of a special token, which older files describe by a mapping."""
        text = token["content"] if isinstance(token, dict) else token
        return None if text is None else self.convert_tokens_to_ids(text)
