"""Processes and sockets: one worker here, or several under a supervisor."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from mrs_core.baselines import resolve_model
from mrs_core.errors import InputError, MrsError
from mrs_core.text import visible
from mrs_serving.gate import error_json
from mrs_serving.logs import configure_logs, log
from mrs_serving.metrics import SHARED
from mrs_serving.settings import ADMIN_KEYS, API_KEYS, Keys, Settings, usable_cores

BACKLOG = 2048  # connections that the kernel holds until they are accepted; uvicorn's default
ANSWERS_WITHIN = 60  # seconds in which a worker tells the supervisor that it lives: it may be importing torch
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # read by torch and numpy when imported
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, with the time that a client has for the head of a request."""

    head_seconds: float = 10


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 that closes connections whose request does not arrive; uvicorn itself would wait for ever."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._head_timer is None:
            seconds = getattr(self.config, "head_seconds", ServerConfig.head_seconds)
            self._head_timer = self.loop.call_later(seconds, self._too_slow)

    def _head_is_there(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        if self.transport.is_closing():
            return
        body = error_json("slow_request", "the head of the request did not arrive in time.")
        head = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()


class Supervisor(Multiprocess):
    """Starts workers, starts them again when they die, and hands SIGHUP on to them."""

    def handle_hup(self) -> None:
        log(logging.INFO, "reloading", workers=len(self.processes))
        for process in self.processes:
            # One that is still loading would die of the signal, and may have read the old files.
            if process.wait_until_ready(ANSWERS_WITHIN, self.should_exit) and process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

    def init_processes(self) -> None:
        super().init_processes()
        self._leave_their_ends()

    def _leave_their_ends(self) -> None:
        """Close the workers' ends of their pipes here: the end of one that is being asked then ends the waiting."""
        for process in self.processes:
            process.child_conn.close()

    def keep_subprocess_alive(self) -> None:
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        self._leave_their_ends()
        from prometheus_client import multiprocess  # the folder of the figures is known by now

        for pid in before - {process.pid for process in self.processes}:
            log(logging.WARNING, "a worker has ended, and is started again", ended=pid)
            multiprocess.mark_process_dead(pid)

    @property
    def failed(self) -> bool:
        """Whether a worker could not start."""
        return any(process.exitcode == STARTUP_FAILURE for process in self.processes)


def serve(settings: Settings, log_level: str = "info") -> int:
    """Serve until SIGTERM or SIGINT; the exit code.

    Raises:
        InputError: the port, the model or a file of keys cannot be used.
    """
    keys = Keys.read(settings.api_keys, API_KEYS)
    Keys.read(settings.admin_keys, ADMIN_KEYS)
    resolve_model(settings.model, settings.revision)  # a download happens once, not in each worker
    with _bind(settings) as listener:
        configure_logs(log_level)
        for variable in THREADS:
            if settings.threads is not None or variable not in os.environ:
                os.environ[variable] = str(settings.own_threads)
        wanted, cores = settings.workers * settings.own_threads, usable_cores()
        if wanted > cores:
            log(logging.WARNING, "more threads than cores: lower --workers or --threads", threads=wanted, cores=cores)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log(logging.INFO, "listening", url=f"http://{shown}:{port}", workers=settings.workers)
        if not keys and settings.host not in LOOPBACK:
            log(logging.WARNING, "no API keys: everyone who reaches the port may ask (--api-keys)")
        config = ServerConfig(
            partial(_build, settings, log_level), factory=True, http=PatientProtocol, ws="none", log_config=None,
            access_log=False, server_header=False, workers=settings.workers, backlog=BACKLOG, lifespan="on",
            timeout_keep_alive=settings.idle_seconds, timeout_graceful_shutdown=settings.stop_seconds,
            timeout_worker_healthcheck=ANSWERS_WITHIN,
        )  # fmt: skip
        config.head_seconds = settings.read_seconds
        if settings.workers > 1:
            return _supervise(config, listener)
        signal.signal(signal.SIGTERM, lambda *_: None)  # what uvicorn raises again once it has stopped: a good end
        uvicorn.Server(config).run([listener])
    return 0


def _bind(settings: Settings) -> socket.socket:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"--host {settings.host} --port {settings.port}: {reason}; pass another one, or --port 0 for any."
        ) from None
    listener.set_inheritable(True)
    return listener


def _build(settings: Settings, log_level: str) -> FastAPI:
    """The application of a worker; called in its own process."""
    configure_logs(log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the model is being read: nothing to load anew yet
    from mrs_serving.app import create_app

    if settings.workers == 1:
        return create_app(settings)
    try:
        return create_app(settings)
    except MrsError as error:
        sys.stderr.write(f"mrs serve: {visible(error)}\n")  # in one piece: other workers write, too
        sys.stderr.flush()
        sys.exit(STARTUP_FAILURE)  # the supervisor stops: it would fail again


def _supervise(config: ServerConfig, listener: socket.socket) -> int:
    own = None
    if SHARED not in os.environ:
        own = os.environ[SHARED] = tempfile.mkdtemp(prefix="mrs-metrics-")
    folder = Path(os.environ[SHARED])
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.db"):  # of a run before: its figures are not ours
        if re.fullmatch(r"(counter|histogram|summary|gauge_\w+)_\d+\.db", path.name):
            path.unlink(missing_ok=True)
    try:
        supervisor = Supervisor(config, [listener])
        supervisor.run()
        return 2 if supervisor.failed else 0
    finally:
        if own:
            shutil.rmtree(own, ignore_errors=True)
