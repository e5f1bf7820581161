"""`mrs data toxicity` and `mrs data translate`: passes over a prepared folder of MRS that a model takes part in."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.report.tables import make_console, make_table
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.builders.passes import FolderPass
    from mrs_datasets.prepared.report import PassEntry
    from mrs_suggest.common.text.text_services import Scorer, Translator


def add_passes(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    toxicity = verbs.add_parser("toxicity", help="drop toxic pairs and replies from a prepared folder")
    _add_run_options(toxicity)
    toxicity.add_argument(
        "--keep-rejects",
        type=int,
        default=0,
        metavar="N",
        help="keep this many dropped rows per scorer and split in report.json; the folder cannot be published then",
    )
    add_toxicity_options(toxicity)
    toxicity.set_defaults(run=_run_toxicity)
    translate = verbs.add_parser("translate", help="translate English pairs and response sets of a prepared folder")
    _add_run_options(translate)
    add_translation_options(translate, to="--to")
    translate.add_argument("--from", dest="source", metavar="LANG", help="source language (default en)")
    translate.add_argument("--beams", type=int, metavar="N", help="width of the beam search (default 5)")
    translate.add_argument("--max-tokens", type=int, metavar="N", help="drop longer translations (default 256)")
    translate.add_argument("--batch-tokens", type=int, metavar="N", help="lower saves memory (default 4096)")
    translate.add_argument("--pairs", type=int, metavar="N", help="translate only the first N training pairs")
    translate.add_argument("--replace", action="store_true", help="replace existing translations")
    translate.add_argument(
        "--language-model", metavar="FILE", help="fastText's lid.176.ftz or lid.176.bin (default: the installed one)"
    )
    translate.set_defaults(run=_run_translate)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="a prepared folder of mrs, or a hub id")
    parser.add_argument("--out", required=True, type=Path, metavar="NEW", help="the folder to write")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted run")
    parser.add_argument("--cache", metavar="FILE", type=Path, help="keep the model's answers for later runs (SQLite)")


def _run(options: argparse.Namespace, folder_pass: FolderPass) -> PassEntry:
    from mrs_datasets.builders.passes import run_passes

    kept = {name: getattr(options, name) for name in ("resume", "overwrite", "cache")}
    return run_passes(options.data, [folder_pass], options.out, **kept)["passes"][-1]


# --- toxicity


def add_toxicity_options(parser: argparse.ArgumentParser) -> None:
    """Options that `mrs data toxicity` and `mrs data build` share."""
    group = parser.add_argument_group("toxicity filter")
    group.add_argument(
        "--toxicity",
        metavar="SCORER",
        help="for all languages: `words`, words:FOLDER with LANG.txt, the URL of a service, or a checkpoint for text "
        "classification (folder or hub id)",
    )
    group.add_argument("--toxicity-threshold", type=float, metavar="T", help="drop texts above this score (paper: .9)")
    group.add_argument("--toxicity-label", metavar="NAME", help="the checkpoint's label (default: toxic, hate, ...)")
    group.add_argument(
        "--toxicity-english",
        metavar="SCORER",
        help="a second scorer for English validation, test and responses; also `perspective`",
    )
    group.add_argument("--toxicity-english-threshold", type=float, metavar="T", help="the same for it (paper: .5)")
    group.add_argument("--toxicity-english-label", metavar="NAME", help="the second checkpoint's label")
    group.add_argument("--toxicity-batch", type=int, metavar="N", help="texts per batch (32) or request (64)")
    group.add_argument(
        "--requests-per-second", type=float, metavar="R", help="limit for a service (perspective: 1; others: none)"
    )


def toxicity_pass(options: argparse.Namespace) -> FolderPass | None:
    """The requested toxicity pass, opened; None without one; InputError if its options do not fit together."""
    scorers = [name for name in ("toxicity", "toxicity_english") if getattr(options, name) is not None]
    for name in ("toxicity", "toxicity_english"):
        threshold, label = (getattr(options, f"{name}_{part}") for part in ("threshold", "label"))
        for part, value in (("threshold", threshold), ("label", label)):
            if value is not None and name not in scorers:
                raise InputError(f"{_option(name)}-{part} {value}: applies only with {_option(name)}.")
        if threshold is not None and not 0 <= threshold <= 1:
            raise InputError(f"{_option(name)}-threshold {threshold:g}: expected a number from 0 to 1.")
    for name in ("toxicity_batch", "requests_per_second"):
        value = getattr(options, name)
        if value is not None and not scorers:
            raise InputError(f"{_option(name)} {value}: applies only with --toxicity or --toxicity-english.")
        if value is not None and not value > 0:
            raise InputError(f"{_option(name)} {value:g}: expected a number above 0.")
    if not scorers:
        return None
    from mrs_datasets.builders.toxicity import ENGLISH_THRESHOLD, THRESHOLD, Rule, ToxicityPass

    rules = []
    for name in scorers:
        english = name == "toxicity_english"
        threshold = getattr(options, f"{name}_threshold")
        if threshold is None:
            threshold = ENGLISH_THRESHOLD if english else THRESHOLD
        rules.append(Rule(_scorer(options, name), threshold, english))
    return ToxicityPass(tuple(rules), options.keep_rejects or 0)


def _scorer(options: argparse.Namespace, name: str) -> Scorer:
    from mrs_suggest.services.scorers.opening import open_scorer

    return open_scorer(
        getattr(options, name),
        label=getattr(options, f"{name}_label"),
        batch_size=options.toxicity_batch,
        per_second=options.requests_per_second,
        key_variable=f"MRS_{name.upper()}_KEY",  # one for each: a service must not see the other one's key
        option=_option(name),
    )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run_toxicity(options: argparse.Namespace) -> None:
    require_least(options, 0, "keep-rejects")
    found = toxicity_pass(options)
    if found is None:
        raise InputError("mrs data toxicity: no scorer; pass one with --toxicity or --toxicity-english.")
    entry = _run(options, found)
    rules = [model["rule"] for model in entry["about"]["models"]]
    table = make_table("split", ">rows", ">dropped", *(f">{rule}" for rule in rules), title="Toxicity")
    for part, counts in entry["about"]["parts"].items():
        if counts["dropped"]:
            figures = (counts.get(name) for name in ("rows", "dropped", *rules))
            table.add_row(part, *("-" if figure is None else f"{figure:,}" for figure in figures))
    table.caption = f"pairs: {entry['in']:,} in, {entry['out']:,} out"
    make_console(110).print(table)
    print(f"wrote {visible(options.out)}: data/, README.md, report.json")


# --- translation


def add_translation_options(parser: argparse.ArgumentParser, to: str = "--translate-to") -> None:
    """Options that `mrs data translate` and `mrs data build` share, and defaults of the others."""
    parser.set_defaults(source="en", beams=5, max_tokens=256, batch_tokens=4096, pairs=None, replace=False)
    group = parser.add_argument_group("translation")
    needed = to == "--to"
    group.add_argument(
        to,
        dest="translate_to",
        nargs="+",
        default=[],
        metavar="LANG",
        required=needed,
        help="write mt-LANG, and add translated replies to the response sets of these languages",
    )
    group.add_argument(
        "--translator",
        nargs="+",
        default=[],
        metavar="[LANG=]MODEL",
        required=needed,
        help="a checkpoint of Marian, M2M100 or NLLB, a run of `mrs train generation` or a folder for CTranslate2 "
        "(folder or ORG/NAME[@REVISION]), or dictionary:FILE; LANG= limits it to one language",
    )
    group.add_argument(
        "--ctranslate2",
        nargs="?",
        const="int8",
        choices=("int8", "float32"),
        metavar="TYPE",
        help="translate with CTranslate2, which is faster: int8 (default) or float32 (extra ctranslate2)",
    )


def translation_pass(options: argparse.Namespace) -> FolderPass | None:
    """The requested translation pass, opened; None without one; InputError if options do not fit together."""
    from mrs_datasets.builders.translation import TranslationPass, require_targets
    from mrs_suggest.common.text.language_id import open_identifier

    targets: list[str] = options.translate_to
    if not targets:
        if options.translator:
            raise InputError("--translator: no target language; name them with --translate-to.")
        return None
    require_targets(options.source, targets)
    translators = _translators(options, targets)
    identifier = open_identifier(options.language_model)
    if identifier is None:
        print(
            "note: no language model for fastText, so translations in another language are not detected; pass "
            "--language-model, or run `mrs install --language-model`.",
            file=sys.stderr,
        )
    model = None if identifier is None else Path(identifier.path)
    return TranslationPass(translators, options.source, identifier, model, options.replace, options.pairs)


def _translators(options: argparse.Namespace, targets: list[str]) -> dict[str, Translator]:
    """target -> its translator; a model that several languages share is opened once."""
    named: dict[str, str] = {}  # by language; "" for all others
    for given in options.translator:
        code, equals, model = given.partition("=")
        if not equals or code.startswith((".", "/", "~")) or "/" in code or ":" in code:
            code, model = "", given
        if code and code not in targets:
            raise InputError(f"--translator {given}: {code} is not among the languages ({' '.join(targets)}).")
        if code in named and not code:
            raise InputError(f"--translator {given}: {named['']} is for all languages already; pass LANG={given}.")
        if code in named or not model:
            problem = f"{code} has a translator already" if code in named else "no model is named"
            raise InputError(f"--translator {given}: {problem}; pass LANG=MODEL once for each language.")
        named[code] = model
    lacking = [code for code in targets if code not in named and "" not in named]
    if lacking:
        raise InputError(f"--translator: none for {' '.join(lacking)}; pass --translator MODEL or {lacking[0]}=MODEL.")
    models = {code: named.get(code) or named[""] for code in targets}
    opened = {name: _translator(name, options) for name in dict.fromkeys(models.values())}
    return {code: opened[name] for code, name in models.items()}


def _translator(name: str, options: argparse.Namespace) -> Translator:
    from mrs_datasets.texts.dictionary_texts import PREFIX, DictionaryTranslator

    if name.startswith(PREFIX):
        return DictionaryTranslator(Path(name.removeprefix(PREFIX)))
    from mrs_suggest.services.translators.opening import open_translator
    from mrs_suggest.services.translators.seq2seq import Search

    return open_translator(name, Search(options.beams, options.max_tokens, options.batch_tokens), options.ctranslate2)


def _run_translate(options: argparse.Namespace) -> None:
    found = translation_pass(options)
    assert found is not None  # --to is required
    for config, counts in _run(options, found)["about"]["counts"].items():
        print(f"{config}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    print(f"wrote {visible(options.out)}: data/, README.md, report.json")
