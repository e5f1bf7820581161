"""A server under load: 30 seconds here, ten minutes by `make load` (MRS_LOAD_SECONDS).

Requests come without a pause on sixteen connections, while a worker is killed and the model is loaded anew. No answer
is an error but 429, every answer is what the model says in this process, and memory stays where it was.
"""

import asyncio
import itertools
import os
import signal
import time
from collections import Counter
from pathlib import Path
from statistics import median

import httpx
import pytest

pytest.importorskip("fastapi")

from mrs_suggest.suggest.suggester import Suggester
from tests.mrs_suggest.serving.server_process import ServerProcess

SECONDS = float(os.environ.get("MRS_LOAD_SECONDS", "30"))
CONNECTIONS = 16
GROWTH = 1.05  # of the last fifth of the time over the third one
MESSAGES = {
    "en": ["See you tomorrow?", "Can you call me back?", "Thanks for your help!", "Where are you?"],
    "es": ["¿Quedamos mañana?", "¿Me llamas luego?", "Gracias por todo.", "¿Dónde estás?"],
    "de": ["Danke für deine Hilfe gestern!", "Kommst du heute Abend?", "Wo bist du?"],
    "ja": ["明日の会議は何時からですか？", "ありがとうございます。"],
}


class Load:
    """Sends requests until its time is over; `seen` counts what came back, `wrong` has answers that differ."""

    def __init__(self, url: str, expected: dict[tuple[str, str], list[str]], seconds: float) -> None:
        self.url, self.expected, self.over = url, expected, time.monotonic() + seconds
        self.seen: Counter[str] = Counter()
        self.wrong: list[object] = []
        questions = list(expected)
        self._bodies = itertools.cycle([(lang, [text]) for lang, text in questions] + [
            (lang, [text for other, text in questions if other == lang]) for lang in MESSAGES
        ])  # fmt: skip

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS)
        async with httpx.AsyncClient(base_url=self.url, limits=limits, timeout=60) as http:
            await asyncio.gather(*(self._ask(http) for _ in range(CONNECTIONS)))

    async def _ask(self, http: httpx.AsyncClient) -> None:
        while time.monotonic() < self.over:
            language, texts = next(self._bodies)
            try:
                response = await http.post("/v1/suggest", json={"messages": texts, "language": language})
            except httpx.TransportError:
                self.seen["broken"] += 1
                continue
            self.seen[str(response.status_code)] += 1
            if response.status_code == 429:
                assert int(response.headers["retry-after"]) >= 1
                await asyncio.sleep(0.05)  # sooner than it asks: the load is to stay
            elif response.status_code == 200:
                for text, answer in zip(texts, response.json()["answers"], strict=True):
                    replies = [row["reply"] for row in answer["suggestions"]]
                    if replies != self.expected[language, text]:
                        self.wrong.append((text, replies))


def memory(process: int) -> int:
    """Bytes of a process and its children that no other shares (the proportional set size)."""
    pids = [process, *(int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split())]
    total = 0
    for pid in pids:
        try:
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        total += sum(1024 * int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total


@pytest.mark.faults
def test_nothing_is_dropped_wrong_or_growing_under_load(tmp_path: Path) -> None:
    suggester = Suggester.from_pretrained("everyday-retriever")
    expected = {
        (language, text): [suggestion.reply for suggestion in suggester.suggest([text], language)[0]]
        for language, texts in MESSAGES.items()
        for text in texts
    }
    arguments = ("--workers", 2, "--max-waiting", 40)
    with ServerProcess(*arguments, folder=tmp_path) as server:
        server.wait_for_workers(2)

        async def disturb(load: Load) -> list[tuple[float, int]]:
            """Kill a worker at a tenth of the time, reload at a fifth; what the memory is, every half second."""
            samples: list[tuple[float, int]] = []
            children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
            todo = [(0.2, server.process.pid, signal.SIGHUP), (0.1, 0, signal.SIGKILL)]
            while (left := load.over - time.monotonic()) > 0:
                share = 1 - left / SECONDS
                if todo and share >= todo[-1][0]:
                    _, pid, number = todo.pop()
                    os.kill(pid or int(children.read_text().split()[-1]), number)
                samples.append((share, memory(server.process.pid)))
                await asyncio.sleep(0.5)
            return samples

        async def run() -> tuple[Load, list[tuple[float, int]]]:
            load = Load(server.url, expected, SECONDS)
            samples, _ = await asyncio.gather(disturb(load), load.run())
            return load, samples

        load, samples = asyncio.run(run())
        for _ in range(2):  # the worker that was started again may still have been loading
            server.wait_for("reloaded")
        page = httpx.get(f"{server.url}/metrics", timeout=60).text
        print(dict(load.seen), f"{SECONDS:g} s")
        assert load.wrong == []
        assert set(load.seen) <= {"200", "429", "broken"}
        assert load.seen["broken"] <= CONNECTIONS  # what the killed worker had in hand
        assert load.seen["200"] > 2 * SECONDS
        assert "ended, and is started again" in "".join(server.log)
        assert 'mrs_reloads_total{outcome="done"} 2.0' in page
        before, after = (median(size for share, size in samples if low <= share < low + 0.2) for low in (0.4, 0.8))
        print(f"memory: {before / 1e6:.0f} MB, then {after / 1e6:.0f} MB")
        assert after <= GROWTH * before
