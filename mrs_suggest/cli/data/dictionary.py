"""`mrs data quasi-sentences` and `mrs data replace-terms`: text for pretraining from a bilingual dictionary."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mrs_datasets.texts.dictionary_texts import PAIRS, TermReplacer, quasi_sentences, read_dictionary
from mrs_suggest.common.errors import require_least
from mrs_suggest.common.io.files import atomic_file, require_new_file, writing
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import visible


def add_dictionary_texts(verbs: Any) -> None:
    quasi = verbs.add_parser("quasi-sentences", help="a dictionary as text: each pair a sentence (XCOPA's D-corpus)")
    _add_options(quasi)
    quasi.set_defaults(run=_quasi_sentences)
    replace = verbs.add_parser("replace-terms", help="a text with dictionary terms in English (XCOPA's T-REP)")
    replace.add_argument("--text", required=True, type=Path, metavar="FILE", help="the text, one sentence a line")
    _add_options(replace)
    replace.set_defaults(run=_replace_terms)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dictionary", required=True, type=Path, metavar="FILE",
        help="lines of term, tab, English, and optionally a tab and a confidence (higher is better)",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help=f"the most reliable pairs to use (default {PAIRS}, XCOPA, section 4.4)"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the text to write")
    parser.add_argument("--overwrite", action="store_true", help="replace --out if it exists")


def _quasi_sentences(options: argparse.Namespace) -> None:
    count = _write(options, quasi_sentences(read_dictionary(options.dictionary, options.pairs)))
    print(f"wrote {visible(options.out)}: {count:,} quasi-sentences")


def _replace_terms(options: argparse.Namespace) -> None:
    replacer = TermReplacer(read_dictionary(options.dictionary, options.pairs))
    count = _write(options, (replacer(line) for _, line in read_lines(options.text)))
    print(f"wrote {visible(options.out)}: {count:,} sentences, {replacer.replaced:,} terms replaced")


def _write(options: argparse.Namespace, lines: Iterable[str]) -> int:
    require_least(options, 1, "pairs")
    require_new_file(options.out, options.overwrite)
    count = 0
    with writing(options.out):
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(options.out) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
    return count
