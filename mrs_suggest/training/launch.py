"""One run of any task, from options to a published model: fit, evaluate, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.launcher import end_with_launcher
from mrs_suggest.common.text.text import visible
from mrs_suggest.training.callbacks.memory import out_of_memory_told
from mrs_suggest.training.callbacks.trackers import inside
from mrs_suggest.training.estimate import estimate, print_estimate
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.export.export import publish_run, repository_to_publish, write_model, write_run
from mrs_suggest.training.fit import fit
from mrs_suggest.training.recipe import Built, Data, Fitted, Options, Recipe

if TYPE_CHECKING:
    from transformers import TrainingArguments


def train(recipe: Recipe[Options, Data, Built], options: Options, training: TrainingArguments) -> None:
    """Train, keep the best checkpoint, evaluate it if the task does, and write the folder of the run."""
    end_with_launcher()
    if options.estimate:
        print_estimate(estimate(recipe, options, training))
        return
    repo_id = repository_to_publish(training)
    if repo_id and options.skip_test:
        raise InputError("--skip_test: leaves out the figures of a published model's card; leave --push_to_hub out.")
    with inside(Path(training.output_dir or "."), training.report_to or (), training.project):
        fitted = fit(recipe, options, training)
        try:
            record = _finish(recipe, fitted)
        finally:
            fitted.trackers.close()
    if record and repo_id:
        publish_run(fitted.run.folder, repo_id, record, recipe.family, training)


def _finish(recipe: Recipe[Options, Data, Built], fitted: Fitted[Options, Data, Built]) -> Record | None:
    """Evaluate, and write the folder; None in a process that does not."""
    if not fitted.writes:
        return None
    options, training, skips = fitted.options, fitted.training, fitted.options.skip_test
    with out_of_memory_told(lambda: f"in the evaluation; {recipe.saves_memory(options, training, False)}"):
        fitted = write_model(recipe, fitted)  # before hours of evaluation
        evaluation = recipe.validated(fitted) if skips else recipe.evaluate(fitted)
    record = write_run(recipe, fitted, evaluation)
    fitted.trackers.tell(record)
    if not skips:
        recipe.show(record)
    folder = fitted.run.folder
    written = ["model", "run.json", "curves.png", *([evaluation.files_told] if evaluation.files_told else [])]
    print(f"wrote {visible(folder)}: {', '.join(written)}")
    return record
