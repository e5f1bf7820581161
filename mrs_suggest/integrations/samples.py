"""From the samples that a harness logged to files for `mrs score`: intervals, other metrics, several systems.

    python -m mrs_suggest.integrations.samples SAMPLES --out predictions.es.tsv
    mrs score predictions.es.tsv --language es

SAMPLES is the file of one task of MRS: `samples_mrs_es_*.jsonl` (lm_eval, `--log_samples`) or
`details_mrs:es|0_*.parquet` (lighteval, `--save-details`).
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.common.text.predictions import Prediction, write_predictions
from mrs_suggest.integrations.figures import Suggested


def logged_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file of samples, in the order of the data; InputError if it is not of one of these tasks."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            logged = [row["metric"] for row in pq.read_table(path).to_pylist()]
        else:
            logged = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found = [next(value for value in row.values() if isinstance(value, dict) and "index" in value
                      and value is not row.get("doc")) for row in logged]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{path}: cannot be read as the samples of one of the tasks ({type(error).__name__}); expected "
            "samples_mrs_*.jsonl of lm_eval or details_mrs*.parquet of lighteval."
        ) from None
    return sorted(found, key=lambda record: record["index"])


def write_suggestions(samples: Path, out: Path) -> int:
    """Write the prediction file of a task of MRS, and return its number of messages; InputError for other tasks."""
    records = logged_records(samples)
    if not records or set(records[0]) != set(Suggested.__annotations__):
        raise InputError(f"{samples}: no suggestions in it; expected the samples of a task of MRS.")
    rows = [Prediction(row["message"], row["reference"], tuple(row["suggestions"])) for row in records]
    write_predictions(out, rows)
    return len(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m mrs_suggest.integrations.samples", description=__doc__
    )
    parser.add_argument("samples", type=Path, help="what the harness logged")
    parser.add_argument("--out", type=Path, required=True, help="the prediction file")
    options = parser.parse_args(arguments)
    print(f"wrote {options.out}: {write_suggestions(options.samples, options.out)} messages")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_with_sentence("mrs_suggest.integrations.samples", main))
