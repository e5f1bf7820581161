"""`mrs score`: weighted ROUGE and Dist of a prediction file, with interval and signature."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_cli.metric_errors import metric_errors
from mrs_core.errors import InputError
from mrs_core.languages import require_language
from mrs_core.predictions import SUGGESTIONS, read_predictions


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs score", description=__doc__)
    parser.add_argument("file", type=Path, help="message, reference, suggestions; tab-separated, without a header")
    parser.add_argument("--lang", required=True, help="the language; it picks the tokenizer")
    parser.add_argument(
        "--nbest",
        type=int,
        default=SUGGESTIONS,
        help=f"suggestions a line at most (default {SUGGESTIONS}, section 3.3)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    require_language(options.lang, "--lang")
    if options.nbest < 1:
        raise InputError(f"--nbest {options.nbest}: expected 1 or more.")
    figures = score_file(options.file, options.lang, options.nbest)
    if options.json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
    else:
        _print_table(options.file, figures)
    return 0


def score_file(path: Path, language: str, nbest: int = SUGGESTIONS) -> dict[str, Any]:
    """The figures of one prediction file, flat, by the names that the official script's golden outputs use."""
    from mrs_metrics.distinct import distinct_n, distinct_signature
    from mrs_metrics.rouge import aggregate, score_examples
    from mrs_metrics.significance import bootstrap_interval
    from mrs_metrics.tokenize import get_tokenizer

    predictions = read_predictions(path, nbest)
    with metric_errors(str(path)):
        scores = score_examples(
            [prediction.suggestions for prediction in predictions],
            [prediction.reference for prediction in predictions],
            language=language,
        )
        return {
            **aggregate(scores),
            "interval": list(bootstrap_interval(scores.weighted)),
            "dist1": distinct_n(scores.chosen_tokens, 1),
            "dist2": distinct_n(scores.chosen_tokens, 2),
            "skipped": scores.skipped,
            "signature": scores.signature,
            "dist_signature": distinct_signature(
                max(len(prediction.suggestions) for prediction in predictions),
                get_tokenizer(language),
                language,
                "best",
            ),
        }


def _print_table(path: Path, figures: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    skipped = sum(figures["skipped"].values())
    reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in figures["skipped"].items() if count)
    table = Table(title=str(path), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    low, high = figures["interval"]
    table.add_row("examples", f"{figures['n']:,}")
    table.add_row("skipped", f"{skipped:,}" + (f" ({reasons})" if skipped else ""))
    for n in (1, 2, 3):
        table.add_row(f"ROUGE-{n} F1", f"{figures[f'rouge{n}']:.4f}")
    table.add_row("weighted ROUGE", f"{figures['weighted']:.4f}", style="bold")
    table.add_row("  95 % interval (bootstrap)", f"{low:.4f} to {high:.4f}")
    table.add_row("Dist-1", f"{figures['dist1']:.4f}")
    table.add_row("Dist-2", f"{figures['dist2']:.4f}")
    console = Console()
    console.print(table)
    console.print(
        figures["signature"], figures["dist_signature"], sep="\n", style="dim", highlight=False, soft_wrap=True
    )
