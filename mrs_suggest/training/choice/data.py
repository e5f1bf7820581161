"""The questions of a run: from prepared folders of XCOPA, SIQA or data of their columns to what a model reads."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.tasks.xcopa_views import TRANSLATION as TRANSLATION_PREFIX
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.choice_inputs import Question
from mrs_suggest.training.choice.options import FULL, QUESTIONS, TRANSLATION, ChoiceArguments, validates_on
from mrs_suggest.training.choice.setups import SOURCE, Setup, prompts_for, setup_of
from mrs_suggest.training.options import asked_languages

PREMISES = ("premise", "context")  # XCOPA's column, and SIQA's
CHOICES = (("choice1", "choice2", "choice3"), ("answerA", "answerB", "answerC"))
CORRECTED = "question_corrected"
ENGLISH = "en"  # the original, which has nothing to correct


@dataclass(frozen=True)
class Part:
    """The questions of one split of one config, in the order of the data.

    Attributes:
        rows: the columns `idx`, `label` and, of XCOPA, `changed`.
        questions: nothing of them is hidden.
    """

    config: str
    rows: Dataset
    questions: list[Question]

    def viewed(self, view: str) -> list[Question]:
        """The questions as a model sees them under `full`, `nop`, `noq` or `nopq`."""
        hidden = {"nop": ("premise",), "noq": ("prompt",), "nopq": ("premise", "prompt")}.get(view, ())
        empty: dict[str, Any] = dict.fromkeys(hidden, "")
        return [replace(question, **empty) for question in self.questions] if hidden else self.questions

    @property
    def choices(self) -> int:
        """Alternatives of each question."""
        return len(self.questions[0].choices)


@dataclass(frozen=True)
class ChoiceData:
    """The data that a run trains on, chooses its checkpoint by, and is tested on.

    Attributes:
        train, validation: by config.
        tests: view -> language -> questions.
        origin: ids of the data, and their revisions or content hashes.
    """

    options: ChoiceArguments
    train: dict[str, Part]
    validation: dict[str, Part]
    tests: dict[str, dict[str, Part]]
    origin: Record = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        for part in self.train.values():
            for question in part.questions:
                yield from (question.context, *question.choices)

    def facts(self) -> Record:
        rows: dict[str, dict[str, int]] = {}
        parts = [("train", self.train), ("validation", self.validation)]
        parts += [("test", one) for one in self.tests.values()]
        for split, configs in parts:
            for part in configs.values():
                rows.setdefault(part.config, {})[split] = len(part.questions)
        plan = {
            **{name: getattr(self.options, name) for name in ("setup", "view", "questions", "prompts")},
            "train": list(self.train),
            "choices": next(iter(self.train.values())).choices,
            "validation": list(self.validation),
            "validation_by": validates_on(self.options),
        }
        return {"data": {**self.origin, "rows": rows, "test_hash": _questions_hash(self.tests)}, "plan": plan}


def load_choice_data(options: ChoiceArguments, seed: int) -> ChoiceData:
    """Load what the options ask for; each split is cut to a seeded sample if they say so.

    Args:
        seed: draws the training questions; validation and test are drawn with `EVALUATION_SEED`.

    Raises:
        InputError: the data lack a language, a split, a column or a translation, or have another number of choices than
            the setup.
    """
    setup = setup_of(options.setup)
    source = open_prepared(options.data, options.data_revision)
    target = open_prepared(options.test_data) if options.test_data else source
    train = {
        config: _part(source, config, "train", options, options.max_train_examples, seed) for config in options.train
    }
    _require_choices(train, setup, options.data)
    languages = _languages(target, options)
    own = validates_on(options) == SOURCE
    if not own:
        languages = [code for code in languages if "validation" in target.splits(code)]
    limit = options.max_validation_examples
    validation = {
        config: _part(source if own else target, config, "validation", options, limit, EVALUATION_SEED)
        for config in (options.train if own else languages)
    }
    limit = options.max_test_examples
    views = dict.fromkeys([options.view, *options.test_views])
    own_languages = languages if views.keys() - {TRANSLATION} else []
    test = {code: _part(target, code, "test", options, limit, EVALUATION_SEED) for code in own_languages}
    tests = dict.fromkeys(views, test)
    if TRANSLATION in tests:
        tests[TRANSLATION] = {
            code: _part(target, TRANSLATION_PREFIX + code, "test", options, limit, EVALUATION_SEED)
            for code in _translated(target, languages, options)
        }
    origin = {**source.identity([], [*options.train]), "test": target.identity([], languages)}
    return ChoiceData(options, train, validation, tests, origin)


def _languages(data: PreparedData, options: ChoiceArguments) -> list[str]:
    """The languages to test on, in the order of the data set's record."""
    have = [config for config in data.configs() if config in data.record().languages]
    tested = [config for config in have if "test" in data.splits(config)]
    if options.languages == ["all"] and not tested:
        raise InputError(
            f"{data.name}: has no test split of any language; pass XCOPA's folder as --test_data (`mrs data prepare "
            "xcopa`)."
        )
    return asked_languages(options.languages, tested, data.name, "test split of it")


def _translated(data: PreparedData, languages: Sequence[str], options: ChoiceArguments) -> list[str]:
    """Languages whose test set was translated to that of training; `all` leaves out those that lack it."""
    have, foreign = set(data.configs()), [code for code in languages if code not in options.train]
    lacking = [code for code in foreign if TRANSLATION_PREFIX + code not in have]
    found = [code for code in foreign if code not in lacking]
    if not found or (lacking and options.languages != ["all"]):
        raise InputError(
            f"--test_views {TRANSLATION}: {data.name} has no translation of {' '.join(lacking or languages)}; leave "
            f"{'it' if len(lacking) == 1 else 'them'} out of --languages, or prepare the folder with XCOPA's data-gmt "
            "(which lacks Quechua)."
        )
    return found


def _require_choices(train: Mapping[str, Part], setup: Setup | None, name: str) -> None:
    counts = {config: part.choices for config, part in train.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{config} {count}" for config, count in counts.items())
        raise InputError(
            f"--train: the configs of {name} have different numbers of choices ({found}); train on one kind."
        )
    if setup and next(iter(counts.values())) != setup.choices:
        raise InputError(
            f"--setup {setup.name}: trains on {setup.trains_on}, whose questions have {setup.choices} choices, and "
            f"those of {name} have {next(iter(counts.values()))}; pass a folder of {setup.trains_on} as --data."
        )


def _part(data: PreparedData, config: str, split: str, options: ChoiceArguments, limit: int | None, seed: int) -> Part:
    rows = sample_rows(data.load(config, split), limit, seed)
    if not len(rows):
        raise InputError(f"{data.name}: the {split} split of {config} is empty.")
    where = f"{data.name}, {config}/{split}"
    language = ENGLISH if config.startswith(TRANSLATION_PREFIX) else config
    as_published = config == ENGLISH or split == "train"
    asked = QUESTIONS[0] if as_published else options.questions
    questions = read_questions(rows[:], language, options.prompts, asked, where)
    kept = [name for name in ("idx", "label", "changed", "question") if name in rows.column_names]
    return Part(config, rows.select_columns(kept), questions)


def read_questions(
    columns: Mapping[str, Sequence[Any]], language: str, prompts: str, questions: str, where: str
) -> list[Question]:
    """Rows of XCOPA's or SIQA's columns, or of a view of them, as questions.

    Args:
        columns: name -> values; `premise` or `context`, `question`, `choice1` to `choice3` or `answerA` to `answerC`,
            `label`. Columns that a view hides are missing.
        language, prompts: of the prompts that stand for `cause` and `effect`; see `prompts_for`. SIQA's questions are
            prompts themselves.
        questions: `files` or `corrected`.
        where: begins the sentence of an error.

    Raises:
        InputError: a column is missing, a question has no prompt, or a label is none of the choices.
    """
    layout = next((names for names in CHOICES if names[0] in columns), ())
    if not layout or "label" not in columns:
        raise InputError(f"{where}: expected the columns of XCOPA or SIQA, found {', '.join(columns)}.")
    choices = list(zip(*(columns[name] for name in layout if name in columns), strict=True))
    premises = next((columns[name] for name in PREMISES if name in columns), [""] * len(choices))
    asked = _asked(columns, questions, where)
    known = prompts_for(language, prompts) if asked and layout == CHOICES[0] else None
    found = []
    for row, own in enumerate(choices):
        label, question = columns["label"][row], asked[row] if asked else ""
        if label is None or not 0 <= label < len(own):
            raise InputError(f"{where}, row {row + 1}: expected a label from 0 to {len(own) - 1}, found {label}.")
        if known is not None and question not in known:
            raise InputError(
                f"{where}, row {row + 1}: expected the question to be cause or effect, found {question!r}."
            )
        found.append(Question(premises[row] or "", known[question] if known is not None else question, own, label))
    return found


def _asked(columns: Mapping[str, Sequence[Any]], questions: str, where: str) -> Sequence[str] | None:
    if "question" not in columns or questions != QUESTIONS[1]:
        return columns.get("question")
    if CORRECTED not in columns:
        raise InputError(f"--questions corrected: {where} has no column {CORRECTED}; prepare the folder again.")
    return columns[CORRECTED]


def _questions_hash(tests: Mapping[str, Mapping[str, Part]]) -> str:
    """SHA-256 of the test questions, equal where two runs answered the same ones."""
    digest = hashlib.sha256()
    for view, parts in tests.items():
        for config, part in parts.items():
            for question in part.viewed(view if view != TRANSLATION else FULL):
                digest.update(json.dumps([view, config, question.context, question.choices, question.label]).encode())
    return digest.hexdigest()
