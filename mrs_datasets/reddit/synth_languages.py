"""A small fastText model for made-up dumps: it knows the phrase books, and little else."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mrs_core.errors import InputError, MissingExtraError
from mrs_core.languages import LANGUAGES


def write_language_model(path: Path, seed: int = 0) -> None:
    """Train on the phrase books of the embedded sample, and write the model to `path` (4 MB, two seconds).

    It stands in for lid.176 where that cannot be fetched, and only for dumps of `write_dumps`.

    Raises:
        MissingExtraError: fasttext is not installed.
        InputError: the file cannot be written.
    """
    try:
        import fasttext
    except ImportError:
        raise MissingExtraError("fasttext", "langid", "language identification") from None
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
            model = fasttext.train_supervised(
                str(texts), minn=2, maxn=4, dim=16, epoch=8, lr=0.5, bucket=50_000, thread=1, seed=seed, verbose=0
            )
            whole = Path(folder) / "model"
            model.save_model(str(whole))
            whole.replace(path)
    except OSError as error:
        raise InputError(f"--language-model {path}: cannot be written ({error.strerror or error}).") from None
