"""The card of a multiple-choice model, from its `run.json`, and the table that a run prints."""

from string import Template

from mrs_suggest.common.report.cards import markdown_table, read_template
from mrs_suggest.common.report.tables import print_table
from mrs_suggest.models.saved.card import SHOWN, base_model, card_texts, data_of, run_card
from mrs_suggest.models.saved.record import Record

TEMPLATE = "multiple_choice.md"
XCOPA = "xcopa"  # the reader of its files
MACRO = "macro"  # among the languages of a view: the mean over them
SETTINGS = (
    "setup", "view", "questions", "prompts", "head", "pooling", "input", "frozen_encoder", "dropout", "encoder_dropout",
    "max_tokens", *SHOWN, "adam_epsilon", "max_grad_norm", "eval_steps",
)  # fmt: skip
TEXTS = card_texts("multiple_choice")


def choice_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a multiple-choice model; see `mrs_suggest.models.saved.card.model_card`."""
    data, plan = record["data"], record["plan"]
    where = repo_id or "PATH"
    usage = Template(read_template(f"use_multiple_choice{'_adapter' if adapter else ''}.md")).substitute(where=where)
    own = data["test"].get("reader") == XCOPA
    parts = [_figures(record, view) for view in record["metrics"]["systems"]]
    asked = TEXTS["questions"][plan["questions"]]
    parts += [_checkpoints(record), f"{TEXTS['wrong_questions']} {asked}" if own else ""]
    values = {
        "title": f"{record['trainer']}, {plan['setup'] or data['title']}",
        "base_model": base_model(record, "a small BERT that was built for it"),
        "tested_on": data_of(data["test"]),
        "setup": _setup(plan),
        "figures": "\n\n".join(part for part in parts if part),
        "usage": usage,
    }
    front = {"tags": ["multiple-choice", *([XCOPA] if own else [])], "pipeline_tag": "multiple-choice"}
    return run_card(TEMPLATE, record, repo_id, adapter, values, front, " ".join(plan["validation"]), SETTINGS)


def print_accuracies(record: Record) -> None:
    """Print the figures of a run: a row for each language, a column for each view."""
    views: Record = record["metrics"]["systems"]
    rows = []
    for language in dict.fromkeys(code for entry in views.values() for code in entry if code != MACRO):
        cells = [entry.get(language) for entry in views.values()]
        rows.append([language, *(_with_interval(cell) if cell else "" for cell in cells)])
    rows.append(["mean", *(f"{100 * entry[MACRO]['accuracy']:.1f}" for entry in views.values())])
    print_table("Accuracy on test, % (95 % Wilson interval)", ["", *views], rows)


def _setup(plan: Record) -> str:
    chosen = "each tested language" if plan["validation_by"] == "target" else " ".join(plan["validation"])
    name = f"Setup {plan['setup']} of the XCOPA paper (Ponti et al. 2020, Table 4): " if plan["setup"] else ""
    return (
        f"{name}trained on questions with {plan['choices']} choices ({' '.join(plan['train'])}); the checkpoint is "
        f"chosen on validation in {chosen}. The model sees {TEXTS['views'][plan['view']]}."
    )


def _figures(record: Record, view: str) -> str:
    entry = record["metrics"]["systems"][view]
    split = any("changed" in cell for config, cell in entry.items() if config != MACRO)
    header = ["language", "accuracy, %", "right", "n", *(["changed, %", "unchanged, %"] if split else [])]
    rows = []
    for config, cell in entry.items():
        if config != MACRO:
            parts = [_split(cell.get(name)) for name in ("changed", "unchanged")] if split else []
            rows.append([config, _with_interval(cell), str(cell["correct"]), str(cell["n"]), *parts])
    mean = f"{100 * entry[MACRO]['accuracy']:.1f}"
    rows.append(["mean", mean, "", "", *([""] * 2 if split else [])])
    title = TEXTS["views"][view]
    return f"{title[0].upper()}{title[1:]}:\n\n{markdown_table(header, rows)}"


def _with_interval(cell: Record) -> str:
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * share for share in (cell["accuracy"], *cell["interval"])))


def _split(cell: Record | None) -> str:
    return f"{100 * cell['accuracy']:.1f} of {cell['n']}" if cell else ""


def _checkpoints(record: Record) -> str:
    own = record["metrics"].get("best_of_each_language")
    if not own:
        return ""
    steps = ", ".join(f"{code} {entry['step']} ({100 * entry['accuracy']:.0f} %)" for code, entry in own.items())
    return str(TEXTS["checkpoints"].format(steps=steps))
