"""The review of a generated folder by a person: the page of audits on this machine, which sends each decision back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mrs_datasets.audit.files import audit_page
from mrs_datasets.audit.questions import TEXTS, Question
from mrs_datasets.generated.generate import (
    ANSWERS,
    DECISIONS,
    EDIT,
    LONGEST,
    READER,
    REVIEW,
    Teacher,
    Text,
    different,
    read_decisions,
    write_generated,
    written_texts,
)
from mrs_datasets.generated.task import MESSAGES, Task
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import Report
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import escaped
from mrs_suggest.common.text.text import is_blank

QUESTION = Question(
    "decision",
    "Keep the highlighted text?",
    "Drop what nobody would write, what does not fit the rest of its intent, and what the product must not say. The other "
    "text is one example of what it goes with.",
)
MOST_BYTES = 1 << 16  # of a request


class Review:
    """The texts of a generated folder and the decisions about them.

    Args:
        out: the folder.
        teacher: (name, licence) -> what reads the teacher's answers.

    Raises:
        InputError: `mrs data generate` did not write the folder.
    """

    def __init__(self, out: Path, teacher: Callable[[str, str], Teacher]) -> None:
        report = PreparedData(str(out), out, None).report()
        settings: dict[str, Any] = report.get("settings", {})
        if report.get("reader") != READER or not (out / ANSWERS).is_file():
            raise InputError(f"{out}: not a folder that `mrs data generate` wrote; pass one with {ANSWERS} in it.")
        try:
            self.task = TypeAdapter(Task).validate_python(settings["task"])
            self.teacher = teacher(settings["teacher"], settings["licence"])
        except (KeyError, ValidationError):
            raise InputError(f"{out}: its report.json was changed; run `mrs data generate` again.") from None
        self.out, self._lock, self._counts = out, Lock(), Report(READER)
        self.texts = list(different(written_texts(out, self.task, self.teacher, self._counts), self._counts))

    def page(self) -> str:
        """The page, with the decisions so far; each text is shown with the first one of its intent's other side."""
        decided, first, rows = read_decisions(self.out), dict[tuple[str, str, str], str](), []
        for one in self.texts:
            first.setdefault((one.language, one.intent, one.step), one.text)
        judged, sides = {}, {}
        for number, one in enumerate(self.texts, 1):
            pair = [one.text if one.step == step else first.get((*one[:2], step), "") for step in LONGEST]
            rows.append((number, one.language, *map(escaped, pair)))
            sides[number] = TEXTS[one.step != MESSAGES]
            if one in decided:
                judged[number] = dict(zip(("decision", "comment"), decided[one], strict=True))
        about = {"judged": judged, "sides": sides}
        return audit_page((QUESTION,), (), self.task.name, self.out.name, "", rows, DECISIONS, about)

    def decide(self, sent: Any) -> str:
        """Write one decision, or make the folder's data again; return a sentence for the page.

        Raises:
            ValueError: what was sent is neither.
        """
        with self._lock:
            if sent == {"apply": True}:
                return self.apply()
            text, decision, new = self.texts[int(sent["item"]) - 1], sent.get("decision", ""), sent.get("comment", "")
            new = " ".join(str(new).split()) if decision == EDIT else ""
            if decision not in (*DECISIONS, "") or int(sent["item"]) < 1:
                raise ValueError(f"unknown decision {decision!r}")
            if decision == EDIT and (is_blank(new) or len(new) > LONGEST[text.step]):
                raise ValueError(f"expected a text of 1 to {LONGEST[text.step]} characters")
            line = json.dumps({"text": text, "decision": decision, "new": new}, ensure_ascii=False)
            with (self.out / REVIEW).open("a", encoding="utf-8", newline="\n") as file:
                file.write(line + "\n")
        return ""

    def apply(self) -> str:
        """Make the folder's data again, as decided."""
        report = write_generated(self.out, self.task, self.teacher)
        rows = sum(facts["rows"] for splits in report["configs"].values() for facts in splits.values())
        return f"Written: {rows:,} rows."


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, review: Review, path: str, *args: Any) -> None:
        self.review, self.own = review, path
        super().__init__(*args)

    def do_GET(self) -> None:
        self._send(200, "text/html", self.review.page()) if self.path == self.own else self.send_error(404)

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if self.path != self.own or size > MOST_BYTES:
            return self.send_error(404)
        try:
            status, said = 200, self.review.decide(json.loads(self.rfile.read(size)))
        except (InputError, ValueError, LookupError, TypeError, AttributeError) as error:
            status, said = 400, f"Not saved: {error}."
        self._send(status, "application/json", json.dumps({"said": said}))

    def _send(self, status: int, kind: str, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def review_server(review: Review, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A server on this machine and the page's address, which no other page and no other user can guess.

    Raises:
        InputError: the port cannot be used.
    """
    path = f"/{secrets.token_urlsafe(16)}/"
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, review, path))
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {port}: cannot be used ({error}); choose another one, or leave it out.") from None
    return server, f"http://127.0.0.1:{server.server_port}{path}"
