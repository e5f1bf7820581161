"""The card of a model for understanding tasks, from its `run.json`, and the table that a run prints."""

from string import Template

from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.report.cards import markdown_table, read_template
from mrs_suggest.common.report.tables import print_table
from mrs_suggest.common.text.text import interval_text, percent
from mrs_suggest.models.saved.card import SHOWN, base_model, card_texts, run_card
from mrs_suggest.models.saved.record import Record

TEMPLATE = "understanding.md"
SETTINGS = ("mode", "max_tokens", "window_overlap", "sampling_alpha", *SHOWN, "num_train_epochs")
PIPELINES = {"tags": "token-classification", "answer": "question-answering"}  # of a kind; else text-classification
SEVERAL = "several"  # tasks in one model
TEXTS = card_texts("understanding")


def understanding_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of such a model; see `mrs_suggest.models.saved.card.model_card`."""
    data, plan = record["data"], record["plan"]
    tasks = plan["tasks"]
    kind = SEVERAL if plan["mode"] == "multitask" else TASKS[tasks[0]].kind
    way = "adapter" if adapter else SEVERAL if kind == SEVERAL else "pipeline"
    names = {"where": repo_id or "PATH", "task": tasks[0], "pipeline": PIPELINES.get(kind, "text-classification")}
    names["call"] = f', task="{tasks[0]}"' if kind == SEVERAL else ""
    names["input"] = TEXTS["inputs"].get(kind, TEXTS["inputs"]["pair"])
    usage = Template(read_template(f"use_understanding_{way}.md")).substitute(names)
    values = {
        "title": f"{record['trainer']}, {' '.join(tasks)}",
        "base_model": base_model(record, "a small BERT that was built for it"),
        "setup": _setup(plan),
        "figures": _figures(record),
        "usage": usage,
        "terms": TEXTS["terms"] if data.get("reader") == "xglue" else "",
    }
    pipeline = {} if kind == SEVERAL else {"pipeline_tag": PIPELINES.get(kind, "text-classification")}
    front = {"tags": ["xglue", *(task.lower() for task in tasks)], **pipeline}
    return run_card(TEMPLATE, record, repo_id, adapter, values, front, _languages(plan["validation"]), SETTINGS)


def print_scores(record: Record) -> None:
    """Print the figures of a run: a row for each task, a column for each language, and the averages."""
    tasks: Record = record["metrics"]["tasks"]
    codes = list(dict.fromkeys(code for of in tasks.values() for code in of))
    zero_shot = record["plan"]["zero_shot"]
    rows = []
    for name, of in tasks.items():
        cells = [
            f"{100 * of[code]['score']:.1f}{'' if code in zero_shot[name] else '*'}" if code in of else ""
            for code in codes
        ]
        rows.append([name, *cells, f"{100 * record['metrics']['averages']['tasks'][name]:.1f}"])
    if len(tasks) > 1:
        rows.append(["AVG-U", *[""] * len(codes), f"{100 * record['metrics']['averages']['understanding']:.1f}"])
    if tasks:
        title = "XGLUE scores on test x 100 (* seen in training or in the choice of the checkpoint)"
        print_table(title, ["", *codes, "AVG"], rows)
    for name, hidden in record["metrics"]["hidden"].items():
        print(f"{name}: the answers in {' '.join(hidden)} are hidden; there are predictions, and no figures.")


def _languages(of: dict[str, list[str]]) -> str:
    """`XNLI en, NER en de`"""
    return ", ".join(f"{task} {' '.join(codes)}" for task, codes in of.items())


def _setup(plan: Record) -> str:
    said = f"Mode: {TEXTS['modes'][plan['mode']]}. Trained on: {_languages(plan['train'])}."
    if plan["validation_by"] == "all":
        return f"{said} {TEXTS['not_zero_shot']}"
    zero_shot = {task: codes for task, codes in plan["zero_shot"].items() if codes}
    told = f" Zero-shot: {_languages(zero_shot)}." if zero_shot else ""
    return f"{said} The checkpoint is the best on the validation splits of the languages of training.{told}"


def _figures(record: Record) -> str:
    metrics, plan = record["metrics"], record["plan"]
    rows = []
    for name, of in metrics["tasks"].items():
        for code, one in of.items():
            shot = "yes" if code in plan["zero_shot"][name] else "no"
            score = f"{100 * one['score']:.1f} {interval_text(one['interval'], percent, '({} to {})')}"
            rows.append([name, code, one["signature"].split("score:")[1].split("|")[0], score, f"{one['n']:,}", shot])
        rows.append([name, "AVG", "", f"{100 * metrics['averages']['tasks'][name]:.1f}", "", ""])
    if not rows:
        return "The answers of the test splits are hidden: there are predictions, and no figures."
    missing = {task: codes for task, codes in metrics["averages"]["missing"].items() if task in metrics["tasks"]}
    parts = [markdown_table(["task", "language", "figure", "score x 100", "n", "zero-shot"], rows)]
    if len(metrics["tasks"]) > 1:
        parts.append(f"Mean over these tasks: {100 * metrics['averages']['understanding']:.1f}.")
    if missing:
        parts.append(f"Not tested, so that the averages do not compare with published ones: {_languages(missing)}.")
    return "\n\n".join(parts)
