"""The settings of a language model behind an OpenAI-compatible server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import ClassVar

import yaml

from mrs_suggest.common.errors import InputError, extra_needed, first_problem, reason_of
from mrs_suggest.common.hub.baselines import ENDPOINT
from mrs_suggest.common.io.posting import is_sound
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.text.languages import MRS_CODES, find_language

_FORBID: dict[str, str] = {"extra": "forbid"}  # for pydantic, which only reads YAML files: `URL#MODEL` does without it
BOUNDS = {  # key -> least and most; ours
    "temperature": (0, 2), "max_tokens": (1, 100_000), "timeout": (0.1, 3_600), "retries": (0, 20),
    "concurrency": (1, 256),
}  # fmt: skip


@cache
def packaged_prompt() -> str:
    """The prompt that is part of the package."""
    return resources.files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Price:
    """Prices of a million tokens, in any currency."""

    __pydantic_config__: ClassVar[dict[str, str]] = _FORBID
    input: float
    output: float

    def __post_init__(self) -> None:
        if not (0 <= self.input < 1e9 and 0 <= self.output < 1e9):
            raise ValueError("expected prices of 0 or more")


@dataclass(frozen=True)
class Endpoint:
    """A server and how it is asked; the keys of `openai:FILE.yaml`. The numbers are ours.

    Attributes:
        url: what stands before `/chat/completions`.
        prompt: the system message, with `{count}` and `{language}`; None: the package's.
        languages: that the model answers.
        temperature, max_tokens: of a request; None: not sent, since some models refuse them.
        timeout: seconds for an answer.
        retries: after a failure that may pass.
        concurrency: requests at a time.
        price_per_million: of tokens; None: unknown.
        cache: a folder for answers, made if it is missing; None: no cache.
        key_variable: the environment variable with the key; None: no key is sent.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _FORBID
    url: str
    model: str
    prompt: str | None = None
    languages: tuple[str, ...] = MRS_CODES
    temperature: float | None = 0.0
    max_tokens: int | None = 200
    timeout: float = 30.0
    retries: int = 2
    concurrency: int = 4
    price_per_million: Price | None = None
    cache: Path | None = None
    key_variable: str | None = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        if not is_sound(self.url) or "?" in self.url or "#" in self.url:  # a password or a query may be a secret
            raise ValueError("url: expected http://... or https://... without user name, password, `?` and `#`")
        if not self.model.strip():
            raise ValueError("model: expected the name that the server has for a model")
        if self.prompt is not None and "{language}" not in self.prompt:
            raise ValueError("prompt: expected a text with {language}, where the name of the language goes")
        unknown = [code for code in self.languages if find_language(code) is None]
        if unknown or not self.languages:
            raise ValueError(f"languages: expected codes such as en or pt-BR, found {' '.join(unknown) or 'none'}")
        for name, (least, most) in BOUNDS.items():
            if (value := getattr(self, name)) is not None and not least <= value <= most:
                raise ValueError(f"{name}: expected {least:g} to {most:g}, found {value:g}")
        if self.key_variable is not None and not re.fullmatch("[A-Z_][A-Z0-9_]*", self.key_variable):
            raise ValueError("key_variable: expected the name of an environment variable, in capitals, not a key")


def read_endpoint(name: str) -> Endpoint:
    """The endpoint that `openai:URL#MODEL` or `openai:FILE.yaml` names.

    Raises:
        InputError: it is neither, or a setting is unknown or invalid.
        MissingExtraError: a YAML file is passed, and pydantic is not installed.
    """
    place = name.removeprefix(ENDPOINT)
    if re.match("https?:", place):
        url, _, model = place.partition("#")
        try:
            return Endpoint(url, model)
        except ValueError as error:
            raise InputError(f"{masked(name)}: {error}; pass {ENDPOINT}URL#MODEL.") from None
    try:
        content = yaml.safe_load(Path(place).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name}: {reason_of(error)}; pass {ENDPOINT}URL#MODEL or {ENDPOINT}FILE.yaml.") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{place}: expected YAML with `url: ...` and `model: ...`; docs/how_to/language_model.md.")
    with extra_needed("pydantic", "data", f"{ENDPOINT}FILE.yaml"):
        from pydantic import TypeAdapter, ValidationError
    try:
        return TypeAdapter(Endpoint).validate_python(content)
    except ValidationError as error:
        raise InputError(f"{place}, {first_problem(error)}.") from None
