"""`mrs serve`: suggestions over HTTP."""

import argparse
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from mrs_suggest.cli.options import DEFAULT_MODEL, add_fallback, add_silence_options, guard_of
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.serving.settings import Settings

LEVELS = ("debug", "info", "warning", "error")
DEFAULTS = {field.name: field.default for field in fields(Settings) if field.default is not MISSING}
# option -> (type, help); the names are those of `Settings`
ANSWERING: dict[str, tuple[Callable[[str], object], str]] = {
    "host": (str, "address to listen on; 0.0.0.0 for all"),
    "port": (int, "port to listen on; 0 picks a free one"),
    "workers": (int, "processes that share the port, each with the model"),
    "threads": (int, "threads of each worker for arithmetic"),
    "max_batch": (int, "messages that the model answers at a time"),
    "max_waiting": (int, "messages that may wait for the model; more get 429"),
    "max_messages": (int, "messages in a request"),
    "max_characters": (int, "characters in a message"),
    "max_connections": (int, "connections to a worker; more get 503"),
    "requests_per_minute": (
        float,
        "requests a minute of a key without a limit of its own, or without keys of all callers; 0: no limit",
    ),
    "answer_seconds": (float, "seconds for an answer, after which the request gets 503"),
    "read_seconds": (float, "seconds for a client to send its request (then 408) or to read its answer"),
}


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs serve", description=__doc__)
    parser.add_argument(
        "--model",
        action="append",
        dest="models",
        metavar="[NAME=]MODEL",
        help="the folder that a training run wrote, a baseline, ORG/NAME, ORG/NAME@REVISION, openai:URL#MODEL or "
        f"openai:FILE.yaml, and its name in answers; may be repeated (default {DEFAULT_MODEL}, part of the package)",
    )
    parser.add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="NAME=WEIGHT",
        help="divide sessions among models, such as --traffic old=90 --traffic new=10 (default: all go to the first); "
        "new=shadow asks a model without showing its answers",
    )
    parser.add_argument(
        "--feedback", metavar="PLACE",
        help="keep answers, without texts, and what people choose in this SQLite file or postgresql://USER@HOST/DATABASE",
    )  # fmt: skip
    parser.add_argument(
        "--feedback-texts", action="store_true", help="keep the texts that people sent, too, if clients report them"
    )
    parser.add_argument("--verify", action="store_true", help="also verify the SHA-256 of large model files")
    add_silence_options(parser)
    add_fallback(parser)
    for name, (kind, text) in ANSWERING.items():
        default = DEFAULTS[name]
        help_text = f"{text} (default {default})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=help_text)
    parser.add_argument(
        "--api-keys", type=Path, metavar="FILE",
        help="keys of callers, one per line, each perhaps followed by its requests a minute; MRS_API_KEYS adds to them",
    )  # fmt: skip
    parser.add_argument(
        "--admin-keys", type=Path, metavar="FILE", help="keys that may reload the model; MRS_ADMIN_KEYS adds to them"
    )
    parser.add_argument(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin whose pages may call the server, such as https://a.org; * for all",
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="lowest level to log (default info, one line per request)"
    )
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    guard = guard_of(options.guard, options.guard_lists)
    given: dict[str, Any] = {field.name: getattr(options, field.name) for field in fields(Settings)}
    given |= {"guard": guard, "traffic": tuple(options.traffic), "cors": tuple(options.cors)}
    settings = Settings(**given | {"models": tuple(options.models or [DEFAULT_MODEL])})
    from mrs_suggest.serving.server import serve

    return serve(settings, options.log_level)
