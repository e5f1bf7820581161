"""An SQLite file of suggestions and how people used them, without texts (`mrs serve --feedback FILE`).

It keeps the model and language of each answer, the lengths of its suggestions and the parts of their scores, the
probability that one is used, and a hash of the session. Several workers may write to one file.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError

SECONDS = 10.0  # that a worker waits for another one to write
FORMAT = 2  # SQLite's `user_version` of such a file
TABLES = """
CREATE TABLE answers (
    id TEXT PRIMARY KEY, at REAL NOT NULL, session TEXT, model TEXT NOT NULL, version TEXT NOT NULL, language TEXT,
    reason TEXT, used REAL, lengths TEXT NOT NULL, parts TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE feedback (
    id TEXT PRIMARY KEY, at REAL NOT NULL, chosen INTEGER, edited INTEGER NOT NULL, typed INTEGER
) WITHOUT ROWID;
"""
ANSWERS = """
SELECT a.id, a.session, a.model, a.version, a.language, a.used, a.lengths, f.chosen, f.edited, f.typed,
    a.parts
FROM answers AS a LEFT JOIN feedback AS f USING (id) ORDER BY a.at, a.id
"""


class ClickStore:
    """The file, open for writing.

    Raises:
        InputError: it cannot be opened, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._file = sqlite3.connect(path, timeout=SECONDS, isolation_level=None, check_same_thread=False)
            _has_tables(self._file, path)  # before anything is changed
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")  # another worker may be making the tables
                found = _has_tables(self._file, path)
                for statement in () if found else TABLES.split(";"):
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA user_version={FORMAT}")
        except sqlite3.Error as error:
            raise InputError(f"--feedback {path}: {error}; pass a file of an earlier server, or a new one.") from None

    def keep(self, answers: Sequence[dict[str, Any]], session: str | None) -> None:
        """Keep answers without an error, and give each of them its `id`; sqlite3.Error if they cannot be written."""
        ids = [uuid.uuid4().hex for _ in answers]
        who = None if session is None else hashlib.sha256(session.encode()).hexdigest()[:16]
        rows = [
            (
                known, time.time(), who, item["model"], item.get("version", ""), item["language"], item.get("reason"),
                item.get("used"), json.dumps([len(one["reply"]) for one in item["suggestions"]]),
                json.dumps([one.get("parts", {}) for one in item["suggestions"]]),
            )
            for known, item in zip(ids, answers, strict=True)
        ]  # fmt: skip
        with self._lock, self._file:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        for item, known in zip(answers, ids, strict=True):
            item["id"] = known

    def suggestions(self, answer: str) -> int | None:
        """How many suggestions an answer had; None if its id is unknown."""
        with self._lock:
            row = self._file.execute("SELECT lengths FROM answers WHERE id = ?", (answer,)).fetchone()
        return None if row is None else len(json.loads(row[0]))

    def record(self, answer: str, chosen: int | None, edited: bool, typed: int | None) -> None:
        """Keep what a person did with an answer, in place of an earlier report."""
        with self._lock, self._file:
            row = answer, time.time(), chosen, edited, typed
            self._file.execute("INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_answers(path: Path) -> list[tuple[Any, ...]]:
    """The rows of all answers of a file, oldest first: id, hash of the session, model, version, language, probability,
    lengths of the suggestions, its feedback (chosen, edited, typed), and the parts of the suggestions' scores.

    Raises:
        InputError: it is not such a file, or has no answers.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; `mrs serve --feedback {path}` writes it.")
    try:
        file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            rows = file.execute(ANSWERS).fetchall() if _has_tables(file, path) else []
        finally:
            file.close()
    except sqlite3.Error as error:
        raise InputError(f"{path}: not a file of `mrs serve --feedback` ({error}); pass another one.") from None
    if not rows:
        raise InputError(f"{path}: no answers yet; ask the server something first.")
    return rows


def _has_tables(file: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has the tables; InputError if it is a data base of something else."""
    (version,) = file.execute("PRAGMA user_version").fetchone()
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version not in (0, FORMAT) or bool(tables) != (version == FORMAT):
        raise InputError(f"{path}: not a file of `mrs serve --feedback`; pass another one.")
    return bool(version)
