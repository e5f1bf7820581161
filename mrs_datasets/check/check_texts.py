"""Whether texts are in their config's language: by their script, and by fastText if a model is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import ERROR, WARNING
from mrs_datasets.check.findings import Examples, Finding, batches
from mrs_suggest.common.text.language_id import MIN_LANGUAGE_SCORE, Identify, is_other_language
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.scripts import in_other_script, knows_script

# Chosen so that a file in the wrong language is an error, but no published file is
# (tests/mrs_datasets/check/test_check.py).
MIN_ROWS = 20  # of a split; in smaller ones chance decides
MOST = 0.5  # of the rows: more of them in one other language (in another script) ...
FEW = 0.1  # ... and fewer in their own


def languages_found(
    files: list[Path], language: str, names: list[str], where: str, identify: Identify, known: frozenset[str]
) -> Iterator[Finding]:
    """Rows whose texts are identified as another language: a warning; an error if most are identified as the same one.

    Args:
        names: the columns in `language`; the texts of a row are identified together.
        known: languages that `identify` can recognise; nothing is checked if `language` is not among them.
    """
    plain = language.partition("-")[0]
    if plain not in known:
        return
    other, rows, labels = Examples(), 0, Counter[str]()
    for start, texts in _texts(files, names):
        found = identify(texts)
        rows += len(texts)
        labels.update(label for label, score in found if score > MIN_LANGUAGE_SCORE)
        shown = [f"{label} {score:.2f}: {text}" for (label, score), text in zip(found, texts, strict=True)]
        other.add([is_other_language(one, language) for one in found], pa.array(shown, pa.string()), start)
    own = labels.pop(plain, 0)
    most, count = labels.most_common(1)[0] if labels else ("", 0)
    if rows >= MIN_ROWS and count > MOST * rows and own < FEW * rows:
        yield from other.finding(ERROR, f"most texts identified as {most}, not {language}", where)
    else:
        yield from other.finding(WARNING, f"identified as another language than {language}", where)


def scripts_found(files: list[Path], language: str, names: list[str], where: str) -> Iterator[Finding]:
    """Rows without a letter of their language's script: a warning; an error if most rows are."""
    described = find_language(language)
    if described is None or not knows_script(described.script):
        return
    other, rows = Examples(), 0
    for start, texts in _texts(files, names):
        rows += len(texts)
        mask = [in_other_script(text, described.script) for text in texts]
        other.add(mask, pa.array(texts, pa.string()), start)
    most = rows >= MIN_ROWS and other.count > MOST * rows
    rule = f"{'most texts ' * most}without a letter of {language}'s script"
    yield from other.finding(ERROR if most else WARNING, rule, where)


def _texts(files: list[Path], names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of the first row, text of each row) of batches; several texts are joined, of `{text, ...}` the first."""
    for start, table in batches(files, names):
        columns = []
        for name in names:
            values, kind = table[name].to_pylist(), table[name].type
            if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
                values = [" ".join(word or "" for word in words or ()) for words in values]
            elif pa.types.is_list(kind):
                values = [entries[0]["text"] if entries else "" for entries in values]
            columns.append(values)
        yield start, [" ".join(text or "" for text in row) for row in zip(*columns, strict=True)]
