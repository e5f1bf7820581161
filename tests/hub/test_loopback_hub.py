"""The loopback hub by raw requests: what is hard to see through a client (test_real_clients.py has those)."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from .server import LoopbackHub

pytestmark = pytest.mark.integration
DATA = bytes(range(256)) * 40


class Raw:
    """Plain requests, without any client library."""

    def __init__(self, hub: LoopbackHub) -> None:
        self.hub, self.host = hub, hub.url.removeprefix("http://")

    def __call__(self, method: str, path: str, body: Any = None, token: str | None = "", **headers: str) -> Any:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.hub.token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body, headers, encode_chunked=headers.get("Transfer-Encoding") is not None)
            response = connection.getresponse()
            response.content = response.read()  # type: ignore[attr-defined]
            return response
        finally:
            connection.close()


@pytest.fixture
def raw(hub: LoopbackHub) -> Raw:
    return Raw(hub)


def address(hub: LoopbackHub) -> tuple[str, int]:
    host, port = hub.url.removeprefix("http://").split(":")
    return host, int(port)


def test_ranges_and_headers_of_a_large_file(hub: LoopbackHub, raw: Raw) -> None:
    repo = hub.create("dataset", "org/d")
    sha = repo.write("data/a b.parquet", DATA)
    path = "/datasets/org/d/resolve/main/data%2Fa%20b.parquet"
    head = raw("HEAD", path)
    assert head.status == 200
    assert head.headers["Content-Length"] == head.headers["X-Linked-Size"] == str(len(DATA))
    assert head.headers["X-Repo-Commit"] == sha
    assert head.headers["X-Linked-Etag"] == f'"{hashlib.sha256(DATA).hexdigest()}"'
    end = len(DATA) - 1
    for asked, start, stop in [("5-9", 5, 9), ("7-", 7, end), ("-6", end - 5, end), ("9-999999", 9, end)]:
        part = raw("GET", path, Range=f"bytes={asked}")
        assert part.status == 206
        assert part.headers["Content-Range"] == f"bytes {start}-{stop}/{len(DATA)}"
        assert part.content == DATA[start : stop + 1]
    outside = raw("GET", path, Range="bytes=999999-")
    assert (outside.status, outside.headers["Content-Range"]) == (416, f"bytes */{len(DATA)}")
    assert hub.requests("GET")[0].range == "bytes=5-9"


def test_error_codes(hub: LoopbackHub, raw: Raw) -> None:
    hub.create("model", "org/open")
    hub.create("model", "org/secret", private=True).write("a.txt", "a")
    for path, token, status, code in [
        ("/api/models/org/none", "", 404, "RepoNotFound"),
        ("/api/models/org/none", None, 401, "RepoNotFound"),
        ("/api/models/org/secret", None, 401, "RepoNotFound"),
        ("/org/secret/resolve/main/a.txt", None, 401, "RepoNotFound"),
        ("/org/secret/resolve/main/a.txt", "wrong", 401, None),
        ("/api/models/org/open/revision/v9", "", 404, "RevisionNotFound"),
        ("/org/open/resolve/v9/a.txt", "", 404, "RevisionNotFound"),
        ("/org/open/resolve/main/none.txt", "", 404, "EntryNotFound"),
        ("/api/models/org/open/tree/main/none", "", 404, "EntryNotFound"),
        ("/no/such/page", "", 404, None),
    ]:
        reply = raw("GET", path, token=token)
        assert (reply.status, reply.headers["X-Error-Code"]) == (status, code), path
        assert json.loads(reply.content)["error"] == reply.headers["X-Error-Message"]
    assert raw("GET", "/org/secret/resolve/main/a.txt").content == b"a"
    assert raw("POST", "/api/repos/create", {"name": "x", "organization": "org"}, token=None).status == 401
    hub.forbidden.add("others")
    assert raw("POST", "/api/repos/create", {"name": "x", "organization": "others"}).status == 403
    again = raw("POST", "/api/repos/create", {"name": "open", "organization": "org"})
    assert (again.status, json.loads(again.content)["url"]) == (409, f"{hub.url}/org/open")


def test_large_file_upload(hub: LoopbackHub, raw: Raw) -> None:
    repo = hub.create("model", "org/m")
    oid = hashlib.sha256(DATA).hexdigest()
    batch = {"operation": "upload", "objects": [{"oid": oid, "size": len(DATA)}]}
    line = json.dumps({"key": "lfsFile", "value": {"path": "a.bin", "algo": "sha256", "oid": oid, "size": len(DATA)}})
    commit = json.dumps({"key": "header", "value": {"summary": "s"}}) + "\n" + line
    old = repo.sha()
    assert raw("POST", "/api/models/org/m/commit/main", commit).status == 400, "nothing was uploaded"
    assert raw("PUT", f"/_objects/{oid}", DATA, token=None).status == 403, "no link was handed out"
    (object_,) = json.loads(raw("POST", "/org/m.git/info/lfs/objects/batch", batch).content)["objects"]
    upload, verify = (object_["actions"][name]["href"].removeprefix(hub.url) for name in ("upload", "verify"))
    assert raw("PUT", upload, DATA + b"x", token=None).status == 400
    assert raw("POST", verify, {"oid": oid, "size": len(DATA)}).status == 404
    chunks = iter([DATA[:100], DATA[100:]])
    assert raw("PUT", upload, chunks, token=None, **{"Transfer-Encoding": "chunked"}).status == 200
    assert raw("POST", verify, {"oid": oid, "size": len(DATA) - 1}).status == 404
    assert raw("POST", verify, {"oid": oid, "size": len(DATA)}).status == 200
    (object_,) = json.loads(raw("POST", "/org/m.git/info/lfs/objects/batch", batch).content)["objects"]
    assert "actions" not in object_, "what is stored is not uploaded again"
    assert repo.sha() == old
    assert raw("POST", "/api/models/org/m/commit/main", commit).status == 200
    assert repo.read("a.bin") == DATA


def test_what_a_fault_leaves_behind(hub: LoopbackHub, raw: Raw) -> None:
    repo = hub.create("model", "org/m")
    repo.write("a.txt", "0123456789")
    url = "/api/models/org/m/commit/main"

    def commit(parent: str | None = None) -> Any:
        header = {"summary": "s", **({"parentCommit": parent} if parent else {})}
        file = {"content": "dGV4dA==", "path": "b.txt", "encoding": "base64"}
        lines = [{"key": "header", "value": header}, {"key": "file", "value": file}]
        return raw("POST", url, "\n".join(map(json.dumps, lines)))

    lost = (http.client.HTTPException, ConnectionError)
    old = repo.sha()
    for cut in (0, 50):
        hub.faults.add("POST", "/commit/", drop_request=cut)
        with pytest.raises(lost):
            commit()
    assert repo.sha() == old, "cut while asking: nothing is done"
    for cut in (0, 10):
        hub.faults.add("POST", "/commit/", drop_response=cut)
        before = len(repo.commits())
        with pytest.raises(lost):
            commit()
        assert len(repo.commits()) == before + 1, "cut while answering: it is done"
    hub.faults.add("GET", "/resolve/", drop_body=4)
    with pytest.raises(http.client.IncompleteRead) as error:
        raw("GET", "/org/m/resolve/main/a.txt")
    assert error.value.partial == b"0123"

    hub.faults.add("GET", "a.txt", status=500, at=2, times=2)
    hub.faults.add("GET", "a.txt", status=429, retry_after=1, at=4)
    found = [raw("GET", "/org/m/resolve/main/a.txt") for _ in range(5)]
    assert [reply.status for reply in found] == [200, 500, 500, 429, 200]
    assert found[3].headers["Retry-After"] == "1"

    old = repo.sha()
    hub.faults.add("POST", "/commit/", stale=True)
    assert commit(parent=old).status == 412
    assert repo.commits()[0].parent == old
    assert "FOREIGN.txt" in repo.files()
    assert commit(parent=repo.sha()).status == 200
    assert commit(parent=old).status == 412
    for at, path in enumerate(("/api/models/org/m/refs", "/org/m/resolve/main/a.txt", "/api/whoami-v2"), start=1):
        hub.faults.add("GET", stale=True)
        old = repo.sha()
        raw("GET", path)
        assert (repo.sha() == old) == (at > 1), "the request names the repository through the API, or nothing happens"
    with pytest.raises(ValueError, match="exactly one"):
        hub.faults.add(status=500, drop_body=1)


def test_the_log_holds_no_secret_and_reset_forgets(hub: LoopbackHub, raw: Raw) -> None:
    hub.create("model", "org/m")
    raw("GET", "/api/models/org/m?blobs=true")
    raw("GET", "/api/models/org/m/refs", token=None)
    found = [(e.number, e.method, e.path, e.status, e.authorized) for e in hub.log]
    assert found == [
        (1, "GET", "/api/models/org/m?blobs=true", 200, True),
        (2, "GET", "/api/models/org/m/refs", 200, False),
    ]
    assert hub.token not in repr(hub.log)
    hub.faults.add(status=500)
    hub.reset()
    assert (hub.log, hub.repositories, list(hub.objects.folder.iterdir())) == ([], {}, [])
    assert raw("GET", "/api/whoami-v2").status == 200


def test_pages_and_bounds(hub: LoopbackHub, raw: Raw) -> None:
    repo = hub.create("model", "org/m")
    for name in "abcd":
        repo.write(f"{name}.txt", name)
    hub.page_size, path, found = 2, "/api/models/org/m/tree/main?recursive=true&expand=true", []
    while path:
        reply = raw("GET", path)
        found += json.loads(reply.content)
        match = re.search("<(.*)>", reply.headers["Link"] or "")
        path = match[1].removeprefix(hub.url) if match else ""
    assert [item["path"] for item in found] == repo.files()
    assert found[1]["lastCommit"]["id"] == repo.commits()[3].sha
    for length, status in [(b"99999999999", b"413"), (b"many", b"400")]:
        with socket.create_connection(address(hub), timeout=10) as connection:
            connection.sendall(b"PUT /_objects/x HTTP/1.1\r\nHost: a\r\nContent-Length: %s\r\n\r\n" % length)
            assert connection.recv(12) == b"HTTP/1.1 " + status


def test_the_server_ends_with_its_connections(tmp_path: Path) -> None:
    with LoopbackHub(tmp_path) as own:
        idle = socket.create_connection(address(own), timeout=10)
        idle.sendall(b"GET /api/whoami-v2 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 401"
    while idle.recv(4096):
        pass
    idle.close()
    with pytest.raises(OSError):
        socket.create_connection(address(own), timeout=1)
