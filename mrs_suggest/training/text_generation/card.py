"""The card of a generator of another task than replies, from its `run.json`, and the table that a run prints."""

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.report.tables import print_table
from mrs_suggest.common.text.text import interval_text, percent
from mrs_suggest.models.saved.card import SHOWN, card_texts, run_card
from mrs_suggest.models.saved.record import Record

TEMPLATE = "text_generation.md"
SETTINGS = (
    "task", "mode", "pivot", "decoder", "decoder_layers", "sampling_alpha", "batches", "message_tokens", "reply_tokens",
    "beams", "length_penalty", "no_repeat_ngram", "max_tokens", "freeze_embeddings", *SHOWN, "label_smoothing_factor",
)  # fmt: skip
TEXTS = card_texts("text_generation")


def task_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a generator of a task; see `mrs_suggest.models.saved.card.model_card`."""
    plan = record["plan"]
    foreign = set(plan["test"]) - set(plan["train"])
    values = {
        "title": f"{plan['task']}, {record['data']['title']}",
        "task": f"{plan['title']} ({plan['task']})",
        "trained_on": " ".join(plan["train"]),
        "zero_shot": TEXTS["zero_shot" if plan["zero_shot"] else "not_zero_shot"] if foreign else "",
        "figures": markdown_table(*_rows(record)),
        "missing": _missing(record),
        "lead_words": str(record["metrics"]["lead_words"]),
        "signature": next(iter(record["metrics"]["signatures"].values()), "none"),
        "language": plan["test"][0],
    }
    front = {"language": sorted({*plan["train"], *plan["test"]}), "tags": ["xglue", plan["task"].lower()]}
    return run_card(TEMPLATE, record, repo_id, adapter, values, front, " ".join(plan["validation"]), SETTINGS)


def print_scores(record: Record) -> None:
    header, rows = _rows(record)
    print_table(f"{record['plan']['task']}: BLEU-4 on test (95 % interval)", header, rows)


def _rows(record: Record) -> tuple[list[str], list[list[str]]]:
    systems: Record = record["metrics"]["systems"]
    rows = []
    for language in dict.fromkeys(code for found in systems.values() for code in found):
        cells = [found.get(language, {}) for found in systems.values()]
        perplexity = cells[0].get("perplexity")
        rows.append([language, *map(_figure, cells), f"{perplexity:,.1f}" if perplexity is not None else ""])
    return ["language", *systems, "perplexity"], rows


def _figure(cell: Record) -> str:
    if "score" not in cell:
        return ""
    interval = interval_text(cell["interval"], percent, "({} to {})") if "interval" in cell else ""
    return f"{100 * cell['score']:.2f} {interval}".strip()


def _missing(record: Record) -> str:
    missing = record["metrics"]["missing"]
    if not missing:
        return ""
    return f"No figure for {' '.join(missing)}: the average is not comparable with published ones."
