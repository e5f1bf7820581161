"""A client of any OpenAI-compatible server: `openai:URL#MODEL` or `openai:FILE.yaml`."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import yaml

from mrs_suggest.common.errors import InputError, extra_needed, first_problem, reason_of
from mrs_suggest.common.hub.baselines import ENDPOINT, require_no_revision
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.io.posting import Poster, RefusedRequestError, is_sound
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.text.answers import read_answer
from mrs_suggest.common.text.languages import MRS_CODES, find_language
from mrs_suggest.common.text.predictions import SUGGESTIONS

PROMPT = Path(__file__).with_name("prompt.txt").read_text(encoding="utf-8").strip()
BOUNDS = {"temperature": (0, 2), "max_tokens": (1, 100_000), "timeout": (0.1, 3600), "retries": (0, 20)}
BOUNDS["concurrency"] = (1, 256)
LONGEST = 100  # characters of a reply; ours: the longest of the embedded response sets has 58
REST = 5.0  # seconds without requests after one has failed for good; ours: a queue behind it fails immediately
_ITEMS = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"(?=\s*[,\]])')
Asked = TypeVar("Asked")
Got = TypeVar("Got")


@dataclass(frozen=True)
class Endpoint:
    """A server and how it is asked; the keys of `openai:FILE.yaml`. The numbers are ours."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # pydantic reads YAML files; `URL#MODEL` does without it
    url: str  # what stands before `/chat/completions`
    model: str
    prompt: str = PROMPT  # the system message, with `{count}` and `{language}`; in YAML, also a file with it
    languages: tuple[str, ...] = MRS_CODES
    temperature: float | None = 0.0  # None, as for `max_tokens`: not sent, since some models refuse it
    max_tokens: int | None = 200
    timeout: float = 30.0  # seconds for an answer
    retries: int = 2  # after failures that may pass
    concurrency: int = 4  # requests at a time
    price_per_million: Mapping[Literal["input", "output"], float] | None = None  # tokens, in any currency
    cache: Path | None = None  # a folder for answers
    key_variable: str | None = "OPENAI_API_KEY"  # None: no key is sent

    def __post_init__(self) -> None:
        prices = (self.price_per_million or {"input": 0, "output": 0}).values()
        checks: dict[str, Any] = {
            "url: expected http(s)://... without user name, ? and #": is_sound(self.url) and not {*"?#"} & {*self.url},
            "model: expected the server's name for a model": self.model.strip(),
            "prompt: expected a text with {language}, or a file with one": "{language}" in self.prompt,
            "languages: expected codes such as en or pt-BR": self.languages and all(map(find_language, self.languages)),
            "price_per_million: expected `input` and `output`": len(prices) == 2 and all(0 <= p < 1e9 for p in prices),
            "key_variable: expected a variable in capitals": re.fullmatch("[A-Z_][A-Z0-9_]*", self.key_variable or "_"),
        }
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            checks[f"{name}: expected {least:g} to {most:g}"] = value is None or least <= value <= most
        if problem := next((problem for problem, fine in checks.items() if not fine), None):
            raise ValueError(problem)


def read_endpoint(name: str, revision: str | None = None) -> Endpoint:
    """The endpoint of a name.

    Raises:
        InputError, MissingExtraError: it names none, a setting is invalid, or a YAML file needs pydantic.
    """
    require_no_revision(name, revision, "is a server")
    place, problem = name.removeprefix(ENDPOINT), "expected YAML with `url: ...` and `model: ...`"
    try:
        if re.match("https?:", place):
            return Endpoint(*place.partition("#")[::2])
        content = yaml.safe_load(Path(place).read_text(encoding="utf-8"))
        if isinstance(content, dict):
            prompt = content.get("prompt", "")
            if isinstance(prompt, str) and len(prompt) < 200 and (file := Path(place).parent / prompt).is_file():
                content["prompt"] = file.read_text(encoding="utf-8").strip()
            with extra_needed("pydantic", "data", f"{ENDPOINT}FILE.yaml"):
                from pydantic import TypeAdapter
            return TypeAdapter(Endpoint).validate_python(content)
    except (OSError, yaml.YAMLError) as error:
        problem = reason_of(error) if isinstance(error, OSError) else problem
    except ValueError as error:  # pydantic's is one, too
        problem = first_problem(cast("Any", error)) if hasattr(error, "errors") else str(error)
    raise InputError(f"{masked(name)}: {problem}; pass {ENDPOINT}URL#MODEL or {ENDPOINT}FILE.yaml.")


class ChatPoster(Poster):
    kind, protocol = "an OpenAI-compatible server", "check that the URL ends before /chat/completions"
    later = "check that the server runs and answers in time (docs/how_to/language_model.md)"
    option, check = ENDPOINT, "the URL and the name of the model"
    first_wait, jitter, longest_wait, most_bytes = 0.5, 1.0, 60.0, 1 << 20


class Chat:
    """Asks a language model for JSON with a list of texts: several at a time, with retries, a cache and a bill.

    After a failure for good, requests fail without being sent for `REST` seconds.

    Raises:
        InputError: the URL or the key cannot be used.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._poster = ChatPoster(f"{endpoint.url.rstrip('/')}/chat/completions", endpoint.key_variable or "")
        self._poster.timeout, self._poster.tries = endpoint.timeout, endpoint.retries + 1
        self._pool = ThreadPoolExecutor(endpoint.concurrency, thread_name_prefix="language-model")
        self._with_format = True
        self._resting = 0.0, ""  # until when, and why
        self._tokens: list[list[int] | None] = []  # of each answer; None where the server does not say
        named = {name: getattr(endpoint, name) for name in ("temperature", "max_tokens")}
        self._settings = {name: value for name, value in named.items() if value is not None}

    def signature(self, prompt: str) -> str:
        """The model with a hash of the prompt and what is sent with it."""
        told = {"prompt": hashlib.sha256(prompt.encode()).hexdigest()[:8], **self._settings}
        return "|".join([ENDPOINT + self.endpoint.model, *(f"{name}:{value}" for name, value in told.items())])

    def usage(self) -> dict[str, float]:
        """By the names of `USAGE`; tokens, where the server counts them, are those of cached answers, too."""
        found: dict[str, float] = {"requests": len(self._poster.sent)}
        if (answers := list(self._tokens)) and None not in answers:
            read, written = (sum(tokens[part] for tokens in answers if tokens) for part in (0, 1))
            found |= {"input_tokens": read, "output_tokens": written}
            if price := self.endpoint.price_per_million:
                found["price_per_1000"] = (read * price["input"] + written * price["output"]) / 1000 / len(answers)
        return found

    def map(self, ask: Callable[[Asked], Got], asked: Iterable[Asked]) -> Iterator[Got]:
        """What `ask`, which calls `complete`, returns for each, in their order; `concurrency` at a time."""
        return self._pool.map(ask, asked)

    def complete(self, system: str, user: str, key: str) -> str:
        """The text of the answer to a prompt for JSON with a list of texts under `key`; "" for a refusal.

        Raises:
            InputError: the server fails or refuses, or the cache cannot be written.
        """
        messages = [{"role": role, "content": text} for role, text in (("system", system), ("user", user))]
        text, tokens = self._cached({"model": self.endpoint.model, "messages": messages, **self._settings}, key)
        self._tokens.append(tokens if all(isinstance(count, int) for count in tokens) else None)
        return text

    def _cached(self, request: dict[str, Any], key: str) -> tuple[str, list[Any]]:
        if (folder := self.endpoint.cache) is None:
            return self._asked(request, key)
        content = json.dumps([self.endpoint.url, request], sort_keys=True)
        path = folder / f"{hashlib.sha256(content.encode()).hexdigest()}.json"
        try:
            text, read, written = json.loads(path.read_text(encoding="utf-8"))
            return str(text), [read, written]
        except (OSError, ValueError, TypeError):  # not there, or damaged
            text, tokens = self._asked(request, key)
        with writing(path, "free space there, or change `cache`"):
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write(path, json.dumps([text, *tokens], ensure_ascii=False))
        return text, tokens

    def _asked(self, request: dict[str, Any], key: str) -> tuple[str, list[Any]]:
        """The text of the answer, "" for a refusal, and the numbers of input and output tokens, if they are known."""
        if time.monotonic() < self._resting[0]:
            raise InputError(self._resting[1])
        try:
            try:
                found: Any = self._poster.post(request | (answer_format(key) if self._with_format else {}))
            except RefusedRequestError:  # some servers do not know the format
                found = self._poster.post(request)
                self._with_format = False
            message, usage = found["choices"][0]["message"], found.get("usage") or {}
            text = None if message.get("refusal") else message.get("content")
            tokens = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        except (LookupError, TypeError, AttributeError):
            raise self._poster.wrong("it has no message in `choices`") from None
        except InputError as error:
            if not isinstance(error, RefusedRequestError):
                self._resting = time.monotonic() + REST, str(error)
            raise
        return text if isinstance(text, str) else "", tokens


def answer_format(key: str) -> dict[str, Any]:
    """The fields of a request for JSON with a list of texts under `key`."""
    texts = {key: {"type": "array", "items": {"type": "string"}}}
    schema = {"type": "object", "properties": texts, "required": [key], "additionalProperties": False}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": key, "strict": True, "schema": schema}}}


def read_replies(text: str) -> list[str]:
    """The replies in an answer: JSON, perhaps in a code fence, malformed or cut off; or three short lines or more.

    >>> read_replies('["Sure!", "No.", "Wh'), read_replies("1. Sure!\\n2. No.\\n3. When?"), read_replies("I cannot.")
    (['Sure!', 'No.'], ['Sure!', 'No.', 'When?'], [])
    """
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL).strip()
    if (start := re.search(r"[{\[]\s*[\[\"{]", text)) is None:
        lines = [line for line in read_answer(text) if line[-1] not in ":：" and line[:3] != "```"]
        listed = text[:1] not in "{[" and len(lines) >= SUGGESTIONS and max(map(len, lines)) <= LONGEST
        return lines if listed else []
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start.start() :])
    except (ValueError, RecursionError):
        found = json.loads(f"[{','.join(_ITEMS.findall(text))}]")
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), [])
    return [" ".join(item.split()) for item in found if isinstance(item, str)]
