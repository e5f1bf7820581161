"""An OpenAI-compatible server on 127.0.0.1, which answers as a test wants, and fails in every way that servers fail."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.scoring_server import running

REPLIES = {
    "English": ["Sure, sounds good!", "Sorry, I can't.", "What time?"],
    "Spanish": ["¡Claro que sí!", "Lo siento, no puedo.", "¿A qué hora?"],
    "German": ["Ja, sehr gerne!", "Leider kann ich nicht.", "Um wie viel Uhr?"],
}


@dataclass
class Failure:
    """What a request gets instead of a chat completion.

    Attributes:
        body: of the answer.
        cut: bytes that are announced and not sent.
        seconds: before the answer.
        drip: seconds before each hundredth of the body.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    seconds: float = 0.0
    drip: float = 0.0


@dataclass
class ChatServer:
    """What the server answers and was asked.

    Attributes:
        url: as in `openai:URL#MODEL`.
        content: request -> the text of the answer.
        planned: of the next requests, in order: a failure, another text, or further fields of the choice's message.
        more: fields of the completion, such as its usage.
        at_once, most: requests that are being answered at the same time, and the most so far.
        seconds: before any answer.
    """

    url: str
    content: Callable[[dict[str, Any]], str]
    planned: list[Failure | str | dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=lambda: {"usage": {"prompt_tokens": 200, "completion_tokens": 30}})
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The JSON of the user turn of each request."""
        return [json.loads(request["messages"][-1]["content"]) for request in self.requests]


def three_replies(request: dict[str, Any]) -> str:
    """Replies in the language that the system message names."""
    system = request["messages"][0]["content"]
    named = next((language for language in REPLIES if f"in {language} " in system), "English")
    return json.dumps({"replies": REPLIES[named]})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        ours: ChatServer = self.server.ours  # type: ignore[attr-defined]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with ours.lock:
            ours.requests.append(asked)
            ours.keys.append(self.headers.get("Authorization"))
            ours.paths.append(self.path)
            planned = ours.planned.pop(0) if ours.planned else None
            ours.at_once += 1
            ours.most = max(ours.most, ours.at_once)
        answer = planned if isinstance(planned, Failure) else Failure(body=self._completion(ours, asked, planned))
        time.sleep(ours.seconds + answer.seconds)
        with ours.lock:
            ours.at_once -= 1
        self._send(answer)

    def _completion(self, ours: ChatServer, asked: dict[str, Any], planned: str | dict[str, Any] | None) -> bytes:
        message = {"role": "assistant", "content": planned if isinstance(planned, str) else ours.content(asked)}
        message |= planned if isinstance(planned, dict) else {}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return json.dumps({"object": "chat.completion", "choices": [choice], **ours.more}).encode()

    def _send(self, answer: Failure) -> None:
        size = len(answer.body)
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(size + answer.cut), "Connection": "close", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        step = max(1, size // 100 if answer.drip else size)
        for begin in range(0, size, step):
            time.sleep(answer.drip)
            self.wfile.write(answer.body[begin : begin + step])
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def chat_server(content: Callable[[dict[str, Any]], str] = three_replies) -> Iterator[ChatServer]:
    """A running server."""
    with running(_Handler, lambda address: ChatServer(f"{address}/v1", content)) as ours:
        yield ours
