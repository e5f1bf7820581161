"""The data of one run, by language, and the comparison of its model with the baselines on test."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
from datasets import Dataset, concatenate_datasets

from mrs_datasets.catalogue import CONTEXT
from mrs_datasets.prepared.prepared import PreparedData, bars_for_long_work, open_prepared
from mrs_datasets.texts.text_sources import Reading, TextSource
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import Prediction, predictions_name, write_predictions
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.comparison import MakeSystem, compare_on_test
from mrs_suggest.evaluation.language_data import (
    EVALUATION_SEED,
    LanguageData,
    examples_hash,
    load_language,
    sample_rows,
)
from mrs_suggest.evaluation.paper_results import paper_rows
from mrs_suggest.evaluation.results import EvaluationConfig
from mrs_suggest.models.retrieval.context import ContextReader
from mrs_suggest.models.retrieval.perturbed_texts import perturbed
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import FROM_SCRATCH
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.training.pretraining.texts import TextData, read_texts
from mrs_suggest.training.reply.options import ReplyArguments, TrainingPlan, make_plan

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Options that must not change when a run is resumed.
RESUME_KEYS = (
    "setting", "sampling_alpha", "batches", "length_window", "message_tokens", "reply_tokens", "max_train_examples",
    "freeze_embeddings",
)  # fmt: skip
CURVES = {"weighted_rouge": "weighted ROUGE", "mrr": "MRR (1 of 100)"}
LONG_WORK = 1_000_000  # rows from which a progress bar helps


@dataclass(frozen=True)
class RunData:
    """The pairs that a run trains on, by config (`es` or `mt-es`), and the languages it is evaluated on.

    Attributes:
        origin: the id of the data, their revision or content hash, and the sizes of splits that a limit cut.
        more_text: sentences that are trained on in addition to the pairs, without replies.
        watched: language -> validation messages that are answered while the model trains.
    """

    plan: TrainingPlan
    sources: dict[str, Dataset]
    validation: list[LanguageData]
    test: list[LanguageData]
    origin: Record = field(default_factory=dict)
    more_text: TextData | None = None
    watched: dict[str, list[str]] = field(default_factory=dict)

    def by_language(self) -> dict[str, list[Dataset]]:
        found: dict[str, list[Dataset]] = {}
        for source in self.plan.sources:
            found.setdefault(source.language, []).append(self.sources[source.config])
        return found

    def texts(self) -> Iterator[str]:
        """Messages and replies of the training sources, and the text that is trained on with them."""
        for pairs in self.sources.values():
            for column in ("message", "reply"):
                for batch in pairs.select_columns(column).iter(batch_size=10_000):
                    yield from batch[column]
        yield from self.more_text.texts() if self.more_text else ()

    def languages(self) -> list[str]:
        trained = [source.language for source in self.plan.sources]
        more = [*(self.more_text.train if self.more_text else ()), *self.watched]
        return list(dict.fromkeys([*trained, *self.plan.validation, *self.plan.test, *more]))

    def facts(self) -> Record:
        """Facts for the record of a run: the data, the rows used, a hash of the test examples, and the plan."""
        tested = {part.language: part.test for part in self.test}
        data = {**self.origin, "rows": self.rows(), "test_hash": examples_hash(tested)}
        if self.more_text:
            text = self.more_text.facts()
            shown = {name: text["data"][name] for name in ("title", "content_hash", "rows")}
            data["more_text"] = {**shown, "sources": text["texts"]["sources"]}
        return {"data": data, "plan": self.plan.facts()}

    def rows(self) -> dict[str, dict[str, int]]:
        """Rows used, by config, for the record of the run."""
        rows: dict[str, dict[str, int]] = {}
        for config, pairs in self.sources.items():
            rows.setdefault(config, {})["train"] = len(pairs)
        for part in self.validation:
            rows.setdefault(part.language, {})["validation"] = len(part.validation)
        for part in self.test:
            rows.setdefault(part.language, {}).update(test=len(part.test), responses=len(part.responses.replies))
        return rows


def load_run_data(source: PreparedData, options: ReplyArguments, seed: int, need_responses: bool = True) -> RunData:
    """Load what the plan of the options asks for; each split is cut to a seeded sample if the options say so.

    Args:
        seed: draws the training pairs; validation and test are drawn with `EVALUATION_SEED`.
        need_responses: refuse a language without a response set, as a retriever must; else the baselines use the most
            frequent training replies.

    Raises:
        InputError: the data lack a language, a split or a response set, or the options contradict each other.
    """
    plan = make_plan(
        source.configs(), options.setting, options.languages, options.train, options.validation, options.sampling_alpha
    )
    limits = {split: getattr(options, f"max_{split}_examples") for split in ("train", "validation", "test")}
    sources = {
        origin.config: sample_rows(source.load(origin.config, "train"), limits["train"], seed)
        for origin in plan.sources
    }
    codes = dict.fromkeys([*plan.validation, *plan.test])
    parts = {code: load_language(source, code, limits, seed, need_responses) for code in codes}
    validation, test = ([parts[code] for code in codes] for codes in (plan.validation, plan.test))
    data = RunData(plan, sources, validation, test, source.identity(plan.test, sources))
    cut = {
        f"{config}/{split}": there
        for config, rows in data.rows().items()
        for split, used in rows.items()
        if used == limits.get(split) and (there := len(source.load(config, split))) > used
    }
    return replace(data, origin={**data.origin, "rows_before_limits": cut}) if cut else data


def load_reply_data(options: ReplyArguments, training: TrainingArguments, need_responses: bool) -> RunData:
    """The data of a run; see `load_run_data`. Small sources are noted, and languages need the metrics' tokenizers."""
    source = open_prepared(options.data, options.data_revision)
    data = load_run_data(source, options, training.seed, need_responses)
    for part in data.test:
        if options.unit not in part.test.column_names:
            raise InputError(f"--unit {options.unit}: the data have only {' '.join(part.test.column_names)}.")
    for part in (*data.validation, *data.test):
        try:
            get_tokenizer(part.language)  # refused now, not after training
        except (ImportError, ValueError) as error:
            raise InputError(f"--languages {part.language}: {error}") from None
    if training.process_index == 0:
        step = training.train_batch_size * training.world_size * training.gradient_accumulation_steps
        warn_about_small_sources(data, options.batches, step)
        if cut := data.origin.get("rows_before_limits"):
            told = ", ".join(f"{place} with {there:,} rows" for place, there in cut.items())
            print(f"note: the --max_..._examples limits take a sample of {told}.", file=sys.stderr)
    return data


def read_more_text(option: str, values: Sequence[str]) -> TextData | None:
    """The sentences of an option with values `LANG=SOURCE`, None without any; InputError if one cannot be read."""
    if not values:
        return None
    return read_texts([[TextSource.parse(value, option) for value in values], (), ()], Reading(), 0)


def warn_about_small_sources(data: RunData, batches: str, pairs_a_step: int) -> None:
    """Warn on stderr about sources with fewer pairs than a step, whose pairs repeat within it.

    Args:
        batches: `language`, where a step has one source, or `mixed`.
    """
    sizes = {config: len(pairs) for config, pairs in data.sources.items()}
    if batches == "mixed":
        sizes = {" ".join(sizes): sum(sizes.values())}
    for name, size in sizes.items():
        if 0 < size < pairs_a_step:
            print(
                f"note: {name} has {size:,} training pairs, fewer than the {pairs_a_step:,} of a step, so each is "
                f"repeated about {pairs_a_step / size:.3g} times in it; lower --per_device_train_batch_size.",
                file=sys.stderr,
            )


def byte_lengths(pairs: Dataset) -> np.ndarray:
    """(rows, 2) UTF-8 bytes of message and reply: proportional to tokens, within a language."""
    found, row = np.empty((len(pairs), 2), np.int32), 0
    for batch in pairs.select_columns(["message", "reply"]).with_format("arrow").iter(batch_size=100_000):
        for side, name in enumerate(("message", "reply")):
            found[row : row + len(batch), side] = pc.binary_length(batch[name])
        row += len(batch)
    return found


def with_context(data: RunData, reader: ContextReader) -> RunData:
    """The data with turns put before the messages by `reader`; InputError without the column `CONTEXT`."""

    def read(rows: Dataset) -> Dataset:
        if CONTEXT not in rows.column_names:
            raise InputError(
                f"--context_turns {reader.turns}: {data.origin['id']} has pairs without the column `{CONTEXT}`; build "
                f"the data with `mrs data build --context {reader.turns}`, or leave the option out."
            )
        return rows.map(
            lambda row: {"message": reader.read(row[CONTEXT].split("\n"), row["message"])}, remove_columns=CONTEXT
        )

    def read_all(part: LanguageData) -> LanguageData:
        return replace(part, train=read(part.train), validation=read(part.validation), test=read(part.test))

    with bars_for_long_work(max(map(len, data.sources.values())) > LONG_WORK):
        validation, test = (list(map(read_all, parts)) for parts in (data.validation, data.test))
        sources = {config: read(rows) for config, rows in data.sources.items()}
    return replace(data, sources=sources, validation=validation, test=test)


def with_reply_ids(pairs: Dataset) -> Dataset:
    """Messages, replies and `label`, equal for replies with the same normalised form, on every rank and machine."""
    with bars_for_long_work(len(pairs) > LONG_WORK):
        return pairs.select_columns(["message", "reply"]).map(_reply_ids, batched=True, desc="reply ids")


def texts_to_copy(data: RunData, copies: int, seed: int) -> list[Dataset]:
    """What a student of a teacher's vectors learns: the training sources, each followed by texts without a reply, and
    by perturbed versions of all its texts; then the sentences of `more_text`, alternately as messages and replies.

    Texts without a reply stand for their own: replies, which are what people write, too, and the guard's examples, so
    that the guard of the trained model knows grave messages.
    """
    lone = [list(texts) for texts in (data.more_text.train.values() if data.more_text else ())]
    sentences = [Dataset.from_dict({"message": texts[::2], "reply": texts[1::2] + texts[-1:] * (len(texts) % 2)})
                 for texts in lone]  # fmt: skip
    if not copies:
        return [*data.sources.values(), *sentences]
    examples = GuardData().prototypes
    extended = []
    for source in data.plan.sources:
        pairs = data.sources[source.config].select_columns(["message", "reply"])
        answered = dict(zip(pairs["message"][:], pairs["reply"][:], strict=True))
        texts = [*answered.values(), *chain.from_iterable(examples.get(source.language, {}).values())]
        alone = {text: text for text in texts if text not in answered}
        learned = answered | alone
        messages = [*alone, *perturbed(list(learned), source.language, copies, seed)]
        replies = [*alone, *(reply for reply in learned.values() for _ in range(copies))]
        more = Dataset.from_dict({"message": messages, "reply": replies}, features=pairs.features)
        extended.append(concatenate_datasets([pairs, more]))
    return [*extended, *sentences]


def with_rows(pairs: Dataset) -> Dataset:
    """Add the row of each pair to its `label`, after the reply's id; see
    `mrs_suggest.models.retrieval.distillation`."""
    with bars_for_long_work(len(pairs) > LONG_WORK):
        return pairs.map(_rows, batched=True, with_indices=True, desc="rows")


def _rows(batch: dict[str, list[Any]], indices: list[int]) -> dict[str, list[list[int]]]:
    return {"label": [list(pair) for pair in zip(batch["label"], indices, strict=True)]}


def _reply_ids(batch: dict[str, list[Any]]) -> dict[str, list[int]]:
    digests = (hashlib.blake2b(normalise_reply(r).encode(), digest_size=8).digest() for r in batch["reply"])
    return {"label": [int.from_bytes(digest, "big", signed=True) for digest in digests]}


# --- the test


@dataclass(frozen=True)
class Compared:
    """A trained model and the baselines on the test split of each language.

    Attributes:
        figures: for the record, with the paper's rows.
        milliseconds: to answer a message, by system.
        files: name -> writes a language's test messages, their replies and the suggestions.
        named: how a run's last line names these files.
    """

    figures: Record
    milliseconds: dict[str, float]
    files: Mapping[str, Callable[[Path], None]]
    named: str


def reply_identity(options: ReplyArguments, facts: Record) -> Record:
    """The settings that must match when a run of a reply model is resumed."""
    return {
        "train": facts["plan"]["train"],
        "validation": facts["plan"]["validation"],
        **({"more text": text["content_hash"]} if (text := facts["data"].get("more_text")) else {}),
        "vocabulary": options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
        **{name: getattr(options, name) for name in RESUME_KEYS},
    }


def compare_replies(
    systems: list[MakeSystem], parts: list[LanguageData], options: ReplyArguments, family: str, ranks: bool
) -> Compared:
    """Compare systems, the trained model first, with the baselines.

    Args:
        ranks: whether systems also rank replies, for which a response set is needed.
    """
    config = EvaluationConfig.available(ranks, options.language_model, options.unit)
    compared = compare_on_test(systems, parts, EVALUATION_SEED, config)
    languages = [part.language for part in parts]
    figures = {**compared.figures, "paper": published_figures(family, options, languages)}
    files = {predictions_name(part.language): partial(_write, part, compared.suggestions) for part in parts}
    named = predictions_name(languages[0] if len(languages) == 1 else "LANG")
    return Compared(figures, compared.milliseconds, files, named)


def _write(part: LanguageData, suggestions: Mapping[str, Sequence[Sequence[str]]], path: Path) -> None:
    rows = zip(part.test["message"][:], part.test["reply"][:], suggestions[part.language], strict=True)
    write_predictions(path, (Prediction(message, reply, tuple(three)) for message, reply, three in rows))


def published_figures(family: str, options: ReplyArguments, languages: Sequence[str]) -> list[dict[str, Any]]:
    """The paper's rows for this setting, of all models of the family; none if the run has no setting of the paper."""
    if options.setting is None or options.train is not None:
        return []
    rows = paper_rows(family, setting=options.setting)
    return [asdict(row) for row in rows if row.language in languages]
