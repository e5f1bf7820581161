"""Reads `mrs-everyday`, whose texts are described in `mrs_datasets/everyday/situations.py`."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.everyday.situations import EMBEDDED, EVERYDAY, REVIEWS, UNSEEN, Situation, read_situations
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES, count_responses
from mrs_datasets.prepared.schema import SPLITS, responses_config
from mrs_datasets.readers import Chunks
from mrs_suggest.common.errors import InputError


def read_everyday(folders: list[Path], report: Report) -> Chunks:
    """Read every `LANG.txt` of a folder with a `situations.tsv`; InputError if a file is missing or a line is wrong."""
    (folder,) = folders
    reviews = json.loads((folder / REVIEWS).read_text(encoding="utf-8")) if (folder / REVIEWS).is_file() else {}
    record = read_record(EVERYDAY)
    paths = {language: folder / f"{language}.txt" for language in record.languages}
    if not any(path.is_file() for path in paths.values()):
        raise InputError(
            f"{folder}: has no LANG.txt in a language of the data set; pass `{EMBEDDED}` or such a folder."
        )
    for language, path in paths.items():
        if not path.is_file():
            report.notes.append(f"{language}: no {path.name} in the source.")
            continue
        situations = read_situations(path)
        if review := reviews.get(language):
            changed = sum(review["changed_lines"].values())
            lines = sum(len(one.messages) + len(one.replies) for one in situations)
            report.notes.append(f"{language}: read by a second reader, who changed {changed:,} of {lines:,} lines.")
        yield from situation_chunks(language, situations)


def situation_chunks(language: str, situations: list[Situation]) -> Chunks:
    """The pairs of a language's situations by split, and the response set counted from the training replies."""
    schema = read_record(EVERYDAY).schema(language)
    splits: dict[str, list[tuple[str, ...]]] = {split: [] for split in (*SPLITS, UNSEEN)}
    for one in situations:
        for message in one.messages:
            rows = splits[one.split(message)]
            rows += [(message, reply, stance, one.name, one.topic, one.register) for stance, reply in one.replies]
    for split, rows in splits.items():
        if rows:
            columns = map(list, zip(*rows, strict=True))
            yield language, split, pa.table(dict(zip(schema.names, columns, strict=True)), schema)
    replies = Counter(row[1] for row in splits[SPLITS[0]])
    stances = {row[1]: row[2] for row in splits[SPLITS[0]]}
    counted = count_responses(replies, 1, MAX_RESPONSES)
    of_replies = pa.array([stances[reply] for reply in counted["reply"].to_pylist()], pa.string())
    yield responses_config(language), SPLITS[0], counted.append_column("stance", of_replies)
