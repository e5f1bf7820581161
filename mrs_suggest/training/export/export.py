"""The last part of a run: the model's files, the record, curves and card, and the push to the hub."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.common.hub.publishing import Change, publish
from mrs_suggest.common.io.files import atomic_write, umask
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.models.adapters import has_lora, merge_lora, save_adapter
from mrs_suggest.training.export.allowlist import ADAPTER_FOLDER, CURVE_POINTS, CURVES
from mrs_suggest.training.export.base_model import base_license, started_from
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.export.curves import curve_points, draw_curves
from mrs_suggest.training.export.family import Family
from mrs_suggest.training.recipe import Built, Data, Evaluation, Fitted, Options, Recipe
from mrs_suggest.training.run import run_record, write_record

if TYPE_CHECKING:
    from transformers import TrainingArguments


def write_model(
    recipe: Recipe[Options, Data, Built], fitted: Fitted[Options, Data, Built]
) -> Fitted[Options, Data, Built]:
    """Write the adapters, if any were trained, and the model; return the run with its parts completed."""
    model, options, folder = fitted.parts.model, fitted.options, fitted.run.folder
    model.eval()
    if has_lora(model):
        base = options.model_name_or_path, options.model_revision
        save_adapter(model, folder / ADAPTER_FOLDER, *base, fitted.training.seed)
        recipe.save_beside_adapter(fitted.parts, folder / ADAPTER_FOLDER)
        merge_lora(model)
    fitted = replace(fitted, parts=recipe.complete(fitted))
    fitted.run.reopen()
    recipe.save(fitted.parts, folder)
    return fitted


def write_run(
    recipe: Recipe[Options, Data, Built], fitted: Fitted[Options, Data, Built], evaluation: Evaluation
) -> Record:
    """Write the evaluation's files, the curves, the card, and last the record; the model is written already."""
    options, training, folder = fitted.options, fitted.training, fitted.run.folder
    record = run_record(
        trainer=recipe.family.name,
        options=(options, training),
        seed=training.seed,
        facts=fitted.facts,
        state=fitted.state,
        figures=evaluation.figures,
        milliseconds=evaluation.milliseconds,
        seconds=time.time() - fitted.started,
    )
    record["started_from"] = started_from(options.model_name_or_path, options.model_revision)
    record["base_license"] = base_license(options.model_name_or_path, options.model_revision)
    for name, write in evaluation.files.items():
        write(folder / name)
    with suppress(OSError):
        (folder / "eval").rmdir()  # the trainer's, empty
    chosen = str(training.metric_for_best_model)
    shown = recipe.curves or {chosen: chosen.replace("_", " ")}
    draw_curves(fitted.state.log_history, record["best_step"], folder / CURVES, shown)
    points = curve_points(fitted.state.log_history, record["best_step"], shown)
    atomic_write(folder / CURVE_POINTS, json.dumps(finite_json(points)) + "\n")
    _make_readable(folder)
    write_record(folder, record, recipe.family)
    return record


def repository_to_publish(training: TrainingArguments) -> str | None:
    """The repository to publish to, checked before hours of training; the library's own push stays off."""
    if not training.push_to_hub:
        return None
    training.push_to_hub = False
    if not training.hub_model_id:
        raise InputError("--push_to_hub needs --hub_model_id ORG/NAME.")
    hub.require_repo_id(training.hub_model_id)
    if training.process_index == 0:
        hub.require_token(training.hub_model_id, training.hub_token)
    return training.hub_model_id


def publish_run(folder: Path, repo_id: str, record: Record, family: Family, training: TrainingArguments) -> None:
    """Publish a finished run.

    Raises:
        InputError: the hub refused or is unreachable; the run itself is complete.
    """
    change = Change(f"Train a model ({family.name})", training.hub_private_repo)
    try:
        what = family.publication(folder, repo_id, family.render(record, repo_id))
        commit = publish(what, change, training.hub_token).commit
    except InputError as error:
        raise InputError(
            f"{error} The run is complete: `mrs models publish {folder} --repo {repo_id}` publishes it."
        ) from None
    print(f"published {repo_id} at {commit[:12]}")


def _make_readable(folder: Path) -> None:
    """Weights are written readable by their owner only; give them the permissions of any new file."""
    mode = 0o666 & ~umask()
    for path in folder.rglob("*.safetensors"):
        path.chmod(mode)
