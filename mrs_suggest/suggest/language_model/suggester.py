"""Suggestions that a language model behind an OpenAI-compatible server writes."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import ENDPOINT, SHIPPED, require_no_revision, resolve_model
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.io.posting import Poster, RefusedRequestError
from mrs_suggest.common.suggest_arguments import require_count
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.conversation import ME, THEM, Conversation, read_conversations
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.language_model.endpoint import Endpoint, packaged_prompt, read_endpoint
from mrs_suggest.suggest.language_model.replies import fitting_replies, read_replies
from mrs_suggest.suggest.retrieval_suggester import weights_encoder

MOST_SUGGESTIONS = 20  # as many as a request to `mrs serve` may ask for
REST = 5.0  # seconds without requests after one has failed for good; ours: a queue behind it fails immediately
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "replies",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"replies": {"type": "array", "items": {"type": "string"}}},
            "required": ["replies"],
            "additionalProperties": False,
        },
    },
}


class _ChatPoster(Poster):
    kind, protocol = "an OpenAI-compatible server", "check that the URL ends before /chat/completions"
    later = "check that the server runs and answers in time (docs/how_to/language_model.md)"
    check = "the URL and the name of the model"
    first_wait, jitter, longest_wait, most_bytes = 0.5, 1.0, 60.0, 1 << 20


class LanguageModelSuggester(ServedModel):
    """Asks a language model for replies; a score is 1 / rank.

    The embedded model's files detect the languages of messages and replies, and give the guard its vectors.

    Raises:
        InputError: the URL or the key cannot be used.
    """

    remote = True

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.parts = endpoint, resolve_model(SHIPPED)
        url = endpoint.url.rstrip("/").removesuffix("/chat/completions")
        self._poster = _ChatPoster(f"{url}/chat/completions", endpoint.key_variable or "", option=ENDPOINT)
        self._poster.timeout, self._poster.tries = endpoint.timeout, endpoint.retries + 1
        self._prompt = endpoint.prompt or packaged_prompt()
        self._detector = LanguageDetector.load(self.parts / DETECTOR)
        self._pool = ThreadPoolExecutor(endpoint.concurrency, thread_name_prefix="language-model")
        self._structured = True  # until the server refuses a request because of its `response_format`
        self._resting = 0.0, ""  # until when, and why
        self._tokens: list[list[int] | None] = []  # of each answer; None where the server does not say
        self._lock = threading.Lock()

    @classmethod
    def load_from(cls, name: str, revision: str | None = None) -> LanguageModelSuggester:
        """The model that `openai:URL#MODEL` or `openai:FILE.yaml` names; errors as `read_endpoint` and the class."""
        require_no_revision(name, revision, "is a server")
        return cls(read_endpoint(name))

    @property
    def languages(self) -> list[str]:
        return list(self.endpoint.languages)

    @property
    def signature(self) -> str:
        asked = self.endpoint
        prompt = hashlib.sha256(self._prompt.encode()).hexdigest()[:8]
        return f"{ENDPOINT}{asked.model}|prompt:{prompt}|temperature:{asked.temperature}|max_tokens:{asked.max_tokens}"

    def read(self, asked: Sequence[Conversation]) -> list[Any]:
        return list(asked)

    def most(self, k: int) -> int:
        """Three: more replies in place of those that the guard removes would cost a second request."""
        return min(k, SUGGESTIONS)

    @cached_property
    def _encode(self) -> Any:
        return weights_encoder(self.parts)

    def message_vectors(self, messages: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._encode(list(messages))
        return vectors

    def suggest(
        self, messages: Sequence[str | Conversation], language: str, k: int = SUGGESTIONS
    ) -> list[list[Suggestion]]:
        """As `ServedModel.suggest`; conversations are sent with their earlier turns.

        Raises:
            InputError: the server cannot be reached, fails or refuses.
        """
        self.require_language(language)
        asked, count = read_conversations(messages), require_count(k, MOST_SUGGESTIONS)
        rows = self._pool.map(partial(self._replies, language=language, count=count), asked)
        return [[Suggestion(reply, 1 / rank) for rank, reply in enumerate(row, 1)] for row in rows]

    def usage(self) -> dict[str, float]:
        """`requests` sent so far, repeated ones included; where the server counts them, `input_tokens` and
        `output_tokens` of all answers, cached ones included; and `price_per_1000` messages, if prices are known."""
        with self._lock:
            known = [one for one in self._tokens if one is not None]
            found: dict[str, float] = {"requests": self._poster.sent}
            if not known or len(known) < len(self._tokens):
                return found
            found |= {"input_tokens": sum(one[0] for one in known), "output_tokens": sum(one[1] for one in known)}
            if price := self.endpoint.price_per_million:
                total = found["input_tokens"] * price.input + found["output_tokens"] * price.output
                found["price_per_1000"] = total / 1000 / len(known)
            return found

    def _replies(self, asked: Conversation, language: str, count: int) -> list[str]:
        if not asked.message.strip():
            return []
        replies = read_replies(self._answer(self._request(asked, language, count)))
        return fitting_replies(replies, asked.message, language, self._detector)[:count]

    def _request(self, asked: Conversation, language: str, count: int) -> dict[str, Any]:
        earlier = [{"from": ME if turn.mine else THEM, "text": turn.text} for turn in asked.turns[: len(asked.context)]]
        data = {**({"earlier": earlier} if earlier else {}), "message": asked.message}
        told = self._prompt.replace("{count}", str(max(count, SUGGESTIONS)))
        messages = [
            {"role": "system", "content": told.replace("{language}", language_name(language))},
            {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
        ]
        settings = {"temperature": self.endpoint.temperature, "max_tokens": self.endpoint.max_tokens}
        sent = {name: value for name, value in settings.items() if value is not None}
        return {"model": self.endpoint.model, "messages": messages, **sent}

    def _answer(self, request: dict[str, Any]) -> str:
        """The text of the answer, from the cache if it is there; "" for a refusal."""
        content = json.dumps([self.endpoint.url, request], sort_keys=True)
        folder = self.endpoint.cache
        path = folder / f"{hashlib.sha256(content.encode()).hexdigest()}.json" if folder else None
        try:
            answer = json.loads(path.read_text(encoding="utf-8")) if path else None
        except (OSError, ValueError):
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            answer = self._asked(request)
            if path:
                with writing(path, "free space there, or change `cache`"):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    atomic_write(path, json.dumps(answer, ensure_ascii=False))
        tokens = answer.get("tokens")
        told = isinstance(tokens, list) and len(tokens) == 2 and all(isinstance(count, int) for count in tokens)
        with self._lock:
            self._tokens.append(tokens if told else None)
        text: str = answer["text"]
        return text

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        found = self._posted(request)
        try:
            choice = found["choices"][0]
            refused = choice["message"].get("refusal") or choice.get("finish_reason") == "content_filter"
            text = choice["message"].get("content")
        except (LookupError, TypeError, AttributeError):
            raise self._poster.wrong("it has no message in `choices`") from None
        if isinstance(text, list):  # of parts
            text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
        usage = found.get("usage")
        tokens = [usage.get(f"{part}_tokens") for part in ("prompt", "completion")] if isinstance(usage, dict) else None
        return {"text": text if isinstance(text, str) and not refused else "", "tokens": tokens}

    def _posted(self, request: dict[str, Any]) -> Any:
        until, why = self._resting
        if time.monotonic() < until:
            raise InputError(why)
        try:
            if self._structured:
                try:
                    return self._poster.post({**request, "response_format": FORMAT})
                except RefusedRequestError:
                    found = self._poster.post(request)  # some servers do not know it
                    self._structured = False
                    return found
            return self._poster.post(request)
        except RefusedRequestError:
            raise
        except InputError as error:
            self._resting = time.monotonic() + REST, str(error)
            raise
