"""`mrs data corpus`: clean, deduplicate, language-check and filter text files for pretraining."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.cli.options import add_out_options, out_location, say
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.report.tables import make_console, make_table
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.corpus.settings import IdentifierFile
    from mrs_suggest.common.io.storage import Location

NO_CHECK = "none"


def add_corpus(verbs: Any) -> None:
    parser = verbs.add_parser("corpus", help="clean text files for `mrs train pretraining`, as CCNet does")
    parser.add_argument(
        "--text", required=True, nargs="+", action="extend", metavar="LANG=SOURCE",
        help="text files, or folders of *.txt, .gz, .xz, .zst, or their URLs, with one sentence or document a line",
    )  # fmt: skip
    add_out_options(parser)
    parser.add_argument(
        "--language-model", metavar="FILE",
        help="for the language check: fastText's lid.176.ftz or lid.176.bin (default: the installed one), a reply "
        f"model with languages.safetensors, or `{NO_CHECK}`",
    )  # fmt: skip
    parser.add_argument("--unchecked", nargs="+", default=[], metavar="LANG", help="languages to leave unchecked")
    parser.add_argument("--min-language-score", type=float, help="drop lines with a lower probability (default .5)")
    parser.add_argument(
        "--reference", nargs="+", default=[], action="extend", metavar="LANG=SOURCE",
        help="clean text, such as Wikipedia, to train the language's perplexity model on",
    )  # fmt: skip
    parser.add_argument(
        "--model", nargs="+", default=[], action="extend", metavar="LANG=FILE",
        help="a perplexity model from the models/ of an earlier corpus, instead of --reference",
    )  # fmt: skip
    parser.add_argument(
        "--keep",
        nargs="+",
        default=["head", "middle"],
        metavar="THIRD",
        help="thirds by perplexity: head, middle, tail (default head middle)",
    )
    parser.add_argument("--min-characters", type=int, help="shortest line (default 10)")
    parser.add_argument("--max-characters", type=int, help="longest line (default 100,000)")
    parser.add_argument("--repair", action="store_true", help="repair wrongly decoded characters, drop HTML tags")
    parser.add_argument("--mask", action="store_true", help="mask links, users, e-mail, IP addresses, phone numbers")
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted corpus")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted corpus")
    parser.set_defaults(run=run_corpus)


def run_corpus(options: argparse.Namespace) -> None:
    from mrs_datasets.corpus.build import CARD, REPORT, build_corpus
    from mrs_datasets.corpus.lines import LineRules
    from mrs_datasets.corpus.settings import Corpus, CorpusSettings, Source

    require_least(options, 1, "workers")

    def given(*names: str) -> dict[str, Any]:
        return {name: getattr(options, name) for name in names if getattr(options, name) is not None}

    rules = LineRules(options.repair, options.mask, **given("min_characters", "max_characters"))
    settings = CorpusSettings(rules, keep=tuple(options.keep), **given("min_language_score"))
    sources = tuple(Source(language, path) for language, path in _files(options.text, "--text"))
    references: dict[str, tuple[Location, ...]] = {}
    for language, path in _files(options.reference, "--reference"):
        references[language] = (*references.get(language, ()), path)
    identifier = _identifier(options.language_model)
    corpus = Corpus(sources, identifier, _models(options.model), references, tuple(options.unchecked))
    out = out_location(options.out, options.scratch)
    workers = options.workers or min(os.cpu_count() or 1, len(sources))
    kept = {name: getattr(options, name) for name in ("resume", "overwrite")}
    report = build_corpus(corpus, settings, out, workers=workers, say=say, **kept)
    table = make_table("language", ">read", ">kept", "dropped", title="Lines")
    for language, facts in report["languages"].items():
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in facts["dropped"].items())
        table.add_row(language, f"{facts['lines']:,}", f"{facts['kept']:,}", reasons)
    make_console(120).print(table)
    print(f"wrote {visible(out)}: a folder per language, {CARD}, {REPORT}")


def _files(values: Sequence[str], option: str) -> list[tuple[str, Location]]:
    """The language and location of every file, in the order given."""
    from mrs_datasets.texts.text_sources import files_in, split_language
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
    """The file of each language's perplexity model; damaged ones are refused before hours of reading."""
    from mrs_datasets.corpus.ngrams import CharacterModel
    from mrs_datasets.texts.text_sources import split_language
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import is_url

    found: dict[str, Path] = {}
    for value in values:
        language, where = split_language(value, "--model")
        if language in found:
            raise InputError(f"--model {value}: the language has one already, {found[language]}; pass one of them.")
        if is_url(where):
            raise InputError(f"--model {masked(value)}: must be a local file; download it, and pass its path.")
        found[language] = Path(where)
        CharacterModel.load(found[language])
    return found


def _identifier(model: str | None) -> IdentifierFile | None:
    """The identifier for the languages of lines; None to leave them unchecked."""
    from mrs_datasets.corpus.settings import IdentifierFile
    from mrs_suggest.common.text.language_id import LanguageIdentifier, open_identifier

    if model == NO_CHECK:
        return None
    path = None if model is None else Path(model)
    if path is not None and (path.is_dir() or path.suffix == ".safetensors"):
        from mrs_suggest.models.starting_points import DETECTOR
        from mrs_suggest.suggest.language_detector import LanguageDetector

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
