"""The server: what it adds to a bare call, and what batches across requests give.

Workload: the retriever that ships in the package, English messages of its data, one per request, three replies each,
over loopback; more different messages, in turns, than those whose vectors a server remembers; server and bare call with
one thread of arithmetic. Overhead: the median of requests one at a time, less that of `Suggester.suggest` in this
process, in turns. Throughput: 32 connections without a pause, against one; the client runs on the same machine.
Processor time: that of the server a request. Half of saturation: requests at random moments (Poisson), half as many a
second as 32 connections get through; times count from the moment at which a request was due. Threads: one worker
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
from typing import NamedTuple
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits
from timing import write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.serving.settings import usable_cores
from mrs_suggest.suggest.remembering import REMEMBERED
from mrs_suggest.suggest.suggester import Suggester

CONCURRENCY = 32
ROUNDS = 600  # requests one at a time
GOALS = {"overhead ms": 2.0, "p99 over median": 3.0, "processor time ratio": 3.0, "times_the_rival": 1.5}


class Server(NamedTuple):
    """A running server."""

    host: str
    port: int
    process: int

    def processor_seconds(self) -> float:
        """That it has used so far, its workers included."""
        pending, ticks = [self.process], 0
        while pending:
            place = Path("/proc", str(pending.pop()))
            ticks += sum(map(int, (place / "stat").read_text().rpartition(")")[2].split()[11:13]))
            pending += map(int, (place / "task" / place.name / "children").read_text().split())
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(workers: int, threads: int | None = 1) -> Iterator[Server]:
    """A running server of ours; threads None: the default."""
    command = [
        sys.executable,
        "-m",
        "mrs_suggest.cli.main",
        "serve",
        "--port",
        "0",
        "--workers",
        str(workers),
        "--answer-seconds",
        "60",
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
        yield Server(host, port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


class Connection:
    """HTTP/1.1 on one connection, with as little work as can be: it is the server that is measured."""

    def __init__(self, asked: Server) -> None:
        self._address = asked.host, asked.port

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def ask(self, message: str) -> bytes:
        body = json.dumps({"messages": [message], "language": "en"}).encode()
        kind = "content-type: application/json\r\ncontent-length"
        self._writer.write(f"POST /v1/suggest HTTP/1.1\r\nhost: a\r\n{kind}: {len(body)}\r\n\r\n".encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        fields = dict(line.split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        return await self._reader.readexactly(int(fields[b"content-length"]))


async def one_at_a_time(
    asked: Server, texts: Iterator[str], bare: Callable[[str], object]
) -> tuple[list[float], list[float]]:
    """Seconds of each request, and of each bare call, in turns."""
    connection, requests, calls = await Connection(asked).open(), [], []
    for _ in range(CONCURRENCY):  # the first ones compile the guard's phrases
        await connection.ask(next(texts))
    for message in itertools.islice(texts, ROUNDS):
        start = time.perf_counter()
        await connection.ask(message)
        between = time.perf_counter()
        bare(message)
        requests.append(between - start)
        calls.append(time.perf_counter() - between)
    return requests, calls


async def throughput(asked: Server, texts: Iterator[str], connections: int, seconds: float) -> tuple[float, float]:
    """Requests a second on so many connections, and the server's processor seconds a request."""
    done, used, start = 0, asked.processor_seconds(), time.perf_counter()

    async def ask() -> None:
        nonlocal done
        connection = await Connection(asked).open()
        while time.perf_counter() < start + seconds:
            await connection.ask(next(texts))
            done += 1

    await asyncio.gather(*(ask() for _ in range(connections)))
    return done / (time.perf_counter() - start), (asked.processor_seconds() - used) / done


async def at_rate(asked: Server, texts: Iterator[str], rate: float, seconds: float) -> list[float]:
    """Seconds of each request from the moment at which it was due; requests come by a Poisson process."""
    generator, took, tasks = random.Random(1), list[float](), set()
    # Used in turns: the last one returned would be taken again and again, and its worker would do the work of all.
    free = deque([await Connection(asked).open() for _ in range(4 * CONCURRENCY)])

    async def ask(due: float) -> None:
        connection = free.popleft() if free else await Connection(asked).open()
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


def measure(texts: Iterator[str], bare: Callable[[str], object], workers: int, seconds: float) -> dict[str, float]:
    """All figures of a server with so many workers."""
    with server(workers) as asked:
        requests, calls = asyncio.run(one_at_a_time(asked, texts, bare))
        single, many = (asyncio.run(throughput(asked, texts, n, seconds)) for n in (1, CONCURRENCY))
        took = asyncio.run(at_rate(asked, texts, many[0] / 2, 2 * seconds))
    middle, late = median(took), quantiles(took, n=100)[98]
    figures = {
        "bare ms": 1000 * median(calls), "request ms": 1000 * median(requests),
        "overhead ms": 1000 * (median(requests) - median(calls)),
        "requests a second, one at a time": single[0], f"requests a second, {CONCURRENCY} connections": many[0],
        "throughput ratio": many[0] / single[0],
        "processor ms, one at a time": 1000 * single[1], f"processor ms, {CONCURRENCY} connections": 1000 * many[1],
        "processor time ratio": single[1] / many[1],
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


def by_threads(texts: Iterator[str], seconds: float) -> dict[str, dict[str, float]]:
    """Requests a second on 16 connections."""
    cores, found = usable_cores(), dict[str, dict[str, float]]()
    for name, threads in (("default", None), ("--threads 1", 1), (f"--threads {cores}", cores)):
        for load, count in (("alone", 0), ("busy", cores)):
            with server(1, threads) as asked, busy_processes(count):
                rate, _ = asyncio.run(throughput(asked, texts, 16, seconds))
            found.setdefault(name, {})[load] = round(rate, 1)
            print(f"{name}, {load}: {rate:.1f} requests a second", flush=True)
    return found


@contextmanager
def wrapper() -> Iterator[Server]:
    """The rival, running."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    words = ["-m", "uvicorn", "wrapper_server:app", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=Path(__file__).parent, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        while socket.socket().connect_ex((host, port)):
            time.sleep(0.05)
        yield Server(host, port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def against_the_wrapper(texts: Iterator[str], seconds: float) -> dict[str, dict[str, float]]:
    """Requests a second and processor time of ours and of the rival, medians of three turns, and their ratio."""
    found = {}
    for load, count in (("alone", 0), ("busy", usable_cores())):
        turns: dict[str, list[tuple[float, float]]] = {"ours": [], "wrapper": []}
        with server(1) as own, wrapper() as other, busy_processes(count):
            for _ in range(3):
                for name, asked in (("ours", own), ("wrapper", other)):
                    turns[name].append(asyncio.run(throughput(asked, texts, CONCURRENCY, seconds)))
        rates = {name: median(rate for rate, _ in some) for name, some in turns.items()}
        used = {name: 1000 * median(used for _, used in some) for name, some in turns.items()}
        found[load] = {
            **{f"{name}, requests a second": round(rate, 1) for name, rate in rates.items()},
            **{f"{name}, processor ms": round(own, 3) for name, own in used.items()},
            "times_the_rival": round(rates["ours"] / rates["wrapper"], 2),
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
    messages = list(dict.fromkeys(open_prepared("mrs-everyday").load("en", "train")["message"]))
    assert len(messages) > 2 * REMEMBERED
    texts = itertools.cycle(messages)
    suggester = Suggester.from_pretrained("everyday-retriever")
    by_workers = {}
    for workers in options.workers:
        figures = measure(texts, lambda message: suggester.suggest([message], "en"), workers, options.seconds)
        by_workers[f"{workers} workers"] = figures
        print(f"{workers} workers: " + ", ".join(f"{name} {value:g}" for name, value in figures.items()))
    result = {
        "messages": len(messages),
        "goals": GOALS,
        **by_workers,
        "requests a second by threads": by_threads(texts, options.seconds),
        "FastAPI around Suggester": against_the_wrapper(texts, options.seconds),
    }
    write_result(__file__, __doc__, result, ("numpy", "fastapi", "uvicorn", "httptools"), suggester.folder)


if __name__ == "__main__":
    main()
