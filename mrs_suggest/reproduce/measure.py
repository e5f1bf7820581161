"""Cells without a training run: `python -m mrs_suggest.reproduce.measure NAME --output_dir RUN ...` writes a `run.json`.

A cell's `trainer` is the name: `sizes`, of prepared data (Table 1 of MRS, Tables 2 and 7 of STAPLE); `report`, of systems
for STAPLE that start from runs, each with the rule of `RULES` (Table 3); `effects`, of what these systems have in
common (Table 6).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.hub.provenance import commit, hardware, versions
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.models.saved.allowlist import RECORD
from mrs_suggest.models.saved.record import Record, as_json

# How systems of STAPLE choose from their n best (sections 3.2 and 4.3); the others give ten.
RULES = {"jbrem": "threshold", "rakchada": "classifier", "sweagraw": "soft-f1", "nickeilf": "votes"}
TERMS = ("Transformer", "LRF Weights", "Pre-train→Fine-tune")
FEATURES = {"baseline_fairseq": (0, 0, 0), "scratch": (1, 0, 0), "uniform": (1, 0, 1)}  # others: all three
Systems = dict[str, dict[str, Record]]  # system -> scope -> figures


def main(words: Sequence[str]) -> int:
    name, *rest = words
    options = {key.removeprefix("--"): value for key, value in zip(rest[::2], rest[1::2], strict=True)}
    folder, seed, started = Path(options.pop("output_dir")), int(options.pop("seed")), time.time()
    folder.mkdir(parents=True, exist_ok=True)
    systems = MEASURES[name](folder, options)
    record = {
        "trainer": name, "seed": seed, "commit": commit(), "versions": versions(), "hardware": hardware(),
        "seconds": round(time.time() - started, 1), "metrics": {"systems": systems},
    }  # fmt: skip
    atomic_write(folder / RECORD, as_json(finite_json(record)))
    return 0


def sizes(folder: Path, options: dict[str, str]) -> Systems:
    """Split -> language -> its sizes; of MRS also `all` splits, of STAPLE also the `oracle` on a split."""
    from mrs_datasets.describe.paper_tables import oracle_curves, split_statistics, staple_split_statistics
    from mrs_datasets.prepared.prepared import open_prepared

    data, found = open_prepared(options["data"]), Systems()
    if data.data_set() == "mrs":
        for row in split_statistics(data):
            own = {"examples": row.examples, "tokens": row.tokens}
            found.setdefault(row.split, {})[row.language] = own
            for scope, responses in ((row.language, row.responses), ("pooled", None)):
                whole = found.setdefault("all", {}).setdefault(scope, {**dict.fromkeys(own, 0), "responses": responses})
                whole |= {key: whole[key] + value for key, value in own.items()}
        return found
    rows = list(staple_split_statistics(data))
    for one, oracle in zip(rows, oracle_curves(data, rows, "paper"), strict=True):
        figures = {key: getattr(one, key) for key in ("prompts", "translations", "ratio")}
        found.setdefault(one.split, {})[one.config] = figures
        found.setdefault(f"oracle {one.split}", {})[one.config] = {str(k): value for k, value in oracle.items()}
    return found


def report(folder: Path, options: dict[str, str]) -> Systems:
    """The systems of a track, and the automatic translation: figures and ranks on test.

    Args:
        options: system -> the run that it starts from.
    """
    data, language, nbest = (options.pop(key) for key in ("data", "language", "nbest"))
    trained = list(dict.fromkeys(run for system, run in options.items() if system in RULES))
    files = []
    for system, run in options.items():
        rule, pooled = RULES.get(system, ""), {}
        runs = [f"m{n}={one}" for n, one in enumerate(trained)] if rule == "votes" else [run]
        for split in ("validation", "test") if rule else ("test",):
            written, pooled[split] = (folder / f"{system}.{split}.{kind}.parquet" for kind in ("nbest", "pooled"))
            _mrs("decode", *runs, "--data", data, "--language", language, "--split", split, "--nbest",
                 nbest if rule else 10, "--out", written)  # fmt: skip
            _mrs("combine", written, "--out", pooled[split])
        kept, chosen = folder / f"{system}.kept.parquet", ["--top", 10]
        if rule:
            chosen = ["--with", folder / f"{system}.filter"]
            _mrs("tune", pooled["validation"], "--data", data, "--rule", rule, "--out", chosen[1])
        _mrs("filter", pooled["test"], *chosen, "--out", kept)
        files.append(f"{system}={kept}")
    _mrs("report", "--data", data, "--language", language, "--systems", *files, "--out", folder / "report")
    content = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    return {one["system"]: {language: one} for one in content["systems"]}


def effects(folder: Path, options: dict[str, str]) -> Systems:
    """Term -> kind of score -> estimate.

    Args:
        options: track -> the run of `report`.
    """
    import pandas as pd

    from mrs_suggest.staple.analysis.effects import analyse_effects, read_scores, write_effects
    from mrs_suggest.staple.analysis.scored_systems import REFERENCE

    scores = read_scores([Path(run) / "report" / "report.json" for run in options.values()])
    systems = sorted({*scores["system"]} - {REFERENCE})
    features = [dict(zip(TERMS, FEATURES.get(name, (1, 1, 1)), strict=True)) for name in systems]
    table = pd.DataFrame([{"system": name, "team": name, **of} for name, of in zip(systems, features, strict=True)])
    analysed = analyse_effects(scores, table)
    write_effects(analysed, folder / "effects", overwrite=True)
    found = Systems()
    for kind, model in analysed.models.items():
        for term, one in model.fixed.items():
            found.setdefault(term, {})[kind] = {"estimate": one.estimate, "interval": one.interval}
        for factor, deviation in model.random.items():
            found.setdefault(f"{factor.capitalize()} ID", {})[kind] = {"estimate": deviation}
    return found


def _mrs(*words: Any) -> None:
    """Run `mrs staple`; SystemExit if it fails."""
    from mrs_suggest.cli.main import main as mrs

    if code := mrs(["staple", *map(str, words), "--overwrite"]):
        raise SystemExit(code)


MEASURES: dict[str, Callable[[Path, dict[str, str]], Systems]] = {"sizes": sizes, "report": report, "effects": effects}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
