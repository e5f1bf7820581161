"""The review of a generated folder by a person: the page of audits on this machine, which sends each decision back."""

import json
import secrets
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mrs_datasets.audit.files import audit_page
from mrs_datasets.audit.questions import DECISIONS, EDIT, REVIEWED, TEXTS
from mrs_datasets.generated.generate import (
    LONGEST,
    MESSAGES,
    READER,
    REVIEW,
    Task,
    Teacher,
    Text,
    read_decisions,
    write_generated,
    written_texts,
)
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import Report
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import escaped
from mrs_suggest.common.text.text import is_blank


def open_generated(out: Path, teacher: Callable[[str, str], Teacher]) -> tuple[Task, Teacher]:
    """The task and, from its name and licence, the teacher; InputError if `mrs data generate` did not write `out`."""
    report = PreparedData(str(out), out, None).report()
    try:
        settings: Any = report["settings"] if report["reader"] == READER else {}
        return TypeAdapter(Task).validate_python(settings["task"]), teacher(settings["teacher"], settings["licence"])
    except (KeyError, ValidationError):
        raise InputError(f"{out}: not a folder that `mrs data generate` wrote; pass one that it did.") from None


def review_page(out: Path, name: str, texts: Sequence[Text]) -> str:
    """The page with the decisions so far; each text is shown with the first one of its intent's other side."""
    decided, rows, judged, sides = read_decisions(out), [], {}, {}
    first = {(one.language, one.intent, one.step): one.text for one in reversed(texts)}
    for number, one in enumerate(texts, 1):
        pair = [one.text if one.step == step else first.get((*one[:2], step), "") for step in LONGEST]
        rows.append((number, one.language, *map(escaped, pair)))
        sides[number] = TEXTS[one.step != MESSAGES]
        if one in decided:
            judged[number] = dict(zip(("decision", "comment"), decided[one], strict=True))
    return audit_page(REVIEWED, name, out.name, "", rows, {"judged": judged, "sides": sides})


def decide(out: Path, texts: Sequence[Text], sent: Any) -> None:
    """Add a decision that the page sent to the folder; ValueError, LookupError or TypeError if it is none."""
    text, decision = dict(enumerate(texts, 1))[sent["item"]], sent.get("decision", "")
    new = " ".join(sent["comment"].split()) if decision == EDIT else ""
    if decision not in (*DECISIONS, "") or (decision == EDIT and (is_blank(new) or len(new) > LONGEST[text.step])):
        raise ValueError(f"expected {', '.join(DECISIONS)}, and a text of 1 to {LONGEST[text.step]} characters")
    with (out / REVIEW).open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps({"text": text, "decision": decision, "new": new}, ensure_ascii=False) + "\n")


def review_server(out: Path, task: Task, teacher: Teacher) -> tuple[ThreadingHTTPServer, str]:
    """A server on this machine, and the address of its page, which no other page can guess."""
    texts, lock = list(written_texts(out, task, teacher, Report(READER), {})), Lock()
    path = f"/{secrets.token_urlsafe(16)}/"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*(200, review_page(out, task.name, texts)) if self.path == path else (404, ""), "text/html")

        def do_POST(self) -> None:
            status, said = 200, ""
            try:
                body = self.rfile.read(min(int(self.headers["Content-Length"]), 1 << 16))
                sent = json.loads(body) if self.path == path else {}
                with lock:
                    if sent == {"apply": True}:
                        said = " ".join(write_generated(out, task, teacher)["notes"])
                    else:
                        decide(out, texts, sent)
            except (InputError, ValueError, LookupError, TypeError, AttributeError) as error:
                status, said = 400, f"Not saved: {error}"
            self._send(status, json.dumps({"said": said}), "application/json")

        def _send(self, status: int, content: str, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    return server, f"http://127.0.0.1:{server.server_port}{path}"
