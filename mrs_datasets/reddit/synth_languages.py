"""A small fastText model for synthetic dumps: it knows the phrase books, and little else."""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
from pathlib import Path

from mrs_core.errors import InputError, MissingExtraError
from mrs_core.languages import LANGUAGES


def write_language_model(path: Path, seed: int = 0) -> None:
    """Train on the phrase books of the embedded sample, and write the model to `path` (4 MB, two seconds).

    It replaces lid.176 where that cannot be downloaded, but only for dumps of `write_dumps`.

    Raises:
        MissingExtraError: fasttext is not installed.
        InputError: the file cannot be written.
    """
    if importlib.util.find_spec("fasttext") is None:
        raise MissingExtraError("fasttext", "langid", "language identification")
    from mrs_datasets.prepared import open_prepared

    sample = open_prepared("sample")
    lines = []
    for language in LANGUAGES:
        pairs = sample.load(language, "train")
        for message, reply in zip(pairs["message"][:], pairs["reply"][:], strict=True):
            lines += [f"__label__{language} {text}" for text in (message, reply, f"{message} {reply}")]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            texts = Path(folder) / "texts"
            texts.write_text("\n".join(line.replace("\n", " ") for line in lines) + "\n", encoding="utf-8")
            whole = Path(folder) / "model"
            _train_apart(texts, whole, seed)
            whole.replace(path)
    except OSError as error:
        raise InputError(f"--language-model {path}: cannot be written ({error.strerror or error}).") from None


def _train_apart(texts: Path, model: Path, seed: int) -> None:
    """Train in a separate process: fastText 0.9.3 sometimes ends in NaN in a process that has done much before."""
    process = multiprocessing.get_context("spawn").Process(target=_train, args=(str(texts), str(model), seed))
    process.start()
    process.join()
    if process.exitcode:
        raise InputError("--language-model: fastText could not be trained; try another --seed.")


def _train(texts: str, model: str, seed: int) -> None:
    import fasttext

    fasttext.train_supervised(
        texts, minn=2, maxn=4, dim=16, epoch=8, lr=0.5, bucket=50_000, thread=1, seed=seed, verbose=0
    ).save_model(model)
