"""A client of `mrs serve`, for synchronous and asynchronous code; of other packages, it needs `httpx` only."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import httpx

from mrs_suggest.common.errors import MrsError, first_line
from mrs_suggest.common.io.remote_errors import seconds_to_wait
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.conversation import THEM, Chat

SECONDS = 15.0  # for a whole request; ours: slightly above the server's own limit
AGAIN = (429, 502, 503, 504)  # statuses that may pass
DROPPED = (httpx.NetworkError, httpx.RemoteProtocolError)  # refused, reset, or closed without an answer
FIRST_PAUSE = 0.25  # seconds before the second try; each further pause is twice as long
LONGEST_PAUSE = 60.0  # seconds that a client waits because of `Retry-After`
Content = TypeVar("Content")
Given = ParamSpec("Given")


class ServerError(MrsError):
    """The server refuses a request as a whole, or there is no answer, or none of `mrs serve`.

    Attributes:
        status: of HTTP; 0 without an answer.
        code: such as `invalid_request` or `too_many_waiting`; `unknown` for an error page of another server, such as
            a proxy; `invalid_answer` for a success whose content is not an answer; `no_answer` if the server cannot be
            reached or is too slow.
        url: of the request.
        retry_after: seconds after which to try again, if the server gives them.
    """

    def __init__(self, status: int, code: str, message: str, url: str, retry_after: float | None = None) -> None:
        super().__init__(status, code, message, url, retry_after)
        self.status, self.code, self.message, self.url, self.retry_after = status, code, message, url, retry_after

    def __str__(self) -> str:
        status = f" ({self.status})" if self.status else ""
        return f"{self.code}{status} from {self.url}: {self.message}"


@dataclass(frozen=True)
class ReceivedAnswer:
    """The answer to one message.

    Attributes:
        language: given or detected; None if it is not clear.
        suggestions: in display order, with `parts` and `source` if they were requested.
        reason: a code, if the list of suggestions is empty.
        error, problem: code and sentence of a message that cannot be answered, otherwise None.
        used: the probability that a suggestion is used, if the server has a precision.
        order: "choice" if the suggestions were chosen as a set; None if their scores descend.
        version: of the model, if the server knows it.
        id: for `Client.feedback`, if the server takes it.
    """

    message: str
    language: str | None
    model: str
    suggestions: tuple[Suggestion, ...]
    reason: str | None = None
    error: str | None = None
    problem: str | None = None
    used: float | None = None
    order: str | None = None
    version: str | None = None
    id: str | None = None

    @property
    def replies(self) -> list[str]:
        """The texts of the suggestions."""
        return [suggestion.reply for suggestion in self.suggestions]


class Client:
    """A client that waits for answers; use it as a context manager, or `close` it.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        key: an API key, or an admin key to reload.
        seconds: for a whole request.
        tries: how often a request is sent if the server or a proxy is busy (429, 502, 503, 504) or drops the
            connection. The pauses grow, with jitter, and last at least as long as `Retry-After` says. A reload is sent
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
        self._tries = tries
        self._http = httpx.Client(base_url=url, headers=_headers(key), timeout=seconds, transport=transport)

    def suggest(
        self,
        messages: Sequence[str | Chat],
        language: str | None = None,
        k: int = SUGGESTIONS,
        explain: bool = False,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        min_score: float | None = None,
        model: str | None = None,
        session: str | None = None,
    ) -> list[ReceivedAnswer]:
        """An answer for each message.

        Args:
            messages: texts or conversations, such as `[[{"from": "them", "text": "Lunch?"}]]`, oldest turn first.
            language: of all messages; None: the server detects it for each message.
            k: suggestions per message.
            explain: include the parts of each score.
            allow: suggest only replies with one of these tags; empty: all replies.
            deny: suggest no reply with one of these tags, not even an allowed one.
            min_score: leave out suggestions with a lower score, 0 to 1; None: the default of the replies.
            model: a name of `models`; None: the server decides.
            session: a text that stands for the conversation or its writer: it always gets the same model.

        Raises:
            ServerError: the request is refused as a whole, or the server cannot be reached or does not answer in time.
        """
        for name, given in (("messages", messages), ("allow", allow), ("deny", deny)):
            if isinstance(given, str):
                raise TypeError(f"{name}: expected a list of texts, found one str; pass [text].")
        name, asked = "messages", list[Any](messages)
        if any(isinstance(one, Mapping) for one in asked):
            raise TypeError("messages: expected texts or conversations, found one conversation; pass [turns].")
        if not all(isinstance(one, str) for one in asked):
            turns = [[{"from": THEM, "text": one}] if isinstance(one, str) else one for one in asked]
            name, asked = "conversations", turns
        rest = {"min_score": min_score, "model": model, "session": session}
        question: dict[str, Any] = {key: value for key, value in rest.items() if value is not None}
        question |= {name: asked, "language": language, "k": k, "explain": explain, "allow": [*allow], "deny": [*deny]}
        return self._ask("POST", "/v1/suggest", _answers, question)

    def models(self) -> list[dict[str, Any]]:
        """The models of the server, as `mrs_suggest.serving.schema.ModelItem`."""
        return self._ask("GET", "/v1/models", _models)

    def feedback(
        self,
        answer: ReceivedAnswer | str,
        chosen: int | None,
        edited: bool = False,
        typed: int | None = None,
        shown: Sequence[int] | None = None,
        text: str | None = None,
    ) -> None:
        """Report what a person did with an answer.

        Args:
            answer: the answer, or its id.
            chosen: 1 for the first suggestion; None: none.
            edited: whether the chosen reply was changed before it was sent.
            typed: characters that the person typed.
            shown: places of the suggestions that were displayed, in their order; None: all.
            text: what the person sent; a server keeps it only if its operator allows it (`--feedback-texts`).
        """
        answer = answer if isinstance(answer, str) else answer.id or ""
        places = None if shown is None else list(shown)
        told = {"id": answer, "chosen": chosen, "edited": edited, "typed": typed, "shown": places, "text": text}
        return self._ask("POST", "/v1/feedback", _nothing, told)

    def reload(self) -> list[dict[str, Any]]:
        """Make the server reload its models, with an admin key; returns the new models."""
        return self._ask("POST", "/v1/reload", _models, tries=1)

    def ready(self) -> bool:
        """Whether the server accepts requests."""
        try:
            return self._http.get("/health/ready").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        method: str,
        path: str,
        parse: Callable[[Any], Content],
        content: dict[str, Any] | None = None,
        tries: int | None = None,
    ) -> Content:
        with _reaching(self._http.base_url):
            for tried in range(1, tries or self._tries):
                try:
                    response = self._http.request(method, path, json=content)
                except DROPPED:
                    response = None
                if response is not None and response.status_code not in AGAIN:
                    return _read(response, parse)
                time.sleep(_pause(response, tried))
            return _read(self._http.request(method, path, json=content), parse)


def _awaited(
    method: Callable[Concatenate[Client, Given], Content],
) -> Callable[Concatenate["AsyncClient", Given], Coroutine[Any, Any, Content]]:
    """A method of `Client` for `AsyncClient`, where `_ask` is a coroutine."""

    @wraps(method)
    async def asking(self: "AsyncClient", *given: Given.args, **named: Given.kwargs) -> Content:
        return cast(Content, await cast(Any, method)(self, *given, **named))

    return asking


class AsyncClient:
    """As `Client`, for asynchronous code: the methods that ask the server are awaited."""

    suggest = _awaited(Client.suggest)
    models = _awaited(Client.models)
    feedback = _awaited(Client.feedback)
    reload = _awaited(Client.reload)

    def __init__(
        self,
        url: str,
        key: str | None = None,
        seconds: float = SECONDS,
        tries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._tries = tries
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(key), timeout=seconds, transport=transport)

    async def ready(self) -> bool:
        """As `Client.ready`."""
        try:
            return (await self._http.get("/health/ready")).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(
        self,
        method: str,
        path: str,
        parse: Callable[[Any], Content],
        content: dict[str, Any] | None = None,
        tries: int | None = None,
    ) -> Content:
        with _reaching(self._http.base_url):
            for tried in range(1, tries or self._tries):
                try:
                    response = await self._http.request(method, path, json=content)
                except DROPPED:
                    response = None
                if response is not None and response.status_code not in AGAIN:
                    return _read(response, parse)
                await asyncio.sleep(_pause(response, tried))
            return _read(await self._http.request(method, path, json=content), parse)


@contextmanager
def _reaching(url: httpx.URL) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        message = f"{first_line(error)}; check that the server runs, and the URL, such as http://127.0.0.1:8000."
        raise ServerError(0, "no_answer", message, str(url).rstrip("/")) from error


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _nothing(content: Any) -> None:
    if content is not None:
        raise ValueError


def _pause(response: httpx.Response | None, tried: int) -> float:
    """Seconds before the next try; random, so that clients that failed together do not retry together."""
    asked = None if response is None else _retry_after(response)
    return (asked or 0.0) + FIRST_PAUSE * 2.0 ** (tried - 1) * random.uniform(0.5, 1)


def _retry_after(response: httpx.Response) -> float | None:
    seconds = seconds_to_wait(response.headers.get("retry-after", ""))
    return None if seconds is None else min(seconds, LONGEST_PAUSE)


def _read(response: httpx.Response, parse: Callable[[Any], Content]) -> Content:
    """The parsed JSON of a success; ServerError for anything else."""
    try:
        content = response.json()
    except ValueError:
        content = None
    url = str(response.url)
    if response.is_success:
        try:
            return parse(content)
        except (AttributeError, KeyError, TypeError, ValueError):
            message = "the answer is not one of `mrs serve`; check the URL."
            raise ServerError(response.status_code, "invalid_answer", message, url) from None
    error = content.get("error") if isinstance(content, dict) else None
    error = error if isinstance(error, dict) else {}
    code, message = error.get("code", "unknown"), error.get("message", "an error page that is not from `mrs serve`.")
    raise ServerError(response.status_code, str(code), str(message), url, _retry_after(response))


def _models(content: Any) -> list[dict[str, Any]]:
    return [dict(model) for model in content["models"]]


def _answers(content: Any) -> list[ReceivedAnswer]:
    return [_answer(item) for item in content["answers"]]


def _answer(item: Mapping[str, Any]) -> ReceivedAnswer:
    error = item.get("error")
    return ReceivedAnswer(
        message=item["message"],
        language=item["language"],
        model=item["model"],
        suggestions=tuple(
            Suggestion(row["reply"], float(row["score"]), row.get("parts") or {}, row.get("source") or "")
            for row in item["suggestions"]
        ),
        error=error["code"] if error else None,
        problem=error["message"] if error else None,
        **{name: item.get(name) for name in ("reason", "used", "order", "version", "id")},
    )
