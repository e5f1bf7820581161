"""The guard of a run: fitted to its encoder's vectors of sensitive messages, and measured on a sheet of hard ones."""

import csv
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from mrs_datasets.everyday.situations import TEXTS, UNSEEN, read_situations
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.texts.text_sources import Reading, TextSource
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.models.saved.families import family_of, write_record
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.guard import EVERYDAY, SENSITIVE
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.guard.guard_space import GuardSpace, Vectors
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.suggester import Suggester

DATA = "sample"  # the everyday messages are its, and mrs-everyday's
LEARNED, CALIBRATED, TESTED = "train", "validation", "test"  # their splits, and what each is for
SENTENCES = 1500  # of a source of further text; ours, chosen among 500 to 4,000
EACH = 3  # of mrs-everyday's training messages, one in so many; ours: all of them find no more
COLUMNS = ("language", "half", "class", "message")
BUILD, HELD_OUT, EARLIER, SAMPLE = "build", "held_out", "earlier", "sample"
HALVES = (BUILD, HELD_OUT, EARLIER)


def fit_guard(
    encode: Callable[[list[str]], Vectors],
    data: GuardData,
    languages: Collection[str],
    own: Mapping[str, Sequence[str]] = MappingProxyType({}),
    sentences: Sequence[str] = (),
) -> GuardSpace:
    """Fit the linear model of a guard.

    It learns from the examples and training messages of the sample and mrs-everyday; its thresholds are set on their
    validation messages. Messages that the word lists find sensitive are left out: both have some.

    Args:
        encode: n texts -> (n, dimension) vectors.
        languages: those of the model; it learns from their messages, or from those of all languages, where there are
            no examples in one of them.
        own: language -> messages of the validation split of the model's data, which set the thresholds, too.
        sentences: further everyday ones to learn from.
    """
    examples = data.prototypes_for(languages)
    everyday = {split: _everyday(data, split, examples) for split in (LEARNED, CALIBRATED)}
    calm = [(code, text) for code, texts in own.items() for text in texts]
    learned = [*everyday[LEARNED], *sentences]
    return GuardSpace.fit(encode, examples, learned, everyday[CALIBRATED], _without_sensitive(data, calm))


def _everyday(data: GuardData, split: str, languages: Collection[str]) -> list[str]:
    sample = open_prepared(DATA)
    own = [code for code in sample.languages() if code in languages]
    texts = [(code, text) for code in own for text in sample.load(code, split)["message"]]
    each = EACH if split == LEARNED else 1
    texts += [(code, text) for code in own for text in situation_messages(code, [split])[::each]]
    return _without_sensitive(data, texts)


def situation_messages(language: str, splits: Sequence[str]) -> list[str]:
    """The messages of mrs-everyday in a language, those of some of its splits."""
    path = TEXTS / f"{language}.txt"
    found = read_situations(path) if path.is_file() else []
    return [text for one in found for text in one.messages if one.split(text) in splits]


def _drawn(data: GuardData, source: TextSource) -> list[str]:
    """A seeded sample of a source's sentences, without those that the word lists find sensitive."""
    found = list(dict.fromkeys(source.items(Reading())))
    drawn = Random(0).sample(found, min(SENTENCES, len(found)))
    return _without_sensitive(data, [(source.language, text) for text in drawn])


def _without_sensitive(data: GuardData, texts: Iterable[tuple[str, str]]) -> list[str]:
    """The texts, each once, that their language's word lists do not find sensitive."""
    return [text for code, text in dict.fromkeys(texts) if code not in data or data[code].sensitive(text) is None]


@dataclass(frozen=True)
class SheetRow:
    """A message and the reason not to answer it, or `everyday`."""

    language: str
    half: str
    reason: str
    message: str


@dataclass(frozen=True)
class GuardFigures:
    """Figures of the guard in one language.

    Attributes:
        sensitive: messages of the sheet that should not be answered; `vetoed` are not, `named` for the expected reason.
        lookalikes: everyday messages of the sheet that only sound grave; `lookalike_alarms` are not answered.
        everyday: different messages of the sample's test split without the annotated ones; `alarms` are not answered.
        situations: messages of mrs-everyday's test and unseen splits; `situation_alarms` are not answered.
    """

    sensitive: int
    vetoed: int
    named: int
    lookalikes: int
    lookalike_alarms: int
    everyday: int
    alarms: int
    situations: int = 0
    situation_alarms: int = 0


def read_sheet(path: Path) -> list[SheetRow]:
    """Read a sheet, tab-separated: language, half, class and message; InputError if a row is not one of these.

    A half is `build`, `held_out`, `earlier` (held out before, and read several times since), or `sample` for messages
    of the embedded sample that are not everyday ones.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); pass a tab-separated file.") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        raise InputError(f"{path}: expected a first line with the columns {' '.join(COLUMNS)}, tab-separated.")
    for number, row in enumerate(rows[1:], start=2):
        halves, reasons = (*HALVES, SAMPLE), (*SENSITIVE, EVERYDAY)
        if len(row) != len(COLUMNS) or row[1] not in halves or row[2] not in reasons or not row[3].strip():
            raise InputError(
                f"{path}, line {number}: expected {' '.join(COLUMNS)}; a half is one of {' '.join(halves)}, a class "
                f"one of {' '.join(reasons)}."
            )
    return [SheetRow(*row) for row in rows[1:]]


def measure(guard: Guard, sheet: Sequence[SheetRow], half: str, languages: Iterable[str]) -> dict[str, GuardFigures]:
    """Language -> the figures of a guard, on a half of the sheet and on test messages."""
    data = open_prepared(DATA)
    found = {}
    for language in languages:
        own = [row for row in sheet if row.language == language and row.half == half]
        if not own or language not in data.languages():
            continue
        reasons = guard.reasons([row.message for row in own], language)
        pairs = [(row.reason, reason) for row, reason in zip(own, reasons, strict=True)]
        grave = [pair for pair in pairs if pair[0] != EVERYDAY]
        light = [reason for wished, reason in pairs if wished == EVERYDAY]
        annotated = {row.message for row in sheet if row.language == language and row.half == SAMPLE}
        everyday = [text for text in dict.fromkeys(data.load(language, TESTED)["message"]) if text not in annotated]
        situations = situation_messages(language, [TESTED, UNSEEN])
        found[language] = GuardFigures(
            sensitive=len(grave),
            vetoed=sum(reason is not None for _, reason in grave),
            named=sum(wished == reason for wished, reason in grave),
            lookalikes=len(light),
            lookalike_alarms=sum(reason is not None for reason in light),
            everyday=len(everyday),
            alarms=sum(reason is not None for reason in guard.reasons(everyday, language)),
            situations=len(situations),
            situation_alarms=sum(reason is not None for reason in guard.reasons(situations, language)),
        )
    if not found:
        raise InputError(f"the sheet has no {half} rows in a language of the model and of the embedded sample.")
    return found


def update_guard(
    run: Path, lists: Path | None, sheet: Path | None, half: str = HELD_OUT, text: Sequence[str] = ()
) -> dict[str, GuardFigures]:
    """Rewrite `guard/` of a run, and, with a sheet, the figures to its record and card.

    Args:
        text: sources of everyday sentences, `LANG=SOURCE`, of each of which it learns from at most `SENTENCES`.

    Raises:
        InputError: `run` holds no finished run, or the folder, the sheet or a source is damaged.
    """
    record = read_record(run)
    family = family_of(record, run)
    rows = read_sheet(sheet) if sheet else []
    data = GuardData(lists)
    suggester = Suggester.from_pretrained(run, guard=False)
    if suggester.model.message_vectors(["?"]) is not None:

        def encode(texts: list[str]) -> Any:
            return suggester.model.message_vectors(texts)

        sources = [TextSource.parse(value, "--text") for value in text]
        for source in sources:
            if source.language not in suggester.languages:
                known = " ".join(suggester.languages)
                raise InputError(f"{source}: the model has no replies in {source.language}, but in {known}.")
        sentences = [_drawn(data, source) for source in sources]
        fit_guard(encode, data, suggester.languages, sentences=list(chain(*sentences))).save(run)
        if record.get("guard_text") and not text:
            print("note: the guard had learned from --text, which this fit leaves out; pass it again.", file=sys.stderr)
        record["guard_text"] = [
            [source.language, source.name(), len(some)] for source, some in zip(sources, sentences, strict=True)
        ]
    elif text:
        raise InputError(f"--text: {run} has no encoder, so that its guard is the word lists alone; leave it out.")
    figures = {}
    if sheet:
        figures = measure(Guard(data, suggester.model, run), rows, half, suggester.languages)
        record["guard"] = {
            "sheet": file_sha256(sheet)[:16],
            "half": half,
            "own_lists": lists is not None,
            "languages": {language: asdict(row) for language, row in figures.items()},
        }
    write_record(run, record, family)
    return figures
