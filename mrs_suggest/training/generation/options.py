"""The options of a generator: its texts, its search, its task, and the library's trainer with other defaults."""

from dataclasses import dataclass, fields
from typing import ClassVar

from transformers import Seq2SeqTrainingArguments

from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.retrieval.pruned_vocabulary import LEAST_PIECES
from mrs_suggest.models.starting_points import FROM_SCRATCH
from mrs_suggest.training.generation.decoder_options import DecoderArguments, with_decoder
from mrs_suggest.training.generation.training import BEST_METRIC
from mrs_suggest.training.options import RunArguments, TrainerDefaults, added_options, is_given, option, trains_lora
from mrs_suggest.training.reply.options import ReplyArguments
from mrs_suggest.training.staple.options import STAPLE, StapleArguments

REPLY = "reply"  # the task that has no table row: the message-reply task
PIVOT, MULTILANGUAGE = "pivot", "multilanguage"  # XGLUE, 6.3.1 and 6.3.2
MODES = (PIVOT, MULTILANGUAGE)
XGLUE_OPTIONS = ("mode", "pivot")  # that other tasks do not have
STAPLE_OPTIONS = added_options(StapleArguments)
STEPS = 1000  # when neither epochs nor steps are given: minutes on two cores
MESSAGE_TOKENS, REPLY_TOKENS = 70, 30  # ours: as the retrieval script; that of generation has 512 for both


@dataclass
class RemedyArguments(RunArguments):
    """Options against forgetting: a generator that is trained on some languages alone writes these to all others.

    Zhang et al. 2021 (MRS), section 5.2, find it; each option is a known remedy, off by default, and names its source.
    `docs/forgetting.md` lists them.
    """

    advanced: ClassVar[tuple[str, ...]] = (
        "freeze_decoder_layers", "interpolate_start", "wrong_language_limit", "watch_languages",
    )  # fmt: skip
    force_language_token: bool | None = option(
        None,
        "true: the decoder starts with the token of the language to write (mBART, 2.2), which is added if "
        "the checkpoint lacks it; false: never; default: as the checkpoint was trained",
    )
    freeze_decoder_layers: int = option(
        0, "freeze this many of the decoder's layers, lowest first (after ZmBART, Maurya et al. 2021)"
    )
    denoising_share: float = option(0.0, "share of the steps that denoise --denoising_text (xDAE; XGLUE, 4.1)")
    denoising_text: list[str] = option(
        [], "LANG=SOURCE ...: text in the languages to keep, as --text of `mrs train pretraining`"
    )
    interpolate_start: list[float] = option(
        [],
        "after training, mix the trained weights, with this share, with the initial ones (Wortsman et al. "
        "2022); of several shares, the best on validation is kept",
    )
    wrong_language_limit: float | None = option(
        None,
        "stop when more than this share of the replies to --watch_languages is in another language, and "
        "keep an earlier checkpoint; needs --language_model",
    )
    watch_languages: list[str] = option(
        [], "languages for --wrong_language_limit; only their validation messages are needed, not the replies"
    )


OF_REPLIES = ("denoising_share", "denoising_text", "interpolate_start", "wrong_language_limit", "watch_languages")
REMEDIES = tuple(name for name in added_options(RemedyArguments) if name != "interpolate_start")


@dataclass
class SearchArguments(ReplyArguments):
    """Lengths and search. Defaults marked (tiny) were chosen on the validation split of the embedded sample."""

    advanced: ClassVar[tuple[str, ...]] = (
        "groups", "diversity_penalty", "no_repeat_ngram", "min_tokens", "length_penalty",
    )  # fmt: skip
    least: ClassVar[dict[str, int]] = {"message_tokens": 4, "reply_tokens": 4, "decoding_batch_size": 1}
    message_tokens: int = option(MESSAGE_TOKENS, "longer messages, or source texts, are cut")
    reply_tokens: int = option(REPLY_TOKENS, "longer replies, or texts, are cut, in the perplexity too")
    beams: int = option(5, "beam size (official script)")
    groups: int = option(1, "groups of a diverse beam search; 1: plain beams (paper)")
    diversity_penalty: float = option(0.0, "Hamming penalty between groups")
    no_repeat_ngram: int = option(0, "forbid repeated n-grams of this length in a reply; 0: allowed")
    min_tokens: int = option(0, "shortest reply, in tokens")
    max_tokens: int = option(REPLY_TOKENS, "longest reply, in tokens")
    length_penalty: float = option(1.0, "exponent of the length in a reply's score")
    blocked: list[str] = option([], "words and phrases that are never suggested")
    decoding_batch_size: int = option(32, "messages answered at a time; affects memory only")
    rank_pools: bool = option(False, "test also ranks the real reply among 99 others by log-probability (mrr); slow")


@dataclass
class GenerationArguments(StapleArguments, RemedyArguments, SearchArguments, DecoderArguments):
    """Task, model, data and search."""

    scratch: ClassVar[tuple[str, ...]] = FROM_SCRATCH
    task: str = option(
        REPLY,
        f"{REPLY}; a task of XGLUE: qg (question generation), ntg (news title generation); or {STAPLE}: "
        "all translations that learners would write",
    )
    mode: str | None = option(
        None,
        f"of an XGLUE task: {PIVOT}, trained on one language and tested on all (default), or "
        f"{MULTILANGUAGE}, trained on all (XGLUE, 6.3)",
    )
    pivot: str | None = option(None, "of an XGLUE task: the language to train on (default en; XGLUE, 6.3.1)")
    keep_pieces: int | None = option(
        None,
        "of an encoder's checkpoint: cut its vocabulary to the N pieces that the training texts use most, "
        "and their characters, so that the model is smaller and writes faster; default: keep it",
    )


@dataclass
class GenerationTrainingArguments(TrainerDefaults, Seq2SeqTrainingArguments):
    """The trainer's own arguments with other defaults, chosen for `tiny` on the sample's validation split."""

    output_dir: str | None = option("build/generator", "the folder of the run")
    per_device_train_batch_size: int = option(64, "pairs per batch and device (paper: 1024 on all devices)")
    num_train_epochs: float = option(0.0, f"passes over the pairs (paper: 4 en, 1 mt); 0: train {STEPS:,} steps")
    learning_rate: float = option(3e-3, "peak learning rate (paper: 1e-5)")
    warmup_steps: float = option(0.2, "steps, or a share of them if below 1 (paper: .2)")
    lr_scheduler_type: str = option("linear", "schedule (official script: inverse_sqrt)")
    label_smoothing_factor: float = option(0.1, "label smoothing (official script: .2)")
    eval_steps: float | None = option(0.25, "steps, or a share of the run if below 1")
    save_steps: float = option(0.25, "steps, or a share of the run if below 1")
    metric_for_best_model: str | None = option(BEST_METRIC, "the validation metric that picks the checkpoint")


def require_sound_remedies(options: RemedyArguments, language_model: str | None) -> None:
    """Refuse values out of their ranges, and options without their counterparts; the InputError names the option."""
    require_least(options, 0, "freeze_decoder_layers")
    if trains_lora(options):
        for name in ("freeze_decoder_layers", "interpolate_start"):
            if is_given(options, name):
                raise InputError(f"--{name}: adapters leave the start weights as they are; leave --peft lora out.")
    if not 0 <= options.denoising_share < 1:  # refuses NaN too
        raise InputError(
            f"--denoising_share {options.denoising_share:g}: expected 0 or more and less than 1, a share of the steps."
        )
    if bool(options.denoising_share) != bool(options.denoising_text):
        raise InputError(
            "--denoising_share and --denoising_text: need each other; pass the share of the steps, such as .2, and "
            "LANG=SOURCE."
        )
    for share in options.interpolate_start:
        if not 0 <= share <= 1:
            raise InputError(f"--interpolate_start {share:g}: expected shares of the trained weights from 0 to 1.")
    limit = options.wrong_language_limit
    if (limit is None) != (not options.watch_languages):
        raise InputError(
            "--wrong_language_limit and --watch_languages: need each other; pass the share, such as .1, and the "
            "languages to watch."
        )
    if limit is None:
        return
    if not 0 <= limit < 1:
        raise InputError(f"--wrong_language_limit {limit:g}: expected 0 or more and less than 1.")
    if language_model is None:
        raise InputError(
            "--wrong_language_limit: needs a fastText model to identify languages; pass --language_model FILE."
        )
    for code in options.watch_languages:
        if find_language(code) is None:
            raise InputError(f"--watch_languages {code}: not the code of a language, such as de.")


def require_own_options(options: GenerationArguments) -> None:
    """Refuse the options of other tasks; the InputError names the option."""
    own = STAPLE_OPTIONS if options.task == STAPLE else XGLUE_OPTIONS if options.task != REPLY else ()
    for name in (*OF_REPLIES, "language_model", "rank_pools") if options.task != REPLY else ():
        if is_given(options, name):
            raise InputError(f"--{name}: belongs to --task {REPLY}; leave it out with --task {options.task}.")
    for names, where in ((XGLUE_OPTIONS, "a task such as --task ntg"), (STAPLE_OPTIONS, f"--task {STAPLE}")):
        for name in names:
            if name not in own and is_given(options, name):
                raise InputError(f"--{name}: belongs to {where}; leave it out with --task {options.task}.")


def require_sound_search(options: SearchArguments, texts: int) -> None:
    """Refuse settings of a search that cannot give so many texts; the InputError names the option."""
    if decoding_of(options).beams < texts:
        raise InputError(f"--beams {options.beams}: {texts} replies are suggested; pass at least as many.")
    if options.groups > 1 and not options.diversity_penalty:
        raise InputError(
            f"--groups {options.groups}: all find the same replies without --diversity_penalty; pass it, such as .5."
        )


def resolved_search(options: GenerationArguments, texts: int) -> GenerationArguments:
    """The options with those that follow from the checkpoint, once lengths and search are known to be sound.

    Args:
        texts: how many each input needs.
    """
    require_sound_search(options, texts)
    require_sound_remedies(options, options.language_model)
    options = with_decoder(options)
    if options.keep_pieces is not None:
        if options.decoder is None:
            raise InputError(
                f"--keep_pieces: {options.model_name_or_path} is not an encoder (BERT, XLM-R), and only an encoder's "
                "vocabulary is cut; leave it out."
            )
        require_least(options, LEAST_PIECES, "keep_pieces")
    return options


def decoding_of(options: SearchArguments) -> Decoding:
    """How the model searches, by options with the names of the settings."""
    own = {field.name: getattr(options, field.name) for field in fields(Decoding) if field.name != "batch_size"}
    return Decoding(**own, batch_size=options.decoding_batch_size)
