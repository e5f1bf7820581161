"""`mrs data synth`: write synthetic Reddit dumps, to try out and test a build."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.text.text import visible


def add_synth(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    make_parser(verbs.add_parser("synth", help="write synthetic Reddit dumps, with the irregularities of real ones"))


def make_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--months",
        required=True,
        nargs="+",
        metavar="YYYY-MM",
        help="one dump each, in the form of its year: about 1 KB per line until 2019, then 2 to 4 KB",
    )
    parser.add_argument("--comments", required=True, type=int, metavar="N", help="lines per month")
    parser.add_argument(
        "--long-thread", type=int, default=0, metavar="N", help="put the first N comments in one thread"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed writes the same lines (default 0)")
    parser.add_argument(
        "--window", type=int, default=31, metavar="LOG", help="log2 of the zstd window (default 31, as published)"
    )
    parser.add_argument(
        "--language-model", type=Path, metavar="FILE", help="also write a small fastText model for these languages"
    )
    parser.add_argument(
        "--toxic-words", type=Path, metavar="DIR", help="also write word lists for --toxicity words:DIR"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace dumps that this command wrote to --out")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.synthetic.dumps import MANIFEST, write_dumps, write_toxic_words

    total = len(options.months) * max(options.comments, 0)
    with tqdm(total=total, unit=" lines", unit_scale=True, desc="synth", disable=not sys.stderr.isatty()) as bar:
        manifest = write_dumps(
            options.out, options.months, options.comments, options.seed, window_log=options.window,
            long_thread=options.long_thread, overwrite=options.overwrite, progress=bar.update,
        )  # fmt: skip
    for name, facts in manifest["files"].items():
        print(f"{name}  {facts['lines']:,} lines, {facts['bytes']:,} bytes, {facts['compressed']:,} packed")
    for name, facts in manifest["profiles"].items():
        print(f"{name}: {facts['kept']:,} comments stay, {facts['pairs']:,} pairs")
    if options.language_model:
        from mrs_datasets.synthetic.language_models import write_language_model

        write_language_model(options.language_model, options.seed)
        print(f"wrote {visible(options.language_model)}")
    if options.toxic_words:
        write_toxic_words(options.toxic_words)
        print(f"wrote {visible(options.toxic_words)}")
    print(f"wrote {visible(options.out)} ({MANIFEST} has the expected counts)")
