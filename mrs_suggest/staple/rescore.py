"""The log-probability of hypotheses under another run, as a feature: of the translation, or of the prompt given it."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.models.generation.decoding.nbest import fitting_batch
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.staple.hypotheses import Hypotheses, write_hypotheses
from mrs_suggest.staple.members import Run
from mrs_suggest.staple.parts import Part, make_parts, parts_of, run_parts

SCHEMA = pa.schema([("id", pa.string()), ("log_prob", pa.float64())])


def rescore(
    found: Hypotheses,
    run: Run,
    out: Path,
    reverse: bool = False,
    batch_size: int | None = None,
    overwrite: bool = False,
) -> Hypotheses:
    """Add the feature `log_prob_NAME`, and write the hypotheses; a killed call continues where it stopped.

    It is the natural logarithm of the probability of all tokens and the end token, with the text in the run's own
    pieces; a text that is longer than the run's is cut.

    Args:
        run: the generator, whose name becomes NAME.
        reverse: log P(prompt | translation), the round-trip score, instead of log P(translation | prompt); a run that
            says that it writes another language than the hypotheses are in is reversed by itself.
        batch_size: texts scored together; None: as many as fit.

    Raises:
        InputError: the file or the feature exists, or the run does not know the language.
    """
    require_new_file(out, overwrite)
    name = f"log_prob_{run.name}"
    if name in found.features:
        raise InputError(f"--with {run.given}: the hypotheses have {name} already; pass another name, as in NAME=RUN.")
    reverse = reverse or run.target not in (None, found.language)
    known = run.settings.languages
    language = found.language if found.language in known else known[0] if reverse and len(known) == 1 else ""
    if not language:
        raise InputError(f"--with {run.given}: knows {' '.join(known)}, and the hypotheses are in {found.language}.")
    texts_of = {key: rows["text"].to_pylist() for key, rows in found.by_prompt() if len(rows)}
    by = {"run": run.facts, "name": name, "reverse": reverse}
    identity = {"steps": list(found.steps), "rows": [len(found.table), _hash_of(found)], **by}
    loaded: list[Generator] = []

    def make(part: Part) -> pa.Table:
        generator = loaded[0] if loaded else Generator.load(run.folder)
        loaded[:] = [generator]
        coder = generator.coder
        # A scored token takes what a row of a search's step takes.
        tokens = max(coder.message_tokens, coder.reply_tokens)
        size = batch_size or 2 * fitting_batch(coder.config, coder.reply_tokens, tokens)
        pairs = [(key, found.prompts[key], text) for key in part.prompts for text in texts_of[key]]
        unique = list(dict.fromkeys(pairs))
        prompts, texts = [pair[1] for pair in unique], [pair[2] for pair in unique]
        sources, targets = (texts, prompts) if reverse else (prompts, texts)
        losses, _ = generator.losses(sources, targets, language, size)
        scores = dict(zip(unique, (-losses).tolist(), strict=True))
        columns = [pa.array([pair[0] for pair in pairs]), pa.array([scores[pair] for pair in pairs], pa.float64())]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    with parts_of(out, identity, overwrite) as folder:
        parts = make_parts(1, {key: len(found.prompts[key]) for key in texts_of})
        table = run_parts(folder, parts, SCHEMA, make, "rescore")
        what = "prompt given the translation" if reverse else "translation given the prompt"
        step = signature("staple_rescore", run=run.name, content_hash=run.facts["content_hash"], reverse=reverse)
        column = pa.array(_in_order(found, table), pa.float64())
        features = {**found.features, name: f"log-probability of the {what}, by {run.given}"}
        table = found.table.append_column(name, column)
        made = replace(found, table=table, features=features, steps=(*found.steps, step))
        write_hypotheses(made, out, overwrite)
    return made


def _in_order(found: Hypotheses, table: pa.Table) -> list[float]:
    scores: dict[str, list[float]] = {}
    for key, score in zip(table["id"].to_pylist(), table["log_prob"].to_pylist(), strict=True):
        scores.setdefault(key, []).append(score)
    return [score for key in found.prompts for score in scores.get(key, [])]


def _hash_of(found: Hypotheses) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for column in ("id", "prompt", "text"):
        for value in found.table[column].to_pylist():
            digest.update(f"{value}\0".encode())
    return digest.hexdigest()
