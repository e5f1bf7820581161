"""`mrs models export RUN --ctranslate2`: the generator for CTranslate2, kept only if its replies stay as good."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import writing
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import interval_text
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.results import EvaluationConfig, SystemResult, difference, evaluate_system
from mrs_suggest.models.exports import CTRANSLATE2, require_packages
from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.reply_writer import ReplyWriter
from mrs_suggest.models.saved.record import Record, read_record
from mrs_suggest.models.starting_points import CAUSAL, GENERATOR
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.generation import FAMILY as GENERATION
from mrs_suggest.training.reply.exporting import (
    Pairs,
    keep_export,
    pairs_to_compare,
    partial_export,
    require_exportable,
    size_and_versions,
    speeds,
)

LARGEST_LOSS = 0.01  # of weighted ROUGE, with 95 % confidence; the project's goal for a copy that ships
EXACT = 1e-3  # ours: largest difference of an fp32 reply, in nats a token; float rounding stays below 1e-4
SCORED = 100  # pairs of a language whose likelihoods are compared; ours: the first shows a wrong conversion


def export_generator(
    run: Path, int8: bool = False, data: str | None = None, largest_loss: float = LARGEST_LOSS
) -> Record:
    """Put the generator of a run into its `ctranslate2/`, print how it compares, and record it.

    Args:
        data: where pairs to compare come from, see `pairs_to_compare`.
        largest_loss: how far the 95 % interval of the paired difference of weighted ROUGE, best of three, export minus
            torch, may reach below 0.

    Returns:
        What `run.json` has of it, under `exports`.

    Raises:
        InputError: it is not a generator's run, or one that CTranslate2 cannot convert; its likelihoods differ, or its
            replies are worse.
        MissingExtraError: the extra `ctranslate2` is not installed.
    """
    record = read_record(run)
    if record["trainer"] == CAUSAL:
        raise InputError(f"{run}: is a causal language model, and CTranslate2 only runs seq2seq models here.")
    if record["trainer"] != GENERATION.name or not (run / GENERATOR).is_file():
        raise InputError(f"{run}: is not a generator; its message encoder is exported with --onnx.")
    require_packages(CTRANSLATE2)
    require_exportable(run)
    split, pairs = pairs_to_compare(run, record, data)
    with partial_export(run, CTRANSLATE2) as place:
        with writing(run):
            write_ctranslate2(Generator.load(run), run, place, int8)
        facts = size_and_versions(place / CTRANSLATE2, int8, ("torch", "transformers", "ctranslate2"))
        torch_generator = Generator.load(run)
        exported = ExportedGenerator.load(run, place)
        assert exported is not None  # the extra is there
        facts |= _difference(run, torch_generator, exported, pairs, int8)
        facts |= {"split": split, **_quality(run, torch_generator, exported, pairs, split, largest_loss, int8)}
        language, (messages, _) = next(iter(pairs.items()))
        systems = {"torch": torch_generator, CTRANSLATE2: exported}
        answers = {name: partial(system.suggest, language=language, k=SUGGESTIONS) for name, system in systems.items()}
        facts["milliseconds"] = speeds(answers, list(dict.fromkeys(messages)))
        with writing(run):
            keep_export(run, record, place / CTRANSLATE2, facts, GENERATION)
    return facts


def _difference(run: Path, before: Generator, after: ExportedGenerator, pairs: Pairs, int8: bool) -> Record:
    """How far the log-likelihoods of the replies differ, a token."""
    largest, count = 0.0, 0
    for language, (messages, replies) in pairs.items():
        some = messages[:SCORED], replies[:SCORED]
        (losses, tokens), (found, _) = before.losses(*some, language), after.log_probs(*some, language)
        differences = np.abs(losses + found) / tokens
        largest, count = max([largest, *differences.tolist()]), count + len(tokens)
    print(f"likelihoods of {count:,} replies: largest difference {largest:.3g} nats a token")
    if not int8 and not largest <= EXACT:  # NaN fails too
        raise InputError(
            f"{run}: the export's likelihoods differ from torch's by up to {largest:.3g} nats a token; nothing was "
            "written."
        )
    return {"largest_difference": largest}


def _quality(
    run: Path, before: Generator, after: ExportedGenerator, pairs: Pairs, split: str, largest_loss: float, int8: bool
) -> Record:
    """Weighted ROUGE of both, the interval of its difference, and for how many messages the suggestions are equal."""
    reference, results = evaluated(before, pairs), evaluated(after, pairs)
    rouge, other = mean_rouge(reference), mean_rouge(results)
    interval = difference(results, reference, EVALUATION_SEED)["weighted"]
    same, total = same_suggestions(pairs, reference, results)
    examples = sum(len(messages) for messages, _ in pairs.values())
    print(
        f"weighted ROUGE, best of {SUGGESTIONS}, on {examples:,} {split} examples: torch {rouge:.4f}, export "
        f"{other:.4f}, {interval_text(interval, '{:+.4f}'.format, '95 % interval of the difference [{}, {}]')}"
    )
    print(f"the same three suggestions for {same:,} of {total:,} {split} messages ({same / total:.2%})")
    low = interval[0] if interval else other - rouge
    if not low >= -largest_loss:
        raise InputError(
            f"{run}: with 95 % confidence the export's weighted ROUGE may be {-low:.4f} below torch's, and "
            f"{largest_loss:g} is allowed; nothing was written. Export {'without --int8, ' if int8 else ''}with more "
            "validation data (--data), or accept it with --largest-loss."
        )
    return {
        "rouge": {"torch": rouge, CTRANSLATE2: other, "difference": interval},
        "agreement": same / total, "same": same, "messages": total, "examples": examples,
    }  # fmt: skip


def evaluated(system: ReplyWriter, pairs: Pairs) -> list[SystemResult]:
    """The scores of a generator's three suggestions, by language."""
    only_rouge = EvaluationConfig(ranking=False)
    return [
        evaluate_system(Writer(system), language, messages, replies, [], EVALUATION_SEED, only_rouge)
        for language, (messages, replies) in pairs.items()
    ]


def mean_rouge(results: Sequence[SystemResult]) -> float:
    """Weighted ROUGE over the examples of all languages."""
    return float(np.concatenate([result.scores.weighted for result in results]).mean())


def same_suggestions(pairs: Pairs, before: Sequence[SystemResult], after: Sequence[SystemResult]) -> tuple[int, int]:
    """For how many different messages both have the same suggestions in the same order, and how many there are."""
    same = total = 0
    for (messages, _), old, new in zip(pairs.values(), before, after, strict=True):
        rows = dict(zip(messages, zip(old.suggestions, new.suggestions, strict=True), strict=True))
        same, total = same + sum(a == b for a, b in rows.values()), total + len(rows)
    return same, total
