"""A client of `mrs serve`, for plain and for asynchronous code; it needs `httpx` alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from mrs_core.errors import MrsError
from mrs_core.predictions import SUGGESTIONS

SECONDS = 15.0  # for a whole request; ours: a little above the server's own limit
AGAIN = (429, 503)  # statuses that a later try can mend
LONGEST_PAUSE = 60.0  # seconds that a client waits because a server says so


class ServerError(MrsError):
    """The server refuses a request as a whole.

    Attributes:
        status: of HTTP.
        code: such as `invalid_request` or `too_many_waiting`.
        retry_after: seconds after which to try again; None where that would not help.
    """

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(status, code, message, retry_after)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.message}"


@dataclass(frozen=True)
class ReceivedSuggestion:
    """A reply to click, with `parts` and `source` where they were asked for."""

    reply: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict, compare=False)
    source: str = field(default="", compare=False)


@dataclass(frozen=True)
class ReceivedAnswer:
    """The answer to one message.

    Attributes:
        language: given or detected; None where it is not clear.
        suggestions: in the order in which to show them.
        reason: why there is nothing to suggest, a code; None where there is.
        error, problem: the code and the sentence of a message that cannot be answered, else None.
        used: the probability that a suggestion is used, where the server was told a precision.
        order: "choice" if the suggestions were chosen as a set; None if their scores descend.
    """

    message: str
    language: str | None
    model: str
    suggestions: tuple[ReceivedSuggestion, ...]
    reason: str | None = None
    error: str | None = None
    problem: str | None = None
    used: float | None = None
    order: str | None = None

    @property
    def replies(self) -> list[str]:
        """The texts of the suggestions."""
        return [suggestion.reply for suggestion in self.suggestions]


class Client:
    """Asks a server, and waits for its answers; use it as a context manager, or `close` it.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        key: an API key, or an admin key to reload.
        seconds: for a whole request.
        tries: how often a request is sent where the server is full or slow (429, 503), pausing as it asks.
        transport: of httpx, for tests and proxies.

    Example:
        >>> with Client("http://127.0.0.1:8000") as client:     # doctest: +SKIP
        ...     client.suggest(["¿Quedamos mañana?"], "es")[0].replies
        ['Sí, ¿a qué hora te viene bien?', '¡Me apunto!', 'Te digo algo luego.']
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        seconds: float = SECONDS,
        tries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._tries = max(1, tries)
        self._http = httpx.Client(base_url=url, headers=_headers(key), timeout=seconds, transport=transport)

    def suggest(
        self,
        messages: Sequence[str],
        language: str | None = None,
        k: int = SUGGESTIONS,
        explain: bool = False,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
    ) -> list[ReceivedAnswer]:
        """An answer for each message.

        Args:
            language: of all of them; None: the server detects each one's.
            k: suggestions per message.
            explain: with the parts of each score.
            allow: suggest only replies with one of these tags; empty: all replies.
            deny: suggest no reply with one of these tags, not even an allowed one.

        Raises:
            ServerError: the request is refused as a whole.
            httpx.HTTPError: the server cannot be reached, or does not answer in time.
        """
        return _answers(self._send("POST", "/v1/suggest", _question(messages, language, k, explain, allow, deny)))

    def models(self) -> list[dict[str, Any]]:
        """What the server answers with; as `mrs_serving.schema.ModelItem`."""
        return list(self._send("GET", "/v1/models")["models"])

    def reload(self) -> dict[str, Any]:
        """Let the server load its model anew, with an admin key; what it answers with then."""
        return dict(self._send("POST", "/v1/reload")["model"])

    def ready(self) -> bool:
        """Whether the server answers and takes requests."""
        try:
            return self._http.get("/health/ready").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, method: str, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        for left in reversed(range(self._tries)):
            response = self._http.request(method, path, json=content)
            pause = _pause(response) if left else None
            if pause is None:
                break
            time.sleep(pause)
        return _content(response)


class AsyncClient:
    """As `Client`, for asynchronous code."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        seconds: float = SECONDS,
        tries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._tries = max(1, tries)
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(key), timeout=seconds, transport=transport)

    async def suggest(
        self,
        messages: Sequence[str],
        language: str | None = None,
        k: int = SUGGESTIONS,
        explain: bool = False,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
    ) -> list[ReceivedAnswer]:
        """As `Client.suggest`."""
        return _answers(await self._send("POST", "/v1/suggest", _question(messages, language, k, explain, allow, deny)))

    async def models(self) -> list[dict[str, Any]]:
        """As `Client.models`."""
        return list((await self._send("GET", "/v1/models"))["models"])

    async def reload(self) -> dict[str, Any]:
        """As `Client.reload`."""
        return dict((await self._send("POST", "/v1/reload"))["model"])

    async def ready(self) -> bool:
        """As `Client.ready`."""
        try:
            return (await self._http.get("/health/ready")).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, method: str, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        for left in reversed(range(self._tries)):
            response = await self._http.request(method, path, json=content)
            pause = _pause(response) if left else None
            if pause is None:
                break
            await asyncio.sleep(pause)
        return _content(response)


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _question(
    messages: Sequence[str], language: str | None, k: int, explain: bool, allow: Sequence[str], deny: Sequence[str]
) -> dict[str, Any]:
    for name, given in (("messages", messages), ("allow", allow), ("deny", deny)):
        if isinstance(given, str):
            raise TypeError(f"{name}: expected a list of texts, found one str; pass [text].")
    return {
        "messages": list(messages), "language": language, "k": k, "explain": explain, "allow": list(allow),
        "deny": list(deny),
    }  # fmt: skip


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, min(float(response.headers["retry-after"]), LONGEST_PAUSE))
    except (KeyError, ValueError):
        return None


def _pause(response: httpx.Response) -> float | None:
    """Seconds until another try; None where this answer stands."""
    return _retry_after(response) if response.status_code in AGAIN else None


def _content(response: httpx.Response) -> dict[str, Any]:
    try:
        content = response.json()
    except ValueError:
        content = {}
    content = content if isinstance(content, dict) else {}
    if response.is_success:
        return content
    error = content.get("error", {})
    code, message = error.get("code", "unknown"), error.get("message", f"HTTP status {response.status_code}")
    raise ServerError(response.status_code, code, message, _retry_after(response))


def _answers(content: Mapping[str, Any]) -> list[ReceivedAnswer]:
    return [
        ReceivedAnswer(
            message=item["message"],
            language=item["lang"],
            model=item["model"],
            suggestions=tuple(ReceivedSuggestion(**suggestion) for suggestion in item["suggestions"]),
            reason=item.get("reason"),
            error=item["error"]["code"] if "error" in item else None,
            problem=item["error"]["message"] if "error" in item else None,
            used=item.get("used"),
            order=item.get("order"),
        )
        for item in content["answers"]
    ]
