"""Small fastText models that name the languages of generated texts, which lid.176 may not know."""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mrs_suggest.common.errors import InputError, MissingExtraError

BUCKETS = 50_000  # of character n-grams; 4 MB


def can_train() -> bool:
    """Whether fastText is installed."""
    return importlib.util.find_spec("fasttext") is not None


def train_language_model(
    texts: Iterable[tuple[str, str]], path: Path, seed: int, where: str, buckets: int = BUCKETS
) -> None:
    """Train on (language, text), and write the model to `path`, whole or not at all.

    Args:
        where: starts the sentence of an error.
        buckets: of character n-grams: the size of the model is proportional to it.

    Raises:
        MissingExtraError: fasttext is not installed.
        InputError: the file cannot be written, or the training failed.
    """
    if not can_train():
        raise MissingExtraError("fasttext", "langid", "language identification")
    lines = (f"__label__{language} {text}".replace("\n", " ") for language, text in texts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            written = Path(folder) / "texts"
            written.write_text("\n".join(lines) + "\n", encoding="utf-8")
            whole = Path(folder) / "model"
            _train_apart(written, whole, seed, where, buckets)
            whole.replace(path)
    except OSError as error:
        raise InputError(f"{where}: cannot be written ({error.strerror or error}).") from None


def _train_apart(texts: Path, model: Path, seed: int, where: str, buckets: int) -> None:
    """Train in a separate process: fastText 0.9.3 sometimes ends in NaN in a process that has done much before."""
    process = multiprocessing.get_context("spawn").Process(target=_train, args=(str(texts), str(model), seed, buckets))
    process.start()
    process.join()
    if process.exitcode:
        raise InputError(f"{where}: fastText could not be trained; try another seed.")


def _train(texts: str, model: str, seed: int, buckets: int) -> None:
    import fasttext

    fasttext.train_supervised(
        texts, minn=2, maxn=4, dim=16, epoch=8, lr=0.5, bucket=buckets, thread=1, seed=seed, verbose=0
    ).save_model(model)
