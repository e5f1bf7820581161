"""Checks the key, the size and the time of every request before it reaches the application."""

import asyncio
import json
import logging
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mrs_suggest.serving.observe.logs import LOGGER, log
from mrs_suggest.serving.observe.metrics import Metrics
from mrs_suggest.serving.settings import Keys, Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

RELOAD = "/v1/reload"
ROUTES = (
    "/v1/suggest", "/v1/feedback", "/v1/models", RELOAD, "/health/live", "/health/ready", "/metrics", "/docs",
    "/openapi.json", "/chat", "/widget.js",
)  # fmt: skip
OTHER = "other"  # the label of all other paths: one for each would fill the memory of a Prometheus
QUIET = ("/health/live", "/health/ready", "/metrics")  # requested every few seconds
MAX_HEAD = 32 << 10  # bytes of a request line with its header fields and trailers; ours: four times nginx's buffer
MAX_FIELDS = 100  # header fields of a request; Apache's default
# Bytes of a body that is too large which are read and dropped: a client that is still writing would see a broken
# connection instead of the answer. Ours: 16 times the default limit.
DROPPED = 16 << 20
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class Refusal(Exception):  # noqa: N818  (not an error of the server)
    """A refused request: status, code, sentence and headers of the answer."""

    def __init__(self, status: int, code: str, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class GoneError(Exception):
    """The client has closed the connection."""


class Gate:
    """An ASGI application around another one, which gets complete bodies of authorised callers.

    Args:
        keys: of callers of `/v1/`; empty: anyone may call.
        admins: keys that may reload; empty: reloading is disabled.
    """

    def __init__(self, app: App, settings: Settings, keys: Keys, admins: Keys, metrics: Metrics) -> None:
        self._app, self._settings, self._keys, self._admins, self._metrics = app, settings, keys, admins, metrics
        self._left = dict[str, tuple[float, float]]()  # key -> requests left, and when that was

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        path = scope["path"]
        route = path if path in ROUTES else OTHER
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else os.urandom(8).hex()
        fields: dict[str, Any] = {}
        scope["log_fields"] = fields
        status = 499  # the client has gone

        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # the same answer without a body

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            elif scope["method"] == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        try:
            self._authorise(path, headers)
            body = await self._read(headers, receive) if scope["method"] in ("POST", "PUT", "PATCH") else b""
            await self._app(inner, _replay(body, receive), answer)
        except Refusal as refusal:
            fields["code"] = refusal.code
            await _refuse(answer, refusal)
        except GoneError:
            fields["code"] = "client_gone"
        except Exception:
            LOGGER.exception("error", extra={"fields": {"request_id": request_id}})
            fields["code"] = "internal_error"
            if status == 499:
                sentence = f"an error of the server; see its log for the request id {request_id}."
                await _refuse(answer, Refusal(500, "internal_error", sentence))
        finally:
            seconds = time.perf_counter() - start
            self._metrics.requests.labels(route, status).inc()
            self._metrics.seconds.labels(route).observe(seconds)
            level = logging.DEBUG if route in QUIET and status < 400 else logging.INFO
            if LOGGER.isEnabledFor(level):
                log(
                    level, "request", request_id=request_id, method=scope["method"], route=route, status=status,
                    ms=round(1000 * seconds, 2), **fields,
                )  # fmt: skip

    def _authorise(self, path: str, headers: dict[bytes, bytes]) -> None:
        if not path.startswith("/v1/"):
            return
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else headers.get(b"x-api-key", b"").decode("latin-1")
        if path == RELOAD:
            if not self._admins:
                raise Refusal(403, "reload_disabled", "the server has no admin keys (--admin-keys): reloading is off.")
            if not self._admins.hold(key):
                raise Refusal(
                    401, "unauthorised", "pass an admin key: Authorization: Bearer KEY.", www_authenticate="Bearer"
                )
        elif self._keys and not (self._keys.hold(key) or self._admins.hold(key)):
            raise Refusal(401, "unauthorised", "pass an API key: Authorization: Bearer KEY.", www_authenticate="Bearer")
        else:
            self._limit(key if self._keys else "")

    def _limit(self, key: str) -> None:
        """Refuse a request above the rate: each key has a bucket of one minute's requests, which fills steadily."""
        own = self._keys.limit(key)
        allowed = self._settings.requests_per_minute if own is None else own
        if not allowed:
            return
        most = max(1.0, allowed / self._settings.workers)
        left, since = self._left.get(key, (most, 0.0))
        left = min(most, left + (time.monotonic() - since) * most / 60)
        if left < 1:
            wait = str(math.ceil((1 - left) * 60 / most))
            raise Refusal(
                429, "rate_limited", f"more than {allowed:g} requests a minute; wait {wait} s.", retry_after=wait
            )
        self._left[key] = left - 1, time.monotonic()

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most, seconds = self._settings.max_body, self._settings.read_seconds
        too_large = Refusal(
            413, "too_large", f"the body has more than {most} bytes; send fewer messages at a time.", connection="close"
        )
        length = headers.get(b"content-length", b"0")
        announced = int(length) if length.isdigit() else 0
        if announced > most and (announced > DROPPED or b"expect" in headers):
            raise too_large
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    size += len(chunk)
                    if size <= most:
                        body += chunk
                    elif size > DROPPED:
                        raise too_large
        except TimeoutError:
            sentence = f"the body did not arrive within {seconds:g} s."
            raise Refusal(408, "slow_request", sentence, connection="close") from None
        if size > most:
            raise too_large
        return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receive the body that has been read, then from the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def error_json(code: str, sentence: str) -> bytes:
    """As `mrs_suggest.serving.schema.ErrorResponse`."""
    return json.dumps({"error": {"code": code, "message": sentence}}, ensure_ascii=False).encode()


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = error_json(refusal.code, refusal.sentence)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
