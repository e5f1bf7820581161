"""Shared by exports of encoders and generators: which runs can have one, what both forms of a model are asked,
whether they answer alike, speeds, and how an export gets into the run."""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.io.manifest import has_hashes
from mrs_suggest.common.text.predictions import SUGGESTIONS, predictions_name, read_predictions
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.saved.families import Family, family_of, write_record
from mrs_suggest.models.saved.record import CARD, EXPORTS, RECORD, Record, as_json, read_record
from mrs_suggest.models.starting_points import ADAPTER_RECORD
from mrs_suggest.suggest.answering import Answerer, reply_texts

TIMED = 100  # messages
MOST = 1000  # messages of a language: ours; then the share is known within .005 where it is .98
Messages = Mapping[str, Sequence[str]]
Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]
KINDS = tuple(dict.fromkeys(name.partition("/")[0] for name in EXPORTS))


def require_exportable(run: Path) -> None:
    """Refuse, by an InputError, a run that is damaged, is not a folder here, or holds adapters only."""
    if (run / ADAPTER_RECORD).is_file():
        raise InputError(f"{run}: holds adapters only; pass the folder of their run, where they are merged.")
    open_model_folder(run, verify=has_hashes(run))  # the record gets new hashes of all files


@contextmanager
def partial_export(run: Path, kind: str) -> Iterator[Path]:
    """A folder to make an export in, inside the run's own; it is always removed."""
    with writing(run):
        folder = tempfile.TemporaryDirectory(prefix=f".{kind}.partial-", dir=run)
    with folder as place:
        yield Path(place)


def size_and_versions(made: Path, int8: bool, packages: Sequence[str]) -> Record:
    """The facts of an export for the record, of any kind."""
    size = sum(path.stat().st_size for path in made.iterdir())
    return {"int8": int8, "bytes": size, "versions": {name: metadata.version(name) for name in packages}}


def speeds(systems: Mapping[str, Callable[[list[str]], object]], texts: Sequence[str]) -> dict[str, float]:
    """Median milliseconds of one message alone; the systems take turns, so that a busy machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in systems}
    for text in texts[:TIMED]:
        for name, call in systems.items():
            begin = time.perf_counter()
            call([text])
            times[name].append(1000 * (time.perf_counter() - begin))
    found = {name: round(statistics.median(some), 3) for name, some in times.items()}
    print("one message: " + ", ".join(f"{name} {value:.2f} ms" for name, value in found.items()))
    return found


def keep_export(run: Path, record: Record, made: Path, facts: Record, family: Family) -> None:
    """Move an export into the run's folder, and list it in the record with its hashes."""
    record = _removed(run, record, family)  # first, so that an interrupted export leaves a folder that loads
    made.rename(run / made.name)
    write_record(run, {**record, "exports": {made.name: facts}}, family)


def remove_export(run: Path) -> None:
    """Take the exports out of a run's folder, its record and its card; InputError if it has none."""
    record = read_record(run)
    family = family_of(record, run / RECORD)
    if not record.get("exports") and not any((run / kind).is_dir() for kind in KINDS):
        raise InputError(f"{run}: has no export.")
    with writing(run):
        _removed(run, record, family)


def _removed(run: Path, record: Record, family: Family) -> Record:
    """The record without exports; they are taken out of the folder after it."""
    rest = {key: value for key, value in record.items() if key != "exports"}
    if rest != record:
        rest["files"] = {name: entry for name, entry in record["files"].items() if name not in EXPORTS}
        atomic_write(run / CARD, family.render(rest))
        atomic_write(run / RECORD, as_json(rest))
    for kind in KINDS:
        shutil.rmtree(run / kind, ignore_errors=True)
    return rest


# --- what both forms are asked


def agreement(before: Answerer, after: Answerer, messages: Messages) -> tuple[int, int]:
    """For how many messages both give the same suggestions in the same order, and how many there are."""
    same = total = 0
    for language, texts in messages.items():
        answers = (reply_texts(system.suggest(texts, language, SUGGESTIONS)) for system in (before, after))
        same += sum(old == new for old, new in zip(*answers, strict=True))
        total += len(texts)
    return same, total


def predicted_messages(run: Path, languages: Iterable[str]) -> dict[str, list[str]]:
    """The different messages of a run's prediction files, those of the test split; InputError if one is damaged."""
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
        raise InputError(f"{data}: lacks all of the model's languages, {' '.join(languages)}; pass other data.")
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
