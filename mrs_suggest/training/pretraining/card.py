"""The card of a pretrained encoder or sequence-to-sequence model, from its `run.json` and nothing else."""

from mrs_datasets.texts.text_sources import languages_of
from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.models.saved.card import SHOWN as SHARED
from mrs_suggest.models.saved.card import base_model, card_texts, run_card
from mrs_suggest.models.saved.record import Record

TEMPLATE, SEQ2SEQ_TEMPLATE = "pretraining.md", "pretraining_seq2seq.md"
SHOWN = (
    "objective", "shares", "max_tokens", "packing", "masked_share", "whole_words", "sampling_alpha",
    "batches", "frozen_encoder", *SHARED,
)  # fmt: skip
SEQ2SEQ_SHOWN = (
    "objective", "shares", "noise", "span_share", "span_length", "future_tokens", "decoder", "decoder_layers",
    "max_tokens", "packing", "sampling_alpha", "batches", *SHARED,
)  # fmt: skip
TEXTS = card_texts("pretraining")


def pretraining_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a pretrained encoder."""
    data, metrics = record["data"], record["metrics"]
    seq2seq = metrics.get("architecture") == "seq2seq"
    kind = "sequence-to-sequence model" if seq2seq else "encoder"
    texts = record["texts"]["sources"]
    sources = [[text["language"], _named(text), text["for"], f"{text['sentences']:,}"] for text in texts]
    values = {
        "title": f"{kind.capitalize()}, {data['title']}",
        "base_model": base_model(record, f"a small untrained {kind}"),
        "objective": metrics["about"],
        "sources": markdown_table(["language", "text", "for", "sentences"], sources),
        "what_trained": _what_trained(record, adapter),
        "figures": _figures(metrics),
        "signature": "`\n\n`".join(value for name, value in metrics.items() if name.endswith("signature")),
    }
    if seq2seq:
        names = metrics["objective"].split()
        of = " ({})" if len(names) > 1 else ""
        values["predicted"] = " and ".join(TEXTS["predicted"][name] + of.format(name) for name in names)
        values["limits"] = " ".join(TEXTS["limits"][name] for name in names if name in TEXTS["limits"])
    front = {
        "pipeline_tag": "text2text-generation" if seq2seq else "fill-mask",
        "language": sorted({code for name in data["rows"] for code in languages_of(name) or (name,)}),
        "tags": [record["trainer"], *metrics["objective"].split()],
    }
    template, shown = (SEQ2SEQ_TEMPLATE, SEQ2SEQ_SHOWN) if seq2seq else (TEMPLATE, SHOWN)
    return run_card(template, record, repo_id, adapter, values, front, shown=shown)


def _named(text: Record) -> str:
    revision = f" at `{text['revision']}`" if "revision" in text else ""
    return f"`{text['source']}`" + (f", {text['part']}" if "part" in text else "") + revision


def _what_trained(record: Record, adapter: bool) -> str:
    metrics, arguments = record["metrics"], record["arguments"]
    trained = "decoder" if "start" in metrics else "encoder"
    if arguments["frozen_encoder"]:
        trained = "head"
    elif arguments["peft"] == "lora":
        trained = "adapters" if adapter else "merged"
    what: str = TEXTS["trained"][trained].format(start=metrics.get("start"))
    return f"{what} {TEXTS['fresh_head']}" if metrics.get("head") == "fresh" else what


def _figures(metrics: Record) -> str:
    """A row for each perplexity, `SPLIT_perplexity` or `SPLIT_OBJECTIVE_perplexity`, perhaps of a language."""
    rows = []
    first = metrics["objective"].split()[0]
    for name, value in metrics.items():
        of, perplexity, language = name.partition("_perplexity")
        if perplexity:
            split, _, objective = of.partition("_")
            rows.append([split, objective or first, language.removeprefix("_") or "all", f"{value:,.2f}"])
    table = markdown_table(["held-out text", "objective", "language", "perplexity"], rows)
    return table if rows else "None were measured."
