"""Turns before a message: the model that ships, trained further on real dialogues with 0, 1 and 3 of them.

Workload: English dialogues in `../shared/data/dialogues` (or `MRS_SHARED_DATA`): coffee orders, and open chat between
personas; of ten dialogues, eight are for training, one for validation and one for the test. Each run trains the shipped
retriever for the same steps on the same pairs, without a ranker, and suggests three of the most frequent training
replies. Weighted ROUGE of the best of three and MRR in pools of 100 real replies, with 95 % intervals over the test's
pairs, and the lead in ROUGE over the run without turns, with its paired interval. One seed: the intervals do not
contain the differences between seeds.

Run: python benchmarks/bench_context.py [--steps N] [--sets coffee persona]  (about ten minutes on two idle cores)
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from timing import write_result

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS
from mrs_datasets.prepared.writer import write_prepared
from mrs_metrics.rouge import score_examples
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest import RetrievalTrainer, TrainingArguments
from mrs_suggest.common.text.predictions import predictions_name, read_predictions

SHARED = Path(os.environ.get("MRS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS, TURNS, LANGUAGE = ("coffee", "persona"), (0, 1, 3), "en"
RESPONSES = 2000
PARTS = ("train",) * 8 + ("validation", "test")


def read_dialogues(path: Path) -> list[list[str]]:
    """Dialogues as lists of turns: a row whose message is the reply of the row before continues its dialogue."""
    dialogues: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        message, reply = line.split("\t")
        if not dialogues or dialogues[-1][-1] != message:
            dialogues.append([message])
        dialogues[-1].append(reply)
    return dialogues


def prepare(dialogues: list[list[str]], folder: Path) -> Path:
    """A prepared folder with the column `context`."""
    rows: dict[str, list[dict[str, str]]] = {name: [] for name in dict.fromkeys(PARTS)}
    for number, turns in enumerate(dialogues):
        rows[PARTS[number % len(PARTS)]] += [
            {"message": turns[place], "reply": turns[place + 1], "context": "\n".join(turns[:place][-max(TURNS) :])}
            for place in range(len(turns) - 1)
        ]
    record = MRS.with_context(max(TURNS))
    pairs = [(LANGUAGE, split, pa.Table.from_pylist(some, record.schema(LANGUAGE))) for split, some in rows.items()]
    counts = Counter(row["reply"] for row in rows["train"])
    responses = response_table(counts.most_common(RESPONSES), counts.total(), len(counts))
    report = Report("pairs", {"context": max(TURNS)})
    chunks = iter([*pairs, (f"{LANGUAGE}-responses", "train", responses)])
    write_prepared(folder, chunks, report, record, "the dialogues")
    return folder


def train(data: Path, out: Path, turns: int, steps: int) -> tuple[dict[str, Any], Any]:
    """The figures of a run, and (n,) the weighted ROUGE of each test pair."""
    settings = {
        "context_turns": turns, "languages": [LANGUAGE], "temperature": 0.05, "mini_batch_size": 32,
        "warmup_steps": 0.1, "max_validation_examples": 300,
    }  # fmt: skip
    arguments = TrainingArguments(
        output_dir=str(out), max_steps=steps, per_device_train_batch_size=32, learning_rate=2e-4, eval_steps=steps,
        save_steps=steps, logging_steps=steps, use_cpu=True, settings=settings,
    )  # fmt: skip
    began = time.perf_counter()
    figures = RetrievalTrainer("everyday-retriever", arguments, data).train()["metrics"]["systems"]["Model"][LANGUAGE]
    kept = {key: figures[key] for key in ("n", "weighted", "weighted_interval", "mrr", "mrr_interval")}
    rows = read_predictions(out / predictions_name(LANGUAGE))
    scores = score_examples([list(row.suggestions) for row in rows], [row.reference for row in rows], language=LANGUAGE)
    return {**kept, "seconds": round(time.perf_counter() - began)}, scores.weighted


def main() -> int:
    """Train and print; write the result if all sets ran."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="of each run, 32 pairs each")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all")
    options = parser.parse_args()
    paths = {name: SHARED / "dialogues" / name / f"{LANGUAGE}.tsv" for name in options.sets}
    if missing := [str(path) for path in paths.values() if not path.is_file()]:
        print(
            f"skipped: {missing[0]} is not there; set MRS_SHARED_DATA to the folder with dialogues/.", file=sys.stderr
        )
        return 0
    found: dict[str, Any] = {"steps": options.steps}
    with tempfile.TemporaryDirectory() as place:
        for name, path in paths.items():
            data, runs = prepare(read_dialogues(path), Path(place, name)), {}
            for turns in TURNS:
                figures, weighted = train(data, Path(place, f"{name}-{turns}"), turns, options.steps)
                if turns == TURNS[0]:
                    base = weighted
                else:
                    lead = weighted - base
                    figures |= {"lead": float(lead.mean()), "lead_interval": list(bootstrap_interval(lead))}
                runs[f"{turns} turns"] = figures
                print(f"{name}, {turns} turns: {figures}")
            found[name] = runs
    if set(options.sets) == set(SETS):
        write_result(__file__, __doc__, found, ("torch", "sentence-transformers", "mrs-suggest"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
