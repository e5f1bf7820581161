"""One run of any task, from options to a published model: fit, evaluate, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_core.launcher import end_with_launcher
from mrs_core.text import visible
from mrs_training.export import publish_run, repository_to_publish, write_model, write_run
from mrs_training.fit import fit
from mrs_training.memory import out_of_memory_told
from mrs_training.recipe import Built, Data, Options, Recipe

if TYPE_CHECKING:
    from transformers import TrainingArguments


def train(recipe: Recipe[Options, Data, Built], options: Options, training: TrainingArguments) -> None:
    """Train, keep the best checkpoint, evaluate it if the task does, and write the folder of the run."""
    end_with_launcher()
    repo_id = repository_to_publish(training)
    fitted = fit(recipe, options, training)
    if not fitted.writes:
        return
    with out_of_memory_told(lambda: f"in the evaluation; {recipe.saves_memory(fitted.options, training, False)}"):
        fitted = write_model(recipe, fitted)  # before hours of evaluation
        evaluation = recipe.evaluate(fitted)
    record = write_run(recipe, fitted, evaluation)
    recipe.show(record)
    folder = fitted.run.folder
    written = ["model", "run.json", "curves.png", *([evaluation.files_told] if evaluation.files_told else [])]
    print(f"wrote {visible(folder)}: {', '.join(written)}")
    if repo_id:
        publish_run(folder, repo_id, record, recipe.family, training)
