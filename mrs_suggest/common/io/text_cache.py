"""Scores and translations by the hash of their text, in one SQLite file, so that no service is asked twice.

Answers are on the disk when `add` returns, so a killed process loses only those that it had not added. Processes of one
machine may share the file. Answers of different services, or of one service in different languages, do not mix.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text_services import ServiceFacts

Answer = TypeVar("Answer", float, str)
_AT_ONCE = 500  # keys of one query; SQLite's oldest limit on its parameters is 999


class TextCache(Generic[Answer]):
    """The cached answers of one service about texts of one language.

    Args:
        path: of the SQLite file, on a local disk; made if it is missing.
        about: the other things that answers depend on, such as `es`, or `en-de`.

    Raises:
        InputError: the file is not a cache, or cannot be written.
    """

    def __init__(self, path: Path, facts: ServiceFacts, about: str) -> None:
        self._path = path
        identity = json.dumps([facts.kind, facts.name, facts.version, about], ensure_ascii=False)
        self._of = hashlib.sha256(identity.encode()).digest()[:8]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer) WITHOUT ROWID")
        except (sqlite3.Error, OSError) as error:
            raise self._broken(error) from None

    def known(self, texts: Sequence[str]) -> dict[str, Answer]:
        """The answers to those of the texts that have one; InputError if the file cannot be read."""
        found: dict[str, Answer] = {}
        by_key = {self._key(text): text for text in texts}
        try:
            for part in in_batches(by_key, _AT_ONCE):
                query = f"SELECT key, answer FROM answers WHERE key IN ({','.join('?' * len(part))})"
                found.update({by_key[key]: answer for key, answer in self._file.execute(query, part)})
        except sqlite3.Error as error:
            raise self._broken(error) from None
        return found

    def add(self, answers: Mapping[str, Answer]) -> None:
        """Store answers by their texts, on the disk; InputError if the file cannot be written, as on a full disk."""
        rows: Iterable[tuple[bytes, Answer]] = [(self._key(text), answer) for text, answer in answers.items()]
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._broken(error) from None

    def __enter__(self) -> TextCache[Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._of).digest()

    def _broken(self, error: Exception) -> InputError:
        return InputError(
            f"{self._path}: the cache of finished answers cannot be used ({error}); free space on the disk, or remove "
            "the file to begin it anew."
        )
