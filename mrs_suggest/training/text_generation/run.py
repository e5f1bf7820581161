"""A run of a generation task of XGLUE: a source text in, one text out (Liang et al. 2020, sections 2.2.3 and 6)."""

import time
from collections.abc import Mapping, Sequence
from functools import partial

from datasets import Dataset
from tqdm import tqdm

from mrs_metrics.perplexity import aggregate, score_losses
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import FROM_SCRATCH
from mrs_suggest.training.generation.model import build_generator, generator_run, make_pair_trainer, save_and_test
from mrs_suggest.training.generation.options import (
    MODES,
    MULTILANGUAGE,
    GenerationArguments,
    GenerationTrainingArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.generation.training import PairTrainer, encode_pairs
from mrs_suggest.training.options import require_one_of
from mrs_suggest.training.reply.data import Compared
from mrs_suggest.training.reply.options import sound_reply
from mrs_suggest.training.sampling import make_sampler, require_alpha
from mrs_suggest.training.text_generation import FAMILY
from mrs_suggest.training.text_generation.card import print_scores
from mrs_suggest.training.text_generation.data import COLUMNS, TextData, load_text_data
from mrs_suggest.training.text_generation.tasks import INPUT, PREDICTIONS, TextTask, task_of

AVERAGE = "average"  # among the languages of a system: the mean over them (column AVG)
RESUME_KEYS = (
    "task", "decoder", "decoder_layers", "keep_pieces", "sampling_alpha", "batches", "length_window",
    "message_tokens", "reply_tokens", "max_train_examples", "freeze_embeddings", "freeze_decoder_layers",
    "force_language_token",
)  # fmt: skip


class TextTrainer(PairTrainer):
    """The trainer of a generation task.

    Attributes:
        validation: language -> columns `message` and `reply`.
    """

    task: TextTask
    validation: Mapping[str, Dataset]

    def figures(self) -> dict[str, float]:
        """The task's score, the mean over the languages, and perplexity over all tokens."""
        found, fit, of_each = self.answers(self.validation, answer)
        if not self.is_world_process_zero():
            return {}
        scores = {
            language: self.task.quick_score(texts, self.validation[language]["reply"][:], language)
            for language, texts in found.items()
        }
        told = ", ".join(f"{language} {100 * score:.2f}" for language, score in scores.items())
        tqdm.write(
            f"validation, step {self.state.global_step}: {self.task.metric.upper()} {told}; perplexity "
            f"{fit['perplexity']:.1f}"
        )
        named = {f"{self.task.metric}_{language}": score for language, score in scores.items()}
        return {self.task.metric: sum(scores.values()) / len(scores), **fit, **named, **of_each}


def answer(generator: Generator, language: str, rows: Sequence[Record]) -> list[tuple[str, float, int]]:
    """Of each row: the best text for its source, and nats and tokens of its target."""
    sources, targets = ([row[column] for row in rows] for column in COLUMNS)
    losses, tokens = generator.losses(sources, targets, language)
    return list(zip(write_texts(generator, sources, language), losses.tolist(), tokens.tolist(), strict=True))


def write_texts(generator: Generator, sources: Sequence[str], language: str) -> list[str]:
    """The best text for each source, on one line; empty if the model writes none."""
    if not sources:
        return []
    return [" ".join(row[0][0].split()) if row else "" for row in generator.suggest(sources, language, 1)]


def answer_tests(generator: Generator, data: TextData) -> Compared:
    """Write and score the test split of each language; one whose targets the publisher keeps has no figures."""
    task = data.task
    lengths = [len(text.split()) for rows in data.train.values() for text in rows[COLUMNS[1]][:]]
    words = max(1, round(sum(lengths) / len(lengths)))  # of the baseline's texts: as many as a training target has
    texts, own, lead = {}, {}, {}
    seconds, count = 0.0, 0
    for language, rows in data.test.items():
        sources, targets = (rows[column][:] for column in COLUMNS)
        started = time.time()
        texts[language] = write_texts(generator, sources, language)
        seconds, count = seconds + time.time() - started, count + len(sources)
        if any(target is None for target in targets):
            continue
        losses = score_losses(*generator.losses(sources, targets, language))
        own[language] = {
            **task.score(texts[language], targets, language), "perplexity": aggregate(losses)["perplexity"]
        }  # fmt: skip
        lead[language] = task.score([" ".join(source.split()[:words]) for source in sources], targets, language)
    systems = {task.name: with_average(own), INPUT: with_average(lead)}
    figures: Record = {
        "systems": systems,
        "signatures": {language: task.signature(language) for language in own},
        "missing": [language for language in task.languages if language not in own],
        "lead_words": words,
    }
    files = {
        task.file(language).as_posix(): partial(atomic_write, text="".join(f"{text}\n" for text in own))
        for language, own in texts.items()
    }
    return Compared(figures, {task.name: 1000 * seconds / max(1, count)}, files, f"{PREDICTIONS}/{task.name}/")


def with_average(figures: Mapping[str, Record]) -> Record:
    """The figures with `average`, the mean score over the languages (Table 4, column AVG), where there are any."""
    if not figures:
        return {}
    mean = sum(found["score"] for found in figures.values()) / len(figures)
    return {**figures, AVERAGE: {"score": mean, "languages": len(figures)}}


def run(options: GenerationArguments, training: GenerationTrainingArguments) -> Record | None:
    """Train a generator of another task than replies, and score it next to the beginning of the source."""
    task = task_of(options.task)
    options = resolved_search(sound_task(task, options, training), 1)
    with generator_run(FAMILY, options, training) as run:
        data = run.load(lambda: load_text_data(task, options, training.seed))
        facts = data.facts()
        run.begin(
            facts, RESUME_KEYS, **{name: facts["plan"][name] for name in ("mode", "train", "validation")},
            own_files=facts["data"].get("own_files"),
            vocabulary=options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
        )  # fmt: skip
        generator = run.build(lambda: build_generator(options, training, data.texts(), data.languages))
        pairs = [(found, language) for language, found in data.train.items()]
        rows, lengths = run.load(lambda: encode_pairs(pairs, generator.coder))
        sizes = [len(found) for found in data.train.values()]
        sampler = make_sampler(sizes, options, training, data.sampling_alpha, lengths)
        trainer = make_pair_trainer(TextTrainer, generator, training, rows, sampler)
        trainer.task, trainer.validation = task, data.validation
        if not run.train(trainer, generator.model):
            return None
        curves = {task.metric: f"{task.name}, {task.metric.upper()}"}
        return save_and_test(run, generator, lambda: answer_tests(generator, data), curves, print_scores)


def sound_task(
    task: TextTask, options: GenerationArguments, training: GenerationTrainingArguments
) -> GenerationArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    options = sound_reply(options, training, (task.metric, "perplexity", "loss"))
    require_own_options(options)
    if options.setting is not None:
        raise InputError(f"--setting: belongs to replies; with --task {options.task} pass --mode and --pivot.")
    if options.data == "sample":
        raise InputError("--data: missing; pass a folder that `mrs data prepare xglue` wrote.")
    if options.mode is not None:
        require_one_of("mode", options.mode, MODES)
    if options.mode == MULTILANGUAGE and options.pivot is not None:
        raise InputError("--pivot: --mode multilanguage trains on all languages; leave the option out.")
    require_alpha(options.sampling_alpha)
    task.signature("en")  # refused now, not after training
    return options
