"""A run of a causal language model that writes replies: data, training on the replies alone, test."""

import tempfile
from functools import partial
from pathlib import Path

from transformers import MODEL_FOR_MASKED_LM_MAPPING

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.tables import print_results
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.generation.decoder_freezing import freeze_embeddings
from mrs_suggest.models.generation.decoding.settings import Sampling
from mrs_suggest.models.generation.generator import CAUSAL_LM, Generator, PairCollator, load_seq2seq
from mrs_suggest.models.generation.language_tokens import ROWS
from mrs_suggest.models.generation.padding import packed_batch
from mrs_suggest.models.generation.text_coder import PromptCoder
from mrs_suggest.models.generation.tiny_generator import build_tiny_causal
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import CAUSAL, FROM, TINY, require_start
from mrs_suggest.training.causal import FAMILY
from mrs_suggest.training.causal.options import CausalArguments, CausalTrainingArguments, sound_causal
from mrs_suggest.training.generation.model import generator_run, save_and_test
from mrs_suggest.training.generation.options import decoding_of
from mrs_suggest.training.generation.run import compared, reply_trainer
from mrs_suggest.training.reply.data import CURVES, RunData, load_reply_data, reply_identity


def run(options: CausalArguments, training: CausalTrainingArguments) -> Record | None:
    """Train a language model on replies, and compare it with the baselines on test."""
    options = sound_causal(options, training)
    with generator_run(FAMILY, options, training) as run:
        data = run.load(lambda: load_reply_data(options, training, options.constrained or options.rank_pools))
        facts = data.facts()
        run.begin(facts, ("prompt",), **reply_identity(options, facts))
        generator = run.build(lambda: build_language_model(options, training, data))
        trainer = reply_trainer(generator, options, training, data)
        if options.packing:
            trainer.data_collator = PairCollator(generator.pad, packed_batch)
        if not run.train(trainer, generator.model):
            return None
        coder = generator.coder
        assert isinstance(coder, PromptCoder)
        prompts = {part.language: coder.rendered(part.language) for part in data.test}
        test = partial(compared, generator, options, data, FAMILY.name, {"prompts": prompts})
        return save_and_test(run, generator, test, CURVES, print_results)


def build_language_model(options: CausalArguments, training: CausalTrainingArguments, data: RunData) -> Generator:
    """The model to train: `tiny` or a checkpoint.

    Raises:
        InputError: it cannot be loaded, is another kind of model, or is too short for texts of these lengths.
    """
    name, revision, languages = options.model_name_or_path, options.model_revision, data.languages()
    with tempfile.TemporaryDirectory() as folder:
        if name == TINY:
            build_tiny_causal(data.texts(), languages, Path(folder), training.seed, options.vocabulary)
            name = folder
        require_start(name, CAUSAL, revision)
        config = from_pretrained("AutoConfig", name, revision)
        if config.is_encoder_decoder or type(config) in MODEL_FOR_MASKED_LM_MAPPING:
            raise InputError(f"--model_name_or_path {name}: is a {config.model_type}; {FROM[CAUSAL]}.")
        model, tokenizer = load_seq2seq(name, revision, kind=CAUSAL_LM)
    coder = PromptCoder(
        tokenizer, ROWS["causal"], model.config, options.message_tokens, options.reply_tokens, template=options.prompt
    )
    sampling = Sampling(options.samples, options.temperature) if options.samples else None
    evaluated = (*data.validation, *data.test)
    replies = {part.language: part.responses.replies for part in evaluated} if options.constrained else None
    generator = Generator(model, coder, list(replies or languages), decoding_of(options), sampling, replies)
    around = max(len(coder.messages([""], language)[0]) + 1 for language in languages)
    length = around + options.message_tokens + max(options.reply_tokens, options.max_tokens + 1)
    positions = getattr(model.config, "max_position_embeddings", None) or length
    if length > positions:  # it would fail at the first long one, far into training
        raise InputError(
            f"--message_tokens {options.message_tokens}: a prompt of {around} tokens, the message and a reply have up "
            f"to {length}, and the model reads at most {positions}; lower it."
        )
    for language in generator.languages:
        generator.allowed(language)  # too low a --max_tokens is refused now
    if options.freeze_embeddings:
        freeze_embeddings(model)
    return generator
