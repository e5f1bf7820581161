"""Scorers behind HTTP: a small JSON protocol of this project, and that of Perspective.

A service with this project's protocol answers one kind of request, at one address:

    POST {"texts": ["...", ...], "language": "es"}
    200  {"scores": [0.02, ...], "version": "..."}          one score in [0, 1] for each text, in their order

`version` is of the model: equal versions promise equal scores. The answer may also have `name`, `licence` and
`languages` (codes), which the first request, without texts, asks for. A key is sent as `Authorization: Bearer KEY`.
429 and 503 may have `Retry-After`.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any
from urllib.parse import urlsplit

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.remote_errors import masked, seconds_to_wait
from mrs_suggest.common.text.text_services import ServiceFacts

BATCH = 64  # ours: texts in a request
FIRST_TRIES = 2  # of the first request, so that a wrong address fails early
PERSPECTIVE_URL = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"
PERSPECTIVE_PER_SECOND = 1.0  # Zhang et al. 2021, section 2.2: free access was one request per second
PERSPECTIVE_BYTES = 20_480  # of a text
PERSPECTIVE_LANGUAGES = frozenset(
    {"ar", "zh", "cs", "nl", "en", "fr", "de", "hi", "id", "it", "ja", "ko", "pl", "pt", "ru", "es", "sv"}
)
TRIES = 6  # ours: with the waits below, half a minute of failures
FIRST_WAIT = 1.0  # seconds before the second try; doubled for each further one
LONGEST_WAIT = 600.0  # seconds that a service may ask to wait (Retry-After)
TIMEOUT = 60.0  # seconds without a byte from the service
MOST_BYTES = 64 << 20  # of an answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
REFUSED = (401, 403)
BAD, ABOUT_KEY = 400, b"API_KEY_INVALID"  # how Google's services refuse a key
PASSING = (408, 429)
SERVER_ERRORS = 500


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
    """Sends JSON to one address.

    Args:
        url: http or https.
        key_variable: the environment variable with the key, which is sent by https, or on this machine.
        key_header: the header of the key, and the text before the key.
        per_second: most requests in a second, repeated ones included; None: no limit.
        sleep, clock: seconds; for tests.
    """

    def __init__(
        self,
        url: str,
        key_variable: str = "MRS_TOXICITY_KEY",
        key_header: tuple[str, str] = ("Authorization", "Bearer "),
        per_second: float | None = None,
        option: str = "--toxicity",
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._what = f"{option} {masked(url)}"
        self._key_variable = key_variable
        self._headers = {"Content-Type": "application/json", "User-Agent": "mrs-suggest"}
        if not _is_sound(url):
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

    def post(self, content: object, tries: int = TRIES) -> Mapping[str, Any]:
        """The JSON object of the answer.

        Raises:
            InputError: the service cannot be reached or fails `tries` times, refuses the key or the request, or does
                not answer with a JSON object.
        """
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        for number in range(tries):
            if (now := self._clock()) < self._next:
                self._sleep(self._next - now)
            self._next = max(self._clock(), self._next) + self._pause
            try:
                return self._read(body)
            except _PassingError as failure:
                if number + 1 == tries:
                    raise InputError(
                        f"{self._what}: failed {tries} times, the last time with {failure}; finished scores are kept: "
                        "run the same command again with --resume when the service works."
                    ) from None
                asked = seconds_to_wait(failure.retry_after or "") or 0.0
                if asked > LONGEST_WAIT:
                    raise InputError(
                        f"{self._what}: asks to wait {asked:,.0f} seconds; finished scores are kept: run the same "
                        "command with --resume after that."
                    ) from None
                self._sleep(max(FIRST_WAIT * 2**number, asked))
        raise AssertionError("unreachable")

    def wrong(self, problem: str) -> InputError:
        """The error for an answer that does not follow the protocol."""
        return InputError(f"{self._what}: not the answer of a scorer: {problem}; docs/pipeline.md has the protocol.")

    def checked(self, score: object) -> float:
        """A score of the answer; InputError if it is not a number in [0, 1]."""
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise self.wrong(f"{str(score)[:40]!r} is not a number from 0 to 1")
        return float(score)

    def _read(self, body: bytes) -> Mapping[str, Any]:
        request = urllib.request.Request(self.url, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return self._parsed(answer)
        except urllib.error.HTTPError as error:
            with error:
                about_key = error.code == BAD and ABOUT_KEY in _beginning(error)
                raise self._failed(REFUSED[0] if about_key else error.code, error.headers.get("Retry-After")) from None
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            reason = getattr(error, "reason", error)
            raise _PassingError(masked(first_line(reason if isinstance(reason, BaseException) else error))) from None

    def _parsed(self, answer: IO[bytes]) -> Mapping[str, Any]:
        content = answer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise self.wrong(f"it is longer than {MOST_BYTES >> 20} MB")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise self.wrong("it is not JSON") from None
        if not isinstance(found, dict):
            raise self.wrong("it is not a JSON object")
        return found

    def _failed(self, status: int, retry_after: str | None) -> Exception:
        if status in REFUSED:
            key = self._key_variable
            held = os.environ.get(key)
            why = f"the key in {key} (expired?); renew it" if held else f"requests without a key; set {key}"
            return InputError(f"{self._what}: refuses {why} (HTTP {status}).")
        if status in PASSING or status >= SERVER_ERRORS:
            return _PassingError(f"HTTP {status}", retry_after)
        return InputError(f"{self._what}: refuses the request (HTTP {status}); check the address.")


def _beginning(answer: IO[bytes]) -> bytes:
    """The first bytes of an answer, fewer if the connection breaks."""
    try:
        return answer.read(4096)
    except (OSError, http.client.HTTPException):
        return b""


def _is_sound(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        return False
    return named and parts.username is None and url.isascii() and url.isprintable() and " " not in url


class HttpScorer:
    """A service with this project's protocol.

    Raises:
        InputError: it cannot be reached, refuses, or does not follow the protocol.
    """

    def __init__(self, poster: Poster, batch_size: int | None = None) -> None:
        self._poster, self.at_once = poster, batch_size or BATCH
        about = self._ask([], "en", FIRST_TRIES)
        languages = about.get("languages")
        if not (languages is None or (isinstance(languages, list) and all(isinstance(one, str) for one in languages))):
            raise self._poster.wrong("`languages` is not a list of codes")
        self._languages = None if languages is None else frozenset(languages)
        name = f"{about['name']} at {masked(poster.url)}" if about.get("name") else masked(poster.url)
        self.facts = ServiceFacts("http", name, about["version"], str(about.get("licence") or ""))

    def languages(self) -> frozenset[str] | None:
        return self._languages

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n scores; InputError as for the class, or if its version has changed."""
        scores: list[float] = []
        for first in range(0, len(texts), self.at_once):
            found = self._ask(texts[first : first + self.at_once], language)
            if found["version"] != self.facts.version:
                raise InputError(
                    f"{masked(self._poster.url)}: its version changed from {self.facts.version!r} to "
                    f"{found['version']!r}, and their scores must not be mixed; start again with the new one."
                )
            scores += found["scores"]
        return scores

    def _ask(self, texts: Sequence[str], language: str, tries: int = TRIES) -> dict[str, Any]:
        answer = self._poster.post({"texts": list(texts), "language": language}, tries)
        if not isinstance(answer.get("version"), str) or not answer["version"]:
            raise self._poster.wrong("it has no `version`")
        if not isinstance(answer.get("scores"), list) or len(answer["scores"]) != len(texts):
            raise self._poster.wrong(f"it does not have {len(texts)} `scores`")
        return {**answer, "scores": [self._poster.checked(score) for score in answer["scores"]]}


class PerspectiveScorer:
    """The attribute TOXICITY of Perspective, one text per request; the service ends after 2026.

    Args:
        poster: sends requests to its address, with the key in `x-goog-api-key`.
    """

    at_once = 1

    def __init__(self, poster: Poster) -> None:
        self._poster = poster
        self.facts = ServiceFacts("http", f"Perspective at {masked(poster.url)}", "v1alpha1, TOXICITY")

    def languages(self) -> frozenset[str]:
        return PERSPECTIVE_LANGUAGES

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n scores; a text is cut at 20,480 bytes, the limit of the service."""
        return [self._score(text, language) for text in texts]

    def _score(self, text: str, language: str) -> float:
        cut = text.encode("utf-8", "replace")[:PERSPECTIVE_BYTES].decode("utf-8", "ignore")
        asked = {
            "comment": {"text": cut},
            "languages": [language],
            "requestedAttributes": {"TOXICITY": {}},
            "doNotStore": True,
        }
        found: Any = self._poster.post(asked)
        for key in ("attributeScores", "TOXICITY", "summaryScore", "value"):
            if not isinstance(found, Mapping) or key not in found:
                raise self._poster.wrong(f"it has no {key!r}")
            found = found[key]
        return self._poster.checked(found)
