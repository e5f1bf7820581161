"""`mrs staple effects`: which features of systems go with better scores."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.text.text import visible


def add_effects(verbs: Any) -> None:
    """Add the verb."""
    effects = verbs.add_parser("effects", help="mixed-effects analysis of systems' features (Tables 4 and 6)")
    effects.add_argument(
        "scores",
        type=Path,
        nargs="+",
        metavar="SCORES",
        help="report.json of `mrs staple report`, one a track; CSV with system, track, prompt, precision, "
        "weighted_recall, weighted_f1; or what `mrs score --metric weighted_f1 --save-scores` wrote",
    )
    effects.add_argument(
        "--features",
        required=True,
        metavar="FILE",
        help="CSV with system or team, perhaps track, and a number a feature; staple-teams: Table 5 of the paper",
    )
    effects.add_argument("--use", nargs="+", metavar="FEATURE", help="only these features (default: all of the table)")
    effects.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    effects.add_argument("--overwrite", action="store_true", help="replace --out if it is such a folder")
    effects.set_defaults(run=_effects)


def _effects(options: argparse.Namespace) -> None:
    from mrs_suggest.cli.staple.report import terminal_table
    from mrs_suggest.common.io.files import require_replaceable
    from mrs_suggest.common.report.console import make_console
    from mrs_suggest.staple.analysis.effects import MARKER, analyse_effects, effects_notes, effects_rows, write_effects
    from mrs_suggest.staple.analysis.effects_input import read_features, read_scores

    require_replaceable(options.out, options.overwrite, MARKER)
    table = read_features(options.features)
    effects = analyse_effects(read_scores(options.scores), table, options.use)
    write_effects(effects, options.out, options.overwrite)
    console = make_console(160)
    console.print(terminal_table(*effects_rows(effects)))
    for note in effects_notes(effects):
        console.print(note, style="dim", markup=False)
    print(f"wrote {visible(options.out)}")
