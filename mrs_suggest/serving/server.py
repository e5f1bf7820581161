"""Starts the server: one worker in this process, or several under a supervisor."""

import logging
import math
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from mrs_suggest.common.errors import InputError, MrsError, missing_extra
from mrs_suggest.common.hub.baselines import ENDPOINT, resolve_model
from mrs_suggest.common.text.text import visible
from mrs_suggest.serving.observe.logs import configure_logs, log
from mrs_suggest.serving.observe.metrics import SHARED
from mrs_suggest.serving.protocol import LimitedProtocol, PatientServer, ServerConfig
from mrs_suggest.serving.settings import ADMIN_KEYS, API_KEYS, Keys, Settings, usable_cores
from mrs_suggest.serving.supervisor import BACKLOG, Supervisor

IDLE_SECONDS = 75  # an unused connection stays open; longer than a balancer's limit, usually 60
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # read by torch and numpy when imported
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(settings: Settings, log_level: str = "info") -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code.

    Raises:
        InputError: the port, the model or a file of keys cannot be used.
    """
    keys = Keys.read(settings.api_keys, API_KEYS)
    Keys.read(settings.admin_keys, ADMIN_KEYS)
    for model in settings.named.values():
        if not model.startswith(ENDPOINT):
            resolve_model(model)  # a download happens once, not in each worker
    with _bind(settings) as listener, _figures(settings.workers) as figures:
        configure_logs(log_level)
        os.environ.update(dict.fromkeys(THREADS, str(settings.threads)))
        wanted, cores = settings.workers * settings.threads, usable_cores()
        if wanted > cores:
            log(logging.WARNING, "more threads than cores: lower --workers or --threads", threads=wanted, cores=cores)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        # Until uvicorn or the supervisor installs its handler, and when uvicorn raises the signal again at the end.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))
        log(logging.INFO, "listening", url=f"http://{shown}:{port}", workers=settings.workers)
        if not keys and settings.host not in LOOPBACK:
            log(logging.WARNING, "no API keys: anyone who can reach the port may use the server (--api-keys)")
        config = ServerConfig(
            partial(_build, settings, log_level), factory=True, http=LimitedProtocol, ws="none", log_config=None,
            access_log=False, server_header=False, workers=settings.workers, backlog=BACKLOG, lifespan="on",
            timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=math.ceil(3 * settings.answer_seconds),
        )  # fmt: skip
        config.client_seconds, config.max_connections = settings.read_seconds, settings.max_connections
        if figures and settings.workers > 1:
            return _supervise(config, listener, figures)
        PatientServer(config).run([listener])
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
    return listener


def _build(settings: Settings, log_level: str) -> FastAPI:
    """The application of a worker; called in its own process."""
    configure_logs(log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the model is still being loaded
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGINT)}
    from mrs_suggest.serving.app import create_app

    try:
        return create_app(settings)
    except (MrsError, ImportError) as error:
        if settings.workers == 1:
            raise
        told = error if isinstance(error, MrsError) else missing_extra(error, "mrs serve", "serve") or error
        sys.stderr.write(f"mrs serve: {visible(told)}\n")  # one write: other workers write, too
        sys.stderr.flush()
        sys.exit(STARTUP_FAILURE)  # stops the supervisor: a restart would fail again
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(*_: object) -> None:
    """Exit immediately: a loading worker has no requests to finish, and would hold the port."""
    os._exit(0)


def _supervise(config: ServerConfig, listener: socket.socket, figures: Path) -> int:
    for path in figures.glob("*.db"):  # of an earlier run
        if re.fullmatch(r"(counter|histogram|summary|gauge_\w+)_\d+\.db", path.name):
            path.unlink(missing_ok=True)
    supervisor = Supervisor(config, listener)
    supervisor.run()
    return 2 if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes) else 0


@contextmanager
def _figures(workers: int) -> Iterator[Path | None]:
    """The folder through which workers share their metrics, a temporary one if it is not set; None for one worker.

    Raises:
        InputError: it cannot be written.
    """
    folder = os.environ.get(SHARED)
    if folder is None and workers == 1:
        yield None
        return
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        own = tempfile.mkdtemp(prefix="mrs-metrics-") if folder is None else None
        with tempfile.TemporaryFile(dir=folder or own):
            pass
    except OSError as error:
        where = f"{SHARED}={folder}" if folder is not None else "the folder for temporary files"
        raise InputError(
            f"{where}: cannot be written ({error.strerror or error}); set {SHARED} to another folder for metrics."
        ) from None
    os.environ[SHARED] = folder or own or ""
    try:
        yield Path(os.environ[SHARED])
    finally:
        if own:
            del os.environ[SHARED]
            shutil.rmtree(own, ignore_errors=True)
