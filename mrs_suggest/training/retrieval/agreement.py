"""For how many messages two forms of a model give the same suggestions, and what to ask them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.predictions import SUGGESTIONS, predictions_name, read_predictions
from mrs_suggest.suggest.answering import Answerer, reply_texts
from mrs_suggest.training.export.card import Record

MOST = 1000  # messages of a language: ours; then the share is known within .005 where it is .98
Messages = Mapping[str, Sequence[str]]
Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]


def agreement(before: Answerer, after: Answerer, messages: Messages) -> tuple[int, int]:
    """For how many messages both give the same suggestions in the same order, and how many there are.

    Args:
        messages: by language.
    """
    same = total = 0
    for language, texts in messages.items():
        answers = (reply_texts(system.suggest(texts, language, SUGGESTIONS)) for system in (before, after))
        same += sum(old == new for old, new in zip(*answers, strict=True))
        total += len(texts)
    return same, total


def predicted_messages(run: Path, languages: Iterable[str]) -> dict[str, list[str]]:
    """The different messages of a run's prediction files, which are those of the test split.

    Raises:
        InputError: a file is missing or damaged.
    """
    files = {language: run / predictions_name(language) for language in languages}
    return {
        language: list(dict.fromkeys(prediction.message for prediction in read_predictions(path)))
        for language, path in files.items()
    }


def messages_to_compare(
    run: Path, record: Record, data: str | None, file: Path | None
) -> tuple[str, dict[str, list[str]]]:
    """Messages by language, and in a word what they are: those of `file`, else of the validation split, else of the
    run's predictions.

    Args:
        data: a prepared folder, a hub id or an installed name; None: the run's data, if they can be opened.
        file: a language and a message in each line, separated by a tab.

    Raises:
        InputError: there are no such messages.
    """
    languages = list(record["metrics"]["signatures"])
    if file is not None:
        return "given", _cut(_read_messages(file, languages))
    split, pairs = _pairs(run, record, data, "--messages with a file")
    return split, _cut({code: messages for code, (messages, _) in pairs.items()})


def pairs_to_compare(run: Path, record: Record, data: str | None) -> tuple[str, Pairs]:
    """Messages and their replies by language, at most `MOST` of each, and in a word what they are: those of the
    validation split, else of the run's predictions.

    Args:
        data: as for `messages_to_compare`.

    Raises:
        InputError: there are no such pairs.
    """
    split, pairs = _pairs(run, record, data, "train the model again")
    return split, {code: (messages[:MOST], replies[:MOST]) for code, (messages, replies) in pairs.items()}


def _pairs(run: Path, record: Record, data: str | None, otherwise: str) -> tuple[str, Pairs]:
    languages = list(record["metrics"]["signatures"])
    name, revision = (data, None) if data else (str(record["data"]["id"]), record["data"].get("revision"))
    try:
        return "validation", _validation_pairs(name, revision, languages)
    except InputError:
        if data is not None:
            raise
    files = {language: run / predictions_name(language) for language in languages}
    if not all(path.is_file() for path in files.values()):
        raise InputError(
            f"{run}: neither its data ({record['data']['id']}) nor its predictions are here, so answers cannot be "
            f"compared; pass --data with the prepared data, or {otherwise}."
        )
    found = {language: read_predictions(path) for language, path in files.items()}
    return "test", {
        code: ([row.message for row in rows], [row.reference for row in rows]) for code, rows in found.items()
    }


def _validation_pairs(data: str, revision: str | None, languages: Sequence[str]) -> Pairs:
    source = open_prepared(data, revision)
    known = [code for code in languages if code in source.configs()]
    if not known:
        raise InputError(f"{data}: has none of the model's languages, {' '.join(languages)}; pass other data.")
    splits = {code: source.load(code, "validation") for code in known}
    return {code: (split["message"][:], split["reply"][:]) for code, split in splits.items()}


def _read_messages(path: Path, languages: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, line in read_lines(path):
        language, tab, message = line.partition("\t")
        if not tab or language not in languages or not message.strip():
            raise InputError(
                f"{path}, line {number}: expected one of {' '.join(languages)}, a tab and a message, found {line!r}."
            )
        found.setdefault(language, []).append(message)
    if not found:
        raise InputError(f"{path}: the file is empty; expected a language, a tab and a message in each line.")
    return found


def _cut(messages: Messages) -> dict[str, list[str]]:
    return {
        language: [text for text in dict.fromkeys(texts) if text.strip()][:MOST] for language, texts in messages.items()
    }
