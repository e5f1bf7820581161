"""`mrs data translate`: translate English pairs and response sets of a prepared folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.builders.passes import FolderPass
    from mrs_suggest.common.text.text_services import Translator

NEEDED = "--translator MODEL"


def add_translate(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("translate", help="translate English pairs and response sets of a prepared folder")
    parser.add_argument("data", metavar="DIR", help="a prepared folder or hub id of mrs")
    parser.add_argument("--out", required=True, type=Path, metavar="NEW", help="the folder to write")
    add_translation_options(parser, alone=True)
    parser.add_argument(
        "--language-model", metavar="FILE", help="fastText's lid.176.ftz or lid.176.bin (default: the installed one)"
    )
    parser.add_argument("--cache", metavar="FILE", type=Path, help="keep translations here for later runs (SQLite)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted run")
    parser.set_defaults(run=run_translate)


def add_translation_options(parser: argparse.ArgumentParser, alone: bool = False) -> None:
    """Options that `mrs data translate` and `mrs data build` share.

    Args:
        alone: they may have short names, too.
    """

    def names(short: str, long: str) -> list[str]:
        return [short, long] if alone else [long]

    group = parser.add_argument_group("translation")
    group.add_argument(
        *names("--to", "--translate-to"), dest="translate_to", nargs="+", default=[], metavar="LANG", required=alone,
        help="write mt-LANG, and add translated replies to the response sets of these languages",
    )  # fmt: skip
    group.add_argument(
        "--translator", nargs="+", default=[], metavar="[LANG=]MODEL", required=alone,
        help="a checkpoint of Marian, M2M100 or NLLB, a run of `mrs train generation`, or a folder for CTranslate2: a "
        "folder or ORG/NAME[@REVISION]; or dictionary:FILE; LANG=: for this language alone",
    )  # fmt: skip
    group.add_argument(
        *names("--from", "--translate-from"), dest="translate_from", default="en", metavar="LANG",
        help="the language that is translated (default en)",
    )  # fmt: skip
    group.add_argument(
        *names("--beams", "--translation-beams"), dest="translation_beams", type=int, default=5, metavar="N",
        help="of the search (default 5, as for M2M100)",
    )  # fmt: skip
    group.add_argument(
        *names("--max-tokens", "--translation-max-tokens"), dest="translation_max_tokens", type=int, default=256,
        metavar="N", help="longest translation (default 256, as in CTranslate2); longer ones are dropped",
    )  # fmt: skip
    group.add_argument(
        *names("--batch-tokens", "--translation-batch-tokens"), dest="translation_batch_tokens", type=int, default=4096,
        metavar="N", help="tokens that are read at a time (default 4096); changes speed and memory alone",
    )  # fmt: skip
    group.add_argument(
        "--ctranslate2", nargs="?", const="int8", choices=("int8", "float32"), metavar="TYPE",
        help="translate with CTranslate2, which is faster: int8 (default) or float32; converts the checkpoint once "
        "(extra ctranslate2)",
    )  # fmt: skip
    group.add_argument(
        *names("--pairs", "--translate-pairs"), dest="translate_pairs", type=int, metavar="N",
        help="translate only the first N training pairs (paper: 19 million), and the whole response set",
    )  # fmt: skip
    group.add_argument(
        *names("--replace", "--translate-again"), dest="translate_again", action="store_true",
        help="replace mt-LANG and translated replies that are there",
    )  # fmt: skip


def translation_pass(options: argparse.Namespace) -> FolderPass | None:
    """The pass that the options ask for, with its models opened; None: none.

    Raises:
        InputError: an unknown model, or options that do not fit together.
    """
    from mrs_datasets.builders.translation import TranslationPass, require_targets
    from mrs_suggest.common.text.language_id import open_identifier

    targets: list[str] = options.translate_to
    if not targets:
        if options.translator:
            raise InputError("--translator: nothing is translated; name the languages with --translate-to.")
        return None
    require_targets(options.translate_from, targets)
    translators = _translators(options, targets)
    model = options.language_model
    identifier = open_identifier(model)
    if identifier is None:
        print(
            "note: no language model for fastText, so translations in another language are not found; pass "
            "--language-model, or run `mrs install --language-model`.",
            file=sys.stderr,
        )
    return TranslationPass(
        translators,
        options.translate_from,
        identifier,
        None if identifier is None else Path(identifier.path),
        options.translate_again,
        options.translate_pairs,
    )


def _translators(options: argparse.Namespace, targets: list[str]) -> dict[str, Translator]:
    """target -> its translator; a model that several languages share is opened once."""
    general, named = None, {}
    for given in options.translator:
        code, equals, model = given.partition("=")
        if equals and not code.startswith((".", "/", "~")) and "/" not in code and ":" not in code:
            if code not in targets:
                raise InputError(f"--translator {given}: {code} is not among the languages ({' '.join(targets)}).")
            if code in named or not model:
                problem = f"{code} has a translator already" if code in named else "no model is named"
                raise InputError(f"--translator {given}: {problem}; pass LANG=MODEL once for each language.")
            named[code] = model
        elif general is not None:
            raise InputError(f"--translator {given}: {general} is for all languages already; pass LANG={given}.")
        else:
            general = given
    lacking = [code for code in targets if code not in named and general is None]
    if lacking:
        raise InputError(
            f"--translator: none for {' '.join(lacking)}; pass {NEEDED}, or --translator {lacking[0]}=MODEL."
        )
    opened: dict[str, Translator] = {}
    found = {}
    for code in targets:
        name = named.get(code) or str(general)
        if name not in opened:
            opened[name] = _open(name, options)
        found[code] = opened[name]
    return found


def _open(name: str, options: argparse.Namespace) -> Translator:
    from mrs_datasets.builders.dictionary import PREFIX, DictionaryTranslator

    if name.startswith(PREFIX):
        return DictionaryTranslator(Path(name.removeprefix(PREFIX)))
    from mrs_suggest.services.translators.opening import open_translator
    from mrs_suggest.services.translators.seq2seq import Search

    search = Search(options.translation_beams, options.translation_max_tokens, options.translation_batch_tokens)
    return open_translator(name, search, options.ctranslate2)


def run_translate(options: argparse.Namespace) -> int:
    from mrs_datasets.builders.passes import run_passes

    found = translation_pass(options)
    assert found is not None  # --to is required
    report = run_passes(
        options.data, [found], options.out, resume=options.resume, overwrite=options.overwrite, cache=options.cache
    )
    for config, counts in report["passes"][-1]["about"]["counts"].items():
        print(f"{config}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    print(f"wrote {visible(options.out)}: data/, README.md, report.json")
    return 0
