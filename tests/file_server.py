"""Files of a folder on 127.0.0.1 by HTTP, in parts where a client asks for them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CUT = -1


class _Files(BaseHTTPRequestHandler):
    def __init__(self, *rest: Any, folder: Path, ranges: bool, status: int, faults: list[int | None]) -> None:
        self.folder, self.ranges, self.status, self.faults = folder, ranges, status, faults
        super().__init__(*rest)

    def do_GET(self) -> None:
        path = self.folder / urlsplit(self.path).path.lstrip("/")
        data, status = (path.read_bytes(), self.status) if path.is_file() else (b"", 404)
        fault = self.faults.pop(0) if self.faults and self.command == "GET" else None
        data, status = (b"", fault) if fault and fault != CUT else (data, status)
        asked = self.headers.get("Range") if self.ranges and status == 200 else None
        self.send_response(206 if asked else status)
        if asked:
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            self.send_header("Content-Range", f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}")
            data = data[first : last + 1]
        self.send_header("Content-Length", str(len(data)))
        if path.is_file():
            self.send_header("ETag", f'"{path.stat().st_mtime_ns:x}"')
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):  # a client that has what it wanted hangs up
                self.wfile.write(data[: len(data) // 3] if fault == CUT else data)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(
    folder: Path, ranges: bool = True, status: int = 200, faults: list[int | None] | None = None
) -> Iterator[str]:
    """The URL of a server of the folder's files.

    Args:
        ranges: whether parts of files are to be had.
        status: of the answer for a file that is there.
        faults: what goes wrong with the next GETs, taken from the list: a status, `CUT` (the connection ends after a
            third of the answer), None for nothing.
    """
    handler = partial(_Files, folder=folder, ranges=ranges, status=status, faults=faults if faults is not None else [])
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
