"""The message encoder of a retriever on ONNX Runtime, where `mrs models export --onnx` put one into its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from mrs_suggest.common.batches import by_length
from mrs_suggest.models.exports import GRAPH, ONNX, SETTINGS, bounded_threads, damaged, note_missing, read_settings
from mrs_suggest.models.starting_points import ROUTER

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "vectors"


class OnnxEncoder:
    """Texts -> (n, dimension) float32 vectors; build it with `load`. `settings` are those of `onnx_writer.py`."""

    def __init__(self, session: InferenceSession, tokenizer: Tokenizer, settings: Mapping[str, Any]) -> None:
        self._session, self._tokenizer = session, tokenizer
        self._prompt, self._pad = str(settings["prompt"]), int(settings["pad"])
        self._dimension = int(settings["dimension"])

    @classmethod
    def load(cls, folder: Path, export: Path | None = None) -> OnnxEncoder | None:
        """The exported message encoder of a model's folder; None without an export, or without the extra.

        Args:
            export: the folder with `onnx/`, if it is not the model's own.
        """
        place = folder if export is None else export
        settings = read_settings(place, ONNX)
        if settings is None:
            return None
        try:
            from onnxruntime import InferenceSession, SessionOptions
        except ImportError:
            note_missing("onnxruntime", ONNX, folder)
            return None
        options = SessionOptions()
        options.intra_op_num_threads = bounded_threads()  # 0: one for each core
        path = place / ONNX / GRAPH
        try:
            session = InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            tokenizer = message_tokenizer(folder)
            tokenizer.enable_truncation(int(settings["max_tokens"]))
            return cls(session, tokenizer, settings)
        except (KeyError, TypeError, ValueError):
            raise damaged(place / ONNX / SETTINGS, folder) from None
        except Exception as error:  # the runtime has a separate class for each kind of damage
            raise damaged(path, folder) from error

    def encode(self, texts: Sequence[str], batch_size: int = 64) -> NDArray[np.float32]:
        """Message vectors in the order of the texts."""
        result = np.empty((len(texts), self._dimension), np.float32)
        encodings = self._tokenizer.encode_batch([self._prompt + text for text in texts])
        for numbers in by_length(encodings, batch_size):
            result[numbers] = self._run([encodings[number].ids for number in numbers])
        return result

    def _run(self, rows: list[list[int]]) -> np.ndarray:
        ids = np.full((len(rows), len(rows[0])), self._pad, np.int64)  # the first is the longest
        mask = np.zeros(ids.shape, np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        return self._session.run([OUTPUT], dict(zip(INPUTS, (ids, mask), strict=True)))[0]


def message_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a retriever's message route, without padding."""
    route = json.loads((folder / ROUTER).read_text(encoding="utf-8"))["structure"]["query"]
    tokenizer = Tokenizer.from_file(str(folder / route[0] / "tokenizer.json"))
    tokenizer.no_padding()
    return tokenizer
