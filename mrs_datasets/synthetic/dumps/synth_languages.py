"""A small fastText model for synthetic dumps: it knows the phrase books, and little else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mrs_datasets.synthetic.language_models import train_language_model
from mrs_suggest.common.text.languages import LANGUAGES


def write_language_model(path: Path, seed: int = 0) -> None:
    """Train on the phrase books of the embedded sample, and write the model to `path` (4 MB, two seconds).

    It replaces lid.176 where that cannot be downloaded, but only for dumps of `write_dumps`.

    Raises:
        MissingExtraError: fasttext is not installed.
        InputError: the file cannot be written.
    """
    train_language_model(_sample_texts(), path, seed, f"--language-model {path}")


def _sample_texts() -> Iterator[tuple[str, str]]:
    from mrs_datasets.prepared.prepared import open_prepared

    sample = open_prepared("sample")
    for language in LANGUAGES:
        pairs = sample.load(language, "train")
        for message, reply in zip(pairs["message"][:], pairs["reply"][:], strict=True):
            for text in (message, reply, f"{message} {reply}"):
                yield language, text
