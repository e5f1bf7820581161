"""`mrs data corpus`: text files cleaned, deduplicated, language-checked and filtered by perplexity, for pretraining."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.cli.options.remote_options import add_out_options, out_location
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.console import make_console
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.corpus.settings import IdentifierFile
    from mrs_suggest.common.io.storage import Location

NO_CHECK = "none"


def add_corpus(verbs: Any) -> None:
    parser = verbs.add_parser("corpus", help="text files -> clean text for `mrs train pretraining`, as CCNet does")
    parser.add_argument(
        "--text", required=True, nargs="+", action="extend", metavar="LANG=SOURCE",
        help="text files, or folders of *.txt, .gz, .xz, .zst, or their URLs, with one sentence or document a line",
    )  # fmt: skip
    add_out_options(parser)
    parser.add_argument(
        "--language-model", metavar="FILE",
        help="of the language check: fastText's lid.176.ftz or lid.176.bin (default: the installed one), a folder or "
        f"file of a model's languages.safetensors, or `{NO_CHECK}`",
    )  # fmt: skip
    parser.add_argument("--unchecked", nargs="+", default=[], metavar="LANG", help="languages that are not checked")
    parser.add_argument(
        "--reference", nargs="+", default=[], action="extend", metavar="LANG=SOURCE",
        help="clean text, such as Wikipedia, to train the language's model on",
    )  # fmt: skip
    parser.add_argument(
        "--model", nargs="+", default=[], action="extend", metavar="LANG=FILE",
        help="a model that an earlier corpus has in models/, instead",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted corpus")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted corpus")
    stays = parser.add_argument_group("what stays")
    for flag, kind, text in (
        ("--min-characters", int, "shortest line (default 10)"),
        ("--max-characters", int, "longest line (default 100,000)"),
        ("--min-letters", float, "least share of letters among the characters of a line (default .5)"),
        ("--min-language-score", float, "drop lines unless the language's probability is above (CCNet: .5)"),
        ("--order", int, "characters of the longest n-grams of a trained model (default 6)"),
        ("--reference-characters", int, "of a reference, thinned out evenly (default 10,000,000)"),
        ("--shard-lines", int, "lines of a file that is written (default 1,000,000)"),
    ):
        stays.add_argument(flag, type=kind, help=text)
    stays.add_argument(
        "--keep", nargs="+", metavar="THIRD",
        help="thirds by perplexity: head, middle, tail (default head middle; all with --max-perplexity)",
    )  # fmt: skip
    stays.add_argument(
        "--max-perplexity", nargs="+", default=[], metavar="LANG=NUMBER",
        help="drop lines with a higher perplexity per character",
    )  # fmt: skip
    stays.add_argument(
        "--repair", action="store_true", help="repair wrongly decoded characters and leave out HTML tags, as `build`"
    )
    stays.add_argument(
        "--mask", action="store_true", help="mask links, users, e-mail, IP addresses and telephone numbers, as `build`"
    )
    parser.set_defaults(run=run_corpus)


def run_corpus(options: argparse.Namespace) -> int:
    from mrs_datasets.corpus.build import CARD, REPORT, build_corpus
    from mrs_datasets.corpus.lines import LineRules
    from mrs_datasets.corpus.settings import BUCKETS, HEAD, MIDDLE, Corpus, CorpusSettings, Source

    if options.workers is not None and options.workers < 1:
        raise InputError(f"--workers {options.workers}: expected 1 or more.")

    def given(*names: str) -> dict[str, Any]:
        return {name: getattr(options, name) for name in names if getattr(options, name) is not None}

    keep = options.keep or (BUCKETS if options.max_perplexity else (HEAD, MIDDLE))
    settings = CorpusSettings(
        rules=LineRules(options.repair, options.mask, **given("min_characters", "max_characters", "min_letters")),
        unchecked=tuple(options.unchecked),
        keep=tuple(keep),
        max_perplexity=_numbers(options.max_perplexity),
        **given("min_language_score", "order", "reference_characters", "shard_lines"),
    )
    sources = [Source(language, path) for language, path in _files(options.text, "--text")]
    references: dict[str, tuple[Location, ...]] = {}
    for language, path in _files(options.reference, "--reference"):
        references[language] = (*references.get(language, ()), path)
    corpus = Corpus(tuple(sources), _identifier(options.language_model), _models(options.model), references)
    out = out_location(options.out, options.scratch)
    report = build_corpus(
        corpus,
        settings,
        out,
        workers=options.workers or min(os.cpu_count() or 1, len(sources)),
        resume=options.resume,
        overwrite=options.overwrite,
        say=lambda line: print(visible(line), file=sys.stderr),
    )
    _print(report)
    print(f"wrote {visible(out)}: a folder per language, {CARD}, {REPORT}")
    return 0


def _files(values: Sequence[str], option: str) -> list[tuple[str, Location]]:
    """The language and location of every file, in the order given.

    Raises:
        InputError: a value names no language, or nothing that exists, or a storage cannot be reached.
    """
    from mrs_datasets.texts.text_files import files_in, split_language
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import find_files, is_url, location, reaching

    found: list[tuple[str, Location]] = []
    for value in values:
        language, where = split_language(value, option)
        named = f"{option} {masked(value)}"
        place = location(where)
        files = find_files(where) if is_url(where) else []
        with reaching(place):
            if not files and place.is_dir():
                files = files_in(place, named)
        if not files and not (isinstance(place, Path) and place.exists()):
            raise InputError(f"{named}: no such file or folder; expected text with one sentence a line.")
        found += [(language, file) for file in files or [place]]
    return found


def _models(values: Sequence[str]) -> dict[str, Path]:
    """The file of each language's model.

    Raises:
        InputError: a language has two, or a file is no such model.
    """
    from mrs_datasets.corpus.ngrams import CharacterModel
    from mrs_datasets.texts.text_files import split_language
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import is_url

    found: dict[str, Path] = {}
    for value in values:
        language, where = split_language(value, "--model")
        if language in found:
            raise InputError(f"--model {value}: the language has one already, {found[language]}; pass one of them.")
        if is_url(where):
            raise InputError(f"--model {masked(value)}: is read as a local file; fetch it, and pass its path.")
        found[language] = Path(where)
        CharacterModel.load(found[language])  # refused now, not after hours of reading
    return found


def _numbers(values: Sequence[str]) -> dict[str, float]:
    found = {}
    for value in values:
        language, _, number = value.partition("=")
        try:
            found[language] = float(number)
        except ValueError:
            raise InputError(f"--max-perplexity {value}: expected LANG=NUMBER, such as de=4.5.") from None
    return found


def _identifier(model: str | None) -> IdentifierFile | None:
    """What names the language of lines.

    Raises:
        InputError: there is no such model, or it is damaged.
    """
    from mrs_datasets.corpus.settings import IdentifierFile
    from mrs_suggest.common.text.language_id import LanguageIdentifier, open_identifier

    if model == NO_CHECK:
        return None
    path = None if model is None else Path(model)
    if path is not None and (path.is_dir() or path.suffix == ".safetensors"):
        from mrs_suggest.suggest.language_detector import DETECTOR, LanguageDetector

        path = path / DETECTOR if path.is_dir() else path
        if not path.is_file():
            raise InputError(f"--language-model {model}: has no {DETECTOR}; pass the folder of a reply model.")
        LanguageDetector.load(path)
        return IdentifierFile(path, LanguageDetector.load)
    found = open_identifier(path)
    if found is None:
        raise InputError(
            "--language-model: none is installed; pass the path of fastText's lid.176.ftz, the folder of a reply model "
            f"that knows the languages, or `{NO_CHECK}` to leave them unchecked."
        )
    return IdentifierFile(found.path, LanguageIdentifier.open)


def _print(report: dict[str, Any]) -> None:
    """What became of each language's lines."""
    from rich.table import Table

    table = Table(title="Lines", title_justify="left")
    for column in ("language", "read", "kept", "dropped"):
        table.add_column(column, justify="left" if column in ("language", "dropped") else "right")
    for language, facts in report["languages"].items():
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in facts["dropped"].items())
        table.add_row(language, f"{facts['lines']:,}", f"{facts['kept']:,}", reasons)
    make_console(120).print(table)
