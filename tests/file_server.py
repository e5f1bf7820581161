"""Files of a folder on 127.0.0.1 by HTTP, in parts where a client asks for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class _Files(BaseHTTPRequestHandler):
    def __init__(self, *rest: Any, folder: Path, ranges: bool, status: int) -> None:
        self.folder, self.ranges, self.status = folder, ranges, status
        super().__init__(*rest)

    def do_GET(self) -> None:
        path = self.folder / urlsplit(self.path).path.lstrip("/")
        data, status = (path.read_bytes(), self.status) if path.is_file() else (b"", 404)
        asked = self.headers.get("Range") if self.ranges and status == 200 else None
        self.send_response(206 if asked else status)
        if asked:
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            self.send_header("Content-Range", f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}")
            data = data[first : last + 1]
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):  # a client that has what it wanted hangs up
                self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path, ranges: bool = True, status: int = 200) -> Iterator[str]:
    """The URL of a server of the folder's files.

    Args:
        ranges: whether parts of files are to be had.
        status: of the answer for a file that is there.
    """
    handler = partial(_Files, folder=folder, ranges=ranges, status=status)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
