"""Rows of texts that are tokenized while they train: part by part, in an order that depends on the seed alone."""

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import tokenizers
from numpy.typing import NDArray
from torch.utils.data import Dataset

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.pretraining.cache import cached_folder
from mrs_suggest.training.pretraining.rows import NOTES, TokenRows
from mrs_suggest.training.pretraining.texts import Streamed
from mrs_suggest.training.sampling import PairSampler, quotas

GROUP = 128  # parts at most whose rows are shuffled together: half a gigabyte of text
STOP = 20  # seconds that the other process has to end what it is doing, such as tokenizing
PART, ROW = 40, 16  # bits of a row's number below the number of its part, and below its own in it: its length


@lru_cache(8)
def _settings(encode: partial[TokenRows]) -> str:
    """The hash of what rows depend on in addition to their text."""
    tokenizer, named = encode.keywords["tokenizer"], {**encode.keywords, "tokenizer": tokenizers.__version__}
    tokenizer("")  # takes truncation and padding out of its file, as every use does
    special = sorted(tokenizer.all_special_ids), tokenizer.sep_token_id
    own = f"{encode.func.__name__} {named} {special} {tokenizer.backend_tokenizer.to_str()}"
    return hashlib.sha256(own.encode("utf-8", "surrogateescape")).hexdigest()


class TextRows(Dataset[dict[str, Any]]):
    """The rows of a text; those of a part are made when they are first needed, and kept in the cache of `datasets`.

    Args:
        encode: `texts` and `where` -> rows.
        seed: of the order of the parts.

    Attributes:
        size: number of rows, and `notes` about them: of a text of several parts, estimated from the largest one.
        shared: what each row has in addition to its ids.

    Raises:
        InputError: the tokenizer knows none of the text.
    """

    def __init__(self, texts: Streamed[Any], encode: partial[TokenRows], where: str, seed: int) -> None:
        self._texts, self._encode, self._seed, self.parts = texts, encode, seed, len(texts.parts)
        self._key, self.shared = f"{_settings(encode)} {texts.digest}", dict[str, Any]()
        self._open: dict[int, TokenRows] = {}
        by_size = sorted(range(self.parts), key=lambda number: -texts.parts[number].size)
        self._first = next((number for number in by_size if len(self.part(number))), -1)
        if self._first < 0:
            raise InputError(f"{where}: the tokenizer knows no piece of this text; start from another encoder.")
        scale, found = sum(part.size for part in texts.parts) / texts.parts[self._first].size, self.part(self._first)
        self.size = round(scale * len(found))
        self.notes = {name: round(scale * number) for name, number in found.notes.items()}

    def __len__(self) -> int:
        return self.parts << PART

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {**self.part(number >> PART)[number % (1 << PART) >> ROW], **self.shared}

    def part(self, number: int) -> TokenRows:
        """The rows of a part, which are written if they are not there."""
        if number in self._open:
            return self._open[number]
        part = self._texts.parts[number]

        def write(folder: Path) -> None:
            rows = self._encode(list(self._texts.part(part)), where="")
            np.asarray(rows.ids).tofile(folder / "ids.bin")
            np.savez(folder / "rows.npz", ends=rows.ends, notes=[rows.notes[name] for name in NOTES])

        folder = cached_folder(f"{self._key} {part.digest}", write)
        with np.load(folder / "rows.npz") as file:
            rows = TokenRows(folder / "ids.bin", file["ends"], dict(zip(NOTES, file["notes"].tolist(), strict=True)))
        return self._open.setdefault(number, rows)

    def groups(self, epoch: int, number: int) -> list[NDArray[np.int64]]:
        """The parts of a pass, in groups whose rows are shuffled; the first are small, so that training begins soon,
        that of the run with the part whose rows are known already."""
        order = np.random.default_rng([self._seed, epoch, number]).permutation(self.parts)
        if not epoch + number:
            order = np.array([self._first, *order[order != self._first]])
        ends = np.cumsum([min(1 << n, GROUP) for n in range(self.parts)])
        return np.split(order, ends[ends < self.parts])

    def shuffled(self, epoch: int) -> Iterator[np.int64]:
        """The numbers of the rows, pass after pass, without end."""
        draw = np.random.default_rng([self._seed, epoch])
        for group in chain.from_iterable(self.groups(epoch, number) for number in count()):
            lengths = {part: np.minimum(self.part(part).lengths, (1 << ROW) - 1) for part in group.tolist()}
            rows = [(part << PART) + (np.arange(len(own)) << ROW) + own for part, own in lengths.items()]
            yield from draw.permutation(np.concatenate(rows))


class TextSampler(PairSampler):
    """The batches of a `PairSampler`, of texts whose rows may not be written yet: their numbers of rows are estimates.

    Args:
        lengths: whether rows are sorted by their length in windows.
    """

    def __init__(self, texts: Sequence[TextRows], batch_size: int, *, lengths: bool = False, **named: Any) -> None:
        super().__init__([text.size for text in texts], batch_size, **named)
        self._texts, self._sort = texts, lengths and self._window > 0

    def drawn(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        draw = np.random.default_rng([self._seed, epoch])
        starts = np.cumsum([0, *map(len, self._texts[:-1])])
        rows = [map(start.__add__, text.shuffled(epoch)) for start, text in zip(starts, self._texts, strict=True)]
        if self._mixed:
            counts = quotas(self._shares, self.steps * self._step, np.zeros_like(self._quotas))
            which = np.repeat(np.arange(len(rows), dtype=np.uint16), counts)
            draw.shuffle(which)
            return self._steps((next(rows[number]) for number in which), draw)
        counted = (islice(one, int(quota) * self._step) for one, quota in zip(rows, self._quotas, strict=True))
        own = [self._steps(one, draw) for one in counted]
        return (next(own[number]) for number in draw.permutation(np.repeat(np.arange(len(own)), self._quotas)))

    def _steps(self, rows: Iterable[np.int64], draw: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        for window in in_batches(rows, self._step * (self._window if self._sort else 1)):
            if self._sort:
                window.sort(key=lambda number: number % (1 << ROW))
            yield from draw.permutation(np.reshape(window, (-1, self._step)))


@contextmanager
def written_ahead(texts: Sequence[TextRows]) -> Iterator[None]:
    """While the block runs, another process writes the rows of texts; training itself writes what it needs before."""
    with tempfile.TemporaryFile() as job:
        pickle.dump(partial(_write, texts, os.getpid()), job)
        job.seek(0)
        places = {"HF_DATASETS_CACHE": str(datasets.config.HF_DATASETS_CACHE), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-P", "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)()"]
        process = subprocess.Popen(command, stdin=job, stderr=subprocess.DEVNULL, env={**os.environ, **places})
    try:
        yield
    finally:
        process.terminate()  # what it is writing is removed, and unlocked
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP)
        process.kill()
        process.wait()


def _write(texts: Sequence[TextRows], parent: int) -> None:
    """Write a part of each text in turn, in the order of the first epoch, while the parent lives."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parts = ([(text, part) for part in np.concatenate(text.groups(0, 0)).tolist()] for text in texts)
    for text, part in filter(None, chain.from_iterable(zip_longest(*parts))):
        if os.getppid() == parent:
            text.part(part)
