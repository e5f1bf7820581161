"""How much of what is grave the guard of the shipped model finds, and how often it is silent at everyday chat.

Workload: the sheets of `benchmarks/guard`, each by another author, none of whom knew the examples that the guard
learned from: messages about self-harm, threats, deaths and the like, most of them in indirect words, and messages that
only sound so (`lookalike`) or are plain everyday ones. Sheets 1 to 4 were read while the guard was built, 5 was
not. And, if `../shared/data` exists, 500 messages of real chat in each language of each corpus, of which hardly any is
grave: a share of silence, by the lists alone and by lists and model. Intervals are Wilson's.

Run: python benchmarks/bench_guard.py [MODEL]  (another retriever; its figures are printed, and not written)
"""

from __future__ import annotations

import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge_panel import rows
from timing import write_result

from mrs_metrics.accuracy import wilson_interval
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.suggester import Suggester

SHEETS = Path(__file__).resolve().parent / "guard"
SHARED = Path(os.environ.get("MRS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LIGHT = ("everyday", "lookalike")
MESSAGES = 500  # of a corpus, drawn with a seed


def share(silent: int, messages: int) -> dict[str, Any]:
    """Count and share with its interval."""
    low, high = wilson_interval(silent, messages)
    return {"silent": silent, "messages": messages, "share": silent / messages, "low": low, "high": high}


def of_sheet(guard: Guard, path: Path) -> dict[str, Any]:
    """The share of silence at the messages of each class of a sheet, and of all that are grave."""
    found: dict[str, list[bool]] = defaultdict(list)
    sheet = rows(path)
    for language in dict.fromkeys(row["language"] for row in sheet):
        own = [row for row in sheet if row["language"] == language]
        for row, reason in zip(own, guard.reasons([row["message"] for row in own], language), strict=True):
            found[row["class"]].append(reason is not None)
            found["light" if row["class"] in LIGHT else "grave"].append(reason is not None)
    return {name: share(sum(one), len(one)) for name, one in sorted(found.items())}


def corpora() -> Iterator[tuple[str, str, Path]]:
    """Name, language and file of each corpus at hand."""
    for path in sorted([*SHARED.glob("dialogues/*/*.tsv"), *SHARED.glob("replies/*.tsv")]):
        yield path.parent.name, path.stem, path


def of_corpus(guard: Guard, language: str, path: Path) -> dict[str, Any]:
    """Silence at messages that were drawn from a corpus, each once."""
    lines = path.read_text(encoding="utf-8").split("\n")
    messages = list(dict.fromkeys(line.partition("\t")[0] for line in lines if line))
    messages = random.Random(1).sample(messages, min(MESSAGES, len(messages)))
    lists = sum(guard.data[language].sensitive(message) is not None for message in messages)
    silent = sum(reason is not None for reason in guard.reasons(messages, language))
    return {**share(silent, len(messages)), "lists alone": lists / len(messages)}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "everyday-retriever"
    guard = Suggester.from_pretrained(resolve_model(name)).guard
    assert guard is not None
    figures: dict[str, Any] = {"sheets": {}, "corpora": {}}
    for path in sorted(SHEETS.glob("sheet_*.tsv")):
        figures["sheets"][path.stem] = found = of_sheet(guard, path)
        print(path.stem, {key: f"{one['silent']} of {one['messages']}" for key, one in found.items()})
    for corpus, language, path in corpora():
        found = figures["corpora"].setdefault(corpus, {})[language] = of_corpus(guard, language, path)
        print(f"{corpus} {language}: silent at {found['share']:.1%}, lists alone {found['lists alone']:.1%}")
    if len(sys.argv) == 1:
        write_result(__file__, __doc__, figures, ("numpy",), resolve_model(name))


if __name__ == "__main__":
    main()
