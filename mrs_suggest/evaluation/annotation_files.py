"""The files of a human evaluation: blinded annotation files, and the key with the system of each side.

    DIR/key.json                      system of each side, hashes of the inputs, of the files and of every shown text
    DIR/annotations/annotator-1.csv   item, message, suggestions left, suggestions right, preference
    DIR/annotations/instructions.txt

Source: Zhang et al. 2021, sections 3.3 and 5.1: a message and the three suggestions of each of two systems, shown to
three annotators, who choose the set with more replies that they prefer to send, or a tie.

Annotators open the files in spreadsheet programs; see `mrs_suggest.common.io.sheets`.
"""

import json
import unicodedata
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, file_sha256
from mrs_suggest.common.io.sheets import (
    BULLET,
    and_more,
    escaped,
    item_of_row,
    read_sheet,
    require_unfilled,
    sheet_bytes,
    sheets_in,
    text_hash,
)
from mrs_suggest.common.text.predictions import Prediction, read_predictions

ANNOTATORS = 3  # section 3.3
EXAMPLES = 500  # section 5.1
SEED = 12345
KEY, ANNOTATIONS, INSTRUCTIONS = "key.json", "annotations", "instructions.txt"
KIND = "mrs annotate 1"  # in every key: the command that made it, and the version of its fields
TEXTS = ("message", "suggestions left", "suggestions right")
COLUMNS = ("item", *TEXTS, "preference")
PREFERENCES = ("left", "right", "tie")


class Item(BaseModel, extra="forbid", frozen=True):
    """One message with both systems' suggestions, as all annotators see it.

    Attributes:
        item: its number, from 1.
        line: of the prediction files, from 1, without a header.
        a_side: left or right, the side of system A.
    """

    item: int
    line: int
    a_side: Literal["left", "right"]
    texts: Annotated[tuple[str, ...], Field(min_length=len(TEXTS), max_length=len(TEXTS))]


class Key(BaseModel, extra="forbid", frozen=True):
    """The key that undoes the blinding.

    Attributes:
        systems: the two prediction files by name, A first.
        inputs: SHA-256 of their contents.
        same_suggestions: items for which both systems suggest the same texts.
        files: name -> SHA-256 of the annotation file as it was made.
    """

    systems: tuple[str, str]
    inputs: tuple[str, str]
    seed: int
    same_suggestions: int
    files: Annotated[dict[str, str], Field(min_length=1)]
    items: Annotated[tuple[Item, ...], Field(min_length=1)]


def make_annotation_files(
    paths: tuple[Path, Path], out: Path, annotators: int, examples: int | None, seed: int, overwrite: bool = False
) -> Key:
    """Write the folder `out`, completely or not at all.

    The items are drawn from the lines of the files. System A is left in half of them (drawn; one more or less where
    their number is odd), the same for all annotators, so that an annotator who always chooses one side favours no
    system. Each annotator gets the rows in another order.

    Args:
        examples: how many lines; None for all, up to `EXAMPLES`.

    Raises:
        InputError: a file is unreadable, the files do not have the same messages line by line, more examples are asked
            for than there are, or `out` exists (without `overwrite`, or with judgements in it).
    """
    lines = _paired(paths)
    if examples is not None and examples > len(lines):
        raise InputError(f"--examples {examples}: {paths[0]} has only {len(lines)} lines.")
    generator = np.random.default_rng(seed)
    count = min(EXAMPLES, len(lines)) if examples is None else examples
    chosen: list[int] = np.sort(generator.choice(len(lines), count, replace=False)).tolist()
    a_left: list[bool] = generator.permutation((np.arange(count) + generator.integers(2)) % 2 == 0).tolist()
    pairs = [lines[line] for line in chosen]
    shown = [_texts(a, b, left) for (a, b), left in zip(pairs, a_left, strict=True)]
    if overwrite and (out / KEY).is_file():  # atomic_folder refuses other folders
        require_unfilled(out / ANNOTATIONS, read_key(out).files, out)
    with atomic_folder(out, overwrite, marker=KEY) as folder:
        (folder / ANNOTATIONS).mkdir()
        instructions = resources.files("mrs_suggest.evaluation").joinpath(INSTRUCTIONS).read_text(encoding="utf-8")
        (folder / ANNOTATIONS / INSTRUCTIONS).write_text(instructions, encoding="utf-8")
        files = {}
        for annotator in range(1, annotators + 1):
            path = folder / ANNOTATIONS / f"annotator-{annotator}.csv"
            order = generator.permutation(count).tolist()
            path.write_bytes(sheet_bytes(COLUMNS, ([i + 1, *map(escaped, shown[i]), ""] for i in order)))
            files[path.name] = file_sha256(path)
        key = Key(
            systems=(str(paths[0]), str(paths[1])),
            inputs=(file_sha256(paths[0]), file_sha256(paths[1])),
            seed=seed,
            same_suggestions=sum(sorted(a.suggestions) == sorted(b.suggestions) for a, b in pairs),
            files=files,
            items=tuple(
                Item(item=number, line=line + 1, a_side="left" if left else "right", texts=tuple(map(text_hash, texts)))
                for number, (line, left, texts) in enumerate(zip(chosen, a_left, shown, strict=True), start=1)
            ),
        )
        content = json.dumps({"kind": KIND, **key.model_dump()}, indent=1, ensure_ascii=False)
        (folder / KEY).write_text(content + "\n", encoding="utf-8")
    return key


def read_key(folder: Path) -> Key:
    """The key of a folder that `make_annotation_files` wrote; InputError if it is missing or damaged."""
    path = folder / KEY
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("kind") != KIND:
            raise ValueError
        return Key.model_validate(content)
    except FileNotFoundError:
        raise InputError(f"{folder} has no {KEY}; expected a folder that `mrs annotate make` wrote.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path}: not a key of `mrs annotate make`; restore the original file.") from None


def read_annotation_files(folder: Path, key: Key, partial: bool = False) -> dict[str, NDArray[np.int64]]:
    """Read and check what the annotators filled in.

    Args:
        partial: leave out the annotators whose file is missing or untouched.

    Returns:
        file -> (items,) 1 where the annotator prefers system A, -1 where B, 0 at a tie; in the order of the key's
        items.

    Raises:
        InputError: a file is missing, unknown, a copy of another or not such a file; a row is missing, double or
            altered; a preference is missing or not one of `PREFERENCES`.
    """
    place = folder / ANNOTATIONS
    hashes = sheets_in(place)
    if unknown := hashes.keys() - key.files.keys():
        raise InputError(
            f"{place / min(unknown)}: not an annotation file made here; expected {', '.join(key.files)} only."
        )
    absent = [name for name in key.files if name not in hashes]
    if absent and not partial:
        raise InputError(
            f"{place / absent[0]} is missing: {len(hashes)} of {len(key.files)} annotators; put the file there, or "
            "pass --partial to leave out the missing annotators."
        )
    names = [name for name in key.files if name in hashes and not (partial and hashes[name] == key.files[name])]
    if not names:
        raise InputError(f"{place} has no file with judgements; put the annotated files there.")
    first: dict[str, str] = {}
    for name in names:
        twin = first.setdefault(hashes[name], name)
        if key.files[twin] != key.files[name]:
            raise InputError(f"{place / name} is a copy of {twin}; put that annotator's file there.")
    return {name: _preferences(place / name, key) for name in names}


def _paired(paths: tuple[Path, Path]) -> list[tuple[Prediction, Prediction]]:
    a, b = (read_predictions(path) for path in paths)
    shared = len({p.message for p in a} & {p.message for p in b})
    overlap = f"{shared} messages are in both files" if shared else "no message is in both files"
    advice = f"expected predictions for the same messages, line by line ({overlap})."
    if len(a) != len(b):
        raise InputError(f"{paths[0]} has {len(a)} lines and {paths[1]} has {len(b)}; {advice}")
    for number, (one, other) in enumerate(zip(a, b, strict=True), start=1):
        if one.message != other.message:
            raise InputError(f"{paths[0]} and {paths[1]}, example {number}: the messages differ; {advice}")
    return list(zip(a, b, strict=True))


def _texts(a: Prediction, b: Prediction, a_left: bool) -> tuple[str, ...]:
    """The texts of one item that the annotator sees, in the order of `TEXTS`."""
    left, right = (a, b) if a_left else (b, a)
    return _plain(a.message), _bullets(left.suggestions), _bullets(right.suggestions)


def _bullets(suggestions: Sequence[str]) -> str:
    return "\n".join(f"{BULLET} {_plain(suggestion)}".rstrip() for suggestion in suggestions)


def _plain(text: str) -> str:
    """One line without control characters, which a spreadsheet program would drop or refuse."""
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())


def _preferences(path: Path, key: Key) -> NDArray[np.int64]:
    """The judgements of one file, in the order of the key's items."""
    texts = {item.item: item.texts for item in key.items}
    found: dict[int, str] = {}
    wrong: list[str] = []
    for row, cells in read_sheet(path, COLUMNS):
        item = item_of_row(f"{path}, row {row}", cells, texts, TEXTS, found)
        preference = cells["preference"].strip().casefold()
        if preference not in PREFERENCES:
            what = f"{cells['preference'].strip()[:40]!r} is not a preference" if preference else "no preference"
            wrong.append(f"row {row}: {what}")
        found[item] = preference
    if missing := [number for number in texts if number not in found]:
        raise InputError(f"{path}: item {missing[0]} is missing{and_more(missing)}; restore the rows.")
    if wrong:
        raise InputError(
            f"{path}, {wrong[0]}{and_more(wrong)}; expected {', '.join(PREFERENCES[:2])} or {PREFERENCES[2]}."
        )
    signs = [0 if found[i.item] == "tie" else 1 if found[i.item] == i.a_side else -1 for i in key.items]
    return np.array(signs, dtype=np.int64)
