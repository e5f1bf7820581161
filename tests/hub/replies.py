"""Requests and replies of the loopback hub, and who may see and write what."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .store import HubError, Repository, no_repository

if TYPE_CHECKING:
    from .server import LoopbackHub

READING = ("GET", "HEAD")


@dataclass
class Request:
    method: str
    path: str  # as it came, quoted
    query: dict[str, list[str]]
    body: bytes
    authorized: bool  # with the right token
    content_type: str = ""
    range: str = ""

    def json(self) -> Any:
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise HubError(400, "The request's body is not JSON") from error

    def flag(self, name: str) -> bool:
        return self.query.get(name, [""])[0].lower() in ("true", "1")


@dataclass
class Reply:
    """An answer: a body, or a stretch of a file."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    file: Path | None = None
    start: int = 0
    length: int = 0


def answer(data: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps(data).encode(), status, {"Content-Type": "application/json; charset=utf-8", **named})


def failure(error: HubError) -> Reply:
    headers = {"X-Error-Message": error.message.replace("\n", " "), **error.headers}
    if error.code:
        headers["X-Error-Code"] = error.code
    reply = answer({"error": error.message, **error.extra}, error.status)
    reply.headers.update(headers)
    return reply


def need_token(request: Request) -> None:
    if not request.authorized:
        raise HubError(401, "Invalid username or password.")


def find(
    hub: LoopbackHub, request: Request, kind: str, name: str, *, write: bool = False, proposal: bool = False
) -> Repository:
    """Return a repository that the request may see; one that it may not see is not there.

    Args:
        proposal: it is for a pull request, which everybody with a token may open.
    """
    repository = hub.repositories.get((kind, name))
    if repository is None or (repository.private and not request.authorized):
        error = no_repository()
        if not request.authorized:
            error.status, error.message = 401, "Invalid username or password."
        raise error
    if write:
        need_token(request)
        if not proposal:
            may_write(hub, name)
    return repository


def may_write(hub: LoopbackHub, name: str) -> None:
    if name.split("/")[0] in hub.forbidden:
        raise HubError(403, f"You don't have the rights to write to {name}")
