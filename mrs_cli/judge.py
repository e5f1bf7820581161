"""`mrs judge`: let people compare two systems' suggestions, blind, and read what they say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_core.console import make_console
from mrs_core.errors import InputError, MissingExtraError
from mrs_core.text import visible, visible_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mrs_cli.judge_sheets import Key

CONFIDENCE = 0.95
OUTCOMES = {"win": 1, "tie": 0, "loss": -1}  # of system A


def make_parser() -> argparse.ArgumentParser:
    from mrs_cli.judge_sheets import EXAMPLES, JUDGES, SEED

    parser = argparse.ArgumentParser(prog="mrs judge", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make", help="write one blind sheet a judge, and the key")
    make.add_argument("a", metavar="A.tsv", type=Path, help="predictions of system A (message, reference, suggestions)")
    make.add_argument("b", metavar="B.tsv", type=Path, help="predictions of system B for the same messages")
    make.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    make.add_argument("--judges", type=int, default=JUDGES, help=f"sheets (default {JUDGES}, section 3.3)")
    make.add_argument(
        "--examples", type=int, help=f"messages to judge, drawn (default: all, up to {EXAMPLES}, section 5.1)"
    )
    make.add_argument("--seed", type=int, default=SEED, help=f"of all draws (default {SEED})")
    make.add_argument("--overwrite", action="store_true", help="replace DIR if nobody has filled in its sheets")
    make.set_defaults(run=_make)
    read = verbs.add_parser("read", help="check the sheets and print shares, intervals and agreement")
    read.add_argument("folder", metavar="DIR", type=Path, help="the folder, with the filled-in sheets in DIR/sheets")
    read.add_argument("--partial", action="store_true", help="read without judges whose sheet is missing or untouched")
    read.add_argument("--json", action="store_true", help="print one JSON object")
    read.set_defaults(run=_read)
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    options.run(options)
    return 0


def _make(options: argparse.Namespace) -> None:
    from mrs_cli.judge_sheets import KEY, SHEETS, make_sheets

    for name, least in (("judges", 1), ("examples", 1), ("seed", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise InputError(f"--{name} {value}: expected a number from {least}.")
    key = make_sheets(
        (options.a, options.b), options.out, options.judges, options.examples, options.seed, options.overwrite
    )
    same = f", {key.same_suggestions} of them with the same suggestions on both sides" if key.same_suggestions else ""
    print(f"{visible(options.out)}: {len(key.items)} items{same}; {len(key.sheets)} sheets.")
    print(
        f"Give a sheet of {visible(options.out / SHEETS)} to each judge, with the instructions; keep {KEY} to yourself."
    )
    print(f"When all are back in their place: mrs judge read {visible(options.out)}")


def _read(options: argparse.Namespace) -> None:
    from mrs_cli.judge_sheets import read_key, read_sheets

    key = read_key(options.folder)
    figures = summarize(key, read_sheets(options.folder, key, options.partial))
    if options.json:
        print(visible_json(figures, indent=2))
    else:
        _print_table(figures)


def summarize(key: Key, sheets: dict[str, NDArray[np.int64]]) -> dict[str, Any]:
    """The figures of an evaluation.

    Shares are of system A: win, tie, loss. `judgements` takes every judgement alone, as Figure 2 of the paper does;
    `majority` what more than half of the judges say of an item, and a tie where no answer has so many. Intervals
    resample items, since judgements of one item depend on each other. `p` is of the permutation test of the items' net
    preference for A: without a difference, A and B of an item could as well be swapped.

    Args:
        sheets: sheet -> (items,) 1 for A, 0 for a tie, -1 for B.

    Raises:
        MissingExtraError: statsmodels, which has Fleiss' kappa, is not installed.
    """
    import numpy as np

    from mrs_metrics.signature import signature
    from mrs_metrics.significance import PERMUTATION_SAMPLES, permutation_test

    choices = np.stack(list(sheets.values()), axis=1)  # (items, judges)
    n_items, n_judges = choices.shape
    counts = np.stack([(choices == sign).sum(axis=1) for sign in OUTCOMES.values()], axis=1)  # (items, outcomes)
    clear = 2 * counts > n_judges
    majority = clear.copy()
    majority[~clear.any(axis=1), list(OUTCOMES).index("tie")] = True
    return {
        "system_a": key.systems[0],
        "system_b": key.systems[1],
        "items": n_items,
        "judges": n_judges,
        "judges_missing": len(key.sheets) - n_judges,
        "same_suggestions": key.same_suggestions,
        "judgements": _shares(counts / n_judges),
        "majority": _shares(majority.astype(float)),
        "no_majority": int((~clear.any(axis=1)).sum()),
        "p": permutation_test(choices.mean(axis=1), np.zeros(n_items)),
        "kappa": _fleiss_kappa(counts) if n_judges > 1 else None,
        "by_judge": [_by_judge(name, column, key) for name, column in sheets.items()],
        "inputs_sha256": list(key.inputs),
        "signature": signature(
            "judge",
            judges=n_judges,
            items=n_items,
            seed=key.seed,
            majority="over-half",
            interval="studentised-bootstrap-of-items",
            test=f"permutation-{PERMUTATION_SAMPLES}",
            kappa="fleiss" if n_judges > 1 else None,
        ),
    }


def _shares(columns: NDArray[np.float64]) -> dict[str, dict[str, Any]]:
    """Mean and interval of each outcome's column (items, outcomes)."""
    from mrs_metrics.significance import bootstrap_interval

    return {
        outcome: {"share": float(column.mean()), "interval": list(bootstrap_interval(column, CONFIDENCE))}
        for outcome, column in zip(OUTCOMES, columns.T, strict=True)
    }


def _fleiss_kappa(counts: NDArray[np.int64]) -> float | None:
    """Agreement beyond chance on win, tie and loss; None where all judgements are one, so that it is undefined."""
    try:
        from statsmodels.stats.inter_rater import fleiss_kappa
    except ImportError:
        raise MissingExtraError("statsmodels", "analysis", "Fleiss' kappa") from None
    return float(fleiss_kappa(counts)) if (counts.sum(axis=0) > 0).sum() > 1 else None


def _by_judge(name: str, choices: NDArray[np.int64], key: Key) -> dict[str, Any]:
    """One judge's shares, and how often they choose the left side where they choose: about .5 unless by habit."""
    import numpy as np

    sides = np.array([1 if item.a_side == "left" else -1 for item in key.items])
    decided = choices != 0
    left = float((choices[decided] == sides[decided]).mean()) if decided.any() else None
    return {
        "sheet": name,
        **{outcome: float((choices == sign).mean()) for outcome, sign in OUTCOMES.items()},
        "left_of_decided": left,
    }


def _print_table(figures: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = make_console(110)
    table = Table(title=f"{figures['items']:,} items, {figures['judges']} judges", title_justify="left")
    for column in ("", "judgements", "95 % interval", "items by majority", "95 % interval"):
        table.add_column(column, justify="right" if column else "left")
    names = {"win": "A preferred", "tie": "tie", "loss": "B preferred"}
    for outcome, name in names.items():
        cells = []
        for kind in ("judgements", "majority"):
            low, high = figures[kind][outcome]["interval"]
            cells += [f"{figures[kind][outcome]['share']:.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(name, *cells)
    console.print(f"A: {escape(figures['system_a'])}\nB: {escape(figures['system_b'])}", soft_wrap=True)
    console.print(table)
    for line in _remarks(figures):
        console.print(escape(line), soft_wrap=True)
    console.print(escape(figures["signature"]), style="dim", soft_wrap=True)


def _remarks(figures: dict[str, Any]) -> list[str]:
    lines = [f"A against B: p = {figures['p']:.4g} (permutation test over items)"]
    if figures["judges"] > 1:
        kappa = figures["kappa"]
        lines.append(f"Fleiss' kappa: {'undefined, all judgements are one' if kappa is None else f'{kappa:.3f}'}")
    if figures["no_majority"]:
        lines.append(f"items without a majority, counted as ties: {figures['no_majority']:,}")
    if figures["same_suggestions"]:
        lines.append(f"items with the same suggestions on both sides: {figures['same_suggestions']:,}")
    if figures["judges_missing"]:
        lines.append(f"judges left out, their sheets being missing or untouched: {figures['judges_missing']}")
    for judge in figures["by_judge"]:
        left = judge["left_of_decided"]
        side = "never chose a side" if left is None else f"left in {100 * left:.0f} % of the choices"
        shares = ", ".join(f"{outcome} {judge[outcome]:.3f}" for outcome in OUTCOMES)
        lines.append(f"{judge['sheet']}: {shares}; {side}")
    return lines
