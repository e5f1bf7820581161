"""A client of `mrs serve`, for plain and for asynchronous code; it needs `httpx` alone."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

import httpx

from mrs_suggest.common.errors import MrsError
from mrs_suggest.common.text.predictions import SUGGESTIONS

SECONDS = 15.0  # for a whole request; ours: a little above the server's own limit
AGAIN = (429, 502, 503, 504)  # statuses that a later try can mend
DROPPED = (httpx.NetworkError, httpx.RemoteProtocolError)  # refused, reset, or closed without an answer
FIRST_PAUSE = 0.25  # seconds before the second try; each further pause is twice as long
LONGEST_PAUSE = 60.0  # seconds that a client waits because a server says so


class ServerError(MrsError):
    """The server refuses a request as a whole, or the answer is not from `mrs serve`.

    Attributes:
        status: of HTTP.
        code: such as `invalid_request` or `too_many_waiting`; `unknown` for an error page of another server, such as
            a proxy; `invalid_answer` where the status is a success, but the content is not an answer.
        url: of the request.
        retry_after: seconds after which to try again; None if the server did not say.
    """

    def __init__(self, status: int, code: str, message: str, url: str, retry_after: float | None = None) -> None:
        super().__init__(status, code, message, url, retry_after)
        self.status, self.code, self.message, self.url, self.retry_after = status, code, message, url, retry_after

    def __str__(self) -> str:
        return f"{self.code} ({self.status}) from {self.url}: {self.message}"


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
        tries: how often a request is sent if the server or a proxy is busy (429, 502, 503, 504) or drops the
            connection. The pauses grow, with jitter, and are at least as long as `Retry-After` says. A reload is sent
            only once.
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
        question = _question(messages, language, k, explain, allow, deny)
        return _answers(self._send("POST", "/v1/suggest", self._tries, question))

    def models(self) -> list[dict[str, Any]]:
        """What the server answers with; as `mrs_suggest.serving.schema.ModelItem`."""
        return _models(self._send("GET", "/v1/models", self._tries))

    def reload(self) -> dict[str, Any]:
        """Let the server load its model anew, with an admin key; what it answers with then."""
        return _model(self._send("POST", "/v1/reload", 1))

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

    def _send(self, method: str, path: str, tries: int, content: dict[str, Any] | None = None) -> httpx.Response:
        for tried in range(1, tries):
            try:
                response = self._http.request(method, path, json=content)
            except DROPPED:
                time.sleep(_back_off(tried))
                continue
            if response.status_code not in AGAIN:
                return response
            time.sleep((_retry_after(response) or 0.0) + _back_off(tried))
        return self._http.request(method, path, json=content)


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
        question = _question(messages, language, k, explain, allow, deny)
        return _answers(await self._send("POST", "/v1/suggest", self._tries, question))

    async def models(self) -> list[dict[str, Any]]:
        """As `Client.models`."""
        return _models(await self._send("GET", "/v1/models", self._tries))

    async def reload(self) -> dict[str, Any]:
        """As `Client.reload`."""
        return _model(await self._send("POST", "/v1/reload", 1))

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

    async def _send(self, method: str, path: str, tries: int, content: dict[str, Any] | None = None) -> httpx.Response:
        for tried in range(1, tries):
            try:
                response = await self._http.request(method, path, json=content)
            except DROPPED:
                await asyncio.sleep(_back_off(tried))
                continue
            if response.status_code not in AGAIN:
                return response
            await asyncio.sleep((_retry_after(response) or 0.0) + _back_off(tried))
        return await self._http.request(method, path, json=content)


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
    """Seconds until the server wants to be asked again; given as a number or as a date."""
    text = response.headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return None if math.isnan(seconds) else max(0.0, min(seconds, LONGEST_PAUSE))


def _back_off(tried: int) -> float:
    """Seconds after so many tries; random, so that clients which failed together do not come back together."""
    return FIRST_PAUSE * 2.0 ** (tried - 1) * random.uniform(0.5, 1)


def _content(response: httpx.Response) -> Any:
    """The JSON of a success.

    Raises:
        ServerError: for any other status.
    """
    try:
        content = response.json()
    except ValueError:
        content = None
    if response.is_success:
        return content
    error = content.get("error") if isinstance(content, dict) else None
    error = error if isinstance(error, dict) else {}
    code, message = error.get("code", "unknown"), error.get("message", "an error page that is not from `mrs serve`.")
    raise ServerError(response.status_code, str(code), str(message), str(response.url), _retry_after(response))


def _invalid(response: httpx.Response) -> ServerError:
    message = "the answer is not one of `mrs serve`; check the URL."
    return ServerError(response.status_code, "invalid_answer", message, str(response.url))


def _models(response: httpx.Response) -> list[dict[str, Any]]:
    content = _content(response)
    try:
        return [dict(model) for model in content["models"]]
    except (KeyError, TypeError, ValueError):
        raise _invalid(response) from None


def _model(response: httpx.Response) -> dict[str, Any]:
    content = _content(response)
    try:
        return dict(content["model"])
    except (KeyError, TypeError, ValueError):
        raise _invalid(response) from None


def _answers(response: httpx.Response) -> list[ReceivedAnswer]:
    content = _content(response)
    try:
        return [_answer(item) for item in content["answers"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _invalid(response) from None


def _answer(item: Mapping[str, Any]) -> ReceivedAnswer:
    error = item.get("error")
    return ReceivedAnswer(
        message=item["message"],
        language=item["lang"],
        model=item["model"],
        suggestions=tuple(
            ReceivedSuggestion(row["reply"], float(row["score"]), row.get("parts") or {}, row.get("source") or "")
            for row in item["suggestions"]
        ),
        reason=item.get("reason"),
        error=error["code"] if error else None,
        problem=error["message"] if error else None,
        used=item.get("used"),
        order=item.get("order"),
    )
