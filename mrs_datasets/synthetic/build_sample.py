"""Rebuilds the embedded sample from the phrase books: `python -m mrs_datasets.synthetic.build_sample` (`make
sample`)."""

from __future__ import annotations

import sys

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.readers.sample import SAMPLE, SAMPLE_SOURCE
from mrs_suggest.common.errors import run_with_sentence


def main() -> None:
    """Replace the prepared folder that ships with the package."""
    report = prepare_mrs(SAMPLE_SOURCE, SAMPLE, overwrite=True)
    rows = sum(facts["rows"] for splits in report["configs"].values() for facts in splits.values())
    print(f"wrote {SAMPLE} ({rows:,} rows)")


if __name__ == "__main__":
    sys.exit(run_with_sentence("build_sample", main))
