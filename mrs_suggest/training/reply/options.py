"""The options of the message-reply task, and the data that they choose: the four settings of the paper, or any mixture.

`make_plan` turns the options `--setting`, `--languages`, `--train`, `--validation` and `--sampling_alpha` and the
names of the configs that the data have into a `TrainingPlan`; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from mrs_datasets.prepared.schema import MT_PREFIX
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.languages import KNOWN, is_made_up, require_known
from mrs_suggest.common.text.predictions import MESSAGE
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.training.options import LIMITS, LoraArguments, option, require_one_of, sound, trains_lora
from mrs_suggest.training.sampling import BATCHES, WINDOW, require_alpha

if TYPE_CHECKING:
    from transformers import TrainingArguments

ALL_LANGUAGES = "all"
ENGLISH = "en"  # what the machine-translated pairs are translated from
# Options of the libraries' trainers that have no effect here, and why.
WITHOUT_EFFECT = {
    "train_sampling_strategy": "see --batches and --length_window",
    "predict_with_generate": "every evaluation generates",
    "generation_num_beams": "see --beams",
    "generation_max_length": "see --max_tokens",
    "generation_config": "see --beams and the search options",
    "prompts": "see --query_prompt and --reply_prompt",
    "batch_sampler": "see --batches and --sampling_alpha",
    "multi_dataset_batch_sampler": "see --batches and --sampling_alpha",
    "router_mapping": "messages and replies each have their encoder",
    "per_device_eval_batch_size": "evaluation has its own batches",
    "sortish_sampler": "see --length_window",
}


@dataclass
class ReplyArguments(LoraArguments):
    """Where training pairs come from, how they are drawn, and what is evaluated."""

    advanced: ClassVar[tuple[str, ...]] = ("batches", "length_window", "vocabulary")
    least: ClassVar[dict[str, int]] = {"vocabulary": 100, "length_window": 0, **LIMITS}
    setting: str | None = option(
        None,
        "monolingual, zero_shot, mt or multilingual (paper, section 3.2): the data for training, "
        "validation and test; default: --languages for all three",
    )
    languages: list[str] = option(["all"], "languages to test on, or `all` in the data")
    train: list[str] | None = option(None, "training sources in place of the setting's, such as `en mt-es`")
    validation: list[str] | None = option(None, "languages that choose the checkpoint, in place of the setting's")
    sampling_alpha: float | None = option(
        None, "sources are drawn by n^alpha: 0 equal sizes (multilingual), .3 (XGLUE), 1 by size (others)"
    )
    batches: str = option(BATCHES[0], "language: one in each batch, as in the official code; or mixed")
    length_window: int = option(WINDOW, "steps whose examples are sorted by length together; 0: not sorted")
    language_model: str | None = option(
        None,
        "fastText's file (lid.176.ftz), for the share of suggestions in a wrong language; default: the "
        "installed one, if there is one",
    )
    unit: str = option(MESSAGE, "column of the data whose examples the test's intervals resample together")
    vocabulary: int = option(VOCABULARY, "largest vocabulary of `tiny`")
    freeze_embeddings: bool = option(False, "freeze the embeddings (paper, 4.3: yes)")
    max_train_examples: int | None = option(None, "limit per source; a seeded sample")
    max_validation_examples: int | None = option(10_000, "limit per language; a seeded sample")
    max_test_examples: int | None = option(
        100_000, "limit per language; a seeded sample (TF-IDF takes 10 ms per example)"
    )


Arguments = TypeVar("Arguments", bound=ReplyArguments)


def sound_reply(
    options: Arguments,
    training: TrainingArguments,
    metrics: Sequence[str],
    without_effect: Mapping[str, str] | None = None,
) -> Arguments:
    """The options, once the libraries would not fail with them; see `mrs_suggest.training.options.sound`."""
    options = sound(options, training, metrics, {**WITHOUT_EFFECT, **(without_effect or {})})
    require_one_of("batches", options.batches, BATCHES)
    if trains_lora(options) and (options.freeze_embeddings or getattr(options, "freeze_layers", False)):
        raise InputError("--peft lora: already freezes all but the adapters; leave the --freeze options out.")
    if options.language_model is not None:
        if not Path(options.language_model).is_file():
            raise InputError(
                f"--language_model {options.language_model}: no such file; pass a fastText model, such as lid.176.ftz."
            )
        LanguageIdentifier.open(options.language_model)  # refused now, not after hours of training
    return options


# --- the data of a run


@dataclass(frozen=True)
class Source:
    """Training pairs of one language.

    Attributes:
        language: a language of MRS, or a synthetic one of generated data.
        translated: the pairs are English ones, machine-translated to `language` (Zhang et al. 2021, section 3.2).

    >>> Source.parse("mt-es")
    Source(language='es', translated=True)
    >>> Source("es").config
    'es'
    """

    language: str
    translated: bool = False

    @property
    def config(self) -> str:
        """The config of the prepared data that holds the pairs: `es`, or `mt-es`."""
        return MT_PREFIX + self.language if self.translated else self.language

    @classmethod
    def parse(cls, config: str) -> Source:
        """The source that the config `LANG` or `mt-LANG` of `--train` holds; an InputError refuses others."""
        language = config.removeprefix(MT_PREFIX)
        _require_trainable(language, f"--train {config}")
        if config == MT_PREFIX + ENGLISH:
            raise InputError(
                f"--train {config}: expected {MT_PREFIX}LANG for another language, since the translated pairs are "
                f"translated from English; name {ENGLISH} itself."
            )
        return cls(language, config != language)


@dataclass(frozen=True)
class Setting:
    """One setting of the paper.

    Attributes:
        train: config names, or what follows from `--languages`: the languages themselves, or their translated pairs.
        validation: languages, or those asked for, or those that train.
        sampling_alpha: see `mrs_suggest.training.sampling.shares`.
    """

    train: tuple[str, ...] | Literal["languages", "translated"] = "languages"
    validation: tuple[str, ...] | Literal["languages", "training"] = "languages"
    sampling_alpha: float = 1.0
    one_language: bool = False


@dataclass(frozen=True)
class TrainingPlan:
    """What one run trains, validates and tests on.

    Attributes:
        setting: the setting that was asked for; None for a free choice.
        sources: training pairs, each named once.
        sampling_alpha: how the sources are mixed, see `mrs_suggest.training.sampling.shares`.
        validation: languages whose validation splits choose the checkpoint.
        test: languages whose test splits are scored.
    """

    setting: str | None
    sources: tuple[Source, ...]
    sampling_alpha: float
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def facts(self) -> dict[str, str | float | list[str] | None]:
        return {
            "setting": self.setting,
            "train": [source.config for source in self.sources],
            "sampling_alpha": self.sampling_alpha,
            "validation": list(self.validation),
            "test": list(self.test),
        }


# Zhang et al. 2021, section 3.2, with its words.
SETTINGS: Mapping[str, Setting] = {
    # "we simply train and test models in a single language"
    "monolingual": Setting(one_language=True),
    # "train the model on the English training set"; section 4.3: the English validation set tunes hyperparameters
    "zero_shot": Setting((ENGLISH,), (ENGLISH,)),
    # "examples machine-translated to the target language"
    "mt": Setting("translated"),
    # "the five languages with the most training data", oversampled to the same number of examples
    "multilingual": Setting((ENGLISH, "es", "de", "pt", "fr"), "training", sampling_alpha=0.0),
}
FREE = Setting()  # ours: every language asked for, as its data are


def make_plan(
    configs: Collection[str],
    setting: str | None = None,
    languages: Sequence[str] = (ALL_LANGUAGES,),
    train: Sequence[str] | None = None,
    validation: Sequence[str] | None = None,
    sampling_alpha: float | None = None,
) -> TrainingPlan:
    """Decide what a run trains, validates and tests on.

    Args:
        configs: names of the configs that the data have (`en`, `es`, `mt-es`, `en-responses` ...).
        setting: one of `SETTINGS`; None trains, validates and tests on `languages`.
        languages: the languages to test on, and those that the setting derives its sources from; `all` alone stands
            for those that the data have. English among the languages of `mt` is tested, but never trained on.
        train: config names to train on instead.
        validation: languages to validate on instead, or `all`.
        sampling_alpha: how to mix the sources instead, 0 to 1.

    Raises:
        InputError: the data or the setting do not allow an option; the sentence names it.

    >>> plan = make_plan(["en", "es", "mt-es"], "mt")
    >>> [source.config for source in plan.sources], plan.validation, plan.test
    (['mt-es'], ('es',), ('es',))
    >>> make_plan(["en", "es", "mt-es"], train=["en", "mt-es"], languages=["es"]).validation
    ('es',)
    """
    if setting is not None and setting not in SETTINGS:
        raise InputError(f"--setting {setting}: expected one of {', '.join(SETTINGS)}, or no setting.")
    kind = FREE if setting is None else SETTINGS[setting]
    have = _Configs(configs)
    translated = kind.train == "translated"
    if translated and not have.translated:
        raise InputError(
            f"--setting mt: no {MT_PREFIX}LANG config, {have.listed}; prepare data with machine-translated pairs, or "
            "choose another setting."
        )
    tested = have.languages("--languages", languages, have.translated if translated else None)
    targets = tuple(code for code in tested if code != ENGLISH) if translated else tested
    if not targets:
        raise InputError(
            f"--languages {' '.join(languages)}: --setting {setting} trains on pairs translated from English, so "
            f"it needs another language than {ENGLISH}; name one, or leave the setting out."
        )
    if kind.one_language and len(targets) > 1:
        raise InputError(
            f"--languages {' '.join(languages)}: --setting {setting} trains one model for one language, but these "
            f"are {len(targets)} ({' '.join(targets)}); name one and start a run for each."
        )
    sources = have.derived(setting, kind, targets) if train is None else have.named(train)
    if validation is None:
        checked = have.validated(setting, kind, targets, sources)
    else:
        checked = have.languages("--validation", validation)
    alpha = kind.sampling_alpha if sampling_alpha is None else sampling_alpha
    require_alpha(alpha)
    return TrainingPlan(setting, sources, float(alpha), checked, tested)


class _Configs:
    """The configs that the data have, and the errors for those that they lack."""

    def __init__(self, configs: Collection[str]) -> None:
        known = (*KNOWN, *(config for config in configs if is_made_up(config)))
        self.pairs = tuple(code for code in known if code in configs)
        self.translated = tuple(code for code in known if MT_PREFIX + code in configs)
        self.all = (*self.pairs, *(MT_PREFIX + code for code in self.translated))
        self.listed = f"the data have {' '.join(self.all) or 'no known language'}"

    def languages(self, option: str, asked: Sequence[str], every: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """The languages asked for; `all` stands for `every`, which is by default every language with pairs."""
        every = self.pairs if every is None else every
        _require_distinct(option, asked, "a language")
        if ALL_LANGUAGES in asked:
            if len(asked) > 1:
                raise InputError(f"{option} {' '.join(asked)}: `all` cannot be combined; leave it or the others out.")
            asked = every
        if not asked:
            raise InputError(f"{option} {ALL_LANGUAGES}: {self.listed}; prepare data with at least one language.")
        for code in asked:
            _require_trainable(code, option)
            if code not in self.pairs:
                raise InputError(
                    f"{option}: {code} needs the config {code!r}, but {self.listed}; leave {code} out, or prepare it."
                )
        return tuple(asked)

    def derived(self, setting: str | None, kind: Setting, targets: tuple[str, ...]) -> tuple[Source, ...]:
        """The sources that the setting names or derives from its languages."""
        if isinstance(kind.train, tuple):
            sources = tuple(Source(code) for code in kind.train)
        else:
            sources = tuple(Source(code, kind.train == "translated") for code in targets)
        lacking = [source.config for source in sources if source.config not in self.all]
        if lacking:
            option = "" if setting is None else f"--setting {setting}: "
            raise InputError(
                f"{option}training needs {' '.join(lacking)}, but {self.listed}; prepare what is missing, or name "
                "what to train on with --train."
            )
        return sources

    def named(self, train: Sequence[str]) -> tuple[Source, ...]:
        """The sources of `--train`."""
        _require_distinct("--train", train, "a config")
        sources = tuple(Source.parse(config) for config in train)
        for source in sources:
            if source.config not in self.all:
                raise InputError(f"--train {source.config}: {self.listed}; name some of these, or prepare it.")
        return sources

    def validated(
        self, setting: str | None, kind: Setting, targets: tuple[str, ...], sources: tuple[Source, ...]
    ) -> tuple[str, ...]:
        """The languages that the setting validates on."""
        if kind.validation == "languages":
            return targets
        if kind.validation == "training":
            checked = tuple(dict.fromkeys(source.language for source in sources))
        else:
            checked = kind.validation
        lacking = [code for code in checked if code not in self.pairs]
        if lacking:
            raise InputError(
                f"--setting {setting}: validates on {' '.join(checked)}, but {self.listed}, so {' '.join(lacking)} "
                "cannot be; name the languages with --validation."
            )
        return checked


def _require_trainable(code: str, where: str) -> None:
    """Refuse a code that is neither in `languages.yaml` nor synthetic; `where` starts the sentence."""
    if not is_made_up(code):
        require_known(code, where)


def _require_distinct(option: str, names: Sequence[str], what: str) -> None:
    if not names:
        raise InputError(f"{option}: expected {what} or more, found none; name one, or leave the option out.")
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise InputError(f"{option} {' '.join(names)}: {twice[0]} is named twice; name each once.")
