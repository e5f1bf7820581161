"""For how many messages two forms of a model give the same suggestions, and messages to ask them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mrs_core.errors import InputError
from mrs_core.lines import read_lines
from mrs_core.predictions import SUGGESTIONS, read_predictions
from mrs_datasets.prepared import open_prepared
from mrs_models.answering import Answerer, reply_texts
from mrs_training.card import Record
from mrs_training.run import RunFolder

MOST = 1000  # messages of a language: ours; then the share is known within .005 where it is .98
Messages = Mapping[str, Sequence[str]]


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
    files = {language: run / RunFolder.predictions_name(language) for language in languages}
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
    name, revision = (data, None) if data else (str(record["data"]["id"]), record["data"].get("revision"))
    try:
        return "validation", _cut(_validation_messages(name, revision, languages))
    except InputError:
        if data is not None:
            raise
    if not all((run / RunFolder.predictions_name(language)).is_file() for language in languages):
        raise InputError(
            f"{run}: neither its data ({record['data']['id']}) nor its predictions are here, so answers cannot be "
            "compared; pass --data with the prepared data, or --messages with a file."
        )
    return "test", _cut(predicted_messages(run, languages))


def _validation_messages(data: str, revision: str | None, languages: Sequence[str]) -> dict[str, list[str]]:
    source = open_prepared(data, revision)
    known = [code for code in languages if code in source.configs()]
    if not known:
        raise InputError(f"{data}: has none of the model's languages, {' '.join(languages)}; pass other data.")
    return {code: source.load(code, "validation")["message"][:] for code in known}


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
