"""The server: what it adds to a bare call, and what batches across requests give.

Workload: the retriever that ships in the package, English messages of its data's test split, one per request, three
replies each, over loopback; server and bare call with one thread of arithmetic. Overhead: the median of requests one
at a time, less that of `Suggester.suggest` in this process, in turns. Throughput: 32 connections without a pause,
against one; the client runs on the same machine. Half of saturation: requests at random moments (Poisson), half as
many a second as 32 connections get through; times count from the moment at which a request was due. Threads: one worker
on 16 connections, with the default threads, one, and one per core; alone, and next to a busy process per core. The
rival: FastAPI around `Suggester` (`wrapper_server.py`), one process like ours, on 32 connections, in turns; alone, and
next to a busy process per core.

Run: python benchmarks/bench_serve.py [--seconds S] [--workers N]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits
from timing import write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.serving.settings import usable_cores
from mrs_suggest.suggest.suggester import Suggester

CONCURRENCY = 32
GOALS = {"overhead ms": 2.0, "p99 over median": 3.0, "throughput ratio": 3.0}


@contextmanager
def server(workers: int, threads: int | None = 1) -> Iterator[tuple[str, int]]:
    """A running server's host and port; threads None: the default."""
    command = [
        sys.executable,
        "-m",
        "mrs_suggest.cli.main",
        "serve",
        "--port",
        "0",
        "--workers",
        str(workers),
        *([] if threads is None else ["--threads", str(threads)]),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url, serving = "", 0
        while serving < workers:
            line = json.loads(process.stderr.readline())
            url = line.get("url", url)
            serving += line["event"] == "loaded"
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would hold the server up
        address = urlsplit(url)
        host, port = str(address.hostname), int(address.port or 0)
        while socket.socket().connect_ex((host, port)):  # a worker opens the port a moment after it has loaded
            time.sleep(0.05)
        yield host, port
    finally:
        process.terminate()
        process.wait(60)


class Connection:
    """HTTP/1.1 on one connection, with as little work as can be: it is the server that is measured."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def ask(self, message: str) -> bytes:
        body = json.dumps({"messages": [message], "language": "en"}).encode()
        head = f"POST /v1/suggest HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        fields = dict(line.split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        return await self._reader.readexactly(int(fields[b"content-length"]))


async def one_at_a_time(
    address: tuple[str, int], messages: list[str], bare: Callable[[str], object]
) -> tuple[list[float], list[float]]:
    """Seconds of each request, and of each bare call, in turns."""
    connection, asked, called = await Connection(*address).open(), [], []
    for message in messages:
        await connection.ask(message)
    for _ in range(3):
        for message in messages:
            start = time.perf_counter()
            await connection.ask(message)
            between = time.perf_counter()
            bare(message)
            asked.append(between - start)
            called.append(time.perf_counter() - between)
    return asked, called


async def throughput(address: tuple[str, int], messages: list[str], connections: int, seconds: float) -> float:
    """Requests a second on so many connections."""
    texts, done, over = itertools.cycle(messages), 0, time.perf_counter() + seconds

    async def ask() -> None:
        nonlocal done
        connection = await Connection(*address).open()
        while time.perf_counter() < over:
            await connection.ask(next(texts))
            done += 1

    start = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(connections)))
    return done / (time.perf_counter() - start)


async def at_rate(address: tuple[str, int], messages: list[str], rate: float, seconds: float) -> list[float]:
    """Seconds of each request from the moment at which it was due; requests come by a Poisson process."""
    texts, generator, took = itertools.cycle(messages), random.Random(1), list[float]()
    # Used in turns: the last one returned would be taken again and again, and its worker would do the work of all.
    free = deque([await Connection(*address).open() for _ in range(4 * CONCURRENCY)])
    tasks = set()

    async def ask(due: float) -> None:
        connection = free.popleft()
        await connection.ask(next(texts))
        free.append(connection)
        took.append(time.perf_counter() - due)

    due = start = time.perf_counter()
    while due < start + seconds:
        due += generator.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(ask(due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return took


def measure(messages: list[str], bare: Callable[[str], object], workers: int, seconds: float) -> dict[str, float]:
    """All figures of a server with so many workers."""
    with server(workers) as address:
        asked, called = asyncio.run(one_at_a_time(address, messages, bare))
        single, many = (asyncio.run(throughput(address, messages, n, seconds)) for n in (1, CONCURRENCY))
        took = asyncio.run(at_rate(address, messages, many / 2, 2 * seconds))
    middle, late = median(took), quantiles(took, n=100)[98]
    figures = {
        "bare ms": 1000 * median(called), "request ms": 1000 * median(asked),
        "overhead ms": 1000 * (median(asked) - median(called)),
        "requests a second, one at a time": single, f"requests a second, {CONCURRENCY} connections": many,
        "throughput ratio": many / single,
        "median ms at half of saturation": 1000 * middle, "p99 ms at half of saturation": 1000 * late,
        "p99 over median": late / middle,
    }  # fmt: skip
    return {name: round(value, 3) for name, value in figures.items()}


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that compute without a pause."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def by_threads(messages: list[str], seconds: float) -> dict[str, dict[str, float]]:
    """Requests a second on 16 connections."""
    cores, found = usable_cores(), dict[str, dict[str, float]]()
    for name, threads in (("default", None), ("--threads 1", 1), (f"--threads {cores}", cores)):
        for load, count in (("alone", 0), ("busy", cores)):
            with server(1, threads) as address, busy_processes(count):
                rate = asyncio.run(throughput(address, messages, 16, seconds))
            found.setdefault(name, {})[load] = round(rate, 1)
            print(f"{name}, {load}: {rate:.1f} requests a second", flush=True)
    return found


@contextmanager
def wrapper() -> Iterator[tuple[str, int]]:
    """The rival's host and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    words = ["-m", "uvicorn", "wrapper_server:app", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=Path(__file__).parent, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        while socket.socket().connect_ex((host, port)):
            time.sleep(0.05)
        yield host, port
    finally:
        process.terminate()
        process.wait(60)


def against_the_wrapper(messages: list[str], seconds: float) -> dict[str, dict[str, float]]:
    """Requests a second of ours and of the rival, medians of three turns, and their ratio."""
    found = {}
    for load, count in (("alone", 0), ("busy", usable_cores())):
        rates: dict[str, list[float]] = {"ours": [], "wrapper": []}
        with server(1) as own, wrapper() as other, busy_processes(count):
            for _ in range(3):
                for name, address in (("ours", own), ("wrapper", other)):
                    rates[name].append(asyncio.run(throughput(address, messages, CONCURRENCY, seconds)))
        middle = {name: median(some) for name, some in rates.items()}
        found[load] = {
            **{f"{name}, requests a second": round(rate, 1) for name, rate in middle.items()},
            "times_the_rival": round(middle["ours"] / middle["wrapper"], 2),
        }
        print(f"{load}: {found[load]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5, help="of each throughput (default 5)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="default 1 2")
    options = parser.parse_args()
    threadpool_limits(1)
    messages = list(dict.fromkeys(open_prepared("sample").load("en", "test")["message"]))[:200]
    suggester = Suggester.from_pretrained("everyday-retriever")
    by_workers = {}
    for workers in options.workers:
        figures = measure(messages, lambda message: suggester.suggest([message], "en"), workers, options.seconds)
        by_workers[f"{workers} workers"] = figures
        print(f"{workers} workers: " + ", ".join(f"{name} {value:g}" for name, value in figures.items()))
    result = {
        "messages": len(messages),
        "goals": GOALS,
        **by_workers,
        "requests a second by threads": by_threads(messages, options.seconds),
        "FastAPI around Suggester": against_the_wrapper(messages, options.seconds),
    }
    write_result(__file__, __doc__, result, ("numpy", "fastapi", "uvicorn", "httptools"), suggester.folder)


if __name__ == "__main__":
    main()
