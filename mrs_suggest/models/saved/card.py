"""The card of a trained model of any task, from its `run.json` and nothing else; a task may add sections."""

from collections.abc import Iterable, Sequence
from typing import Any

from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.hub.hub import is_repo_id
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.report.cards import markdown_table, render_card
from mrs_suggest.models.saved.record import ADAPTER_FOLDER, Record
from mrs_suggest.models.starting_points import FROM_SCRATCH

TEMPLATE = "model.md"
SHOWN = (
    "peft", "lora_rank", "lora_alpha", "patience", "per_device_train_batch_size", "gradient_accumulation_steps",
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "fp16", "bf16", "seed",
)  # fmt: skip
SPLITS = ("train", "validation", "test")
CURVES = "![Training loss and validation figures](curves.png)"
FREE = ("cc0-1.0",)  # licences of data that ask for nothing
NO_NAMES = ("other", "unknown")  # the hub's values for a licence without a name


def card_texts(template: str) -> dict[str, Any]:
    """The sentences of a template's cards that depend on the run, by their names in `card_texts.yaml`."""
    return read_packaged("mrs_suggest.models.saved", "card_texts.yaml")[template]


def model_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a trained model of a task without its own template."""
    values = {
        "title": f"{record['trainer']}, {record['data']['title']}",
        "base_model": base_model(record, "scratch"),
        "figures": _figures(record),
    }
    return run_card(TEMPLATE, record, repo_id, adapter, values, {"tags": [record["trainer"]]})


def run_card(
    template: str,
    record: Record,
    repo_id: str | None,
    adapter: bool,
    values: dict[str, str],
    front: Record,
    validation: str = "",
    shown: Iterable[str] = SHOWN,
) -> str:
    """A family's card: its template with its own values and those that all cards have.

    Args:
        values: of the template, with the `title` before the model has a name on the hub; they replace shared ones.
        front: of the YAML; `tags` come after those of the library.
    """
    data, library = record["data"], "peft" if adapter else "transformers"
    own = {"library_name": library, **front, "tags": [library, "mrs", *front["tags"]]}
    shared = {
        "base_model": base_model(record, "a small model that was built for it"),
        "data": data_of(data),
        "steps": steps_of(record, validation),
        **shared_values(record, repo_id, adapter, shown),
    }
    every = licence_front(record) | own | base_front(record, adapter)
    every |= {"datasets": [data["id"]]} if "revision" in data else {}
    return render_card(template, every, shared | values | {"title": (repo_id or values["title"]).rpartition("/")[2]})


def shared_values(
    record: Record, repo_id: str | None, adapter: bool, shown: Iterable[str] = SHOWN, columns: Sequence[str] = SPLITS
) -> dict[str, str]:
    """The sections that the cards of all tasks have."""
    arguments = record["arguments"]
    adapters = arguments.get("peft") == "lora"
    settings = [
        key for key in shown if arguments.get(key) not in (None, "") and (adapters or not key.startswith("lora_"))
    ]
    contact = "Whoever gave you this folder; for a model on the hub, the discussions of its repository."
    if repo_id is not None:
        contact = f"The [discussions of this repository](https://huggingface.co/{repo_id}/discussions)."
    return {
        "where": repo_id or "PATH",
        "settings_table": markdown_table(["setting", "value"], [[f"`{key}`", str(arguments[key])] for key in settings]),
        "rows_table": markdown_table(
            ["rows", *columns],
            [
                [config, *(f"{counts[column]:,}" if column in counts else "" for column in columns)]
                for config, counts in record["data"]["rows"].items()
            ],
        ),
        "curves": CURVES,
        "environment": _environment(record),
        "sizes": sizes(record, adapter),
        "footprint": f"The run took {record['seconds']:,.0f} s of wall-clock time on this hardware, evaluation "
        "included; energy and emissions were not measured.",
        "licence": licence_section(record),
        "contact": contact,
    }


def steps_of(record: Record, validation: str = "") -> str:
    """The length of a run and the checkpoint that was kept; `validation` names the languages that chose it."""
    length = f"{record['steps']:,} steps ({record['epochs']:.1f} epochs) in {record['seconds']:,.0f} s"
    if record["best_step"] is None:
        return f"{length}; the last weights were kept."
    best = f"the best by {_best_metric(record)} on validation" + (f" ({validation})" if validation else "")
    return f"{length}; the checkpoint of step {record['best_step']} was kept, {best}."


def _best_metric(record: Record) -> str:
    return str(record["arguments"]["metric_for_best_model"]).replace("_", " ")


def _figures(record: Record) -> str:
    rows = {name: value for name, value in record["metrics"].items() if isinstance(value, (int, float))}
    if record["best_metric"] is not None:
        rows = {f"{_best_metric(record)}, validation": record["best_metric"], **rows}
    if not rows:
        return "None were measured."
    return markdown_table(["figure", "value"], [[name, f"{value:.4g}"] for name, value in rows.items()])


def data_of(data: Record) -> str:
    """The data with their revision, or the hash of their content."""
    if "revision" in data:
        return f"[{data['id']}](https://huggingface.co/datasets/{data['id']}) at revision `{data['revision']}`"
    return f"{data['title']}, content hash `{data['content_hash']}`"


def base_model(record: Record, scratch: str) -> str:
    """The model that training started from; `scratch` is the text for one that was built for it."""
    name, revision = record["arguments"]["model_name_or_path"], record["arguments"].get("model_revision")
    if name in FROM_SCRATCH:
        return scratch
    before = [f"`{base}`" for base in record.get("started_from", [])]
    chain = f" (which started from {', and that from '.join(before)})" if before else ""
    return f"`{name}`" + (f" at revision `{revision}`" if revision else "") + chain


def hub_base(record: Record) -> str | None:
    """The base model's name on the hub; None for a model from scratch and for a folder."""
    return _on_hub(str(record["arguments"]["model_name_or_path"]))


def _on_hub(name: str) -> str | None:
    if name in FROM_SCRATCH or name in read_baselines():  # a baseline's own base is in the chain
        return None
    old_name = "/" not in name and not name.startswith((".", "~"))  # without an organisation: bert-base-uncased
    return name if old_name or is_repo_id(name) else None


def licence_front(record: Record) -> Record:
    """The licence of the weights for the card's YAML, if known."""
    found = licence_of(record)
    return {"license": found} if found else {}


def base_front(record: Record, adapter: bool) -> Record:
    """The base model for the card's YAML: the nearest that is on the hub, which for adapters is the one they fit."""
    base = hub_base(record)
    if base is None and not adapter:
        before = (name.partition("@")[0] for name in record.get("started_from", []))
        base = next((found for name in before if (found := _on_hub(name))), None)
    return {"base_model": base, "base_model_relation": "adapter" if adapter else "finetune"} if base else {}


def licence_of(record: Record) -> str | None:
    """The licence of the weights, where it is known: that of the data where the record states one with terms, the
    project's own for its sample, else the base model's."""
    if terms := _data_terms(record):
        return terms
    if record["arguments"]["model_name_or_path"] in FROM_SCRATCH:
        return "apache-2.0" if record["data"].get("reader") == "sample" else None
    found = record.get("base_license")
    return None if found in NO_NAMES else found


def _data_terms(record: Record) -> str | None:
    """The licence of the training data, where the record states it and it asks for something of who passes on what was
    made from them."""
    found = record["data"].get("licence")
    return None if found in (None, *FREE, *NO_NAMES) else str(found)


def licence_section(record: Record) -> str:
    base, known, stated = hub_base(record), licence_of(record), record.get("base_license")
    texts, name = card_texts("licence"), f"`{base}`" if base else "the base model"
    scratch = record["arguments"]["model_name_or_path"] in FROM_SCRATCH
    if terms := _data_terms(record):
        own = texts["data"].format(terms=terms, title=record["data"]["title"])
        says = f"its card states `{stated}`" if stated else "its card states none"
        return own if scratch else f"{own} The terms of {name} that they started from apply too: {says}."
    if scratch:
        return str(texts["sample" if known else "scratch"].format(known=known))
    return str(texts["stated" if stated else "unknown"].format(name=name, stated=stated))


def sizes(record: Record, adapter: bool) -> str:
    """The size of the files, if the record lists them."""
    above = f"{ADAPTER_FOLDER}/"
    size = sum(entry["bytes"] for name, entry in record.get("files", {}).items() if name.startswith(above) == adapter)
    return f"Files of the {'adapters' if adapter else 'model'}: {size:,} bytes." if size else ""


def _environment(record: Record) -> str:
    hardware = record["hardware"]
    devices = ", ".join(hardware["gpus"]) or f"CPU, {hardware['cores']} cores ({hardware['machine']})"
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    commit = f" Commit `{record['commit']}`." if record["commit"] else ""
    return f"{devices}. {versions}.{commit}"
