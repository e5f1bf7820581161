"""Sections of a model card beside its figures: how the libraries use the model, licence, citation, contact."""

from __future__ import annotations

from string import Template
from typing import Any

from mrs_core.cards import read_template
from mrs_datasets.catalogue import read_record as read_catalogue
from mrs_models.language_tokens import LANGUAGE, ROWS
from mrs_training.options import TINY

NO_NAMES = ("other", "unknown")  # of licences on the hub


def hub_base(record: dict[str, Any]) -> str | None:
    """The base model's name on the hub; None for a model from scratch and for a folder."""
    base = str(record["arguments"]["model_name_or_path"])
    local = base == TINY or base.count("/") > 1 or base.startswith((".", "/", "~"))
    return None if local else base


def usage(record: dict[str, Any], values: dict[str, str], adapter: bool) -> str:
    """How the libraries use the repository, without this package."""
    arguments = record["arguments"]
    revision = arguments.get("model_revision")
    two = arguments.get("encoders") == "two"
    second = f'\nmodel.load_adapter("{values["where"]}", "document", subfolder="document")  # `set_adapter` chooses'
    replies = "The adapter at the top is that of messages, the one in `document/` that of replies"
    more = {
        "base": hub_base(record) or str(arguments["model_name_or_path"]),
        "base_revision": f', revision="{revision}"' if revision else "",
        "second_adapter": second if two else "",
        "adapter_of": replies if two else "One adapter serves messages and replies",
        "message_tokens": str(arguments.get("message_tokens", "")),
        **_language(record, values["language"]),
    }
    template = f"use_{record['trainer']}{'_adapter' if adapter else ''}.md"
    return Template(read_template(template)).substitute(values | more).strip()


def _language(record: dict[str, Any], code: str) -> dict[str, str]:
    """How plain transformers is told the language of a message and its reply."""
    row = ROWS.get(record["metrics"].get("language_tokens", ""))
    if row is None or row.tag is None:
        return {"source_language": "", "start": "", "told": "A reply's language follows from the message."}
    tag = row.tag(code)
    option = "decoder_start_token_id" if row.prompt == (LANGUAGE,) else "forced_bos_token_id"
    return {
        "source_language": f', src_lang="{tag}"' if LANGUAGE in row.before else "",
        "start": f', {option}=tokenizer.convert_tokens_to_ids("{tag}")',
        "told": f"The token `{tag}` asks for a reply in that language; each language has its own.",
    }


def licence_of(record: dict[str, Any]) -> str | None:
    """The licence of the weights, where it is known: the project's own for its sample, else the base model's."""
    if record["arguments"]["model_name_or_path"] == TINY:
        return "apache-2.0" if record["data"].get("reader") == "sample" else None
    found = record.get("base_license")
    return None if found in NO_NAMES else found


def licence(record: dict[str, Any]) -> str:
    """What is known of the licence, in words."""
    base, known, stated = hub_base(record), licence_of(record), record.get("base_license")
    if record["arguments"]["model_name_or_path"] == TINY:
        if known:
            return (
                f"`{known}`: the model was trained from scratch on the sample of mrs-suggest, which has this licence."
            )
        return (
            "Not stated: the model was trained from scratch, and what may be done with it depends on the data it was "
            "trained on. Look at the terms of the data."
        )
    name = f"`{base}`" if base else "the base model"
    if stated:
        return (
            f"The card of {name} states `{stated}` for the weights that this model was made from. The terms of the "
            "training data count too."
        )
    return (
        f"Not stated: no licence was found in a card of {name}. Look at its terms, and at those of the training data, "
        "before you use or pass on this model."
    )


def speeds(record: dict[str, Any], adapter: bool) -> str:
    """Sizes and times, as far as they were measured."""
    files = record.get("files", {})
    size = sum(entry["bytes"] for name, entry in files.items() if name.startswith("adapter/") == adapter)
    answer = record["milliseconds"].get("Model")
    parts = [f"Files of the {'adapters' if adapter else 'model'}: {size:,} bytes." if size else ""]
    parts += [f"Answering a message of the test split took {answer:.1f} ms." if answer is not None else ""]
    return " ".join(part for part in parts if part)


def footprint(record: dict[str, Any]) -> str:
    """The facts that were measured of the run's use of resources."""
    return (
        f"The run took {record['seconds']:,.0f} s of wall-clock time on this hardware, evaluation included; energy and "
        "emissions were not measured."
    )


def citation() -> str:
    """The paper's BibTeX entry, from the catalogue."""
    return read_catalogue("mrs").citation.strip()


def contact(repo_id: str | None) -> str:
    """Where questions go."""
    if repo_id is None:
        return "Whoever gave you this folder; for a model on the hub, the discussions of its repository."
    return f"The [discussions of this repository](https://huggingface.co/{repo_id}/discussions)."
