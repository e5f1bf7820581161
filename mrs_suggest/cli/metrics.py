"""`mrs metrics`: list the metric modules, publish them as Spaces of the Hugging Face hub."""

import argparse
from collections.abc import Sequence

from mrs_metrics.spaces import metric_names, metric_title, space_files
from mrs_suggest.cli.options import add_publish_options, publish_or_print
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs metrics", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="print the metric modules")
    listing.set_defaults(run=_list)
    publish = verbs.add_parser("publish", help='publish them, for `evaluate.load("ORG/NAME")`')
    publish.add_argument("organization", metavar="ORG", help="the hub organisation or user that will own the Spaces")
    publish.add_argument("names", metavar="NAME", nargs="*", help=f"any of {', '.join(metric_names())} (default: all)")
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    return parser


def main(argv: Sequence[str]) -> int:
    parser = make_parser()
    options, more = parser.parse_known_args(argv)
    if more and (options.verb != "publish" or any(word.startswith("-") for word in more)):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:  # `publish ORG --private NAME`: by then argparse has consumed the list of names
        options.names += more
    options.run(options)
    return 0


def _list(options: argparse.Namespace) -> None:
    width = max(map(len, metric_names()))
    for name in metric_names():
        print(f"{name:<{width}}  {metric_title(name)}")


def _publish(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.hub import require_repo_id
    from mrs_suggest.common.hub.publication import Publication

    names = list(dict.fromkeys(options.names)) or metric_names()
    if unknown := [name for name in names if name not in metric_names()]:
        raise InputError(f"unknown metric {unknown[0]!r}; expected one of {', '.join(metric_names())}.")
    for name in names:
        require_repo_id(f"{options.organization}/{name}")
    for name in names:
        repo_id = f"{options.organization}/{name}"
        space = Publication("space", repo_id, None, instead=space_files(name, options.organization), space_sdk="gradio")
        publish_or_print(space, options, f'evaluate.load("{repo_id}")')
