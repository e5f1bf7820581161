"""Small fastText models that identify the languages of generated texts, which lid.176 may not know."""

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.common.text.languages import LANGUAGES

BUCKETS = 50_000  # of character n-grams; 4 MB
# fastText 0.9.3 may end in NaN in a process that has imported much, so this runs in a fresh one.
TRAIN = """
import sys, fasttext
texts, model, seed, buckets = sys.argv[1:]
settings = dict(minn=2, maxn=4, dim=16, epoch=8, lr=0.5, thread=1, verbose=0)
fasttext.train_supervised(texts, bucket=int(buckets), seed=int(seed), **settings).save_model(model)
"""


def can_train() -> bool:
    """Whether fastText is installed."""
    return importlib.util.find_spec("fasttext") is not None


def train_language_model(texts: Iterable[tuple[str, str]], path: Path, seed: int, buckets: int = BUCKETS) -> None:
    """Train on (language, text), and write the model to `path`, whole or not at all.

    Args:
        buckets: of character n-grams; the size of the model is proportional to it.

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
            written, model = Path(folder, "texts"), Path(folder, "model")
            written.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command = [sys.executable, "-c", TRAIN, str(written), str(model), str(seed), str(buckets)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                raise InputError(f"{path}: fastText could not be trained; try another seed.")
            model.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}).") from None


def write_language_model(path: Path, seed: int = 0) -> None:
    """Train on the phrase books of the embedded sample, and write the model to `path` (4 MB, two seconds).

    It replaces lid.176 if that cannot be downloaded, but only for dumps of `write_dumps`.
    """
    from mrs_datasets.prepared.prepared import open_prepared

    pairs = {language: open_prepared("sample").load(language, "train").to_list() for language in LANGUAGES}
    texts = (
        (language, text)
        for language, rows in pairs.items()
        for row in rows
        for text in (row["message"], row["reply"], f"{row['message']} {row['reply']}")
    )
    train_language_model(texts, path, seed)
