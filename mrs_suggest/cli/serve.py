"""`mrs serve`: suggestions over HTTP."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from mrs_suggest.cli.options.suggester_options import add_model_options, add_silence_options, guard_of
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import MissingExtraError
from mrs_suggest.serving.settings import Settings

LEVELS = ("debug", "info", "warning", "error")
DEFAULTS = {field.name: field.default for field in fields(Settings) if field.default is not MISSING}
# option -> (type, help); the names are those of `Settings`
ANSWERING: dict[str, tuple[Callable[[str], object], str]] = {
    "host": (str, "address to listen on; 0.0.0.0 for all"),
    "port": (int, "0 takes a free one"),
    "workers": (int, "processes that share the port, each with the model"),
    "threads": (int, "of a worker's arithmetic (default 1)"),
    "max_batch": (int, "messages that the model answers at a time"),
    "max_batch_ms": (float, "milliseconds that answering a batch may take; larger batches are split"),
    "max_waiting": (int, "messages that may wait for the model; more get 429"),
    "max_body": (int, "bytes of a request"),
    "max_messages": (int, "messages of a request"),
    "max_characters": (int, "characters of a message"),
    "max_suggestions": (int, "suggestions that a request may ask for"),
    "max_connections": (int, "connections of a worker; more get 503"),
    "answer_seconds": (float, "a request whose answer takes longer gets 503"),
    "read_seconds": (
        float,
        "slower clients get 408 while sending a request, and are cut off while reading an answer",
    ),
    "idle_seconds": (int, "how long an unused connection stays open"),
    "stop_seconds": (int, "how long a stopping server waits for the requests that it took"),
}


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs serve", description=__doc__)
    add_model_options(parser)
    parser.add_argument("--name", help="name of the model in answers (default: as --model)")
    parser.add_argument("--verify", action="store_true", help="also verify the SHA-256 of large model files")
    add_silence_options(parser)
    for name, (kind, text) in ANSWERING.items():
        default = DEFAULTS[name]
        shown = "" if default is None else f" (default {default})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=text + shown)
    parser.add_argument(
        "--api-keys", type=Path, metavar="FILE", help="a key per line; also MRS_API_KEYS (default: none)"
    )
    parser.add_argument(
        "--admin-keys", type=Path, metavar="FILE", help="keys that may reload the model; also MRS_ADMIN_KEYS"
    )
    parser.add_argument(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of pages that may call, such as https://a.org; * for all",
    )
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="info has a line per request (default)")
    return parser


def main(argv: Sequence[str]) -> int:
    options = vars(make_parser().parse_args(argv))
    log_level, guard = options.pop("log_level"), guard_of(options.pop("guard"), options.pop("guard_lists"))
    settings = Settings(**{**options, "guard": guard, "cors": tuple(options["cors"])})
    try:
        from mrs_suggest.serving.server import serve
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("fastapi", "uvicorn", "starlette", "pydantic", "httptools", "prometheus_client"):
            raise
        raise MissingExtraError(package, "serve", "`mrs serve`") from None
    return serve(settings, log_level)
