"""`python -m mrs_suggest.integrations.mteb`: the command line of MTEB, which here also knows MRS and local retrievers.

Two options are ours, all others MTEB's own: `--data` (a prepared folder, a hub id, or `sample`, the default) and
`--data-revision`. `-m` also takes a folder and a baseline such as `sample-retriever`:

    $ python -m mrs_suggest.integrations.mteb run -m sample-retriever -t MrsReplyReranking -l spa --output-folder
    build/mteb
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.common.hub import hub


def main(argv: Sequence[str] | None = None) -> int:
    """Run MTEB's command line; its exit code, 2 after one sentence about data or a model that cannot be used."""
    return run_with_sentence(
        "mrs_suggest.integrations.mteb", lambda: _run(sys.argv[1:] if argv is None else list(argv))
    )


def _run(argv: list[str]) -> int:
    ours = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ours.add_argument("--data", default="sample")
    ours.add_argument("--data-revision")
    ours.add_argument("-m", "--model")
    known, _ = ours.parse_known_args(argv)
    from .tasks import task_classes  # says which extra is missing

    classes = task_classes(known.data, known.data_revision)

    from mteb.cli.build_cli import build_cli
    from mteb.get_tasks import _TASKS_REGISTRY
    from mteb.models.model_implementations import MODEL_REGISTRY

    from .retrievers import register_retriever

    # MTEB looks a task up by name in this dictionary, and has no function that adds one.
    _TASKS_REGISTRY.update({task.metadata.name: task for task in classes})
    if known.model and known.model not in MODEL_REGISTRY:
        if hub.is_repo_id(known.model) and not Path(known.model).is_dir():
            hub.require_there("model", known.model)
        else:
            register_retriever(known.model, MODEL_REGISTRY)
    options = build_cli().parse_args(_without(argv, ("--data", "--data-revision")))
    options.func(options)
    return 0


def _without(argv: list[str], options: tuple[str, ...]) -> list[str]:
    """The arguments without some options and their values."""
    kept, skip = [], False
    for argument in argv:
        if skip or argument in options:
            skip = not skip
        elif not argument.startswith(tuple(f"{option}=" for option in options)):
            kept.append(argument)
    return kept


if __name__ == "__main__":
    sys.exit(main())
