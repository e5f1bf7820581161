"""Several workers behind one port: the supervisor accepts connections and gives each to the worker with the fewest.

Workers that accept for themselves would share unevenly: one of them often takes all connections that come together.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import struct
import threading
import time
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from mrs_suggest.serving.observe.logs import log
from mrs_suggest.serving.protocol import LimitedProtocol, ServerConfig

BACKLOG = 2048  # connections that the kernel holds until they are accepted; uvicorn's default
ANSWERS_WITHIN = 60  # seconds for a worker to answer the supervisor: it may be importing torch
LOOKS_EVERY = 0.1  # seconds after which the supervisor sees that there are new workers, or that it is stopping
MAKES_ROOM_WITHIN = 1  # second for a worker whose channel is full; then another worker gets the connection
STEADY = 60  # seconds between ends of workers, below which the pause before a restart grows
LONGEST_PAUSE = 30  # seconds


class WorkerServer(uvicorn.Server):
    """Serves the connections that the supervisor sends through a channel, a Unix socket.

    It sends back one byte when it is ready, and one for each connection that has ended.
    """

    config: ServerConfig

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        (self._channel,) = sockets or []
        self._unreported = 0
        self._opening: set[asyncio.Task[object]] = set()
        await super().startup([])
        self._channel.setblocking(False)
        self.config.connection_ended = self._report
        asyncio.get_running_loop().add_reader(self._channel, self._take)
        self._report()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        while self._take():
            pass
        await asyncio.gather(*self._opening, return_exceptions=True)
        await super().shutdown(sockets)

    def _report(self) -> None:
        self._unreported += 1
        with suppress(OSError):  # it is full: reported with the next one; or the server is stopping
            self._unreported -= self._channel.send(bytes(self._unreported))

    def _take(self) -> bool:
        """Serve the next connection, and return whether there was one."""
        try:
            received, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        except OSError:  # there is none, or the supervisor has ended, which stops the worker
            return False
        if received and not descriptors:
            self._report()  # this process cannot open more files
        for descriptor in descriptors:
            loop, connection = asyncio.get_running_loop(), socket.socket(fileno=descriptor)
            connection.setblocking(False)
            protocol = partial(LimitedProtocol, self.config, self.server_state, self.lifespan.state)
            task = loop.create_task(loop.connect_accepted_socket(protocol, connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        return bool(received)


class Supervisor(Multiprocess):
    """Starts workers, restarts them when they die, gives them connections, and forwards SIGHUP to them.

    Args:
        listener: a bound socket; it listens once a worker is ready, and until SIGTERM or SIGINT.
    """

    _ended = _pause = 0.0  # when a worker last ended, and the pause before the next restart
    _closed = False  # new connections are refused

    def __init__(self, config: ServerConfig, listener: socket.socket) -> None:
        super().__init__(config, [])
        listener.setblocking(False)
        self._listener = listener
        self._channels: list[socket.socket] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def handle_hup(self) -> None:
        log(logging.INFO, "reloading", workers=len(self.processes))
        for process in self.processes:
            # A loading worker would die from the signal, and may have read the old files.
            if process.wait_until_ready(ANSWERS_WITHIN, self.should_exit) and process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

    def handle_ttin(self) -> None:
        self.processes_num += 1
        self.processes.append(self._start())

    def init_processes(self) -> None:
        self.processes += [self._start() for _ in range(self.processes_num)]
        self._acceptor.start()

    def terminate_all(self) -> None:
        self._closed = True
        self._acceptor.join()  # before the workers stop, they get what the kernel has accepted
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        now = time.monotonic()
        if now < self._ended + self._pause:
            return
        for number, process in enumerate(self.processes):
            if self._closed or process.is_alive(ANSWERS_WITHIN):
                continue
            process.kill()
            process.join()
            if process.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            self.processes[number] = self._start()
            if self._ended != now:
                self._pause = min(max(1.0, 2 * self._pause), LONGEST_PAUSE) if now < self._ended + STEADY else 1.0
            self._ended = now
            log(logging.WARNING, "a worker has ended, and is started again", ended=process.pid)
            from prometheus_client import multiprocess  # after the metrics folder is set

            multiprocess.mark_process_dead(process.pid)

    def _start(self) -> Process:
        channel, theirs = socket.socketpair()
        with theirs:
            process = Process(self.config, [theirs])
            process._server = WorkerServer(self.config)
            process.start()
        process.child_conn.close()  # the worker's end of its pipe: reading from a dead worker ends
        channel.settimeout(MAKES_ROOM_WITHIN)
        self._channels.append(channel)
        return process

    def _stop(self, number: int, _: object) -> None:
        self._closed = True
        self.signal_queue.append(number)

    def _accept(self) -> None:
        """Give connections to workers while any is ready, at last those that wait; runs in a separate thread."""
        counts: dict[socket.socket, int] = {}  # connections of ready workers by channel, the one last chosen at the end
        while not self._closed:
            sources = [*self._channels, *([self._listener] if counts else [])]
            for ready in wait(sources, LOOKS_EVERY):
                assert isinstance(ready, socket.socket)
                if ready is self._listener:
                    self._give(counts)
                    continue
                try:
                    ended = len(ready.recv(4096))
                except OSError:
                    ended = 0
                if not ended:  # the worker has ended
                    self._channels.remove(ready)
                    counts.pop(ready, None)
                    ready.close()
                elif ready in counts:
                    counts[ready] -= ended
                elif not self._closed:
                    counts[ready] = 1 - ended
                    self._listener.listen(BACKLOG)
        _refuse_new(self._listener)
        until = time.monotonic() + ANSWERS_WITHIN  # hung workers take nothing
        while time.monotonic() < until and self._give(counts):
            pass
        with suppress(OSError):  # it does not listen
            self._listener.shutdown(socket.SHUT_RDWR)

    def _give(self, counts: dict[socket.socket, int]) -> bool:
        """Give the next connection to a worker; False if there is none, or no worker."""
        if not counts:  # the last worker has just ended
            return False
        try:
            connection, _ = self._listener.accept()
        except OSError:  # there is none, or too many open files
            time.sleep(0 if self._closed else 0.1)
            return False
        with connection:
            for channel in sorted(counts, key=counts.__getitem__):
                with suppress(OSError):  # it has ended, or is too busy
                    socket.send_fds(channel, [b"+"], [connection.fileno()])
                    counts[channel] = counts.pop(channel) + 1
                    break
        return True


def _refuse_new(listener: socket.socket) -> None:
    """Drop what asks for a connection from now on, so that none comes between the last one and the end (Linux)."""
    drop = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # a filter of one step: keep no byte
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 1, ctypes.addressof(drop)))  # SO_ATTACH_FILTER
