"""Cells without a training run: `python -m mrs_suggest.reproduce.measure NAME --output_dir RUN` writes a `run.json`.

A cell's `trainer` is the name: `sizes` of prepared data (Table 1 of MRS, Tables 2 and 7 of STAPLE); a `report` on
systems for STAPLE that start from runs, each with the rule of `RULES` (Table 3); `effects` of their features (Table 6).
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrs_suggest.common.hub.provenance import commit, hardware, versions
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.models.saved.record import RECORD, Record

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
    atomic_write(folder / RECORD, json.dumps(finite_json(record), indent=2, ensure_ascii=False) + "\n")
    return 0


def sizes(folder: Path, options: dict[str, str]) -> Systems:
    """Of MRS the sizes of `all` splits; of STAPLE those of each split, and the `oracle` on it."""
    from mrs_datasets.describe.paper_tables import oracle_curves, split_statistics, staple_split_statistics
    from mrs_datasets.prepared.prepared import open_prepared

    data, found = open_prepared(options["data"]), Systems()
    if data.data_set() == "mrs":
        for row in split_statistics(data):
            own = {"examples": row.examples, "tokens": row.tokens}
            for scope, responses in ((row.language, row.responses), ("pooled", None)):
                whole = found.setdefault("all", {}).setdefault(scope, {**dict.fromkeys(own, 0), "responses": responses})
                whole |= {key: whole[key] + value for key, value in own.items()}
        return found
    rows = list(staple_split_statistics(data))
    for one, oracle in zip(rows, oracle_curves(data, rows, "paper"), strict=True):
        found.setdefault(one.split, {})[one.config] = asdict(one)
        found.setdefault(f"oracle {one.split}", {})[one.config] = {str(k): value for k, value in oracle.items()}
    return found


def report(folder: Path, options: dict[str, str]) -> Systems:
    """The figures and ranks of a track's systems on test; `options` names the run that each starts from."""
    data, language, nbest = (options.pop(key) for key in ("data", "language", "nbest"))
    trained = list(dict.fromkeys(run for system, run in options.items() if system in RULES))
    files = []
    for system, run in options.items():
        rule, place = RULES.get(system, ""), folder / system
        runs = [f"m{n}={one}" for n, one in enumerate(trained)] if rule == "votes" else [run]
        most = ["--nbest", nbest if rule else 10]
        for split in ("validation", "test") if rule else ("test",):
            written = f"{place}.{split}.parquet"
            _mrs("decode", *runs, "--data", data, "--language", language, "--split", split, *most, "--out", written)
            _mrs("combine", written, "--out", f"{place}.{split}.pooled.parquet")
        if rule:
            pooled = f"{place}.validation.pooled.parquet"
            _mrs("tune", pooled, "--data", data, "--rule", rule, "--out", f"{place}.filter")
        chosen = ["--with", f"{place}.filter"] if rule else ["--top", 10]
        _mrs("filter", f"{place}.test.pooled.parquet", *chosen, "--out", f"{place}.kept.parquet")
        files.append(f"{system}={place}.kept.parquet")
    _mrs("report", "--data", data, "--language", language, "--systems", *files, "--out", folder / "report")
    content = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    return {one["system"]: {language: one} for one in content["systems"]}


def effects(folder: Path, options: dict[str, str]) -> Systems:
    """Term -> kind of score -> estimate, from the reports of the tracks."""
    reports = dict.fromkeys(Path(run) / "report" / "report.json" for run in options.values())
    scored = [json.loads(path.read_text(encoding="utf-8"))["scores"]["systems"] for path in reports]
    systems = dict.fromkeys(name for one in scored for name in one if name != "reference")
    rows = [("system", *TERMS), *((name, *FEATURES.get(name, (1, 1, 1))) for name in systems)]
    atomic_write(folder / "features.csv", "".join(",".join(map(str, row)) + "\n" for row in rows))
    _mrs("effects", *reports, "--features", folder / "features.csv", "--out", folder / "effects")
    found = Systems()
    content = json.loads((folder / "effects" / "effects.json").read_text(encoding="utf-8"))
    for kind, model in content["models"].items():
        for term, one in model["fixed"].items():
            found.setdefault(term, {})[kind] = {key: one[key] for key in ("estimate", "interval")}
        for factor, deviation in model["random"].items():
            found.setdefault(f"{factor.capitalize()} ID", {})[kind] = {"estimate": deviation}
    return found


def _mrs(*words: Any) -> None:
    """Run `mrs staple`; SystemExit if it fails."""
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "staple", *map(str, words), "--overwrite"]
    if code := subprocess.run(command, check=False).returncode:
        raise SystemExit(code)


MEASURES: dict[str, Callable[[Path, dict[str, str]], Systems]] = {"sizes": sizes, "report": report, "effects": effects}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
