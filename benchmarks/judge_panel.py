"""Judges models on 200 messages, 20 in each language, written for this and for nothing else (`ROUND/messages.tsv`).

    python benchmarks/judge_panel.py answers ROUND MODEL FILE     # what a model suggests, with its guard
    python benchmarks/judge_panel.py sheet ROUND NAME=FILE ...    # a blind sheet, the systems in a random order
    python benchmarks/judge_panel.py count ROUND READER.tsv ...   # counts and agreement, ROUND/counts.json
    python benchmarks/judge_panel.py agree ROUND NAME SCORES.json READER.tsv ...   # of readers and a language model

`agree` compares the readers' grades of the system NAME, which the key calls so, with those of a language model that
`mrs score --metric judge --save-scores SCORES.json` wrote for a file with the round's messages in their order: good is
1, ok a half and bad 0, each the mean of the readers or of the judge's two orders. It prints kappa with quadratic
weights (Cohen 1968, "Weighted Kappa") and Spearman's rho, both with 95 % intervals (jackknife by message).

A reader gives each set one grade: `good` (a person would click one of the three as it stands), `ok` (one of them could
be sent, but nobody would choose it gladly), `bad` (none can be sent), or for a silent answer `silent` (it should have
been answered) or `rightly` (silence is right). Where two readers differ, the worse grade counts. A round is a folder of
`panel/`; once its grades have served to choose between models, it tells no longer how good the chosen one is.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.agreement import fleiss_kappa
from mrs_metrics.corpus import Corpus, Figure, jackknife_interval
from mrs_suggest import Suggester
from mrs_suggest.evaluation.scores.judge import GRADES as VALUES

MESSAGES, COUNTS = "messages.tsv", "counts.json"
GRADES = ("good", "rightly", "ok", "bad", "silent")  # from the best to the worst
SEED, SHOWN = 42, " | "
Agreement = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def write(path: Path, columns: list[str], lines: list[list[str]]) -> None:
    """Write such a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(line) + "\n" for line in [columns, *lines]), encoding="utf-8")


def answers(folder: str, model: str, out: str) -> None:
    """Write what a model suggests; an empty cell where it says nothing."""
    messages = [row["message"] for row in rows(Path(folder) / MESSAGES)]
    suggester = Suggester.from_pretrained(model)
    found = [suggester.suggest([message])[0] for message in messages]
    lines = [[m, SHOWN.join(one.reply for one in a), a.reason or ""] for m, a in zip(messages, found, strict=True)]
    write(Path(out), ["message", "replies", "reason"], lines)


def sheet(folder: str, *systems: str) -> None:
    """Write `sheet.tsv` for the readers, and `key.json` with what stands where."""
    named = {name: rows(Path(file)) for name, _, file in (system.partition("=") for system in systems)}
    rng, lines, key = random.Random(SEED), [], []
    for number, row in enumerate(rows(Path(folder) / MESSAGES)):
        order = rng.sample(list(named), len(named))
        key.append(order)
        shown = [named[name][number]["replies"] or "(nothing)" for name in order]
        lines.append([str(number + 1), row["language"], row["message"], *shown])
    columns = ["number", "language", "message", *(f"set {n + 1}" for n in range(len(named)))]
    write(Path(folder) / "sheet.tsv", columns, lines)
    (Path(folder) / "key.json").write_text(json.dumps(key) + "\n", encoding="utf-8")


def weighted_kappa(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Quadratic weights: 1 less the mean squared difference over that of all pairs, which chance gives."""
    chance = np.square(first[:, None] - second).mean()
    return float(1 - np.square(first - second).mean() / chance) if chance else float("nan")


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The correlation of ranks, equal values having the mean of theirs."""
    ranks = [
        (column[:, None] > column).sum(axis=1) + (column[:, None] == column).sum(axis=1) / 2
        for column in (first, second)
    ]
    return float(np.corrcoef(*ranks)[0, 1]) if all(np.ptp(one) for one in ranks) else float("nan")


def agree(folder: str, name: str, scores: str, *readers: str) -> None:
    """Print how far a language model's grades agree with the readers'."""
    given = read_grades(folder, readers)[name]
    judged = json.loads(Path(scores).read_text(encoding="utf-8"))
    if judged["metric"] != "judge" or len(judged["scores"]) != len(given):
        sys.exit(f"{scores}: expected what `mrs score --metric judge --save-scores` wrote for {len(given)} messages.")
    pairs = [
        (float(np.mean([VALUES[grade] for grade in grades])), score)
        for grades, score in zip(given, judged["scores"], strict=True)
        if score is not None and set(grades) <= set(VALUES)
    ]
    record: dict[str, Any] = {"system": name, "messages": len(pairs), "signature": judged["signature"]}
    for key, call in (("weighted_kappa", weighted_kappa), ("spearman", spearman)):

        def figure(some: Sequence[tuple[float, float]], call: Agreement = call) -> Figure:
            ours, theirs = np.array(some).T
            return lambda weights: call(ours[weights > 0], theirs[weights > 0])

        corpus = Corpus(pairs, figure, least=-1.0)
        record |= {key: corpus.value, f"{key}_interval": jackknife_interval(corpus).ends}
    print(json.dumps(record, indent=2))


def read_grades(folder: str, readers: Sequence[str]) -> dict[str, list[list[str]]]:
    """System -> the readers' grades of each message, from files with a column `number` and one for each `set N`."""
    key = json.loads((Path(folder) / "key.json").read_text(encoding="utf-8"))
    given: dict[str, list[list[str]]] = {}
    for reader in readers:
        for row in rows(Path(reader)):
            number = int(row["number"]) - 1
            for place, name in enumerate(key[number]):
                grade = row[f"set {place + 1}"].strip()
                if grade not in GRADES:
                    sys.exit(
                        f"{reader}, message {number + 1}, set {place + 1}: expected one of {GRADES}, found {grade!r}."
                    )
                given.setdefault(name, [[] for _ in key])[number].append(grade)
    return given


def count(folder: str, *readers: str) -> None:
    """Count the grades of the readers' files."""
    given = read_grades(folder, readers)
    languages = [row["language"] for row in rows(Path(folder) / MESSAGES)]
    tables = [[both.count(grade) for grade in GRADES] for grades in given.values() for both in grades]
    record: dict[str, Any] = {
        "messages": len(languages),
        "readers": len(readers),
        "kappa": fleiss_kappa(np.array(tables)),
        "equal": float(np.mean([len(set(both)) == 1 for grades in given.values() for both in grades])),
        "systems": {},
    }
    for name, grades in given.items():
        worst = [max(both, key=GRADES.index) for both in grades]
        by_language = {
            code: Counter(g for g, c in zip(worst, languages, strict=True) if c == code)
            for code in dict.fromkeys(languages)
        }
        readers_good = [sum(both[n] == "good" for both in grades) for n in range(len(readers))]
        record["systems"][name] = {
            "worse_of_both": Counter(worst),
            "good_by_reader": readers_good,
            "by_language": by_language,
        }
    (Path(folder) / COUNTS).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    verbs: dict[str, Callable[..., None]] = {"answers": answers, "sheet": sheet, "count": count, "agree": agree}
    verbs[sys.argv[1]](*sys.argv[2:])
