"""The prompts to translate: a split of prepared data, or the lines of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.staple.staple_files import prompt_id
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import is_blank


@dataclass(frozen=True)
class Prompts:
    """The texts to translate, and their source.

    Attributes:
        texts: id -> text, in the order of the source.
        data: `id` and `content_hash` or `revision` of the source, and `split`.
    """

    texts: Mapping[str, str]
    data: Mapping[str, Any]


def prompts_of_split(data: PreparedData, language: str, split: str) -> Prompts:
    """The prompts of a split of a STAPLE data set; InputError if there is no such split, or it is damaged."""
    rows = data.load(language, split)
    if not {"id", "prompt"} <= set(rows.column_names):
        raise InputError(
            f"{data.name}: {language} has the columns {', '.join(rows.column_names)}, expected id and prompt; pass "
            "data that `mrs data prepare staple` or `mrs data prepare synthetic-staple` made."
        )
    ids, texts = rows["id"][:], rows["prompt"][:]
    for row, (key, text) in enumerate(zip(ids, texts, strict=True), 1):
        if not key or not text or is_blank(text):
            raise InputError(f"{data.name}, {language}/{split}, row {row}: found no id or no prompt; prepare again.")
    if len(set(ids)) < len(ids):
        twice = next(key for number, key in enumerate(ids) if key in ids[:number])
        raise InputError(f"{data.name}, {language}/{split}: the prompt {twice} comes twice; prepare the data again.")
    if not ids:
        raise InputError(f"{data.name}: {language}/{split} has no prompts.")
    identity = data.identity([language])
    facts: dict[str, Any] = {key: identity[key] for key in ("id", "content_hash", "revision") if key in identity}
    return Prompts(dict(zip(ids, texts, strict=True)), {**facts, "split": split})


def prompts_of_text(path: Path) -> Prompts:
    """The lines of a text, equal ones once and blank ones left out; a line's id is `prompt_` and its MD5.

    Raises:
        InputError: the file is missing, not UTF-8, or has no text.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a text with a sentence a line.")
    lines = (" ".join(line.split()) for _, line in read_lines(path))
    texts = {prompt_id(line): line for line in lines if not is_blank(line)}
    if not texts:
        raise InputError(f"{path}: has no text; expected a sentence a line.")
    return Prompts(texts, {"id": path.name, "content_hash": file_sha256(path)[:16], "split": None})


def choose_language(asked: str | None, known: Sequence[Sequence[str]], have: Sequence[str] | None) -> str:
    """The language to translate to: the one that was asked for, or the only one that all runs write and the data have.

    Args:
        known: the languages of each run.
        have: those of the data; None for a plain text.

    Raises:
        InputError: a run or the data lack the language, or the choice is not unique.
    """
    common = [code for code in known[0] if all(code in codes for codes in known)]
    both = [code for code in common if have is None or code in have]
    if asked is None:
        if len(both) == 1:
            return both[0]
        if both:
            raise InputError(f"--language: could be any of {' '.join(both)}; pass the language to translate to.")
        found = f"; the data have {' '.join(have)}" if have is not None else ""
        raise InputError(f"--language: the runs write {' '.join(common) or 'none in common'}{found}; pass other runs.")
    if asked not in common:
        raise InputError(f"--language {asked}: is not known to every run; they write {' '.join(common) or 'none'}.")
    if asked not in both:
        raise InputError(f"--language {asked}: the data have {' '.join(have or [])}.")
    return asked
