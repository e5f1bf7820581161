"""`mrs staple export`: hypotheses as a prediction file of the task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.text.text import visible


def add_export(verbs: Any) -> None:
    """Add the verb."""
    export = verbs.add_parser("export", help="write hypotheses as a prediction file of the task")
    export.add_argument("hypotheses", type=Path, metavar="HYPOTHESES", help="the file of hypotheses")
    export.add_argument("--out", required=True, type=Path, metavar="FILE", help="the prediction file to write")
    export.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    export.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.export import write_predictions
    from mrs_suggest.staple.hypotheses import read_hypotheses

    found = read_hypotheses(options.hypotheses)
    count = write_predictions(found, options.out, options.overwrite)
    print(f"wrote {visible(options.out)}: {count:,} translations of {len(found.prompts):,} prompts")
