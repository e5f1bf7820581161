"""What the publishing verbs share: their options, and the choice between sending and printing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrs_core.hub import Publication


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """`--private` and `--dry-run`."""
    parser.add_argument("--private", action="store_true", help="create a new repository as a private one")
    parser.add_argument("--dry-run", action="store_true", help="print the files and the card, send nothing")


def publish_or_print(what: Publication, options: argparse.Namespace, then: str) -> None:
    """Publish in one commit, or print what would be published.

    Args:
        then: how the published thing is used, printed at the end.
    """
    from mrs_core import hub

    if options.dry_run:
        print(hub.describe(what))
        return
    commit = hub.publish(what, f"Publish {what.repo_id.rpartition('/')[2]}", options.private or None)
    print(f"published {what.repo_id} at {commit[:12]}: {then}")
