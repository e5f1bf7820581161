"""The options of the publishing verbs, and the choice between sending and printing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.common.hub.publication import Publication
    from mrs_suggest.common.hub.publishing import Change


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """`--private`, `--commit-message`, `--create-pr`, `--tag` and `--dry-run`."""
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--commit-message", metavar="TEXT", help="commit message: a title, then lines of description")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request; main stays as it is")
    parser.add_argument("--tag", metavar="NAME", help="tag the commit, for ORG/NAME@NAME")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the files, what stays behind and why, and the card; send nothing"
    )


def change_of(options: argparse.Namespace, repo_id: str) -> Change:
    """The commit that the options describe; an empty message or an invalid tag is refused before anything is read."""
    from mrs_suggest.common.hub.publishing import Change

    default = f"Publish {repo_id.rpartition('/')[2]}"
    message = default if options.commit_message is None else options.commit_message
    return Change(message, options.private or None, options.create_pr, options.tag)


def publish_or_print(what: Publication, options: argparse.Namespace, then: str) -> None:
    """Publish in one commit, or print what would be published.

    Args:
        then: how to use what was published, printed at the end.
    """
    from mrs_suggest.common.hub.publication import describe
    from mrs_suggest.common.hub.publishing import publish

    change = change_of(options, what.repo_id)
    if options.dry_run:
        print(describe(what))
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
