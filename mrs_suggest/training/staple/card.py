"""The card of a generator of STAPLE, from its `run.json`, and the table that a run prints."""

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.report.tables import print_table
from mrs_suggest.common.text.text import interval_text, percent
from mrs_suggest.models.saved.card import SHOWN, card_texts, licence_section, run_card
from mrs_suggest.models.saved.record import Record

TEMPLATE = "staple.md"
OF_PARALLEL = ("parallel_mode", "parallel_share")
SETTINGS = (
    "draw", "top_k", "copies", "direction", "right_to_left", "nbest", "decoder", "decoder_layers", "sampling_alpha",
    "batches", "message_tokens", "reply_tokens", "beams", "groups", "diversity_penalty", "length_penalty", "max_tokens",
    "freeze_embeddings", *SHOWN, "label_smoothing_factor", *OF_PARALLEL,
)  # fmt: skip
TEXTS = card_texts("staple")


def staple_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a generator of STAPLE; see `mrs_suggest.models.saved.card.model_card`."""
    plan = record["plan"]
    languages = list(dict.fromkeys([*plan["train"], *plan["validation"], *plan["test"]]))
    english = plan["direction"] == "to_english"
    values = {
        "title": f"STAPLE {' '.join(languages)}, {record['data']['title']}",
        "direction": f"{' '.join(languages)} to English" if english else f"English to {' '.join(languages)}",
        "drawn": drawn_of(plan),
        "order": TEXTS["right_to_left"] if record["arguments"]["right_to_left"] else "",
        "figures": _tables(record),
        "language": languages[0],
        "example": "the translation to read" if english else "is my explanation clear?",
    }
    if plan["parallel"]:
        values["licence"] = f"{licence_section(record)} The terms of the general translations apply too."
    front = {"language": ["en", *languages], "pipeline_tag": "translation", "tags": ["staple", "translation"]}
    shown = SETTINGS if plan["parallel"] else SETTINGS[: -len(OF_PARALLEL)]
    return run_card(TEMPLATE, record, repo_id, adapter, values, front, " ".join(plan["validation"]), shown)


def drawn_of(plan: Record) -> str:
    parts = [TEXTS["drawn"][plan["draw"]].format(number=plan["number"])] if plan["draw"] else []
    parts += [f"{source['pairs']:,} general translations ({source['source']})" for source in plan["parallel"]]
    return "; ".join(parts)


def print_scores(record: Record) -> None:
    """Print the figures of a run: a row for each track and system."""
    header, rows = _rows(record)
    if rows:
        title = f"weighted F1 on test of the {record['metrics']['nbest']} best translations (95 % interval)"
        print_table(title, header, rows, left=2)


def _tables(record: Record) -> str:
    metrics = record["metrics"]
    header, rows = _rows(record)
    explained = [TEXTS["explained"].format(nbest=metrics["nbest"]), markdown_table(header, rows)]
    parts = explained if rows else ["No test split with accepted translations was there."]
    if "signature" in metrics:
        parts.append(f"`{metrics['signature']}`")
    if metrics["blind"]:
        parts.append(f"Written and not scored, since accepted translations are lacking: {' '.join(metrics['blind'])}.")
    return "\n\n".join(parts)


def _rows(record: Record) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each track's systems, the oracle's, and the paper's where the test split is the task's."""
    metrics, rows = record["metrics"], []
    for language in record["plan"]["test"]:
        for system, found in metrics["systems"].items():
            if language in found:
                rows.append([language, system, *_figures(found[language])])
        for k, score in metrics["oracle"].get(language, {}).items():
            rows.append([language, f"oracle, k = {k}", f"{100 * score:.1f}", "", "", ""])
        for team, score in metrics["paper"].get(language, {}).items():
            rows.append([language, f"{team} (paper, Table 3)", f"{100 * score:.1f}", "", "", ""])
    return ["track", "system", "weighted F1", "precision", "weighted recall", "perplexity"], rows


def _figures(cell: Record) -> list[str]:
    score = ""
    if "weighted_macro_f1" in cell:
        score = f"{100 * cell['weighted_macro_f1']:.1f} {interval_text(cell['interval'], percent, '({} to {})')}"
    parts = [f"{100 * cell[name]:.1f}" if name in cell else "" for name in ("precision", "weighted_recall")]
    return [score, *parts, f"{cell['perplexity']:.2f}" if "perplexity" in cell else ""]
