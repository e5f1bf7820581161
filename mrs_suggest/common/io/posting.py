"""JSON posted to a service over HTTP: one address, retries, and a key that stays secret."""

import http.client
import json
import math
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO, Any
from urllib.parse import urlsplit

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.remote_errors import masked, seconds_to_wait

LOOPBACK = ("localhost", "127.0.0.1", "::1")
REFUSED = (401, 403)
BAD, ABOUT_KEY = 400, b"API_KEY_INVALID"  # how Google's services refuse a key
PASSING = (408, 429)
SERVER_ERRORS = 500
AT_ONCE = 1 << 16  # bytes that are read at a time


class RefusedRequestError(InputError):
    """The service refuses a request, which has nothing to do with the key."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another address would receive the texts and the key."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _PassingError(Exception):
    """A failure that may pass."""

    def __init__(self, reason: str, retry_after: str | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Poster:
    """Sends JSON to one address, from one thread or several; a subclass describes the service.

    Args:
        key_variable: the environment variable with the key, which is sent by https, or on this machine; "": no key.
        key_header: the header of the key, and the text before the key.
        per_second: most requests in a second, repeated ones included; None: no limit.
        option: of the command line, named in errors.

    Raises:
        InputError: the address or the key is invalid.
    """

    kind = protocol = later = option = key_variable = ""  # for errors: what it is, and what to do
    check = "the address"  # when a request is refused
    # Seconds, also for a whole answer; waits are doubled, and longer by a random share of up to `jitter`.
    tries, first_wait, jitter, longest_wait, timeout, most_bytes = 6, 1.0, 0.0, 600.0, 60.0, 64 << 20

    def __init__(
        self,
        url: str,
        key_variable: str | None = None,
        key_header: tuple[str, str] = ("Authorization", "Bearer "),
        per_second: float | None = None,
        option: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url, self.sent = url, list[float]()
        self._what = f"{option or self.option} {masked(url)}"
        self._key_variable = key_variable = self.key_variable if key_variable is None else key_variable
        self._headers = {"Content-Type": "application/json", "User-Agent": "mrs-suggest"}
        if not is_sound(url):
            raise InputError(
                f"{self._what}: expected an address such as https://example.org/score, without a password."
            )
        if key := os.environ.get(key_variable, ""):
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise InputError(f"{key_variable}: not a valid key; set it again, without spaces and line breaks.")
            parts = urlsplit(url)
            if parts.scheme != "https" and parts.hostname not in LOOPBACK:
                raise InputError(f"{self._what}: the key in {key_variable} is sent by https only; pass https://...")
            self._headers[key_header[0]] = key_header[1] + key
        self._pause = 1 / per_second if per_second else 0.0
        self._sleep, self._clock = sleep, clock
        self._next = -math.inf
        self._opener = urllib.request.build_opener(_NoRedirects)

    def post(self, content: object, tries: int | None = None) -> Mapping[str, Any]:
        """The JSON object of the answer.

        Raises:
            InputError: the service cannot be reached or fails `tries` times, refuses the key or the request, or does
                not answer with a JSON object.
        """
        body, most = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"), tries or self.tries
        for number in range(most):
            if (now := self._clock()) < self._next:
                self._sleep(self._next - now)
            self.sent.append(self._clock())
            self._next = max(self.sent[-1], self._next) + self._pause
            try:
                return self._read(body)
            except _PassingError as failure:
                if number + 1 == most:
                    what = f"{self._what}: failed with {failure} (try {most} of {most})"
                    raise InputError(f"{what}; {self.later}.") from None
                asked = seconds_to_wait(failure.retry_after or "") or 0.0
                if asked > self.longest_wait:
                    raise InputError(f"{self._what}: asks to wait {asked:,.0f} seconds; {self.later}.") from None
                wait = self.first_wait * 2**number * (1 + self.jitter * random.random())
                self._sleep(max(wait, asked))
        raise AssertionError("unreachable")

    def wrong(self, problem: str) -> InputError:
        """The error for an answer that does not follow the protocol."""
        return InputError(f"{self._what}: not the answer of {self.kind}: {problem}; {self.protocol}.")

    def _read(self, body: bytes) -> Mapping[str, Any]:
        request = urllib.request.Request(self.url, body, self._headers, method="POST")
        end = self._clock() + self.timeout
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                content = self._content(answer, end)
        except urllib.error.HTTPError as error:
            with error:
                about_key = error.code == BAD and ABOUT_KEY in _beginning(error)
                raise self._failed(REFUSED[0] if about_key else error.code, error.headers.get("Retry-After")) from None
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            reason = getattr(error, "reason", error)
            raise _PassingError(masked(first_line(reason if isinstance(reason, BaseException) else error))) from None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise self.wrong("it is not JSON") from None
        if not isinstance(found, dict):
            raise self.wrong("it is not a JSON object")
        return found

    def _content(self, answer: http.client.HTTPResponse, end: float) -> bytes:
        content = bytearray()
        while part := answer.read1(AT_ONCE):
            content += part
            if len(content) > self.most_bytes:
                raise self.wrong(f"it is longer than {self.most_bytes >> 20} MiB")
            if self._clock() > end:
                raise _PassingError(f"no complete answer within {self.timeout:g} s")
        if answer.length:  # bytes that were announced and did not come
            raise _PassingError("an answer that was cut off")
        return bytes(content)

    def _failed(self, status: int, retry_after: str | None) -> Exception:
        if status in REFUSED:
            key = self._key_variable
            held = os.environ.get(key)
            why = f"the key in {key} (expired?); renew it" if held else f"requests without a key; set {key or 'one'}"
            return InputError(f"{self._what}: refuses {why} (HTTP {status}).")
        if status in PASSING or status >= SERVER_ERRORS:
            return _PassingError(f"HTTP {status}", retry_after)
        return RefusedRequestError(f"{self._what}: refuses the request (HTTP {status}); check {self.check}.")


def _beginning(answer: IO[bytes]) -> bytes:
    """The first bytes of an answer, fewer if the connection breaks."""
    try:
        return answer.read(4096)
    except (OSError, http.client.HTTPException):
        return b""


def is_sound(url: str) -> bool:
    """Whether an address is one of http or https, with a host, and no name or password before it."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        return False
    return named and parts.username is None and url.isascii() and url.isprintable() and " " not in url
