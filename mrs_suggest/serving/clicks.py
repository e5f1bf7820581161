"""Suggestions and how people used them (`mrs serve --feedback PLACE`): an SQLite file, or PostgreSQL.

Kept are the model and language of each answer, the lengths of its suggestions, their tags and the parts of their
scores, the probability that one is used, and a hash of the session; of texts only what people sent, and that only with
`--feedback-texts`. Rows are added, never changed: of several reports on an answer, the last one counts. Several workers
may write to one file, and several servers to one database.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.remote_errors import masked

if TYPE_CHECKING:
    import psycopg

    Connection = sqlite3.Connection | psycopg.Connection[Any]

SECONDS = 10.0  # for a connection, and that a worker waits for another one to write
FORMAT = 3  # SQLite's `user_version` of such a file, and in the name of PostgreSQL's schema
SCHEMA = f"mrs_feedback_{FORMAT}"
LOCK = 1836217190  # of PostgreSQL, while the tables are made; any number will do
URL = re.compile(r"postgres(ql)?://")
CLICK = "INSERT INTO feedback (id, at, shown, chosen, edited, typed, text) VALUES (?, ?, ?, ?, ?, ?, ?)"
TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, session TEXT, model TEXT NOT NULL, version TEXT NOT NULL,
    language TEXT, reason TEXT, used DOUBLE PRECISION, lengths TEXT NOT NULL, parts TEXT NOT NULL,
    tags TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS feedback (
    number {number} PRIMARY KEY, id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, shown TEXT, chosen INTEGER,
    edited INTEGER NOT NULL, typed INTEGER, text TEXT
);
CREATE INDEX IF NOT EXISTS feedback_of ON feedback (id)
"""
ANSWERS = """
SELECT a.id, a.session, a.model, a.version, a.language, a.used, a.lengths, f.chosen, f.edited, f.typed,
    a.parts, f.shown, a.tags
FROM answers AS a LEFT JOIN feedback AS f ON f.number = (SELECT max(number) FROM feedback WHERE id = a.id)
ORDER BY a.at, a.id
"""


class ClickError(Exception):
    """The place cannot be read or written now: a full disk, or a database that is down."""


class ClickStore:
    """An SQLite file, or the database of a PostgreSQL URL, open for writing.

    Raises:
        InputError: it cannot be opened, or is something else.
    """

    def __init__(self, place: str) -> None:
        self._lock, self._place = threading.Lock(), place
        self._connection: Connection = self._open()

    def _open(self) -> Connection:
        if URL.match(self._place):
            return _postgres(self._place)
        path = Path(self._place)
        if not path.absolute().parent.is_dir():
            raise InputError(f"--feedback {path}: the folder {path.parent} does not exist; make it, or choose another.")
        try:
            file = sqlite3.connect(path, timeout=SECONDS, isolation_level=None, check_same_thread=False)
            _has_tables(file, path)  # before anything is changed
            file.execute("PRAGMA journal_mode=WAL")
            file.execute("PRAGMA synchronous=NORMAL")
            with file:
                file.execute("BEGIN IMMEDIATE")  # another worker may be making the tables
                for statement in TABLES.format(number="INTEGER").split(";"):
                    file.execute(statement)
                file.execute(f"PRAGMA user_version={FORMAT}")
        except sqlite3.Error as error:
            raise InputError(f"--feedback {path}: {error}; pass a file of an earlier server, or a new one.") from None
        return file

    def keep(self, answers: Sequence[dict[str, Any]], session: str | None) -> None:
        """Keep answers without an error, whose suggestions may have `parts` and `tags`, and give each of them its `id`;
        ClickError if they cannot be written."""
        ids = [uuid.uuid4().hex for _ in answers]
        who = None if session is None else hashlib.sha256(session.encode()).hexdigest()[:16]
        rows = [
            (
                known, time.time(), who, item["model"], item.get("version", ""), item["language"], item.get("reason"),
                item.get("used"), json.dumps([len(one["reply"]) for one in item["suggestions"]]),
                json.dumps([one.get("parts", {}) for one in item["suggestions"]]),
                json.dumps([one.get("tags", []) for one in item["suggestions"]]),
            )
            for known, item in zip(ids, answers, strict=True)
        ]  # fmt: skip
        self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        for item, known in zip(answers, ids, strict=True):
            item["id"] = known

    def suggestions(self, answer: str) -> int | None:
        """How many suggestions an answer had; None if its id is unknown, ClickError if it cannot be read."""
        row = self._run("SELECT lengths FROM answers WHERE id = ?", [(answer,)])
        return None if row is None else len(json.loads(row[0]))

    def record(
        self, answer: str, shown: list[int] | None, chosen: int | None, edited: bool, typed: int | None,
        text: str | None,
    ) -> None:  # fmt: skip
        """Add a report on what a person did with an answer; ClickError if it cannot be written."""
        places = None if shown is None else json.dumps(shown)
        text = text and text.replace("\0", "")  # PostgreSQL has no such texts
        self._run(CLICK, [(answer, time.time(), places, chosen, int(edited), typed, text)])

    def _run(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> Any:
        """Run a statement for each of the rows, in one transaction; the first row of what the last one finds."""
        with self._lock:
            try:
                if getattr(self._connection, "closed", False):  # PostgreSQL was started again
                    self._connection = self._open()
                return _transaction(self._connection, statement, rows)
            except Exception as error:  # of SQLite or psycopg, which have no base in common
                raise ClickError(first_line(error)) from None

    def close(self) -> None:
        self._connection.close()


def read_answers(place: str) -> list[tuple[Any, ...]]:
    """The rows of all answers of a file or a PostgreSQL database, oldest first: id, hash of the session, model,
    version, language, probability, lengths of the suggestions, its last report (chosen, edited, typed), the parts of
    the suggestions' scores, the places of those that were shown in their order (JSON; None: all), and their tags.

    Raises:
        InputError: it is not such a place, or has no answers.
    """
    path = Path(place)
    if URL.match(place):
        with _as_sentence(place), _connected(place) as connection:
            rows = connection.execute(ANSWERS).fetchall() if _has_feedback(connection) else []
    elif not path.is_file():
        raise InputError(f"{path}: no such file; `mrs serve --feedback {path}` writes it.")
    else:
        try:
            file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                rows = file.execute(ANSWERS).fetchall() if _has_tables(file, path) else []
            finally:
                file.close()
        except sqlite3.Error as error:
            raise InputError(f"{path}: not a file of `mrs serve --feedback` ({error}); pass another one.") from None
    if not rows:
        raise InputError(f"{_shown(place)}: no answers yet; ask the server something first.")
    return rows


def _has_tables(file: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has the tables; InputError if it is a database of something else."""
    (version,) = file.execute("PRAGMA user_version").fetchone()
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if 0 < version < FORMAT:
        raise InputError(f"{path}: written by an earlier version of the package; pass a new file.")
    if version not in (0, FORMAT) or bool(tables) != (version == FORMAT):
        raise InputError(f"{path}: not a file of `mrs serve --feedback`; pass another one.")
    return bool(version)


def _postgres(url: str) -> psycopg.Connection[Any]:
    """A connection whose tables are in `SCHEMA`, made if they are missing."""
    with _as_sentence(url):
        connection = _connected(url)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))  # another worker may be making them
            if not _has_feedback(connection):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                connection.execute(TABLES.format(number="BIGINT GENERATED ALWAYS AS IDENTITY"))
        return connection


def _connected(url: str) -> psycopg.Connection[Any]:
    import psycopg

    options = f"-c search_path={SCHEMA}"
    return psycopg.connect(url, autocommit=True, connect_timeout=int(SECONDS), options=options)


def _has_feedback(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT to_regclass('feedback')").fetchone() != (None,)


@contextmanager
def _as_sentence(url: str) -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        told = first_line(error)
        if "percent-encoded" in told:  # with a part of the password
            told = "a % in it is not followed by two hexadecimal digits"
        raise InputError(
            f"{_shown(url)}: {told}; expected postgresql://USER@HOST/DATABASE of a running server, and "
            "the password in PGPASSWORD or ~/.pgpass."
        ) from None


def _transaction(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    cursor, lite = connection.cursor(), isinstance(connection, sqlite3.Connection)
    cursor.execute("BEGIN")
    try:
        for row in rows:
            cursor.execute(statement if lite else statement.replace("?", "%s"), row)
        found = cursor.fetchone() if cursor.description else None
        cursor.execute("COMMIT")
    except BaseException:
        with suppress(Exception):  # a lost connection has ended its transaction
            cursor.execute("ROLLBACK")
        raise
    return found


def _shown(place: str) -> str:
    """The place without user, password and parameters."""
    return masked(place).replace("***@", "") if URL.match(place) else place
