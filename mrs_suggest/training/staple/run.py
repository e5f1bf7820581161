"""A run of STAPLE: a prompt in, all translations out that learners would write (Mayhew et al. 2020)."""

import json
from dataclasses import replace

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.text_coder import Direction
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import FROM_SCRATCH, GENERATOR, checkpoint_file
from mrs_suggest.training.generation.model import build_generator, generator_run, save_and_test
from mrs_suggest.training.generation.options import (
    GenerationArguments,
    GenerationTrainingArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.options import is_given, require_one_of
from mrs_suggest.training.reply.options import sound_reply
from mrs_suggest.training.sampling import require_alpha
from mrs_suggest.training.staple import FAMILY
from mrs_suggest.training.staple.card import print_scores
from mrs_suggest.training.staple.data import ENGLISH, load_staple_data
from mrs_suggest.training.staple.options import COPIES, DIRECTIONS, DRAWS, FIRST, FROM_ENGLISH, PARALLEL_MODES, TOP
from mrs_suggest.training.staple.training import answer_tests, make_staple_trainer
from mrs_suggest.training.text_generation.run import RESUME_KEYS as TEXT_KEYS

METRICS = ("weighted_f1", "perplexity", "loss")
RESUME_KEYS = (*TEXT_KEYS, "right_to_left", "parallel_mode", "parallel_share")


def run(options: GenerationArguments, training: GenerationTrainingArguments) -> Record | None:
    """Train a generator of translations, and score its n best next to the given automatic translation."""
    options = sound_staple(options, training)
    # As many beams as translations, as fairseq's n-best lists need (`baseline_fairseq`).
    least = options.nbest * max(1, options.groups) if options.direction == FROM_ENGLISH else 1
    options = resolved_search(replace(options, beams=max(options.beams, least)), 1)
    with generator_run(FAMILY, options, training) as run:
        data = run.load(lambda: load_staple_data(options, training.seed, training.eval_strategy != "no"))
        facts = data.facts()
        plan = facts["plan"]
        run.begin(
            facts, RESUME_KEYS,
            **{name: plan[name] for name in ("draw", "number", "direction", "train", "parallel", "validation")},
            vocabulary=options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
        )  # fmt: skip
        sides = {"source": ENGLISH} if data.direction == FROM_ENGLISH else {"target": ENGLISH}
        direction = Direction(**sides, right_to_left=options.right_to_left)
        generator = run.build(lambda: build_generator(options, training, data.texts(), data.languages, direction))
        trainer = make_staple_trainer(generator, options, training, data)
        if not run.train(trainer, generator.model):
            return None
        return save_and_test(run, generator, lambda: answer_tests(generator, data, options.nbest), show=print_scores)


def sound_staple(options: GenerationArguments, training: GenerationTrainingArguments) -> GenerationArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    require_one_of("direction", options.direction, DIRECTIONS)
    options = sound_reply(options, training, METRICS if options.direction == FROM_ENGLISH else METRICS[1:])
    require_own_options(options)
    for name in ("setting", "train", "validation"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name}: belongs to other tasks; with --task staple pass --languages.")
    if options.data == "sample":
        raise InputError("--data: missing; pass a folder that `mrs data prepare staple` wrote.")
    require_alpha(options.sampling_alpha)
    _require_sound_draw(options)
    _require_sound_parallel(options)
    _require_same_order(options)
    return options


def _require_sound_draw(options: GenerationArguments) -> None:
    require_one_of("draw", options.draw, DRAWS)
    for name, draw in (("top_k", TOP), ("copies", COPIES)):
        value = getattr(options, name)
        if value is not None and options.draw != draw:
            raise InputError(f"--{name}: belongs to --draw {draw}; pass that, or leave it out.")
        if value is None and options.draw == draw:
            raise InputError(f"--draw {draw}: needs --{name}; pass it, such as 5.")


def _require_sound_parallel(options: GenerationArguments) -> None:
    require_one_of("parallel_mode", options.parallel_mode, PARALLEL_MODES)
    for name in ("parallel_columns", "parallel_mode", "parallel_share"):
        if is_given(options, name) and not options.parallel:
            raise InputError(f"--{name}: has no effect without --parallel; pass that too, or leave it out.")
    if options.parallel_columns and len(options.parallel_columns) != 2:
        raise InputError(f"--parallel_columns: expected two names, found {len(options.parallel_columns)}.")
    if not 0 < options.parallel_share < 1:  # refuses NaN too
        raise InputError(f"--parallel_share {options.parallel_share:g}: expected more than 0 and less than 1.")
    if options.parallel_mode == FIRST:
        for name in ("draw", "parallel_share", "max_train_examples"):
            if is_given(options, name):
                raise InputError(
                    f"--{name}: has no effect with --parallel_mode {FIRST}, which trains on --parallel alone; leave it "
                    "out."
                )


def _require_same_order(options: GenerationArguments) -> None:
    """Refuse to start from one of our generators that writes in the other order."""
    base = options.model_name_or_path
    path = None if base in FROM_SCRATCH else checkpoint_file(base, GENERATOR, options.model_revision)
    try:
        facts = json.loads(path.read_text(encoding="utf-8")) if path else {}
        before = bool(facts.get("direction", {}).get("right_to_left", False)) if path else options.right_to_left
    except (OSError, ValueError, AttributeError):
        return  # a damaged file fails when the model is loaded
    if before != options.right_to_left:
        order = "right to left" if before else "left to right"
        raise InputError(
            f"--right_to_left {str(options.right_to_left).lower()}: {base} writes from {order}; pass "
            f"--right_to_left {str(before).lower()}, or start from another model."
        )
