"""A run of a generation task of XGLUE: a source text in, one text out (Liang et al. 2020, sections 2.2.3 and 6)."""

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import FROM_SCRATCH
from mrs_suggest.training.generation.model import advice, build_generator, make_pair_trainer
from mrs_suggest.training.generation.options import (
    MODES,
    MULTILANGUAGE,
    STEPS,
    GenerationArguments,
    GenerationTrainingArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.generation.training import encode_pairs
from mrs_suggest.training.options import require_one_of
from mrs_suggest.training.reply.options import sound_reply
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import make_sampler, require_alpha
from mrs_suggest.training.text_generation import FAMILY
from mrs_suggest.training.text_generation.card import print_scores
from mrs_suggest.training.text_generation.data import load_text_data
from mrs_suggest.training.text_generation.tasks import TextTask, task_of
from mrs_suggest.training.text_generation.training import TextTrainer, answer_tests

RESUME_KEYS = (
    "task", "decoder", "decoder_layers", "keep_pieces", "sampling_alpha", "batches", "length_window",
    "message_tokens", "reply_tokens", "max_train_examples", "freeze_embeddings", "freeze_decoder_layers",
    "force_language_token",
)  # fmt: skip


def run(options: GenerationArguments, training: GenerationTrainingArguments) -> Record | None:
    """Train a generator of another task than replies, and score it next to the beginning of the source."""
    task = task_of(options.task)
    options = resolved_search(sound_task(task, options, training), 1)
    with Run(
        FAMILY, options, training, steps=STEPS, lower_is_better=("perplexity", "loss"),
        advice=lambda trains: advice(options, training, trains),
    ) as run:  # fmt: skip
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
        run.merge_adapters(generator.model, generator.save_settings)
        run.save(generator.save)
        curves = {task.metric: f"{task.name}, {task.metric.upper()}"}
        if options.skip_test:
            return run.finish({}, curves=curves)
        tested = run.evaluate(lambda: answer_tests(generator, data))
        figures = {**tested.figures, "language_tokens": generator.coder.row.name}
        return run.finish(figures, tested.milliseconds, tested.files, tested.named, curves, show=print_scores)


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
