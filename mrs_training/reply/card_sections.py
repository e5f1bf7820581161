"""Sections of a reply model's card beside its figures: how the libraries use the model, speed, citation."""

from __future__ import annotations

from string import Template

from mrs_core.cards import read_template
from mrs_datasets.catalogue import read_record as read_catalogue
from mrs_evaluation.comparison import MODEL
from mrs_models.language_tokens import LANGUAGE, ROWS
from mrs_training.card import Record, hub_base


def usage(record: Record, values: dict[str, str], adapter: bool) -> str:
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


def _language(record: Record, code: str) -> dict[str, str]:
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


def speeds(record: Record, size: str) -> str:
    """Sizes and times, as far as they were measured."""
    answer = record["milliseconds"].get(MODEL)
    parts = [size, f"Answering a message of the test split took {answer:.1f} ms." if answer is not None else ""]
    return " ".join(part for part in parts if part)


def citation() -> str:
    """The paper's BibTeX entry, from the catalogue."""
    return read_catalogue("mrs").citation.strip()
