"""The routes of the loopback hub: what each request does to the store, and what it answers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote

from .replies import READING, Reply, Request, answer, find, may_write, need_token
from .store import KINDS, PREFIXES, Blob, HubError, Repository, card_errors, front_matter, is_lfs

if TYPE_CHECKING:
    from .server import LoopbackHub

REPOSITORY = r"(?P<prefix>datasets/|spaces/)?(?P<id>[^/]+(?:/[^/]+)?)"
RESOLVE = re.compile(rf"/{REPOSITORY}/(?:resolve|raw)/(?P<revision>[^/]+)/(?P<path>.+)")
LFS = re.compile(rf"/{REPOSITORY}\.git/info/lfs/(?P<verb>objects/batch|verify)")
PUT_OBJECT = re.compile(r"/_objects/(?P<oid>[0-9a-f]{64})")
API = re.compile(r"/api/(?P<kind>model|dataset|space)s/(?P<rest>.+)")
VERBS = ("revision", "tree", "paths-info", "preupload", "commit", "commits", "refs", "tag")


def route(hub: LoopbackHub, request: Request) -> Reply:
    """Serve one request; HubError is an answer too."""
    path = request.path
    if match := PUT_OBJECT.fullmatch(path):
        return put_object(hub, request, match["oid"])
    if match := LFS.fullmatch(path):
        kind, name = kind_of(match["prefix"]), unquote(match["id"])
        repository = find(hub, request, kind, name, write=True, proposal=True)  # it may be for one: git does not tell
        return lfs_batch(hub, request, repository) if match["verb"] == "objects/batch" else lfs_verify(hub, request)
    if match := API.fullmatch(path):
        return api(hub, request, match["kind"], match["rest"].split("/"))
    if function := PLAIN.get((request.method, path)):
        return function(hub, request)
    if (match := RESOLVE.fullmatch(path)) and request.method in READING and not path.startswith("/api/"):
        repository = find(hub, request, kind_of(match["prefix"]), unquote(match["id"]))
        return resolve(request, repository, unquote(match["revision"]), unquote(match["path"]))
    raise HubError(404, "Sorry, we can't find the page you are looking for.")


def kind_of(prefix: str | None) -> str:
    return {None: "model", "datasets/": "dataset", "spaces/": "space"}[prefix]


# ---- one repository


def api(hub: LoopbackHub, request: Request, kind: str, parts: list[str]) -> Reply:
    parts = [unquote(part) for part in parts if part]
    size = 1 if len(parts) == 1 or parts[1] in VERBS else 2
    verb, rest = parts[size : size + 1], parts[size + 1 :]
    reads = request.method in READING or verb == ["paths-info"]
    proposal = verb in (["preupload"], ["commit"]) and request.flag("create_pr")
    repository = find(hub, request, kind, "/".join(parts[:size]), write=not reads, proposal=proposal)
    key = (request.method, verb[0] if verb else "")
    if key in (("GET", ""), ("GET", "revision")):
        return answer(info(repository, rest[0] if rest else "main", blobs=request.flag("blobs")))
    if key not in REPOSITORY_ROUTES:
        raise HubError(404, "Sorry, we can't find the page you are looking for.")
    return REPOSITORY_ROUTES[key](hub, request, repository, rest or ["main"])


def info(repository: Repository, revision: str, *, blobs: bool = False) -> dict[str, Any]:
    commit = repository.resolve(revision)
    try:
        card = front_matter(repository.text("README.md", commit.sha)) if "README.md" in commit.files else None
    except ValueError:
        card = None
    siblings: list[dict[str, Any]] = []
    for path, blob in sorted(commit.files.items()):
        siblings.append({"rfilename": path})
        if blobs:
            siblings[-1].update(size=blob.size, blobId=blob.oid)
            if blob.lfs:
                siblings[-1]["lfs"] = {"sha256": blob.sha256, "size": blob.size, "pointerSize": 134}
    tags = (card or {}).get("tags") or []
    found = {
        "_id": hashlib.sha1(repository.id.encode()).hexdigest()[:24], "id": repository.id, "sha": commit.sha,
        "author": repository.id.split("/")[0], "private": repository.private, "gated": False, "disabled": False,
        "tags": tags if isinstance(tags, list) else [tags], "downloads": 0, "likes": 0, "siblings": siblings,
        "lastModified": commit.date, "createdAt": repository.commits()[-1].date,
    }  # fmt: skip
    if card:
        found["cardData"] = json.loads(json.dumps(card, default=str))
    if repository.kind == "model":
        found["modelId"] = repository.id
        found.update({to: card[key] for key, to in CARD_KEYS.items() if card and key in card})
    if repository.kind == "space":
        found["sdk"] = (card or {}).get("sdk")
    return found


CARD_KEYS = {"library_name": "library_name", "pipeline_tag": "pipeline_tag"}


def tree(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    folder = "/".join(rest[1:]).strip("/")
    items = repository.items(rest[0])
    if folder and items.get(folder, {}).get("type") != "directory":
        head = {"X-Repo-Commit": repository.sha(rest[0])}
        raise HubError(404, f'{folder} does not exist on "{rest[0]}"', "EntryNotFound", head)
    below = f"{folder}/" if folder else ""
    found = [item for path, item in items.items() if path.startswith(below)]
    if not request.flag("recursive"):
        found = [item for item in found if "/" not in item["path"][len(below) :]]
    return answer(found)


def paths_info(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    form = request.json() if "json" in request.content_type else parse_qs(request.body.decode())
    items = repository.items(rest[0])
    return answer([items[path.strip("/")] for path in form.get("paths", []) if path.strip("/") in items])


def preupload(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    stored = repository.resolve(rest[0]).files
    found = []
    for item in request.json()["files"]:
        lfs = is_lfs(item["path"], base64.b64decode(item.get("sample", "")), item["size"])
        blob = stored.get(item["path"])
        found.append(
            {
                "path": item["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False,
                "oid": blob.etag if blob else None,
            }
        )  # fmt: skip
    return answer({"files": found})


def commit(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    header: dict[str, Any] = {}
    operations: list[tuple[str, str, Blob | None]] = []
    for line in request.body.splitlines():
        item = json.loads(line)
        key, value = item["key"], item["value"]
        if key == "header":
            header = value
        elif key == "file":
            data = (
                base64.b64decode(value["content"]) if value.get("encoding") == "base64" else value["content"].encode()
            )
            if value["path"] == "README.md" and (errors := card_errors(data.decode(), repository.kind)[0]):
                raise HubError(400, f"Invalid metadata in README.md: {'; '.join(errors)}")
            operations.append((key, value["path"], repository.objects.blob(data)))
        elif key == "lfsFile":
            operations.append((key, value["path"], repository.objects.pointer(value["oid"])))
        elif key in ("deletedFile", "deletedFolder"):
            operations.append((key, value["path"], None))
        else:
            raise HubError(400, f"Unknown operation: {key}")
    if not header.get("summary"):
        raise HubError(400, "The commit has no summary")
    branch, pull = rest[0], None
    if request.flag("create_pr"):
        pull = 1 + sum(name.startswith("refs/pr/") for name in repository.heads)
        repository.heads[f"refs/pr/{pull}"] = repository.sha(branch)
        branch = f"refs/pr/{pull}"
    description = header.get("description") or ""
    made = repository.commit(
        operations, header["summary"], description, branch=branch, parent=header.get("parentCommit")
    )
    home = f"{hub.url}/{PREFIXES[repository.kind]}{repository.id}"
    reply = {"success": True, "commitOid": made.sha, "commitUrl": f"{home}/commit/{made.sha}", "hookOutput": ""}
    return answer({**reply, **({"pullRequestUrl": f"{home}/discussions/{pull}"} if pull else {})})


def commits(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    found = [
        {"id": c.sha, "title": c.title, "message": c.message, "date": c.date, "authors": [{"user": hub.user}]}
        for c in repository.commits(rest[0])
    ]
    return answer(found)


def refs(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    def named(found: dict[str, str], folder: str) -> list[dict[str, str]]:
        return [
            {"name": name, "ref": name if name.startswith("refs/") else f"{folder}{name}", "targetCommit": sha}
            for name, sha in sorted(found.items())
        ]

    pulls = {name: sha for name, sha in repository.heads.items() if name.startswith("refs/pr/")}
    heads = {name: sha for name, sha in repository.heads.items() if name not in pulls}
    found = {"branches": named(heads, "refs/heads/"), "tags": named(repository.tags, "refs/tags/"), "converts": []}
    return answer({**found, "pullRequests": named(pulls, "")} if request.flag("include_prs") else found)


def tag(hub: LoopbackHub, request: Request, repository: Repository, rest: list[str]) -> Reply:
    name = request.json()["tag"]
    if name in repository.tags:
        raise HubError(409, f"Reference already exists: {name}")
    repository.tags[name] = repository.sha("/".join(rest))
    return answer({})


def resolve(request: Request, repository: Repository, revision: str, path: str) -> Reply:
    sha = repository.sha(revision)
    blob = repository.entry(path, sha)
    file = repository.objects.path(blob.sha256)
    headers = {
        "X-Repo-Commit": sha, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream" if blob.lfs else "text/plain; charset=utf-8",
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(path.split('/')[-1])}",
    }  # fmt: skip
    if blob.lfs:
        headers.update({"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(blob.size)})
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.range.strip())
    if not match or match.groups() == ("", "") or request.method == "HEAD":
        return Reply(b"", 200, headers, file, 0, blob.size)
    first, last = match.groups()
    start = int(first) if first else max(0, blob.size - int(last))
    end = min(int(last), blob.size - 1) if first and last else blob.size - 1
    if start > end:
        raise HubError(416, "Range not satisfiable", "", {"Content-Range": f"bytes */{blob.size}"})
    headers["Content-Range"] = f"bytes {start}-{end}/{blob.size}"
    return Reply(b"", 206, headers, file, start, end - start + 1)


# ---- large files


def lfs_batch(hub: LoopbackHub, request: Request, repository: Repository) -> Reply:
    objects = []
    for item in request.json()["objects"]:
        entry: dict[str, Any] = {"oid": item["oid"], "size": item["size"], "authenticated": True}
        if not hub.objects.has(item["oid"]):
            hub.expected[item["oid"]] = repository
            verify = f"{hub.url}/{PREFIXES[repository.kind]}{repository.id}.git/info/lfs/verify"
            entry["actions"] = {"upload": {"href": f"{hub.url}/_objects/{item['oid']}"}, "verify": {"href": verify}}
        objects.append(entry)
    return answer({"transfer": "basic", "objects": objects}, Content_Type="application/vnd.git-lfs+json")


def put_object(hub: LoopbackHub, request: Request, oid: str) -> Reply:
    """Take an LFS object, from whoever holds the link, as a storage bucket does."""
    if request.method != "PUT" or oid not in hub.expected:
        raise HubError(403, "This link was not handed out")
    if hashlib.sha256(request.body).hexdigest() != oid:
        raise HubError(400, "The content does not have this SHA-256")
    hub.objects.add(request.body)
    return Reply(headers={"ETag": f'"{oid}"'})


def lfs_verify(hub: LoopbackHub, request: Request) -> Reply:
    body = request.json()
    if not hub.objects.has(body["oid"]) or hub.objects.path(body["oid"]).stat().st_size != body["size"]:
        raise HubError(404, "The object was not uploaded")
    return answer({})


# ---- no repository yet


def whoami(hub: LoopbackHub, request: Request) -> Reply:
    need_token(request)
    orgs = [{"type": "org", "name": name, "fullname": name, "roleInOrg": "write"} for name in hub.organizations]
    auth = {"type": "access_token", "accessToken": {"displayName": "loopback", "role": "write"}}
    return answer({"type": "user", "id": "0" * 24, "name": hub.user, "fullname": hub.user, "orgs": orgs, "auth": auth})


def validate_yaml(hub: LoopbackHub, request: Request) -> Reply:
    body = request.json()
    errors, warnings = card_errors(body.get("content", ""), body.get("repoType") or "model")
    found = {"errors": [{"message": m} for m in errors], "warnings": [{"message": m} for m in warnings]}
    return answer(found, 400 if errors else 200)


def create(hub: LoopbackHub, request: Request) -> Reply:
    need_token(request)
    body = request.json()
    kind = body.get("type") or "model"
    name = f"{body.get('organization') or hub.user}/{body['name']}"
    if kind not in KINDS or not re.fullmatch(r"[\w.-]+/[\w.-]{1,96}", name):
        raise HubError(400, f"Invalid repository: {kind} {name}")
    may_write(hub, name)
    url = f"{hub.url}/{PREFIXES[kind]}{name}"
    if (kind, name) in hub.repositories:
        error = HubError(409, f"You already created this {kind} repo: {name}")
        error.extra = {"url": url}
        raise error
    hub.create(kind, name, private=bool(body.get("private")) or body.get("visibility") == "private")
    return answer({"url": url, "name": name, "id": "0" * 24})


PLAIN: dict[tuple[str, str], Callable[[LoopbackHub, Request], Reply]] = {
    ("GET", "/api/whoami-v2"): whoami,
    ("POST", "/api/validate-yaml"): validate_yaml,
    ("POST", "/api/repos/create"): create,
}
REPOSITORY_ROUTES: dict[tuple[str, str], Callable[[LoopbackHub, Request, Repository, list[str]], Reply]] = {
    ("GET", "tree"): tree,
    ("POST", "paths-info"): paths_info,
    ("POST", "preupload"): preupload,
    ("POST", "commit"): commit,
    ("GET", "commits"): commits,
    ("GET", "refs"): refs,
    ("POST", "tag"): tag,
}
