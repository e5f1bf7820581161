"""The limits in the schema are those that the server enforces."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.serving.settings import Settings
from tests.mrs_suggest.serving.test_app import KEY, SETTINGS, asked

SMALL = replace(SETTINGS, max_messages=4, max_waiting=9, max_characters=30)


def schema(settings: Settings = SETTINGS) -> dict[str, Any]:
    found: dict[str, Any] = asked(lambda http: http.get("/openapi.json"), settings).json()
    return found


def outcome(body: dict[str, object] | str, settings: Settings = SMALL) -> str:
    """`answered`, or the code of the error of the request or of its only message."""
    content = body if isinstance(body, str) else json.dumps(body)
    response = asked(lambda http: http.post("/v1/suggest", content=content), settings).json()
    if "error" in response:
        return str(response["error"]["code"])
    errors = [item["error"]["code"] for item in response["answers"] if "error" in item]
    return str(errors[0]) if errors else "answered"


@pytest.mark.parametrize("settings", [SETTINGS, SMALL])
def test_limits_are_those_that_are_enforced(settings: Settings) -> None:
    body = schema(settings)["paths"]["/v1/suggest"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    messages = fields["messages"]
    cases = [
        (messages["maxItems"], "too_many_messages", lambda n: {"messages": ["a"] * n}),
        (messages["items"]["maxLength"], "too_long", lambda n: {"messages": ["😀" * n]}),
        (int(fields["k"]["maximum"]), "invalid_request", lambda n: {"messages": ["a"], "k": n}),
        (fields["allow"]["maxItems"], "invalid_request", lambda n: {"messages": ["a"], "allow": ["x"] * n}),
        (fields["deny"]["maxItems"], "invalid_request", lambda n: {"messages": ["a"], "deny": ["x"] * n}),
        (body["x-max-bytes"], "too_large", lambda n: '{"messages": ["a"]}'.ljust(n)),
    ]
    for limit, code, make in cases:
        # The model of the test has no tags, so an allowed request for one is refused by the model itself.
        assert outcome(make(limit), settings) in ("answered", "invalid_argument")
        assert outcome(make(limit + 1), settings) == code
    for least, make in ((messages["minItems"], cases[0][2]), (int(fields["k"]["minimum"]), cases[2][2])):
        assert outcome(make(least), settings) == "answered"
        assert outcome(make(least - 1), settings) == "invalid_request"


def test_keys_are_in_the_schema_of_a_server_that_has_some(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEY)
    found = schema(replace(SETTINGS, api_keys=tmp_path / "keys"))
    kinds = {name: one.get("scheme", one.get("name")) for name, one in found["components"]["securitySchemes"].items()}
    either = [{name: []} for name in kinds]
    assert set(kinds.values()) == {"bearer", "X-API-Key"}
    assert found["paths"]["/v1/suggest"]["post"]["security"] == either
    assert found["paths"]["/v1/models"]["get"]["security"] == either
    assert "security" not in schema()["paths"]["/v1/suggest"]["post"]
