"""Hypotheses as a prediction file of the STAPLE task, and as pairs to train on."""

from __future__ import annotations

from pathlib import Path

from mrs_datasets.readers.staple.staple_files import write_staple_predictions
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, require_new_file, writing
from mrs_suggest.staple.hypotheses import Hypotheses


def write_predictions(found: Hypotheses, path: Path, overwrite: bool = False) -> int:
    """Write each prompt with its translations, equal ones once, in the order of the hypotheses; return how many.

    A prompt without translations stays as a block without lines, so that reading the file back loses no prompt.

    Raises:
        InputError: the file exists or cannot be written, or an id that the format cannot hold.
    """
    require_new_file(path, overwrite)
    texts = {key: rows["text"].to_pylist() for key, rows in found.by_prompt()}
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_staple_predictions(found.prompts, texts, path)


def write_pairs(found: Hypotheses, path: Path, top: int = 1, swap: bool = False, overwrite: bool = False) -> int:
    """Write a line `prompt TAB translation` for the first translations of each prompt; return how many.

    The pairs serve back-translation (Sennrich et al. 2016) or training on a teacher's translations.
    Equal texts of several members are one pair. Tabs in a text become spaces.

    Args:
        top: translations of a prompt, in the order of the hypotheses.
        swap: the translation first: hypotheses of a model to English, decoded from a text, as sources of that text.

    Raises:
        InputError: the file exists or cannot be written, or `top` is below 1.
    """
    if top < 1:
        raise InputError(f"--top {top}: expected a whole number from 1.")
    require_new_file(path, overwrite)
    lines = []
    for key, rows in found.by_prompt():
        for text in list(dict.fromkeys(rows["text"].to_pylist()))[:top]:
            pair = (text, found.prompts[key]) if swap else (found.prompts[key], text)
            lines.append("\t".join(" ".join(side.split()) for side in pair))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, "".join(f"{line}\n" for line in lines))
    return len(lines)
