"""Options that several verbs share, and their meaning: a model and its guard, an output place, publishing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import PASSED_ON
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.common.hub.publication import Publication
    from mrs_suggest.common.hub.publishing import Change
    from mrs_suggest.common.io.storage import Location

DEFAULT_MODEL = "everyday-retriever"


def say(line: str) -> None:
    """Print a line about the progress of a command, apart from its output."""
    print(visible(line), file=sys.stderr, flush=True)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help="the folder that a training run wrote, a baseline, ORG/NAME, ORG/NAME@REVISION, openai:URL#MODEL or "
        f"openai:FILE.yaml (default {DEFAULT_MODEL}, part of the package)",
    )
    parser.add_argument("--revision", help="revision of a hub model: a branch, a tag or a commit (default main)")


def add_silence_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--guard",
        choices=("on", "off"),
        default="on",
        help="on: no suggestions for sensitive messages, and none with slurs, private data, links, or dates and places "
        "that cannot be known (default); off: answer everything, as published figures are measured",
    )
    parser.add_argument("--guard-lists", type=Path, metavar="FOLDER", help="custom word lists (docs/guard.md)")
    parser.add_argument(
        "--precision",
        type=float,
        metavar="P",
        help="suppress suggestions whose estimated chance of being used is below P (calibrated on validation; see the "
        "model's card); default: answer every message",
    )


def add_fallback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fallback", metavar="MODEL", help="a model for messages of which the first is unsure")
    share = "share of the messages to pass on at most, as calibrated on validation (default %(default)s)"
    parser.add_argument("--fallback-share", type=float, default=PASSED_ON, metavar="P", help=share)


def guard_of(choice: str, lists: Path | None) -> bool | Path:
    """The value of `Suggester`'s guard; lists for a guard that is off are refused."""
    if lists is not None and choice == "off":
        raise InputError("--guard-lists: has no effect with --guard off; leave out one of them.")
    return (lists or True) if choice == "on" else False


def add_out_options(parser: argparse.ArgumentParser) -> None:
    """`--out` and `--scratch`, for `out_location`."""
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder to write; or a URL, with --scratch")
    parser.add_argument("--scratch", metavar="FOLDER", help="local folder for intermediate files, if --out is a URL")


def out_location(text: str, scratch: str | None) -> Location:
    """The place that `--out` (`text`) and `--scratch` name; InputError if it is not writable."""
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import is_url, location, require_writable

    if not is_url(text):
        if scratch is not None:
            raise InputError(
                f"--scratch {masked(scratch)}: applies only if --out is a URL; local builds use a folder next to --out."
            )
        return Path(text)
    if scratch is None or is_url(scratch):
        raise InputError(
            f"--out {masked(text)}: files are built on this machine before they are uploaded; pass a local folder with "
            "--scratch FOLDER."
        )
    out = location(text, Path(scratch).absolute())
    if text.startswith("memory:"):
        raise InputError(f"--out {text}: would be lost when this command ends; pass another folder.")
    require_writable(out)
    return out


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """`--private`, `--commit-message`, `--create-pr`, `--tag` and `--dry-run`."""
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--commit-message", metavar="TEXT", help="commit message: a title, then lines of description")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request; main stays as it is")
    parser.add_argument("--tag", metavar="NAME", help="tag the commit, for ORG/NAME@NAME")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the files, those left out and why, and the card; upload nothing"
    )


def change_of(options: argparse.Namespace, repo_id: str) -> Change:
    """The commit that the options describe; an empty message or an invalid tag is refused before anything is read."""
    from mrs_suggest.common.hub.publishing import Change

    default = f"Publish {repo_id.rpartition('/')[2]}"
    message = default if options.commit_message is None else options.commit_message
    return Change(message, options.private or None, options.create_pr, options.tag)


def publish_or_print(what: Publication, options: argparse.Namespace, then: str) -> None:
    """Publish in one commit, or print what would be published."""
    from mrs_suggest.common.hub.publication import describe
    from mrs_suggest.common.hub.publishing import publish

    change = change_of(options, what.repo_id)
    if options.dry_run:
        print(describe(what))
        say("--dry-run: nothing was uploaded")
        return
    published = publish(what, change)
    if stays := what.left_behind():
        print(f"stays behind: {', '.join(map(visible, stays))} (--dry-run shows why)")
    if published.pull_request:
        print(f"opened {published.pull_request} at {published.commit[:12]}")
    elif options.create_pr:
        print(f"{what.repo_id} holds the same files at {published.commit[:12]}; no pull request was needed")
    else:
        tag = f" (tag {options.tag})" if options.tag else ""
        print(f"published {what.repo_id} at {published.commit[:12]}{tag}: {then}")
