"""The card of a reply model: what it is, its figures next to those of baselines and paper, and how to use it."""

import json
import re
from string import Template

from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index

from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.report.cards import markdown_table, read_template, render_card
from mrs_suggest.common.text.languages import require_any_language
from mrs_suggest.common.text.text import interval_text
from mrs_suggest.evaluation.comparison import POOLED, grouped_signatures
from mrs_suggest.models.exports import CTRANSLATE2
from mrs_suggest.models.generation.language_tokens import LANGUAGE, row_named
from mrs_suggest.models.saved.card import (
    SHOWN,
    SPLITS,
    base_front,
    base_model,
    card_texts,
    data_of,
    hub_base,
    licence_front,
    shared_values,
    sizes,
    steps_of,
)
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import CAUSAL, GENERATION, RETRIEVAL
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.training.reply.card_sections import (
    clicks,
    guard_paragraph,
    ranking,
    remedies,
    response_sets,
    wrong_languages,
)

TEXTS = card_texts("reply")
CANDIDATE_SETTINGS = ("generator", "generated", "memory_candidates")
RANKER_SETTINGS = ("ranker_parts", "choice", "memory_dimension", "memory_prototypes", "memory_messages")
SETTINGS_SHOWN = (
    "setting", "loss", "temperature", "mask_duplicates", "encoders", "dimension", "pooling", "normalize",
    "query_prompt", "reply_prompt", "message_tokens", "reply_tokens", "layers", "freeze_embeddings", "freeze_layers",
    "layer_decay", "teacher", "teacher_prompt", "teacher_temperature", "distill_weight", "distill",
    "perturbed", "distill_text", "keep_pieces", "alpha", *RANKER_SETTINGS,
    *CANDIDATE_SETTINGS,
    "beams", "samples", "constrained", "label_smoothing_factor", "batches", "length_window", *SHOWN,
)  # fmt: skip
COLUMNS_OF_ROWS = (*SPLITS, "responses")
PAPER_FIGURES = ("rouge", "dist1", "dist2")
OF_DIFFERENCE = "95 % interval of the difference [{}, {}]"
# Figures that a systems table shows if the model has them: title, key, digits (None: with its interval).
COLUMNS = (
    ("ROUGE", "weighted", None),
    ("MRR", "mrr", None),
    ("P@1", "p@1", 3),
    ("macro-MRR", "macro_mrr", 3),
    ("MRR, reply in set", "mrr_in_set", 3),
    ("perplexity", "perplexity", 2),
    ("Dist-1", "dist1", 3),
    ("Dist-2", "dist2", 3),
    ("Self-ROUGE", "self_rouge", 3),
    ("wrong language", "wrong_language", 3),
    ("wrong language, first", "wrong_language_first", 3),
    ("BLEU", "bleu", 1),
)
# What a model is, and the front of its card. A generator's is not text-generation, which would load only its decoder.
KINDS = {
    RETRIEVAL: ("Reply retriever", {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}),
    GENERATION: ("Reply generator", {"library_name": "transformers", "pipeline_tag": "text2text-generation"}),
    CAUSAL: ("Reply language model", {"library_name": "transformers", "pipeline_tag": "text-generation"}),
}


def model_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    figures, arguments, data = record["metrics"], record["arguments"], record["data"]
    what, own_front = KINDS[record["trainer"]]
    languages = list(figures["signatures"])
    language = "en" if "en" in languages else languages[0]
    message, reply = TEXTS["examples"].get(language, TEXTS["examples"]["en"])  # a made-up one has none
    which = languages[0] if len(languages) == 1 else f"{len(languages)} languages"
    pooled = figures["systems"][MODEL][POOLED]
    static = arguments.get("encoders") == "static"
    without = {*(() if static else ("dimension",)), *(() if arguments.get("ranker") else RANKER_SETTINGS)}
    without |= {name for name in (*CANDIDATE_SETTINGS, "samples", "constrained") if not arguments.get(name)}
    shown = [key for key in SETTINGS_SHOWN if key not in without]
    ranked = ranking(figures, arguments.get("ranker_parts") or ())
    # Read without pydantic, which a base installation does not have.
    values = {
        "title": (repo_id or f"{what}, {which}, {data['title']}").rpartition("/")[2],
        "encoders": TEXTS["encoders"][arguments.get("encoders", "two")],
        "languages": ", ".join(f"{require_any_language(code, 'the run').name} (`{code}`)" for code in languages),
        "base_model": _base_model(record),
        "trained_on": _trained_on(record["plan"]),
        "data": data_of(data),
        "examples": f"{pooled['n']:,} examples" + (f" of {len(languages)} languages pooled" if languages[1:] else ""),
        "pool": str(figures.get("pool_size")),
        "intervals": figures["interval_method"],
        "systems_table": _systems(figures),
        "leads_table": _leads(figures),
        "languages_table": _by_language(figures, languages),
        "paper_table": _paper(figures.get("paper", [])),
        "signatures": "\n".join(f"- `{signature}`" for signature in grouped_signatures(figures)),
        "language": language,
        "message": message,
        "reply": reply,
        "steps": steps_of(record, " ".join(record["plan"]["validation"])),
        "limits": TEXTS["limits"].get(data.get("reader"), TEXTS["limits"]["other"]),
        "guard": guard_paragraph(record),
        "ranking": "\n\n".join([ranked, *response_sets(record.get("response_sets", {})), *clicks(record)]),
        "speeds": _speeds(record, sizes(record, adapter), adapter),
        "citation": read_packaged("mrs_datasets", "catalogue", "mrs.yaml")["citation"].strip(),
        **shared_values(record, repo_id, adapter, shown, COLUMNS_OF_ROWS),
    }
    if "stored_as" in record:  # a copy without curves
        values["curves"] = TEXTS["stored"].format(record["stored_as"])
    if record["trainer"] == GENERATION:
        values["steps"] = f"{values['steps']} {remedies(record)}".strip()
        values["languages_table"] += f"\n\n{shares}" if (shares := wrong_languages(figures, languages)) else ""
    if record["trainer"] == CAUSAL:
        values["prompt"] = json.dumps(figures["prompts"][language], ensure_ascii=False)
        values["freedom"] = card_texts(CAUSAL)["constrained" if arguments["constrained"] else "free"]
    values["usage"] = _usage(record, values, adapter)
    front = _front_matter(record, own_front, languages, values["title"], adapter)
    return render_card(f"{record['trainer']}.md", front, values)


def _trained_on(plan: Record) -> str:
    setting = f"{plan['setting']} setting (section 3.2)" if plan["setting"] else "not a setting of the paper"
    mixed = f", drawn by size to the power of {plan['sampling_alpha']:g}" if len(plan["train"]) > 1 else ""
    return f"`{' '.join(plan['train'])}`{mixed}; {setting}"


def _front_matter(record: Record, own: Record, languages: list[str], title: str, adapter: bool) -> Record:
    data = record["data"]
    front: Record = {"language": languages}
    front |= licence_front(record) | own | ({"library_name": "peft"} if adapter else {})
    front["tags"] = [front["library_name"], "reply-suggestion", "mrs", record["trainer"]]
    if adapter:
        front["tags"].append("lora")
    if not _untrained_vectors(record):
        front |= base_front(record, adapter)
    front["metrics"] = ["rouge"]
    if "revision" in data:  # a data set on the hub
        front["datasets"] = [data["id"]]
    front["model-index"] = eval_results_to_model_index(title, _eval_results(record, own["pipeline_tag"], languages))
    return front


def _eval_results(record: Record, task: str, languages: list[str]) -> list[EvalResult]:
    figures, data = record["metrics"], record["data"]
    shown = (
        ("mrs_rouge", "weighted ROUGE", "weighted", "mrs_rouge"),
        ("mrr", "MRR, 1 of a pool", "mrr", "response_ranking"),
    )
    return [
        EvalResult(
            task_type=task,
            task_name="Reply suggestion",
            dataset_type=data["id"] if "revision" in data else re.sub(r"[^a-z0-9]+", "-", data["title"].lower()),
            dataset_name=data["title"],
            dataset_config=code,
            dataset_split="test",
            dataset_revision=data.get("revision"),
            metric_type=kind,
            metric_name=name,
            metric_value=round(figures["systems"][MODEL][code][key], 6),
            metric_args={"signature": figures["signatures"][code][signature]},
        )
        for code in languages
        for kind, name, key, signature in shown
        if key in figures["systems"][MODEL][code]
    ]


def _systems(figures: Record) -> str:
    own = figures["systems"][MODEL][POOLED]
    shown = [column for column in COLUMNS if own.get(column[1]) is not None]
    rows = [
        [f"**{name}**" if name == MODEL else name, *(_cell(scopes[POOLED], *column[1:]) for column in shown)]
        for name, scopes in figures["systems"].items()
    ]
    table = markdown_table(["system", *(title for title, _, _ in shown)], rows)
    return f"{table}\n\n{TEXTS['self_rouge']}" if own.get("self_rouge") is not None else table


def _cell(row: Record, key: str, digits: int | None) -> str:
    if row.get(key) is None:
        return ""
    return _with_interval(row, key) if digits is None else f"{row[key]:.{digits}f}"


def _paper(rows: list[Record]) -> str:
    """The paper's figures for the setting, or an empty text."""
    cells = [
        [f"Table {row['table']}", row["model"], row["language"], *(f"{row[key]:.4f}" for key in PAPER_FIGURES)]
        for row in rows
    ]
    table = markdown_table(["the paper's", "model", "language", "ROUGE", "Dist-1", "Dist-2"], cells)
    return f"{TEXTS['paper']}\n\n{table}" if rows else ""


def _leads(figures: Record) -> str:
    keys = [key for key in ("weighted", "mrr") if "mrr" in figures["systems"][MODEL][POOLED] or key == "weighted"]
    rows = [
        [f"over {name}", *(interval_text(scopes[POOLED][key], "{:+.4f}".format, "{} to {}") for key in keys)]
        for name, scopes in figures["differences"].items()
    ]
    return markdown_table(["", *(("ROUGE", "MRR")[: len(keys)])], rows)


def _by_language(figures: Record, languages: list[str]) -> str:
    systems = figures["systems"]
    rows = []
    for code in languages:
        own, others = systems[MODEL][code], (scopes[code] for name, scopes in systems.items() if name != MODEL)
        figures_of = [_with_interval(own, "weighted"), *(f"{other['weighted']:.4f}" for other in others)]
        rows.append([code, f"{own['n']:,}", f"{own['ceiling']:.4f}", *figures_of])
    return markdown_table(["language", "examples", "ceiling", *systems], rows)


def _with_interval(row: Record, key: str) -> str:
    return f"{row[key]:.4f} {interval_text(row[f'{key}_interval'], '{:.4f}'.format)}"


def _base_model(record: Record) -> str:
    if _untrained_vectors(record):
        base = base_model(record, "")
        tokenizer = f"the tokenizer of {base}" if base else "its own tokenizer"
        return f"scratch (two static tables of token vectors, no encoder), with {tokenizer}"
    kind = {RETRIEVAL: "BERT", GENERATION: "BART", CAUSAL: "Llama"}[record["trainer"]]
    return base_model(record, f"scratch (a small {kind} with its own tokenizer)")


def _untrained_vectors(record: Record) -> bool:
    """Whether it is a static retriever that used none of its checkpoint's weights."""
    return record["arguments"].get("encoders") == "static" and "start" not in record["metrics"]


def _usage(record: Record, values: dict[str, str], adapter: bool) -> str:
    """How to use the repository with the libraries alone, without this package."""
    arguments = record["arguments"]
    revision = arguments.get("model_revision")
    two = arguments.get("encoders") == "two"
    second = f'\nmodel.load_adapter("{values["where"]}", "document", subfolder="document")  # `set_adapter` chooses'
    replies = "The adapter at the top level is for messages, the one in `document/` for replies"
    more = {
        "base": hub_base(record) or str(arguments["model_name_or_path"]),
        "base_revision": f', revision="{revision}"' if revision else "",
        "second_adapter": second if two else "",
        "adapter_of": replies if two else "One adapter serves messages and replies",
        "message_tokens": str(arguments.get("message_tokens", "")),
        "prompt": values.get("prompt", ""),
        **_language(record, values["language"]),
    }
    template = f"use_{record['trainer']}{'_adapter' if adapter else ''}.md"
    return Template(read_template(template)).substitute(values | more).strip()


def _language(record: Record, code: str) -> dict[str, str]:
    """How to give plain transformers the language of a message and its reply."""
    found = record["metrics"].get("language_tokens", "")
    row = row_named(found) if found else None
    told = {"source_language": "", "start": "", "language_note": TEXTS["no_token"]}
    if row is None or row.tag is None:
        return told
    tag = row.tag(code)
    if LANGUAGE in row.before:
        told["source_language"] = f', src_lang="{tag}"'
    if LANGUAGE in row.prompt:
        option = "decoder_start_token_id" if row.prompt == (LANGUAGE,) else "forced_bos_token_id"
        told["start"] = f', {option}=tokenizer.convert_tokens_to_ids("{tag}")'
        told["language_note"] = TEXTS["token"].format(tag=tag)
    return told


def _speeds(record: Record, size: str, adapter: bool) -> str:
    answer = record["milliseconds"].get(MODEL)
    parts = [size, f"Answering a message of the test split took {answer:.1f} ms." if answer is not None else ""]
    parts += [] if adapter else [_export(*export) for export in record.get("exports", {}).items()]
    return " ".join(part for part in parts if part)


def _export(kind: str, facts: Record) -> str:
    """How an exported encoder or generator compares with the model itself."""
    times, precision = facts["milliseconds"], "int8" if facts["int8"] else "fp32"
    what, work = ("generator for CTranslate2", "answer") if kind == CTRANSLATE2 else (
        "message encoder for ONNX Runtime", "encode"
    )  # fmt: skip
    own, whose = ("weights", "the weights'") if "weights" in times else ("torch", "torch's")  # what answered before
    rouge = facts.get("rouge")
    quality = ""
    if rouge:
        interval = interval_text(rouge["difference"], "{:+.4f}".format, OF_DIFFERENCE).strip("()")
        quality = f"weighted ROUGE {rouge[kind]:.4f} instead of {rouge['torch']:.4f} ({interval}), "
    return (
        f"`{kind}/` holds the {what} ({precision}, {facts['bytes']:,} bytes; extra `{kind}`): {quality}the same three "
        f"suggestions for {facts['agreement']:.2%} of {facts['messages']:,} {facts['split']} messages, and "
        f"{times[kind]:.1f} ms to {work} one instead of {whose} {times[own]:.1f} ms."
    )
