"""`python -m mrs_suggest.integrations.mteb`: the command line of MTEB, which here also knows MRS and local retrievers.

Two options are ours, all others MTEB's own: `--data` (a prepared folder, a hub id, or `sample`, the default) and
`--data-revision`. `-m` also takes a folder and a baseline such as `everyday-retriever`:

    $ python -m mrs_suggest.integrations.mteb run -m everyday-retriever -t MrsReplyReranking -l spa --output-folder
    build/mteb
"""

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
    known, theirs = ours.parse_known_args(argv)
    naming = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    naming.add_argument("-m", "--model")
    model = naming.parse_known_args(theirs)[0].model
    from .tasks import task_classes  # says which extra is missing

    classes = task_classes(known.data, known.data_revision)

    from mteb.cli.build_cli import build_cli
    from mteb.get_tasks import _TASKS_REGISTRY
    from mteb.models.model_implementations import MODEL_REGISTRY

    from .retrievers import register_retriever

    # MTEB looks a task up by name in this dictionary, and has no function that adds one.
    _TASKS_REGISTRY.update({task.metadata.name: task for task in classes})
    if model and model not in MODEL_REGISTRY:
        if hub.is_repo_id(model) and not Path(model).is_dir():
            hub.require_there("model", model)
        else:
            register_retriever(model, MODEL_REGISTRY)
    options = build_cli().parse_args(theirs)
    options.func(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
