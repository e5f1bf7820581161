"""A message and the turns before it as one text, for retrievers that were trained with context."""

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tokenizers import Tokenizer

from mrs_suggest.models.retrieval.onnx_encoder import message_tokenizer
from mrs_suggest.models.starting_points import checkpoint_prompts


@dataclass(frozen=True)
class ContextReader:
    """Puts turns before a message, each followed by the tokenizer's end token, or else by a line break."""

    tokenizer: Tokenizer  # of messages, without truncation
    prompt: str  # what the encoder puts before messages
    turns: int  # at most, from 1
    tokens: int  # longer texts are cut by the encoder

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The reader of a trained retriever; None if it was trained on messages alone."""
        config = folder / "config.json"
        stored = json.loads(config.read_text(encoding="utf-8")).get("context") if config.is_file() else None
        if stored is None:
            return None
        tokenizer = message_tokenizer(folder)
        tokenizer.no_truncation()
        return cls(tokenizer, checkpoint_prompts(str(folder))[0], stored["turns"], stored["tokens"])

    def read(self, turns: Sequence[str], message: str) -> str:
        """The last turns, oldest first, and the message; blank turns do not count.

        What is too long loses its beginning, at most all turns: of the message, no more is cut than without them.
        """
        text, separator = message, (self.tokenizer.encode("").tokens or ["\n"])[-1]
        for turn in reversed([turn for turn in turns if turn.strip()][-self.turns :]):
            longer = re.sub(r"[\r\n]+", " ", turn) + separator + text
            starts = range(len(longer) - len(separator) - len(text))  # of what may stay of the turn
            start = 0 if self._fits(longer) else bisect_left(starts, True, key=lambda at: self._fits(longer[at:]))
            if start < len(starts):
                text = longer[start:]
            if start:
                break
        return text

    def _fits(self, text: str) -> bool:
        return len(self.tokenizer.encode(self.prompt + text)) <= self.tokens
