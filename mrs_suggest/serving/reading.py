"""Reads the requests of the server: their bodies, and the languages that a client prefers."""

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mrs_suggest.common.suggest_arguments import MOST_SUGGESTIONS
from mrs_suggest.serving.gate import Refusal
from mrs_suggest.serving.schema import SuggestRequest
from mrs_suggest.serving.settings import Settings

MOST_ACCEPTED = 500  # characters of Accept-Language that are read
Asked = TypeVar("Asked", bound=BaseModel)


def read_question(body: bytes, settings: Settings) -> SuggestRequest:
    asked = read_body(SuggestRequest, body)
    if (count := len(asked.messages) + len(asked.conversations)) > settings.max_messages:
        what = "messages" if asked.messages else "conversations"
        sentence = f"{count} {what}; a request may have {settings.max_messages}."
        raise Refusal(422, "too_many_messages", sentence)
    if asked.k > MOST_SUGGESTIONS:
        raise Refusal(422, "invalid_request", f"k={asked.k}: expected 1 to {MOST_SUGGESTIONS}.")
    return asked


def read_body(kind: type[Asked], body: bytes) -> Asked:
    """The body of a request; Refusal if it is broken."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"]))
        broken = first["type"] == "json_invalid"
        told = {"list_type": "expected a list, [...]"}
        if len(first["loc"]) == 1:
            told["extra_forbidden"] = f"no such field; the fields are {', '.join(kind.model_fields)}"
        sentence = f"{place or 'the body'}: {told.get(first['type'], first['msg'][:1].lower() + first['msg'][1:])}"
        status, code = (400, "invalid_json") if broken else (422, "invalid_request")
        raise Refusal(status, code, f"{sentence}; the schema is at /openapi.json.") from None


def accepted_languages(header: str) -> tuple[str, ...] | None:
    """The languages of an `Accept-Language` header, best first; None without any."""
    found = []
    for part in header[:MOST_ACCEPTED].split(","):
        code, _, quality = part.partition(";")
        weight = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", quality)
        share = float(weight[1]) if weight else 1.0
        if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*", code.strip()) and share > 0:
            found.append((share, code.strip()))
    return tuple(code for _, code in sorted(found, key=lambda one: -one[0])) or None
