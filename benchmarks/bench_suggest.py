"""Answering: `mrs_suggest.suggest.suggester.Suggester` against the same model through sentence-transformers.

Workload: the retriever that ships in the package, English messages of its data's test split, one at a time, three
replies each. First answer: a fresh process from its start to its first answer, the best of three. Warm: one process,
three rounds of 200 messages that it has not read before (it keeps the vectors of its last ones), the best round, a
message. The rival loads the same folder with SentenceTransformer, encodes with `encode_query`, and has the same ranker;
the replies must be equal. The rival has no guard, so ours answers without one; "with the guard" is what a user waits
for.

Run: python benchmarks/bench_suggest.py [RUN ...]  (runs with a ranker and English, measured too)
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.ranking.rankers import Rankers
from mrs_suggest.suggest.suggester import Suggester

OURS = """
import sys
from mrs_suggest.suggest.suggester import Suggester
print([s.reply for s in Suggester.from_pretrained(sys.argv[1], guard=False).suggest([sys.argv[2]], "en")[0]])
"""
RIVAL = """
import sys
from pathlib import Path
from sentence_transformers import SentenceTransformer
from mrs_suggest.suggest.ranking.rankers import Rankers
from mrs_suggest.suggest.index.response_index import ResponseIndexes
folder = Path(sys.argv[1])
ranker = Rankers(folder, ResponseIndexes(folder))["en"]
vector = SentenceTransformer(str(folder), device="cpu").encode_query([sys.argv[2]])[0]
print([s.reply for s in ranker.suggest(sys.argv[2], vector, 3)])
"""


def first_answer(source: str, folder: Path, message: str) -> tuple[float, str]:
    """Seconds of a fresh process, and what it prints."""
    times, printed = [], ""
    for _ in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-c", source, str(folder), message]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        times.append(time.perf_counter() - start)
    return min(times), printed


def warm(call: Callable[[str], list[str]], messages: list[str]) -> float:
    """Seconds a message, after one that is not in `messages`."""
    rounds, each = [], len(messages) // 3
    call("Are you there?")
    for number in range(3):
        start = time.perf_counter()
        for message in messages[number * each : (number + 1) * each]:
            call(message)
        rounds.append((time.perf_counter() - start) / each)
    return min(rounds)


def measure(folder: Path) -> dict[str, Any]:
    """Seconds and ratios of one model, printed too."""
    from sentence_transformers import SentenceTransformer

    messages = list(dict.fromkeys(open_prepared("mrs-everyday").load("en", "test")["message"]))[:600]
    suggester, guarded = Suggester.from_pretrained(folder, guard=False), Suggester.from_pretrained(folder)
    ranker = Rankers(folder, ResponseIndexes(folder))["en"]
    model = SentenceTransformer(str(folder), device="cpu")

    def ours(message: str) -> list[str]:
        return [suggestion.reply for suggestion in suggester.suggest([message], "en")[0]]

    def with_guard(message: str) -> list[str]:
        return [suggestion.reply for suggestion in guarded.suggest([message], "en")[0]]

    def rival(message: str) -> list[str]:
        vector = model.encode_query([message], show_progress_bar=False)[0]
        return [suggestion.reply for suggestion in ranker.suggest(message, vector, 3)]

    start_ours, answer = first_answer(OURS, folder, messages[0])
    start_rival, other = first_answer(RIVAL, folder, messages[0])
    assert answer == other, "the first answers differ"
    guarded_start, _ = first_answer(OURS.replace(", guard=False", ""), folder, messages[0])
    figures = {
        "first answer": {"ours": start_ours, "rival": start_rival},
        "first answer, with the guard": {"ours": guarded_start, "rival": start_rival},
        "warm, one message": {"ours": warm(ours, messages), "rival": warm(rival, messages)},
        "warm, with the guard": {"ours": warm(with_guard, messages), "rival": warm(rival, messages)},
    }
    assert [ours(message) for message in messages] == [rival(message) for message in messages], "the answers differ"
    for name, seconds in figures.items():
        one, other_one = (1000 * seconds[side] for side in ("ours", "rival"))
        print(f"{name}: ours {one:.2f} ms, sentence-transformers {other_one:.2f} ms, ratio {other_one / one:.2f}")
    return {
        "messages": len(messages),
        "replies": len(ranker.index.replies),
        "remembered messages": len(ranker.memory.vectors),
        **{n: {"seconds": s, "ratio": round(s["rival"] / s["ours"], 2)} for n, s in figures.items()},
    }


def main(runs: list[str]) -> None:
    shipped = read_baselines()["everyday-retriever"].folder
    result = measure(shipped)
    for run in runs:
        folder = Path(run).resolve()
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        start = record.get("started_from") or [record["arguments"]["model_name_or_path"]]
        title = f"{Path(start[-1]).name} on {record['data'].get('id') or record['data']['title']}"
        print(f"{title}:")
        result[title] = measure(folder)
    result["threads"] = torch.get_num_threads()
    write_result(__file__, __doc__, result, ("torch", "sentence-transformers", "transformers"), shipped)


if __name__ == "__main__":
    main(sys.argv[1:])
