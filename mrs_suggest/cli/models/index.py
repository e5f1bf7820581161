"""`mrs models index`: give a trained retriever a custom response set, or check one."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.tables import make_console, make_table
from mrs_suggest.common.text.text import visible, visible_json

if TYPE_CHECKING:
    from mrs_suggest.suggest.own_replies.checks import ResponseFinding
    from mrs_suggest.suggest.own_replies.file import ResponseRow
    from mrs_suggest.suggest.own_replies.sets import ResponseSets
    from mrs_suggest.suggest.suggester import Suggester

MESSAGES = 200  # of mrs-everyday
ALWAYS, LEAD = 0.5, 1.5  # shares of the messages: at least the first, and so much more than the average reply's
NAMED = 3  # replies that are named in a line
STOP, SKIP, KEEP = "stop", "skip", "keep"


def add_index(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser(
        "index",
        help="build, extend, shorten or check the response set of a trained retriever, without training",
        description="Without --add, --remove or --check, the replies of --responses become the response set of the "
        "language, and the model then answers only in the languages of your replies. "
        "Each change writes index, ranker, run.json and card together.",
    )
    parser.add_argument("run_folder", metavar="RUN", help="the folder that a training run wrote; with --out or --check "
                        "also a baseline, ORG/NAME, or ORG/NAME@REVISION")  # fmt: skip
    parser.add_argument(
        "--responses",
        type=Path,
        metavar="FILE",
        help="one reply per line, or a .csv, .tsv or .jsonl file with the columns or keys reply and, optionally, "
        "weight (how often it is given), tags (separated by spaces or ;) and examples (messages that it answers, "
        "separated by |)",
    )
    parser.add_argument(
        "--language", "--lang", metavar="CODE", help="the language of the replies (default: the model's only one)"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--add", action="store_true", help="add the replies to the set")
    action.add_argument("--remove", action="store_true", help="remove the replies from the set")
    action.add_argument(
        "--check",
        action="store_true",
        help="change nothing: print problems of the replies in FILE, or those of the model's replies and how they do "
        "on everyday messages; exit code 1 if a problem is found",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write a copy of the model there instead")
    parser.add_argument("--overwrite", action="store_true", help="replace --out if it holds a run")
    parser.add_argument(
        "--keep-other-languages", action="store_true", help="also keep the model's replies in other languages"
    )
    parser.add_argument(
        "--on-finding",
        choices=(STOP, SKIP, KEEP),
        default=STOP,
        help="if the check finds a problem: stop (default), skip these replies, or keep them (but not empty ones and "
        "duplicates)",
    )
    parser.add_argument(
        "--guard-lists",
        type=Path,
        metavar="FOLDER",
        help="custom word lists for detecting toxic replies (docs/guard.md; default: the package's)",
    )
    parser.add_argument("--json", action="store_true", help="with --check: print JSON")
    parser.set_defaults(run=_index)


def _index(options: argparse.Namespace) -> int:
    if options.responses is None and not options.check:
        raise InputError("--responses: pass the file with the replies.")
    if options.check and (options.out is not None or options.on_finding != STOP):
        raise InputError("--check: changes nothing, so --out and --on-finding have no effect; leave them out.")
    if options.overwrite and options.out is None:
        raise InputError("--overwrite: needs --out; without --out the run itself is changed.")
    if options.keep_other_languages and (options.add or options.remove or options.check):
        raise InputError("--keep-other-languages: --add, --remove and --check keep them anyway; leave it out.")
    if options.json and not options.check:
        raise InputError("--json: needs --check.")
    local = Path(options.run_folder)
    if not local.is_dir() and options.out is None and not options.check:
        raise InputError(
            f"{options.run_folder}: not a local folder, and only those can be changed in place; pass --out."
        )
    from mrs_suggest.common.hub.baselines import resolve_model
    from mrs_suggest.suggest.own_replies.file import read_response_file
    from mrs_suggest.suggest.own_replies.sets import ADDED, BUILT, REMOVED, ResponseSets

    rows = None if options.responses is None else read_response_file(options.responses)
    sets = ResponseSets(resolve_model(options.run_folder))
    if rows is None:
        return _checked_model(sets, options)
    action = ADDED if options.add else REMOVED if options.remove else BUILT
    language = sets.language(options.language)
    findings = sets.check(rows, language, action, options.guard_lists)
    if options.check:
        return _print(findings, options, visible(options.responses), rows, language)
    if findings and options.on_finding == STOP:
        _print(findings, options, visible(options.responses), rows, language, file=sys.stderr)
        raise InputError(
            f"{options.responses}: {len(findings):,} findings in {len(rows):,} rows; correct them, or pass "
            f"--on-finding {SKIP} to leave these rows out, or {KEEP}."
        )
    if options.on_finding == SKIP:
        wrong = {finding.row for finding in findings}
        rows = [row for row in rows if row.number not in wrong]
    told = sets.change(
        rows, language, action, options.responses, options.out, options.overwrite, options.keep_other_languages
    )
    print(
        f"{language}: {told['replies']:,} replies ({told['new']:,} new, {told['gone']:,} gone), "
        f"ranked by {told['ranked']}"
    )
    if told["dropped"]:
        print(
            f"note: the model no longer answers in {' '.join(told['dropped'])}, where it has no replies of yours; "
            "--keep-other-languages keeps the model's.",
            file=sys.stderr,
        )
    if action != REMOVED:
        _print_held_back(rows, language, options.guard_lists)
    _everyday_report(options.out or local, options.guard_lists)(language)
    print(f"wrote {visible(options.out or options.run_folder)}")
    return 0


def _checked_model(sets: ResponseSets, options: argparse.Namespace) -> int:
    exit_code, report = 0, None if options.json else _everyday_report(sets.folder, options.guard_lists)
    for code in [options.language] if options.language else list(sets.indexes):
        rows = sets.rows(code)
        findings = sets.check(rows, code, lists=options.guard_lists)
        if report is not None:
            report(code)
        exit_code |= _print(findings, options, options.run_folder, rows, code)
    return exit_code


def _everyday_report(model: Path, lists: Path | None) -> Callable[[str], None]:
    """Print how the replies of a model in a language do on everyday messages."""
    from mrs_suggest.suggest.index.response_index import ResponseIndexes
    from mrs_suggest.suggest.suggester import Suggester

    suggester, indexes = Suggester.from_pretrained(model, guard=lists or True), ResponseIndexes(model)

    def report(language: str) -> None:
        for line in _shown_for_everyday(suggester, indexes[language].replies, language):
            print(line)

    return report


def _print(
    findings: Sequence[ResponseFinding], options: argparse.Namespace, where: str, rows: Sequence[ResponseRow],
    language: str, file: TextIO | None = None,
) -> int:  # fmt: skip
    """Print the findings; return the exit code of a check."""
    if options.json:
        found = [asdict(finding) for finding in findings]
        print(visible_json({"replies": where, "language": language, "rows": len(rows), "findings": found}))
        return 1 if findings else 0
    from rich.markup import escape

    if findings:
        table = make_table(">Row", "Finding", "Reply", "Found")
        for finding in findings:
            reply = finding.reply if len(finding.reply) <= 60 else finding.reply[:59] + "…"
            table.add_row(f"{finding.row:,}", finding.kind, escape(reply), escape(finding.told))
        make_console(110, **({"file": file} if file else {})).print(table)
    _print_held_back(rows, language, options.guard_lists, file)
    print(f"{where}, {language}: {len(rows):,} rows, {len(findings):,} findings", file=file or sys.stdout)
    return 1 if findings else 0


def _print_held_back(
    rows: Sequence[ResponseRow], language: str, folder: Path | None, file: TextIO | None = None
) -> None:
    from mrs_suggest.suggest.guard.guard import DATE, PLACE, unfit
    from mrs_suggest.suggest.guard.lists import GuardData

    lists = GuardData(folder).get(language)
    held = [row.reply for row in rows if unfit(row.reply, "", lists) in (DATE, PLACE)]
    for line in _named(language, "held back by the guard unless the message has the same date, time or place", held):
        print(line, file=file or sys.stdout)


def _named(language: str, told: str, replies: list[str]) -> list[str]:
    named = ", ".join(repr(visible(reply)) for reply in replies[:NAMED]) + (", ..." if len(replies) > NAMED else "")
    return [f"{language}: {told}: {len(replies):,} replies ({named})"] if replies else []


def _shown_for_everyday(suggester: Suggester, replies: list[str], language: str) -> list[str]:
    """Lines about the replies that are among the best three for most of the messages, or for none.

    Empty if mrs-everyday lacks the language.

    Args:
        replies: all that it has in the language.
    """
    from mrs_datasets.everyday.situations import TEXTS, read_situations
    from mrs_suggest.suggest.suggester import Suggester

    path = TEXTS / f"{language.partition('-')[0]}.txt"
    if not path.is_file():
        return []
    texts = [message for situation in read_situations(path) for message in situation.messages]
    asked = texts[:: len(texts) // MESSAGES][:MESSAGES]
    open_ones = Suggester(suggester.model, suggester.folder, guard=False)
    answers = open_ones.suggest(asked, language, min_score=0)
    shown = Counter(reply for answer in answers for reply in answer.replies)
    often = max(ALWAYS, LEAD * shown.total() / len(asked) / len(replies)) * len(asked)
    always = [reply for reply in replies if shown[reply] > often]
    never = [reply for reply in replies if not shown[reply]]
    answered = sum(answer.reason is None for answer in suggester.suggest(asked, language))
    told = f"{answered} of {len(asked)} everyday messages get a suggestion with the default --min-score and the guard"
    return [
        f"{language}: {told}",
        *_named(language, "among the best three for most of them", always),
        *_named(language, "never among the best three", never),
    ]
