"""S3 on 127.0.0.1 (moto), and the environment that leads `s3fs` there."""

import http.client
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SECRET = "kept-quiet-here"
BUCKET = "texts"


class S3:
    """A server with the empty bucket `texts`."""

    def __init__(self, host: str, port: int) -> None:
        import s3fs

        self.address = (host, port)
        self.files: Any = s3fs.S3FileSystem(endpoint_url=f"http://{host}:{port}", key="key", secret=SECRET)
        self.files.mkdir(BUCKET)

    def send(self, folder: Path, name: str) -> None:
        """Copy a folder to `texts/NAME`."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.files.pipe_file(f"{BUCKET}/{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def contents(self, name: str) -> dict[str, bytes]:
        """Every file below `texts/NAME` by its path in it."""
        self.files.invalidate_cache()
        root = f"{BUCKET}/{name}/"
        return {path.removeprefix(root): self.files.cat_file(path) for path in self.files.find(root)}

    def below(self, name: str) -> list[str]:
        """The paths of all files below `texts/NAME`."""
        self.files.invalidate_cache()
        return [str(path) for path in self.files.find(f"{BUCKET}/{name}")]

    def names(self) -> list[str]:
        """What is at the top of the bucket."""
        self.files.invalidate_cache()
        return sorted(path.removeprefix(f"{BUCKET}/") for path in self.files.ls(BUCKET, detail=False))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Meanwhile, credentials are checked: nobody has any that count."""
        self._guard(0)
        try:
            yield
        finally:
            self._guard(float("inf"))

    def _guard(self, free: float) -> None:
        connection = http.client.HTTPConnection(*self.address)
        connection.request("POST", "/moto-api/reset-auth", str(free), {"Content-Type": "text/plain"})
        assert connection.getresponse().status == 200
        connection.close()


@pytest.fixture(scope="session")
def _server() -> Iterator[S3]:
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    pytest.importorskip("s3fs")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # which names every request otherwise
    server.start()
    try:
        yield S3(*server.get_host_and_port())
    finally:
        server.stop()


@pytest.fixture
def s3(_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return an S3 with an empty bucket, to which this process and its children are led."""
    lead_to(monkeypatch, *_server.address)
    _server.files.invalidate_cache()
    for path in _server.files.find(BUCKET):
        _server.files.rm_file(path)
    return _server


def lead_to(monkeypatch: pytest.MonkeyPatch, host: str, port: int) -> None:
    """Set the environment that s3fs and botocore read, for file systems that are opened from now on."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)


class _Refusal(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # clients wait for 100 before they send a body

    def __init__(self, *rest: Any, status: int, code: str) -> None:
        self.status, self.code = status, code
        super().__init__(*rest)

    def do_GET(self) -> None:
        told = f"<Error><Code>{self.code}</Code><Message>{SECRET}</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def refusing(monkeypatch: pytest.MonkeyPatch, status: int, code: str) -> Iterator[None]:
    """Lead to an S3 that refuses every request with this code, as S3 does: in the body, which HEAD does not have."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Refusal, status=status, code=code)) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        lead_to(monkeypatch, "127.0.0.1", http.server_address[1])
        try:
            yield
        finally:
            http.shutdown()
