"""Hypotheses as a prediction file of the STAPLE task."""

from __future__ import annotations

from pathlib import Path

from mrs_datasets.readers.staple.staple_files import write_staple_predictions
from mrs_suggest.common.io.files import require_new_file, writing
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
