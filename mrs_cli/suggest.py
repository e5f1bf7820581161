"""`mrs suggest`: three replies to each message."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mrs_core.baselines import resolve_model
from mrs_core.errors import ArgumentError, InputError
from mrs_core.predictions import SUGGESTIONS
from mrs_core.text import visible, visible_json

if TYPE_CHECKING:
    from mrs_models.suggester import Suggester

DEFAULT_MODEL = "sample-retriever"


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs suggest", description=__doc__)
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help="the folder that a training run wrote, a baseline, ORG/NAME, or ORG/NAME@REVISION "
        f"(default {DEFAULT_MODEL}, part of the package)",
    )
    parser.add_argument("--revision", help="revision of a hub model: a branch, a tag or a commit (default main)")
    parser.add_argument("--lang", required=True, help="the language of the messages")
    parser.add_argument("--interactive", action="store_true", help="read messages from standard input, one per line")
    parser.add_argument("--json", action="store_true", help="print one JSON object per message")
    parser.add_argument(
        "--count", type=int, default=SUGGESTIONS, help=f"suggestions per message (default {SUGGESTIONS}, section 3.3)"
    )
    parser.add_argument("--verify", action="store_true", help="also verify the SHA-256 of large model files")
    parser.add_argument("message", nargs="*", help="the messages to answer")
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    if bool(options.message) == options.interactive:
        raise InputError("pass either messages to answer or --interactive.")
    if any(not message.strip() for message in options.message):
        raise InputError("a message is empty; there is nothing to answer.")
    if options.count < 1:
        raise InputError(f"--count {options.count}: expected 1 or more.")
    from mrs_models.suggester import Suggester

    suggester = Suggester.load(resolve_model(options.model, options.revision), verify=options.verify)
    try:
        return _answer(suggester, options)
    except ArgumentError as error:
        raise error.as_option({"language": "--lang", "k": "--count"}) from None


def _answer(suggester: Suggester, options: argparse.Namespace) -> int:
    suggester.require_language(options.lang)
    if not options.json:  # there, every object names the model
        print(f"model: {visible(options.model)}", file=sys.stderr)
    messages = _typed_messages() if options.interactive else iter(options.message)
    for message in (os.fsencode(message).decode("utf-8", "replace") for message in messages):
        if not message.strip() and not options.json:
            continue
        suggestions = suggester.suggest([message], options.lang, options.count)[0]
        if options.json:
            found = [{"reply": s.reply, "score": round(s.score, 6)} for s in suggestions]
            line = {"message": message, "lang": options.lang, "model": str(options.model), "suggestions": found}
            print(visible_json(line), flush=True)
        else:
            print(f"> {visible(message)}")
            for number, suggestion in enumerate(suggestions, start=1):
                print(f"  {number}. {visible(suggestion.reply)}", flush=True)
    return 0


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
