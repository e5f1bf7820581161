"""Language identification with fastText (Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification").

The intended model is lid.176 (https://fasttext.cc/docs/en/language-identification.html, CC BY-SA 3.0): 176 languages,
as `lid.176.ftz` (compressed, 0.9 MB; Joulin et al. 2016, "FastText.zip") or `lid.176.bin` (131 MB, more exact). Any
supervised fastText model whose labels read `__label__CODE` works. The model is not part of this package: the user
provides the file, or downloads it with `download_language_model`.

Models are read by a compiled part of this package (`_lid`), which answers as fastText does in a fraction of the time.
Where it could not be compiled, fastText itself is used, an extra (`langid`), imported only when a model is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError, extra_needed
from mrs_suggest.common.io.files import atomic_file, file_sha256, writing

try:
    import mrs_suggest.common.text._lid as _lid
except ImportError:  # there was no C compiler
    _lid = None

MODEL_VARIABLE = "MRS_LANGUAGE_MODEL"
MODEL_URL = "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz"
# The published files. fastText does not check what it loads: a damaged model answers wrongly, or crashes the process.
KNOWN_SHA256 = {
    "lid.176.ftz": "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
    "lid.176.bin": "7e69ec5451bc261cc7844e49e4792a85d7f09c06789ec800fc4a44aec362764e",
}
MAGIC = b"\xba\x16\x4f\x2f"  # fastText's, at the start of every model
UNDETERMINED = "und"  # ISO 639-2 and BCP-47
MAX_BYTES = 1 << 28  # of a download; twice the size of lid.176.bin
TIMEOUT = 60.0  # seconds
MIN_LANGUAGE_SCORE = 0.7  # as in building MRS (Zhang et al. 2021, section 2)
BATCH = 1024  # texts per call; larger than 64 is not faster

Identify = Callable[[Sequence[str]], list[tuple[str, float]]]  # texts -> (language, probability) of each

_LABEL = "__label__"
# fastText's end-of-line token, between the characters that it treats as white space.
_LINE_END = re.compile(r"(?<![^ \n\r\t\v\f\0\ud800-\udfff])</s>(?![^ \n\r\t\v\f\0\ud800-\udfff])")
_HALF_PAIRS = re.compile(r"[\ud800-\udfff]")  # UTF-8 cannot encode them


class LanguageIdentifier:
    """A model that names the language of texts. Make it with `LanguageIdentifier.open`; it can be pickled (by path).

    Attributes:
        languages: the codes that the model knows, as its labels spell them.
    """

    def __init__(self, model: Any, path: Path) -> None:
        self.path = path
        self._model = model
        labels = model.labels()
        if not labels or not all(label.startswith(_LABEL) for label in labels):
            raise InputError(f"{path}: expected labels that read {_LABEL}CODE; pass a language model such as lid.176.")
        self._codes = [*(label.removeprefix(_LABEL) for label in labels), UNDETERMINED]  # number -1 is the last
        self.languages = frozenset(self._codes[:-1])

    @classmethod
    def open(cls, model: str | Path | None = None) -> LanguageIdentifier:
        """Load the model at the path `model`; None: the one that `MRS_LANGUAGE_MODEL` names, or the cached one.

        Raises:
            InputError: there is no such file, or it is not a complete supervised fastText model.
            MissingExtraError: `_lid` was not compiled, and fasttext is not installed.
        """
        path = _find_model(model)
        check_model_file(path)
        try:
            return cls(_lid.Model(path.read_bytes()) if _lid else _FastText(path), path)
        except (ValueError, RuntimeError, MemoryError) as error:
            raise _damaged(path, str(error).strip() or "it does not load") from None

    def __reduce__(self) -> tuple[Callable[[Path], LanguageIdentifier], tuple[Path]]:
        return LanguageIdentifier.open, (self.path,)

    @cached_property
    def name(self) -> str:
        """The file's name and the beginning of its SHA-256, for signatures: `lid.176.ftz@8f3472cf`."""
        return f"{self.path.name}@{file_sha256(self.path)[:8]}"

    def knows(self, code: str) -> bool:
        return code in self.languages

    def identify(self, texts: Sequence[str], batch_size: int = BATCH) -> list[tuple[str, float]]:
        """Return the most probable language of each text, as the model's label, with its probability (0 to 1).

        The language is `und`, with 0.0, if the text is empty or contains no word or n-gram that the model knows.
        (fastText then gives the answer for an empty line: with lid.176.ftz `en` at 0.12, for "HELLO" as for an emoji.)
        Texts are not changed, but for newlines, which become spaces; lid.176 is bad at capitals.

        Raises:
            InputError: the model is damaged (its numbers are not finite).
            TypeError: `texts` is one text, not a list of them.
        """
        if isinstance(texts, str):
            raise TypeError("identify takes a list of texts; for one text pass [text].")
        found: list[tuple[str, float]] = []
        for batch in in_batches(texts, batch_size):
            lines = ["" if text.isspace() else text.replace("\n", " ") for text in batch]
            try:
                numbers, probabilities = self._model.predict("\n".join(lines).encode("utf-8", "surrogatepass"))
            except (ValueError, RuntimeError) as error:
                raise _damaged(self.path, str(error)) from None
            found += zip(map(self._codes.__getitem__, numbers), probabilities, strict=True)
        return found


class _FastText:
    """The package fasttext, with the methods of `_lid.Model`."""

    def __init__(self, path: Path) -> None:
        with extra_needed("fasttext", "langid", "language identification"):
            import fasttext
        with contextlib.redirect_stderr(io.StringIO()):  # fasttext 0.9.2 prints a notice at every load
            self._model = fasttext.load_model(str(path))
        self._numbers = {label: number for number, label in enumerate(self.labels())}

    def labels(self) -> list[str]:
        return list(self._model.get_labels())

    @cached_property
    def _nothing(self) -> tuple[int, float]:
        """The answer to an empty line."""
        return self._best([""])[0]

    def predict(self, lines: bytes) -> tuple[list[int], list[float]]:
        # Spaces in place of what it refuses, and of what it would stop at.
        text = _HALF_PAIRS.sub(" ", _LINE_END.sub(" ", lines.decode("utf-8", "surrogatepass")))
        best = [(-1, 0.0) if found == self._nothing else found for found in self._best(text.split("\n"))]
        return [number for number, _ in best], [min(probability, 1.0) for _, probability in best]

    def _best(self, lines: list[str]) -> list[tuple[int, float]]:
        # Always a list, because `predict(str)` raises under numpy 2.
        return [
            (self._numbers[labels[0]], float(probabilities[0])) if labels else (-1, 0.0)
            for labels, probabilities in zip(*self._model.predict(lines), strict=True)
        ]


def open_identifier(model: str | Path | None) -> LanguageIdentifier | None:
    """The identifier for `model`, or the installed one; None if none is named or installed."""
    if model is None and not os.environ.get(MODEL_VARIABLE) and not default_model_path().is_file():
        return None
    return LanguageIdentifier.open(model)


def is_other_language(found: tuple[str, float], language: str) -> bool:
    """Whether an answer of `identify` names, with more than `MIN_LANGUAGE_SCORE`, another language than `language` (a
    BCP-47 code, of which the first part counts)."""
    label, score = found
    return label not in (language.partition("-")[0], UNDETERMINED) and score > MIN_LANGUAGE_SCORE


def default_model_path() -> Path:
    """Return the model's default path: `lid.176.ftz` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mrs-suggest" / "lid.176.ftz"


def download_language_model(
    target: str | Path, url: str = MODEL_URL, sha256: str = KNOWN_SHA256["lid.176.ftz"]
) -> Path:
    """Download a model to the file `target` and return its path; a file that already has the checksum is kept.

    Raises:
        InputError: the server cannot be reached or refuses, the contents do not have the checksum, or `target` cannot
            be written; `target` is then unchanged.
    """
    target = Path(target).expanduser()
    if target.is_file() and file_sha256(target) == sha256:
        return target
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "mrs-suggest"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            content = answer.read(MAX_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(f"{url}: the server answered {error.code} {error.reason}; check the address.") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded ({reason}); try again later.") from None
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise InputError(
            f"{url}: expected the SHA-256 {sha256}, found {found} in {len(content):,} bytes; nothing was written. Try "
            "again."
        )
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as partial:
            partial.write_bytes(content)
    return target


def _find_model(model: str | Path | None) -> Path:
    """Return the path of a file, looking where `LanguageIdentifier.open` says."""
    named = os.environ.get(MODEL_VARIABLE)
    if model is not None:
        path, source = Path(model).expanduser(), ""
    elif named:
        path, source = Path(named).expanduser(), f" (from the environment variable {MODEL_VARIABLE})"
    else:
        path, source = default_model_path(), ""
    if not path.is_file():
        raise InputError(
            f"{path}{source}: no such file; pass the path of a language model, set {MODEL_VARIABLE} to it, or run "
            "`mrs install --language-model` once and leave the path out."
        )
    return path


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: the fastText model is damaged or incomplete ({reason}); fetch it again.")


def check_model_file(path: Path) -> None:
    """Refuse, by an InputError, what is not a fastText model, or not the published one of that name."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise InputError(f"{path}: expected a fastText model (lid.176.ftz or .bin), but the file is not one.")
    known = KNOWN_SHA256.get(path.name)
    if known is not None and file_sha256(path) != known:
        raise _damaged(path, "its SHA-256 is not that of the published file")
