"""Language identification with fastText (Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification").

The intended model is lid.176 (https://fasttext.cc/docs/en/language-identification.html, CC BY-SA 3.0): 176 languages,
as `lid.176.ftz` (compressed, 0.9 MB; Joulin et al. 2016, "FastText.zip") or `lid.176.bin` (131 MB, more exact). Any
supervised fastText model whose labels read `__label__CODE` works. The model is not part of this package: the user
provides the file, or downloads it with `download_language_model`.

fastText itself is an extra (`langid`), imported only when a model is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import os
import re
import struct
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.common.io.files import file_sha256, umask

MODEL_VARIABLE = "MRS_LANGUAGE_MODEL"
MODEL_URL = "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz"
MODEL_SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"  # of 938,013 bytes
UNDETERMINED = "und"  # ISO 639-2 and BCP-47
MAX_BYTES = 1 << 28  # of a download; lid.176.bin has half as many
TIMEOUT = 60.0  # seconds without a byte
MIN_LANGUAGE_SCORE = 0.7  # as in building MRS (Zhang et al. 2021, section 2)
BATCH = 1024  # texts per call of fastText; larger than 64 is not faster

Identify = Callable[[Sequence[str]], list[tuple[str, float]]]  # texts -> (language, probability) of each

_LABEL = "__label__"
# fastText's end-of-line token, between the characters that it treats as white space.
_LINE_END = re.compile(r"(?<![^ \n\r\t\v\f\0])</s>(?![^ \n\r\t\v\f\0])")
_HALF_PAIRS = re.compile(r"[\ud800-\udfff]")  # UTF-8 cannot encode them


class LanguageIdentifier:
    """A model that names the language of texts. Make it with `LanguageIdentifier.open`; it can be pickled (by path).

    Attributes:
        path: the model's file.
        languages: the codes that the model knows, as its labels spell them.
    """

    def __init__(self, model: Any, path: Path) -> None:
        self.path = path
        self._model = model
        labels = model.get_labels()
        if not labels or not all(label.startswith(_LABEL) for label in labels):
            raise InputError(f"{path}: expected labels that read {_LABEL}CODE; pass a language model such as lid.176.")
        self.languages = frozenset(label.removeprefix(_LABEL) for label in labels)
        self._nothing = self._best([""])[0]

    @classmethod
    def open(cls, model: str | Path | None = None) -> LanguageIdentifier:
        """Load the model at the path `model`; None: the one that `MRS_LANGUAGE_MODEL` names, or the cached one.

        Raises:
            InputError: there is no such file, or it is not a complete supervised fastText model.
            MissingExtraError: fasttext is not installed.
        """
        path = _find_model(model)
        check_model_file(path)
        try:
            import fasttext
        except ImportError:
            raise MissingExtraError("fasttext", "langid", "language identification") from None
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # fasttext 0.9.2 prints a notice at every load
                return cls(fasttext.load_model(str(path)), path)
        except (ValueError, RuntimeError, MemoryError) as error:
            raise _damaged(path, str(error).strip() or "it does not load") from None

    def __reduce__(self) -> tuple[Callable[[Path], LanguageIdentifier], tuple[Path]]:
        return LanguageIdentifier.open, (self.path,)

    @cached_property
    def name(self) -> str:
        """The file's name and the beginning of its SHA-256, for signatures: `lid.176.ftz@8f3472cf`."""
        return f"{self.path.name}@{file_sha256(self.path)[:8]}"

    def knows(self, code: str) -> bool:
        """Whether the model has a label for this language."""
        return code in self.languages

    def identify(self, texts: Sequence[str], batch_size: int = BATCH) -> list[tuple[str, float]]:
        """Return the most probable language of each text, as the model's label, with its probability (0 to 1).

        The language is `und`, with 0.0, if the text is empty or contains no word or n-gram that the model knows.
        (fastText then gives the answer for an empty line: with lid.176.ftz `en` at 0.12, for "HELLO" as for an emoji.)
        Texts are not changed, but for newlines, which become spaces; lid.176 is bad at capitals.

        Raises:
            InputError: the model is damaged (its numbers are not finite).
            TypeError: `texts` is one text, not a list of them.
            ValueError: `batch_size` is below 1.
        """
        if isinstance(texts, str):
            raise TypeError("identify takes a list of texts; for one text pass [text].")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}.")
        found: list[tuple[str, float]] = []
        for start in range(0, len(texts), batch_size):
            batch = [_line(text) for text in texts[start : start + batch_size]]
            found += [
                (UNDETERMINED, 0.0) if best == self._nothing or not text.strip() else (best[0], min(best[1], 1.0))
                for text, best in zip(batch, self._best(batch), strict=True)
            ]
        return found

    def _best(self, lines: list[str]) -> list[tuple[str, float]]:
        """fastText's own answers; always for a list, because `predict(str)` raises under numpy 2."""
        try:
            labels, probabilities = self._model.predict(lines)
        except RuntimeError as error:
            raise _damaged(self.path, str(error)) from None
        return [
            (label[0].removeprefix(_LABEL), float(probability[0])) if len(label) else (UNDETERMINED, 0.0)
            for label, probability in zip(labels, probabilities, strict=True)
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


def _line(text: str) -> str:
    """Replace by spaces the characters that fastText refuses, and those at which it would stop reading."""
    line = text.replace("\n", " ")
    if "</s>" in line:
        line = _LINE_END.sub(" ", line)
    try:
        line.encode()
    except UnicodeEncodeError:
        return _HALF_PAIRS.sub(" ", line)
    return line


def default_model_path() -> Path:
    """Return the model's default path: `lid.176.ftz` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mrs-suggest" / "lid.176.ftz"


def download_language_model(
    target: str | Path,
    url: str = MODEL_URL,
    sha256: str = MODEL_SHA256,
    max_bytes: int = MAX_BYTES,
    timeout: float = TIMEOUT,
) -> Path:
    """Fetch a model to the file `target` and return its path; a file that has the checksum already is kept.

    The file appears whole and checked, or `target` stays unchanged. A terminal shows a progress bar.

    Args:
        sha256: 64 hex digits that the contents must have.
        max_bytes: the longest file to accept.
        timeout: seconds to wait for the next byte.

    Raises:
        InputError: the address, the server's answer, the checksum or the target path is invalid.
    """
    target = Path(target).expanduser()
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise InputError(f"{sha256!r} is not a SHA-256 of 64 hex digits; give the one of {url}.")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{url}: expected an address that starts with https:// (or http://).")
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the file to write, such as {target / 'lid.176.ftz'}.")
    if target.is_file() and file_sha256(target) == sha256.lower():
        return target
    with _whole_file(target) as partial:
        digest = hashlib.sha256()
        with partial.open("wb") as file:
            for block in _fetch(url, max_bytes, timeout):
                digest.update(block)
                file.write(block)
        if digest.hexdigest() != sha256.lower():
            raise InputError(
                f"{url}: expected the SHA-256 {sha256.lower()}, got {digest.hexdigest()}; nothing was written; try "
                "again, or give the checksum of the intended file."
            )
    return target


@contextlib.contextmanager
def _whole_file(target: Path) -> Iterator[Path]:
    """Yield an empty file beside `target` to fill; rename it to `target`; on an error remove it and new folders."""
    made = [folder for folder in target.parents if not folder.exists()]
    partial: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.partial-", dir=target.parent)
        os.close(handle)
        partial = Path(name)
        yield partial
        partial.chmod(0o666 & ~umask())
        partial.replace(target)
    except BaseException as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        for folder in made:  # innermost first; one that is in use by now stays
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise InputError(f"{target}: cannot write it ({error.strerror}); choose another place.") from None
        raise


def _fetch(url: str, max_bytes: int, timeout: float) -> Iterator[bytes]:
    """Yield the contents at `url` in blocks."""
    from tqdm import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "mrs-suggest"})
    too_long = f"{url}: expected at most {max_bytes:,} bytes, the server sends more; check the address."
    got = 0
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            announced = answer.headers.get("Content-Length", "")
            total = int(announced) if announced.isdecimal() else None
            if total is not None and total > max_bytes:
                raise InputError(too_long)
            with tqdm(total=total, desc="language model", unit="B", unit_scale=True, disable=None) as bar:
                while block := answer.read1(1 << 16):
                    got += len(block)
                    if got > max_bytes:
                        raise InputError(too_long)
                    bar.update(len(block))
                    yield block
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(f"{url}: the server answered {error.code} {error.reason}; check the address.") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be fetched ({reason}); try again, or download it another way.") from None
    if total is not None and got < total:
        raise InputError(f"{url}: the connection ended after {got:,} of {total:,} bytes; try again.")


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
            f"{path}{source}: no language model there; fetch {MODEL_URL} and put it at {default_model_path()}, or "
            f"pass the path of one, or set {MODEL_VARIABLE} to it."
        )
    return path


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: the fastText model is damaged or incomplete ({reason}); fetch it again.")


# fastText does not check its files: if one is truncated, the rest of the model is arbitrary, and it answers wrongly,
# asks for all memory or crashes. So all parts are checked first: signature, settings, dictionary, matrices.
_MAGIC = struct.pack("<i", 793712314)
_SUPERVISED = 3
_LONGEST_COUNT = 10**15  # fastText's own "infinity" in its tree of labels


class _DamagedError(Exception):
    """A part of the file is invalid."""


@dataclass
class _Cursor:
    """A position in a file that is read from its start."""

    data: mmap.mmap
    at: int = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values: tuple[int, ...] = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def skip(self, size: int) -> None:
        self.at += size
        _require(self.at <= len(self.data), "it ends too early")

    def skip_text(self) -> None:
        end = self.data.find(b"\0", self.at)
        _require(end >= 0, "it ends too early")
        self.at = end + 1


def _require(held: bool, reason: str) -> None:
    if not held:
        raise _DamagedError(reason)


def check_model_file(path: Path) -> None:
    """Check that fastText can load the file: its length and all sizes and indices in it.

    Raises:
        InputError: the file is not a fastText model, not a supervised one, or damaged.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise InputError(f"{path}: expected a fastText model (lid.176.ftz or .bin), but the file is not one.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                supervised = _walk(_Cursor(data))
            except struct.error:
                raise _damaged(path, "it ends too early") from None
            except _DamagedError as error:
                raise _damaged(path, str(error)) from None
    if not supervised:
        raise InputError(f"{path}: expected a supervised fastText model such as lid.176, this one has word vectors.")


def _walk(file: _Cursor) -> bool:
    """Read the whole file except the matrices' numbers; False as soon as the model proves not to be a classifier."""
    _, version, dim, _, _, _, _, word_ngrams, loss, model, bucket, _, maxn, _, _ = file.take("14id")
    _require(version in (11, 12) and model in (1, 2, _SUPERVISED), "unknown version or kind")
    if model != _SUPERVISED:
        return False
    hashed = word_ngrams > 1 or (maxn > 0 and version > 11)
    _require(dim > 0 and loss in (1, 2, 3, 4) and (bucket > 0 or not hashed), "invalid settings")
    words, labels, kept = _walk_dictionary(file)
    (quantised,) = file.take("?")
    rows, columns = _walk_matrix(file, bool(quantised))
    needed = words + ((bucket if hashed else 0) if kept is None else kept)
    _require(columns == dim and rows >= needed, "vectors that do not fit the words")
    (quantised_output,) = file.take("?")
    _require(
        _walk_matrix(file, bool(quantised and quantised_output)) == (labels, dim), "vectors that do not fit the labels"
    )
    _require(file.at == len(file.data), "more bytes than the model has")
    return True


def _walk_dictionary(file: _Cursor) -> tuple[int, int, int | None]:
    """Return how many words and labels there are and, where n-grams were pruned, how many rows the kept ones need."""
    size, words, labels, _, kept = file.take("3i2q")
    _require(words >= 0 and labels > 0 and words + labels == size, "words and labels that do not add up")
    for index in range(size):
        file.skip_text()
        count, kind = file.take("qb")
        _require(0 <= count < _LONGEST_COUNT and kind == (index >= words), "an invalid word")
    if kept < 0:
        return words, labels, None
    start = file.at
    file.skip(8 * kept)
    new = [row for _, row in struct.iter_unpack("<2i", file.data[start : file.at])]
    _require(min(new, default=0) >= 0, "an n-gram without a row")
    return words, labels, max(new, default=-1) + 1


def _walk_matrix(file: _Cursor, quantised: bool) -> tuple[int, int]:
    """Return the rows and columns of a matrix of float32, or of one in product quantisation ("FastText.zip", 3.1)."""
    (normed,) = file.take("?") if quantised else (False,)
    rows, columns = file.take("2q")
    _require(rows > 0 and columns > 0, "a matrix without numbers")
    if not quantised:
        file.skip(4 * rows * columns)
        return rows, columns
    (codes,) = file.take("i")
    _require(codes >= 0, "a matrix without numbers")
    file.skip(codes)
    _require(codes == rows * _walk_quantiser(file, columns), "codes that do not fit their matrix")
    if normed:
        file.skip(rows)
        _require(_walk_quantiser(file, 1) == 1, "codes that do not fit their matrix")
    return rows, columns


def _walk_quantiser(file: _Cursor, columns: int) -> int:
    """Return how many codes (one byte each) stand for a row."""
    dim, codes, width, last = file.take("4i")
    fits = dim == columns and width > 0 and codes > 0 and 0 < last <= width and (codes - 1) * width + last == dim
    _require(fits, "codes that do not fit their matrix")
    file.skip(4 * 256 * dim)  # 256 centroids, float32
    return codes
