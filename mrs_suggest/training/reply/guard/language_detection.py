"""The language detector of a run; `python -m mrs_suggest.training.reply.guard.language_detection RUN` adds it to an
existing one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData, load_language, sample_rows
from mrs_suggest.suggest.language_detector import DETECTOR, SURE, LanguageDetector
from mrs_suggest.training.export.families import family_of, write_record
from mrs_suggest.training.record import read_record

MOST_PAIRS = 10_000  # ours, of a language: more change nothing that short texts have


def train_detector(parts: Sequence[LanguageData]) -> LanguageDetector | None:
    """Learn to tell the languages apart from messages and replies of their training splits; None for one language."""
    if len(parts) < 2:
        return None
    pairs = {part.language: sample_rows(part.train, MOST_PAIRS, EVALUATION_SEED) for part in parts}
    return LanguageDetector.train(
        {language: [*rows["message"][:], *rows["reply"][:]] for language, rows in pairs.items()}
    )


def add_detector(run: Path, data: str | None = None) -> None:
    """Write the detector that a training run writes today to the folder of an existing run, and the record anew.

    Args:
        data: what the run was trained on, if its record does not say where that lies.

    Raises:
        InputError: `run` holds no finished run of several languages, or the data are not there.
    """
    record = read_record(run)
    family, languages, arguments = family_of(record, run), record["plan"]["test"], record["arguments"]
    if len(languages) < 2:
        raise InputError(f"{run}: answers only {languages[0]}, so there is nothing to detect.")
    source = open_prepared(data or arguments["data"], None if data else arguments["data_revision"])
    limits = {"train": arguments["max_train_examples"]}
    parts = [load_language(source, code, limits, record["seed"], need_responses=False) for code in languages]
    detector = train_detector(parts)
    assert detector is not None
    detector.save(run)
    write_record(run, record, family)
    (run / DETECTOR).chmod((run / "run.json").stat().st_mode & 0o777)
    found = measure(detector, {part.language: part.test["message"][:] for part in parts})
    print(
        f"wrote {run / DETECTOR}; of {found.messages:,} different test messages {found.right:,} right; "
        f"sure of {found.sure:,}, of which {found.sure_right:,} right"
    )


@dataclass(frozen=True)
class DetectionFigures:
    """How many messages a detector is right on, and sure of."""

    messages: int
    right: int
    sure: int
    sure_right: int


def measure(detector: LanguageDetector, messages: Mapping[str, Iterable[str]], sure: float = SURE) -> DetectionFigures:
    """The figures of a detector on messages of each language; equal ones count once.

    Args:
        sure: the probability from which it is.
    """
    found = [(code, *detector.rank(message)[0]) for code, own in messages.items() for message in dict.fromkeys(own)]
    right = [code == best for code, best, _ in found]
    sure_right = [code == best for code, best, probability in found if probability >= sure]
    return DetectionFigures(len(found), sum(right), len(sure_right), sum(sure_right))


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", help="the prepared data of the run, if its record does not say where they lie")
    options = parser.parse_args()
    add_detector(options.run, options.data)


if __name__ == "__main__":
    sys.exit(run_with_sentence("language_detection", main))
