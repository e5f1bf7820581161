"""HTTP/1.1 with limits on heads, connections and the time that a client takes, which uvicorn lacks."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mrs_suggest.serving.gate import DROPPED, MAX_FIELDS, MAX_HEAD, error_json
from mrs_suggest.serving.observe.logs import log

LINGER = 0.5  # seconds that an idle connection of a stopping server waits for a request that may be on its way; ours
MAX_PIPELINED = 8  # requests of a connection that wait for an earlier answer; ours: browsers do not pipeline


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, with the limits of a connection.

    Attributes:
        client_seconds: for a client to send the head of a request, and to read an answer.
        max_connections: further connections are refused.
        connection_ended: called when one has ended.
    """

    client_seconds: float = 10
    max_connections: int = 512
    connection_ended: Callable[[], None] | None = None


class PatientServer(uvicorn.Server):
    """A server that accepts the connections which the kernel has accepted before it closes its port."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop, opening = asyncio.get_running_loop(), []
        protocol = partial(LimitedProtocol, self.config, self.server_state, self.lifespan.state)
        for listener in sockets or []:
            with suppress(OSError):  # there is none left
                while True:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    opening.append(loop.connect_accepted_socket(protocol, connection))
        for server in self.servers:
            server.close()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.sleep(LINGER / 10)  # until those that the loop has accepted are there
        await super().shutdown(sockets)


class LimitError(Exception):
    """Stops the parser: the request is above a limit."""


class LimitedProtocol(HttpToolsProtocol):
    """Refuses large heads and surplus connections, and closes connections whose client is too slow."""

    config: ServerConfig
    _head = _fields = 0  # of the current request
    _kept = 0  # bytes received since the parser last reported progress
    _dropped = 0
    _refused = _stopping = False
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` as soon as the client falls behind
        if len(self.connections) > self.config.max_connections:
            sentence = f"the server has {self.config.max_connections} connections already; try again later."
            self._refuse(503, "too_many_connections", sentence)
            transport.close()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        if self.config.connection_ended is not None:
            self.config.connection_ended()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._dropped += len(data)
            if self._dropped > DROPPED:
                self.transport.abort()
            return
        self._kept += len(data)
        super().data_received(data)
        if self._kept > MAX_HEAD:
            self._refuse_head()
        elif self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._fields = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._fields += 1
        self._count(len(name) + len(value) + len(": \r\n"))

    def on_headers_complete(self) -> None:
        self._kept = 0
        self._stop_timer()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise LimitError
        super().on_headers_complete()
        if self._stopping:
            self._answer_last()

    def shutdown(self) -> None:
        """Answer what has arrived or arrives within `LINGER`, then close: a reset would destroy a request."""
        self._stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, self._close_idle)
        else:
            self._answer_last()

    def _answer_last(self) -> None:
        """Close the connection after the answer to the newest request, and say so in its head."""
        self.cycle.keep_alive = False
        self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]

    def _close_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._kept = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._close_gently()  # refused before its body arrived, which may take forever

    def send_400_response(self, msg: str) -> None:
        """Called when the parser fails: invalid HTTP, or our `LimitError`."""
        if self._head > MAX_HEAD or self._fields > MAX_FIELDS:
            self._refuse_head()
        else:
            self._refuse(400, "invalid_http", "the request is not valid HTTP/1.1.")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.config.client_seconds, self._cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def _count(self, size: int) -> None:
        self._kept = 0
        self._head += size
        if self._head > MAX_HEAD or self._fields > MAX_FIELDS:
            raise LimitError

    def _wait_for_head(self) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.config.client_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _too_slow(self) -> None:
        self._timer = None
        self._refuse(408, "slow_request", "the head of the request did not arrive in time.")

    def _cut_off(self) -> None:
        log(logging.INFO, "cut off", code="slow_reader")
        self.transport.abort()

    def _refuse_head(self) -> None:
        sentence = f"the head of the request has more than {MAX_HEAD} bytes or {MAX_FIELDS} fields."
        self._refuse(431, "head_too_large", sentence)

    def _refuse(self, status: int, code: str, sentence: str) -> None:
        """Answer with an error, unless another answer is being sent, and accept no more requests."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        log(logging.INFO, "refused", status=status, code=code)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not cycle.more_body:  # answer the complete request before, then close the connection
                cycle.keep_alive = False
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if self.pipeline or cycle.response_started:
                self.transport.abort()
                return
        body = error_json(code, sentence)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nconnection: close\r\ncontent-type: application/json\r\n"
        )
        again = "retry-after: 1\r\n" if status == 503 else ""
        self.transport.write(f"{head}{again}content-length: {len(body)}\r\n\r\n".encode() + body)
        self._close_gently()

    def _close_gently(self) -> None:
        """Close once the client has stopped writing: a reset would destroy the answer."""
        self._refused = True
        self._unset_keepalive_if_required()
        self._stop_timer()
        self.flow.resume_reading()
        self.transport.write_eof()
        self._timer = self.loop.call_later(self.config.client_seconds, self.transport.abort)
