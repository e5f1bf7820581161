"""`mrs demo`: a chat page that shows suggestions as a user sees them; `mrs demo publish` makes a Space of it."""

import argparse
from pathlib import Path

from mrs_suggest.cli.options import DEFAULT_MODEL, add_fallback, add_publish_options, change_of, publish_or_print
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="mrs demo",
        description="Serve a chat page with suggestions on this machine, for one model or for several side by side.",
    )
    _add_models(parser)
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 7860)")
    add_fallback(parser)
    parser.add_argument("--verify", action="store_true", help="also verify the SHA-256 of large model files")
    parser.set_defaults(run=_serve)
    publish = parser.add_subparsers().add_parser(
        "publish", help="publish the page as a Space of the hub, in one commit"
    )
    publish.add_argument("repo", metavar="ORG/NAME", help="the Space")
    _add_models(publish)
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    return parser


def _serve(options: argparse.Namespace) -> None:
    if options.port is not None and not 0 < options.port < 65536:
        raise InputError(f"--port {options.port}: expected 1 to 65535.")
    from mrs_suggest.serving.page.page import load_models, make_page, serve_page

    given = {name: getattr(options, name) for name in ("verify", "fallback", "fallback_share")}
    serve_page(make_page(load_models(options.model or [DEFAULT_MODEL], **given)), options.host, options.port)


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        metavar="MODEL",
        help="the folder that a training run wrote, a baseline, ORG/NAME, ORG/NAME@REVISION, openai:URL#MODEL or "
        f"openai:FILE.yaml; repeat it to compare models (default {DEFAULT_MODEL}, part of the package)",
    )


def _publish(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.baselines import read_baselines, resolve_model
    from mrs_suggest.common.hub.hub import is_repo_id, require_repo_id, split_revision
    from mrs_suggest.common.hub.publication import Publication
    from mrs_suggest.models.model_folder import open_model_folder
    from mrs_suggest.models.saved.families import publication
    from mrs_suggest.models.saved.record import read_record
    from mrs_suggest.serving.page.page_space import space_files
    from mrs_suggest.training.checked_card import checked_card

    require_repo_id(options.repo)
    change_of(options, options.repo)
    models: dict[str, dict[str, bytes | Path] | None] = {}
    for name in dict.fromkeys(options.model or [DEFAULT_MODEL]):
        baseline = None if Path(name).is_dir() else read_baselines().get(name)
        on_hub = not Path(name).is_dir() and is_repo_id(split_revision(name, None)[0])
        if on_hub or (baseline is not None and not baseline.embedded):
            models[baseline.repo_id if baseline else name] = None  # from where the Space takes it
            continue
        folder = resolve_model(name)
        open_model_folder(folder)
        models[name] = publication(folder, read_record(folder), options.repo, checked_card(folder, None)).files()
    space = Publication("space", options.repo, None, instead=space_files(options.repo, models), space_sdk="gradio")
    publish_or_print(space, options, f"https://huggingface.co/spaces/{options.repo}")
