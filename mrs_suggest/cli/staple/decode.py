"""`mrs staple decode`: many translations of each prompt."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.staple.members import Run
    from mrs_suggest.staple.prompts import Prompts

OPTIONS: tuple[tuple[str, type, str], ...] = (
    ("nbest", int, "the most translations of a prompt (default 50; ours); with dropout, of each pass"),
    ("beams", int, "beams (default: as many as --nbest)"),
    ("groups", int, "groups of a diverse beam search (default 1: plain; Vijayakumar et al. 2018)"),
    ("diversity_penalty", float, "between groups (default 0)"),
    ("samples", int, "of each prompt, with --search sample (default: as many as --nbest)"),
    ("temperature", float, "of the samples (default 1: the model's own distribution)"),
    ("top_p", float, "draw from the most probable tokens that together reach it (default 1: all)"),
    ("dropout_passes", int, "beam searches with Monte Carlo dropout, pooled (default 0: none; Li et al. 2020)"),
    ("dropout_rate", float, "of these passes (default: the one that the run was trained with)"),
    ("length_penalty", float, "exponent of the length in the score that ranks (default: the run's own)"),
    ("max_tokens", int, "longest translation in tokens (default: the run's own)"),
    ("seed", int, "of samples and dropout (default 42, as the trainers')"),
    ("batch_size", int, "prompts decoded together (default: as many as fit into memory, at most 32)"),
)
NAMES = ("search", *(name for name, _, _ in OPTIONS), "ctranslate2")


def add_decode(verbs: Any) -> None:
    """Add the verb."""
    decode = verbs.add_parser("decode", help="write many translations of each prompt, by one or several runs")
    decode.add_argument(
        "runs", nargs="+", metavar="RUN",
        help="the folder of a generator, or ORG/NAME@REVISION; NAME=RUN names its member (default: the folder's name)",
    )  # fmt: skip
    source = decode.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DIR", help="prepared data of STAPLE: a folder, or a hub id")
    source.add_argument("--text", type=Path, metavar="FILE", help="instead: a text, one sentence a line")
    decode.add_argument("--split", help="of the data (default validation)")
    decode.add_argument("--language", metavar="CODE", help="to translate to (default: the only one that is possible)")
    decode.add_argument("--out", required=True, type=Path, metavar="FILE", help="the file of hypotheses to write")
    decode.add_argument("--overwrite", action="store_true", help="replace --out, and drop what was left of another run")
    search = decode.add_argument_group("search")
    search.add_argument("--search", choices=("beam", "sample"), help="beam search (default), or samples")
    for name, kind, about in OPTIONS:
        search.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=about)
    search.add_argument(
        "--ctranslate2", action="store_true", default=None,
        help="search with CTranslate2, which is faster: the export in the run's folder, or one made for this call "
        "(extra ctranslate2)",
    )  # fmt: skip
    decode.set_defaults(run=_decode)


def _decode(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.decode import decode
    from mrs_suggest.staple.members import open_runs
    from mrs_suggest.staple.search import Search

    require_new_file(options.out, options.overwrite)
    given = {name: value for name in NAMES if (value := getattr(options, name)) is not None}
    search = Search(**given)
    runs = open_runs(options.runs)
    prompts, language = _prompts(options, runs)
    found = decode(runs, prompts, language, search, options.out, options.overwrite)
    print(f"wrote {visible(options.out)}: {len(found.table):,} translations of {len(found.prompts):,} prompts")


def _prompts(options: argparse.Namespace, runs: list[Run]) -> tuple[Prompts, str]:
    """What is translated, and to which language."""
    from mrs_datasets.prepared.prepared import open_prepared
    from mrs_suggest.staple.members import written_language
    from mrs_suggest.staple.prompts import choose_language, prompts_of_split, prompts_of_text

    known = [run.settings.languages for run in runs]
    if options.text is not None:
        if options.split is not None:
            raise InputError("--split: is of --data; leave it out with --text.")
        return prompts_of_text(options.text), choose_language(options.language, known, None)
    data = open_prepared(options.data)
    language = choose_language(options.language, known, data.configs())
    written = written_language(runs, language)
    if written != language:
        raise InputError(f"--data: holds prompts, and {runs[0].given} translates to {written}; pass --text.")
    return prompts_of_split(data, language, options.split or "validation"), language
