"""What the schema says about keys and limits is what the server does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from mrs_suggest.serving.settings import Settings
from tests.mrs_suggest.serving.test_app import ADMIN, KEY, SETTINGS, asked

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


def test_keys_are_those_that_are_checked(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEY)
    (tmp_path / "admins").write_text(ADMIN)
    for settings in (SETTINGS, replace(SETTINGS, api_keys=tmp_path / "keys", admin_keys=tmp_path / "admins")):
        found = schema(settings)
        schemes = found["components"]["securitySchemes"]
        for path, methods in found["paths"].items():
            for method, route in methods.items():

                async def status(http: httpx.AsyncClient, headers: dict[str, str]) -> int:
                    content = '{"messages": ["a"]}'
                    return (await http.request(method, path, headers=headers, content=content)).status_code  # noqa: B023

                needed = route.get("security", [])
                code = asked(lambda http: status(http, {}), settings)
                assert (code in (401, 403)) == bool(needed), f"{method} {path}"
                assert not needed or str(code) in route["responses"]
                for (name,) in needed if settings is not SETTINGS else []:
                    scheme = schemes[name]
                    headers = (
                        {"Authorization": f"Bearer {ADMIN}"} if scheme["type"] == "http" else {scheme["name"]: ADMIN}
                    )
                    code = asked(lambda http: status(http, headers), settings)  # noqa: B023
                    assert code in (200, 409), f"{method} {path}"  # the model of the test cannot be loaded anew
