"""The log-probability of hypotheses under another run, as a feature: of the translation, or of the prompt given it."""

from __future__ import annotations

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
from mrs_suggest.staple.parts import parts_of


def rescore(
    found: Hypotheses,
    run: Run,
    out: Path,
    reverse: bool = False,
    batch_size: int | None = None,
    overwrite: bool = False,
) -> Hypotheses:
    """Add the feature `log_prob_NAME`, and write the hypotheses.

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
    generator = Generator.load(run.folder)
    coder = generator.coder
    tokens = max(coder.message_tokens, coder.reply_tokens)  # which is which depends on the direction
    size = batch_size or 2 * fitting_batch(coder.config, coder.reply_tokens, tokens)  # no search keeps scores
    scores: dict[tuple[str, str], float] = {}  # by prompt and text, which several members may have found
    for part in parts_of({key: len(found.prompts[key]) for key in texts_of}, "rescore"):
        pairs = list(dict.fromkeys((key, text) for key in part for text in texts_of[key]))
        prompts, texts = [found.prompts[key] for key, _ in pairs], [text for _, text in pairs]
        sources, targets = (texts, prompts) if reverse else (prompts, texts)
        losses, _ = generator.losses(sources, targets, language, size)
        scores |= zip(pairs, (-losses).tolist(), strict=True)
    what = "prompt given the translation" if reverse else "translation given the prompt"
    step = signature("staple_rescore", run=run.name, content_hash=run.facts["content_hash"], reverse=reverse)
    own = zip(found.table["id"].to_pylist(), found.table["text"].to_pylist(), strict=True)
    table = found.table.append_column(name, pa.array([scores[pair] for pair in own], pa.float64()))
    features = {**found.features, name: f"log-probability of the {what}, by {run.given}"}
    made = replace(found, table=table, features=features, steps=(*found.steps, step))
    write_hypotheses(made, out, overwrite)
    return made
