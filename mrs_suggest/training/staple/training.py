"""Training batches of STAPLE, validation while it trains, and figures and predictions on test."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from datasets import Dataset
from tqdm import tqdm
from transformers import TrainingArguments

from mrs_datasets.readers.staple.staple_files import write_staple_predictions
from mrs_metrics.perplexity import aggregate as aggregate_losses
from mrs_metrics.perplexity import score_losses
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.translations_f1 import TABLE_7_KS, WeightedF1Scores, aggregate, oracle_top_k
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.paper_results import paper_table
from mrs_suggest.evaluation.scores.score_staple import Accepted
from mrs_suggest.models.generation.decoding.nbest import n_best
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.generation.model import make_pair_trainer
from mrs_suggest.training.generation.options import GenerationArguments
from mrs_suggest.training.generation.training import PairTrainer, encode_pairs
from mrs_suggest.training.reply.data import Compared
from mrs_suggest.training.sampling import CountedSampler, MixedSampler, make_sampler
from mrs_suggest.training.staple.data import StapleData, is_blind
from mrs_suggest.training.staple.draws import DrawnPairs, fixed, spread
from mrs_suggest.training.staple.options import FROM_ENGLISH
from mrs_suggest.training.text_generation.tasks import PREDICTIONS

MODEL, REFERENCE = "model", "reference"  # the systems of a run
# Translations of a prompt that its likelihood is measured on, by weight (ours: scoring all of hundreds would take
# longer than writing ten).
SCORED = 8


class StapleTrainer(PairTrainer):
    """The trainer of STAPLE.

    Attributes:
        validation: language -> prompts.
        accepted: language -> their translations, as they are compared; none for a model that writes English.
    """

    validation: Mapping[str, Dataset]
    accepted: Mapping[str, Accepted]
    nbest: int

    def figures(self) -> dict[str, float]:
        """Weighted F1 of the n best, the mean over the tracks; perplexity under the learner weights."""
        answers, fit, _ = self.answers(self.validation, partial(answer, nbest=self.nbest))
        if not self.is_world_process_zero():
            return {}
        scores = {}
        for language, accepted in self.accepted.items():
            texts = dict(zip(self.validation[language]["id"][:], answers[language], strict=True))
            scores[language] = aggregate(accepted.score(texts))
        macro = {language: figures["weighted_macro_f1"] for language, figures in scores.items()}
        told = "".join(f"{language} {100 * score:.2f}, " for language, score in macro.items())
        begin = f"weighted F1 of the {self.nbest} best {told}" if macro else ""
        tqdm.write(f"validation, step {self.state.global_step}: {begin}perplexity {fit['perplexity']:.2f}")
        own = {f"weighted_f1_{language}": score for language, score in macro.items()}
        return {**({"weighted_f1": sum(macro.values()) / len(macro)} if macro else {}), **fit, **own}


def make_staple_trainer(
    parts: Generator, options: GenerationArguments, training: TrainingArguments, data: StapleData
) -> StapleTrainer:
    """The library's trainer with our batches, loss and validation."""
    own, general = data.pairs(), {code: fixed(rows) for code, rows in data.parallel.items()}
    sources = [*own.items(), *general.items()]
    encoded, lengths = encode_pairs([(source.pairs, code) for code, source in sources], parts.coder)
    sizes, weights = (np.concatenate([getattr(source, name) for _, source in sources]) for name in ("sizes", "weights"))
    rows = DrawnPairs(encoded, sizes, weights, training.seed)
    begins = np.cumsum(sizes) - sizes
    means = np.add.reduceat(lengths * weights[:, None], begins) / np.add.reduceat(weights, begins)[:, None]
    samplers, counts, begin = [], [], 0
    for group in filter(None, (own, general)):
        counts.append(sum(len(source.sizes) for source in group.values()))
        each = [len(source.sizes) for source in group.values()]
        part = means[begin : begin + counts[-1]]
        samplers.append(make_sampler(each, options, training, data.sampling_alpha, part))
        begin += counts[-1]
    both = [1 - options.parallel_share, options.parallel_share]
    sampler = samplers[0] if len(samplers) == 1 else MixedSampler(samplers, counts, both, training.seed)
    counted = CountedSampler(sampler, len(rows))
    counted.told.append(rows.set_epoch)
    trainer = make_pair_trainer(StapleTrainer, parts, training, rows, counted)
    trainer.validation, trainer.nbest = data.validation, options.nbest
    writes = data.direction == FROM_ENGLISH
    trainer.accepted = {code: Accepted(prompts) for code, prompts in data.validation.items()} if writes else {}
    return trainer


def answer(
    generator: Generator, language: str, rows: Sequence[Record], nbest: int
) -> list[tuple[list[str], float, int]]:
    """Of each prompt: its `nbest` translations, best first, none of a model that writes English; and nats and tokens of
    `SCORED` translations that are spread over the learner weights."""
    texts = write_translations(generator, [row["prompt"] for row in rows], language, nbest)
    losses, tokens = expected_losses(generator, rows, language)
    return list(zip(texts, losses, tokens, strict=True))


def write_translations(generator: Generator, prompts: Sequence[str], language: str, nbest: int) -> list[list[str]]:
    """The n best translations of each prompt, each on one line; none of a model that writes English."""
    if not prompts or generator.coder.direction.target is not None:
        return [[] for _ in prompts]
    found = n_best(generator, prompts, language, nbest, generator.decoding)
    return [[text for text, _, _ in row] for row in found]


def expected_losses(generator: Generator, rows: Sequence[Record], language: str) -> tuple[list[float], list[int]]:
    """Nats and tokens of each prompt's pairs with `SCORED` of its translations, which are spread over the weights.

    exp(all nats / all tokens) is the perplexity under the learner weights, estimated without bias in nats and tokens.
    Which ones they are depends on the prompt alone.
    """
    prompts, texts, owners, counts = [], [], [], []
    for owner, row in enumerate(rows):
        digest = hashlib.blake2b(row["id"].encode(), digest_size=8).digest()
        first = np.random.default_rng([EVALUATION_SEED, int.from_bytes(digest, "little")]).random()
        places = spread(np.array([entry["weight"] for entry in row["translations"]]), SCORED, first)
        for place, count in zip(*np.unique(places, return_counts=True), strict=True):
            prompts.append(row["prompt"])
            texts.append(row["translations"][place]["text"])
            owners.append(owner)
            counts.append(int(count))
    sides = (prompts, texts) if generator.coder.direction.target is None else (texts, prompts)
    losses, tokens = generator.losses(*sides, language)
    total = [np.bincount(owners, weights=values * np.array(counts), minlength=len(rows)) for values in (losses, tokens)]
    return total[0].tolist(), total[1].astype(np.int64).tolist()


def answer_tests(generator: Generator, data: StapleData, nbest: int) -> Compared:
    """Write and score the test split of each track; a blind one is written alone."""
    texts: dict[str, dict[str, list[str]]] = {}
    systems: dict[str, Record] = {MODEL: {}, REFERENCE: {}}
    figures: Record = {"systems": systems, "oracle": {}, "paper": {}, "nbest": nbest, "blind": []}
    seconds, count, writes = 0.0, 0, data.direction == FROM_ENGLISH
    for language, rows in data.test.items():
        if writes:
            started = time.time()
            found = write_translations(generator, rows["prompt"][:], language, nbest)
            seconds, count = seconds + time.time() - started, count + len(rows)
            texts[language] = dict(zip(rows["id"][:], found, strict=True))
        if is_blind(rows):
            figures["blind"].append(language)
            continue
        losses = aggregate_losses(score_losses(*expected_losses(generator, rows.to_list(), language)))
        systems[MODEL][language] = {"perplexity": losses["perplexity"]}
        if writes:
            _score(figures, language, rows, texts[language])
            printed = paper_table("staple", "table_3", language) if language in data.complete else {}
            figures["paper"] |= {language: {team: row[1] for team, row in printed.items()}} if printed else {}
    files = {
        f"{PREDICTIONS}/test.en_{language}.pred.txt": partial(_write, prompts=data.test[language], texts=own)
        for language, own in texts.items()
    }
    milliseconds = {MODEL: 1000 * seconds / count} if count else {}
    return Compared(figures, milliseconds, files, f"{PREDICTIONS}/" if files else "")


def _score(figures: Record, language: str, rows: Dataset, texts: Mapping[str, Sequence[str]]) -> None:
    """Add a track's figures: the model's, the automatic translation's where there is one, and the oracle's."""
    accepted = Accepted(rows)
    scores = accepted.score(texts)
    figures["systems"][MODEL][language] |= _figures(scores)
    figures["signature"] = scores.signature
    given = {key: [text] for key, text in zip(rows["id"][:], rows["reference"][:], strict=True) if text is not None}
    if given:
        figures["systems"][REFERENCE][language] = _figures(accepted.score(given))
    every = rows.to_list()
    figures["oracle"][language] = {
        str(k): aggregate(accepted.score(oracle_top_k(every, k)))["weighted_macro_f1"] for k in TABLE_7_KS
    }


def _figures(scores: WeightedF1Scores) -> Record:
    """Those of `mrs score --metric weighted_f1`."""
    return {**aggregate(scores), "interval": bootstrap_interval(scores.weighted_f1).ends}


def _write(path: Path, prompts: Dataset, texts: Mapping[str, Sequence[str]]) -> None:
    named = dict(zip(prompts["id"][:], prompts["prompt"][:], strict=True))
    write_staple_predictions(named, texts, path)
