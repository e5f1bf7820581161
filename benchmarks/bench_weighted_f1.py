"""Weighted F1 from file to number: `mrs_suggest.evaluation.scores.score_staple.score_files` against a scorer that goes
line by line.

Workload: a gold file of 60,000 accepted translations of 500 prompts, as many as the Portuguese development set of
STAPLE has (Mayhew et al. 2020, Table 2: 500 and 60,294), and a prediction file of as many lines for the same prompts,
half of them among the accepted ones but written differently (case, marks, spaces). A text has 3 to 9 words of 2 to 10
letters, some accented, with punctuation marks between and behind. Weights are computed from counts that fall with the
rank, 0 for most, as the task computes them. Seeded.

The rival reads a line, lower-cases it, drops each character whose `unicodedata.category` starts with P, and so on, as
the task's official scorer does; by the paper's rules it also normalises to NFC and splits at white space. Each of the
two runs five times in turn, in one process; the best times count. All figures must be equal to 1e-12 before a time is
reported. Target: at least 5 times as fast.

Run: python benchmarks/bench_weighted_f1.py [--translations N]
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import tempfile
import time
import unicodedata
from importlib import metadata
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "bench_weighted_f1.json"
SEED = 20200710
PROMPTS = 500
FULL_SIZE = 60_000
RUNS = 5


def make_files(folder: Path, n_translations: int, seed: int = SEED) -> tuple[Path, Path]:
    """Write the gold and the prediction file of the workload that the module's docstring describes."""
    from mrs_datasets.describe.paper_tables import lrf_weights

    draw = random.Random(seed)
    letters = "aaabcdeeefghiiijlmnoooprsttuuvzáãâçéêíóõú"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(3_000)]

    def text() -> str:
        chosen = draw.choices(words, k=draw.randint(3, 9))
        if draw.random() < 0.3:
            chosen[draw.randrange(len(chosen))] += draw.choice([",", ";", ":", " -"])
        return " ".join(chosen) + draw.choice([".", "?", "!", ""])

    gold, predicted = [], []
    for number in range(PROMPTS):
        size = n_translations // PROMPTS + (number < n_translations % PROMPTS)
        head = f"prompt_{draw.getrandbits(128):032x}|a prompt of the course, number {number}."
        accepted = list(dict.fromkeys(text() for _ in range(size)))
        weights = lrf_weights([int(500 / rank**1.2) for rank in range(1, len(accepted) + 1)])
        gold += [head, *(f"{entry}|{weight!r}" for entry, weight in zip(accepted, weights, strict=True)), ""]
        found = [entry.capitalize().replace(" ", "  ", draw.randint(0, 1)) + "!" for entry in accepted[: size // 2]]
        predicted += [head, *found, *(text() for _ in range(size - len(found))), ""]
    paths = folder / "gold.txt", folder / "pred.txt"
    for path, lines in zip(paths, (gold, predicted), strict=True):
        path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return paths


def line_by_line(gold: Path, predictions: Path, rules: str) -> dict[str, float]:
    """The rival."""

    def read(text: str) -> str:
        text = text.lower() if rules == "official" else unicodedata.normalize("NFC", text.lower())
        text = "".join(character for character in text if not unicodedata.category(character).startswith("P"))
        return text if rules == "official" else " ".join(text.split())

    def blocks(path: Path, weighted: bool) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        entries: dict[str, float] | None = None
        with path.open(encoding="utf-8") as file:
            for line in file:
                line = line.strip()
                if not line:
                    entries = None
                elif entries is None:
                    entries = found.setdefault(line.split("|")[0], {})
                elif weighted:
                    text, _, weight = line.rpartition("|")
                    text = read(text)
                    entries[text] = float(weight) + (entries.get(text, 0.0) if rules == "paper" else 0.0)
                else:
                    entries[read(line)] = 1.0
        return found

    def share(part: float, rest: float) -> float:
        return part / (part + rest) if part + rest else 0.0

    def harmonic(a: float, b: float) -> float:
        return 2 * a * b / (a + b) if a + b else 0.0

    accepted, predicted = blocks(gold, True), blocks(predictions, False)
    totals = [0.0] * 5
    plain, weighted = [], []
    for key, entries in accepted.items():
        both = entries.keys() & predicted[key].keys()
        counts = [len(both), len(predicted[key]) - len(both), len(entries) - len(both)]
        counts += [sum(entries[text] for text in both), sum(entries[text] for text in entries if text not in both)]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        precision = share(counts[0], counts[1])
        plain.append(harmonic(precision, share(counts[0], counts[2])))
        weighted.append(harmonic(precision, share(counts[3], counts[4])))
    precision, recall, found = share(totals[0], totals[1]), share(totals[0], totals[2]), share(totals[3], totals[4])
    return {
        "precision": precision,
        "recall": recall,
        "weighted_recall": found,
        "micro_f1": harmonic(precision, recall),
        "macro_f1": sum(plain) / len(plain),
        "weighted_micro_f1": harmonic(precision, found),
        "weighted_macro_f1": sum(weighted) / len(weighted),
    }


def at_once(gold: Path, predictions: Path, rules: str) -> dict[str, float]:
    """This project."""
    from mrs_metrics.translations_f1 import aggregate
    from mrs_suggest.evaluation.scores.score_staple import score_files

    figures = aggregate(score_files(gold, predictions, rules))
    return {name: figure for name, figure in figures.items() if name not in ("n", "missing", "extra")}


def race(gold: Path, predictions: Path, rules: str) -> dict[str, Any]:
    """Time both on one workload; AssertionError where their figures disagree."""
    figures = {name: score(gold, predictions, rules) for name, score in (("ours", at_once), ("rival", line_by_line))}
    for key, value in figures["rival"].items():
        if abs(figures["ours"][key] - value) > 1e-12:
            raise AssertionError(f"The figures disagree on {key}: {figures['ours'][key]} against {value}.")
    seconds: dict[str, list[float]] = {"ours": [], "rival": []}
    for _ in range(RUNS):
        for name, score in (("ours", at_once), ("rival", line_by_line)):
            start = time.perf_counter()
            score(gold, predictions, rules)
            seconds[name].append(time.perf_counter() - start)
    best = {name: min(runs) for name, runs in seconds.items()}
    return {
        "seconds": {name: round(value, 4) for name, value in best.items()},
        "ratio": round(best["rival"] / best["ours"], 1),
        "figures": figures["ours"],
    }


def main() -> None:
    """Race both by both rules; print and write the ratios."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--translations", type=int, default=FULL_SIZE, help=f"of the workload (default {FULL_SIZE:,})")
    n_translations = parser.parse_args().translations
    with tempfile.TemporaryDirectory() as name:
        files = make_files(Path(name), n_translations)
        results = {rules: race(*files, rules) for rules in ("paper", "official")}
    record = {
        "name": "bench_weighted_f1",
        "workload": " ".join(__doc__.split("Workload: ")[1].split("\n\n")[0].split()),
        "translations": n_translations,
        **results,
        "versions": {"python": platform.python_version(), "numpy": metadata.version("numpy")},
    }
    print(record["workload"])
    for rules, result in results.items():
        ours, rival = result["seconds"]["ours"], result["seconds"]["rival"]
        print(f"{rules} rules: ours {ours:.3f} s, rival {rival:.3f} s, {result['ratio']} times as fast, equal figures")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
