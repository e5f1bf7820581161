"""`mrs suggest`: three replies to each message."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.cli.options import add_fallback, add_model_options, add_silence_options, guard_of
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import ArgumentError, InputError, require_least
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import visible, visible_json
from mrs_suggest.suggest.answer_json import answer_json, assumed_language, unclear_language
from mrs_suggest.suggest.conversation import Conversation, read_conversation
from mrs_suggest.suggest.guard import HELD_BACK, NO_REPLIES, OWN_MESSAGE, REASONS, UNCLEAR, UNLIKELY

if TYPE_CHECKING:
    from mrs_suggest.suggest.answering import Answer, Suggestion
    from mrs_suggest.suggest.suggester import Suggester


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs suggest", description=__doc__)
    add_model_options(parser)
    parser.add_argument(
        "--language", "--lang", help="the language of the messages (default: detected, message by message)"
    )
    parser.add_argument("--interactive", action="store_true", help="read messages from standard input, one per line")
    parser.add_argument(
        "--conversation",
        metavar="FILE",
        help='a JSON list of turns, oldest first, to answer: [{"from": "them" or "me", "text": ...}, ...]; '
        "-: standard input",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per message")
    parser.add_argument(
        "--count", type=int, default=SUGGESTIONS, help=f"suggestions per message (default {SUGGESTIONS}, as in MRS)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="show how each suggestion was scored (models with a ranker only)"
    )
    for verb, what in (
        ("allow", "suggest only replies with this tag, or with another allowed one"),
        ("deny", "suggest no reply with this tag"),
    ):
        parser.add_argument(
            f"--{verb}-tag", action="append", default=[], metavar="TAG", help=f"{what}; may be repeated"
        )
    add_silence_options(parser)
    add_fallback(parser)
    parser.add_argument(
        "--min-score",
        type=float,
        metavar="S",
        help="leave out suggestions with a score below S, 0 to 1 (docs/response_sets.md); default: no limit for the "
        "replies that a model was trained with, and a low one for your own",
    )
    parser.add_argument("--verify", action="store_true", help="also verify the SHA-256 of large model files")
    parser.add_argument("message", nargs="*", help="the messages to answer")
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> None:
    if bool(options.message) + options.interactive + (options.conversation is not None) != 1:
        raise InputError("pass either messages to answer, --conversation or --interactive.")
    if any(not message.strip() for message in options.message):
        raise InputError("a message is empty; there is nothing to answer.")
    require_least(options, 1, "count")
    conversation = _read_conversation(options.conversation) if options.conversation is not None else None
    from mrs_suggest.suggest.suggester import Suggester

    guard = guard_of(options.guard, options.guard_lists)
    more = guard, options.precision, options.fallback, options.fallback_share
    suggester = Suggester.from_pretrained(options.model, options.revision, options.verify, *more)
    try:
        _answer(suggester, options, conversation)
    except ArgumentError as error:
        options_of = {"language": "--language", "k": "--count", "allow": "--allow-tag", "deny": "--deny-tag"}
        options_of["min_score"] = "--min-score"
        raise error.as_option(options_of) from None
    if options.fallback is not None:
        told = (f"{key} {value:g}" for key, value in suggester.model.usage().items())
        print(f"fallback: {', '.join(told)}", file=sys.stderr)


def _read_conversation(name: str) -> Conversation:
    where = "--conversation" if name == "-" else f"--conversation {visible(name)}"
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        turns = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as JSON ({error}); expected a list of turns in UTF-8.") from None
    if not isinstance(turns, list):
        raise InputError(f"{where}: expected a JSON list of turns, found {type(turns).__name__}.")
    try:
        conversation = read_conversation(turns)
    except ArgumentError as error:
        raise error.as_option({"messages": where}) from None
    if not conversation.mine and not conversation.message.strip():
        raise InputError(f"{where}: their last message is empty; there is nothing to answer.")
    return conversation


def _answer(suggester: Suggester, options: argparse.Namespace, conversation: Conversation | None) -> None:
    tags, least = (options.allow_tag, options.deny_tag), options.min_score
    # Refuses wrong options before a message is read.
    suggester.suggest([], options.language, options.count, *tags, min_score=least)
    if options.language is None and len(options.message) != 1:
        suggester.detect("")  # refuses a model without a detector
    elif options.language is None and suggester.sure_language(message := _as_text(options.message[0])) is None:
        raise InputError(_unsure(suggester, message))
    named = options.json  # there, every object names the model
    if not named and options.interactive:
        named = _name_model(options)
    texts = map(_as_text, _typed_messages() if options.interactive else options.message)
    for asked in [conversation] if conversation is not None else texts:
        message = asked if isinstance(asked, str) else asked.message
        if isinstance(asked, str) and not message.strip() and not options.json:
            continue
        (answer,) = suggester.suggest([asked], options.language, options.count, *tags, min_score=least)
        if answer.reason == UNCLEAR and conversation is not None:
            raise InputError(_unsure(suggester, message))
        named = named or _name_model(options)  # a model that cannot answer gets its one sentence alone
        if options.json:
            line = answer_json(message, answer.language, str(options.model), answer, options.explain)
            print(visible_json(line), flush=True)
        elif answer.reason == OWN_MESSAGE:
            print("(nothing is suggested: the last message is yours)")
        elif answer.reason == UNCLEAR:
            print(f"mrs suggest: {_unsure(suggester, message)}", file=sys.stderr)
        else:
            if answer.among:
                print(f"note: {visible(message)}: {assumed_language(answer)}", file=sys.stderr)
            print(f"> {visible(message)}" + ("" if options.language else f"  [{answer.language}]"))
            if answer.reason:
                print(f"  {_silence(answer, suggester, conversation is not None)}", flush=True)
            for number, suggestion in enumerate(answer, start=1):
                told = f"   ({_told(suggestion)})" if options.explain else ""
                print(f"  {number}. {visible(suggestion.reply)}{told}", flush=True)


def _name_model(options: argparse.Namespace) -> bool:
    print(f"model: {visible(options.model)}", file=sys.stderr)
    return True


def _silence(answer: Answer, suggester: Suggester, conversation: bool) -> str:
    """Why a message or a conversation is not answered, or only with a neutral set."""
    if answer.reason == UNLIKELY:
        return f"(nothing is suggested: a suggestion would be used with a probability of {answer.used or 0:.2f})"
    if answer.reason == NO_REPLIES:
        if answer.language not in suggester.languages:
            return f"(nothing is suggested: the model has no replies in {answer.language})"
        fit = "fits and was not sent before" if conversation else "fits a message like this one"
        return f"(nothing is suggested: no reply of the model {fit})"
    if answer.reason == HELD_BACK:
        return (
            "(nothing is suggested: the replies have a slur, private data, a link, or a date, time or place that the "
            "message lacks; --guard off shows them)"
        )
    about = REASONS.get(answer.reason or "", answer.reason)
    what = "only the neutral set of your lists is shown" if answer else "nothing is suggested"
    which = "conversation" if conversation else "message"
    return f"({what}: the {which} seems to be about {about}; --guard off answers it)"


def _told(suggestion: Suggestion) -> str:
    """The score, the source, and the share that each part of a ranker has in the mixed score, the largest first."""
    parts = sorted(suggestion.parts.items(), key=lambda part: -abs(part[1]))
    source = [f"source {suggestion.source}"] if suggestion.source else []
    shown = (f"{name} {value:+.2f}" for name, value in parts if value)
    return "; ".join([f"score {suggestion.score:.3g}", *source, *shown])


def _unsure(suggester: Suggester, message: str) -> str:
    """A sentence about a message whose language is not clear."""
    return f"{visible(message)}: {unclear_language(suggester, message, '--language')}"


def _as_text(message: str) -> str:
    return os.fsencode(message).decode("utf-8", "replace")


def _typed_messages() -> Iterator[str]:
    """Lines of standard input, with a prompt if they are typed."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    person = sys.stdin.isatty()
    if person:
        print("Type a message and press Enter; Ctrl-D ends.", file=sys.stderr)
    while True:
        if person:
            print("message: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.rstrip("\r\n")
