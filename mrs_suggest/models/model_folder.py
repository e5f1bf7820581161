"""Checks of a model's folder before a library reads it or allocates memory for it.

A model may be damaged or hostile. Each file must be a regular one (or a link to one, as in the hub's cache) of a
sensible size, all numbers must be finite, and the sizes that a configuration names must be possible with its weights:
a library would otherwise wait for a pipe, fill the memory, or answer with scores that are not numbers.
"""

import json
import os
import re
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.manifest import again, require_undamaged
from mrs_suggest.models.array_files import iter_arrays
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATOR

# --- the bounds; all ours, well above the largest models that we know
MOST_FILES = 10_000
SETTINGS_BYTES = 4 << 20  # of a JSON file; the largest `tokenizer_config.json` have 1 MiB
VOCABULARY_BYTES = 40 << 20  # Gemma's tokenizer.json has 33 MB
REPLIES_BYTES = 1 << 30
LARGEST = (  # pattern of names, bytes; the first that fits counts
    ("replies.json", REPLIES_BYTES),
    ("tags.json", REPLIES_BYTES),
    ("examples.json", REPLIES_BYTES),
    ("run.json", 64 << 20),
    *((name, VOCABULARY_BYTES) for name in ("tokenizer.json", "*vocab*", "merges.txt", "*.model", "*.spm", "*.codes")),
    ("*.json", SETTINGS_BYTES),
)
PROMPT_CHARACTERS = 10_000  # of a text that is put before every message
SEARCH = (("beams", 1_000), ("groups", 1_000), ("*_tokens", 100_000), ("batch_size", 100_000))  # in generator.json
HARMLESS_SIZE = 1 << 20  # a configuration may name it whatever the weights are: a buffer of it costs nothing
AT_A_TIME = 1 << 20  # numbers that are examined: bounds the memory
LARGEST_NUMBER = float(np.finfo(np.float32).max)

NOT_READ = ("checkpoint-*", "best", "trackers", "runs", "wandb", ".*")  # folders of a run, not of the model
NO_SETTINGS = ("run.json", "curves.json", "resume.json", "trainer_state.json")  # records, in which NaN may be a result
# Keys of configurations: how often a layer is built, and what memory is allocated by.
LAYERS = ("*layers", "*_layer")
SIZES = ("*_size", "*_dim", "*_heads", "*_features", "*embeddings", "*_positions", "*_dimension", "d_*", "n_*", "*dim")
PATTERN = re.compile(rb'"Regex":\s*("(?:[^"\\]|\\.)*")')  # of a tokenizer.json, as a JSON text
# Texts that make a regular expression search every way to fail: a run of each kind of character, and what ends it.
PROBES = ("?", *(one * 64 + end for one in ("a", "A", "1", " ", "-", "é", "中") for end in ("!", "\n", "a")))


def open_model_folder(folder: Path, verify: bool = False) -> None:
    """Check a model's folder before any of its files are used.

    Raises:
        InputError: a file is missing, differs from the one that was written, is a pipe or a device, is too large, or
            has numbers that a model cannot have.
    """
    files = list(_regular_files(folder))
    require_undamaged(folder, verify)
    if (folder / ADAPTER_RECORD).is_file() and (folder.parent / "run.json").exists():  # the merged model is there
        files += _regular_files(folder.parent)
    tensors: Counter[Path] = Counter()
    numbers: Counter[Path] = Counter()
    for path in files:
        if path.suffix == ".safetensors":
            for size in _sizes(path, folder):
                tensors[path.parent] += 1
                numbers[path.parent] += size
    for path in files:
        if path.name == "tokenizer.json":
            _try_patterns(path, folder)
        # Vocabularies and large response sets are parsed once, elsewhere.
        large = _largest(path) == VOCABULARY_BYTES or path.stat().st_size > SETTINGS_BYTES
        if path.suffix != ".json" or path.name in NO_SETTINGS or large:
            continue
        settings = _settings(path, folder)
        if path.name == "config.json" and not isinstance(settings, dict):
            raise InputError(f"{path}: damaged, expected a JSON object; {again(folder)}.")
        for key, value, most, what in _bounds(path.name, settings, tensors[path.parent], numbers[path.parent]):
            if value > most:
                raise InputError(f"{path}: {key} is {value:,}, {what}; {again(folder)}.")


def _bounds(name: str, settings: Any, tensors: int, numbers: int) -> Iterator[tuple[str, int, int, str]]:
    """Values in a configuration that would cost memory or time: key, value, the largest one, and what is expected."""
    parts = [settings, *settings.values()] if isinstance(settings, dict) else []
    for key, value in ((key, value) for part in parts if isinstance(part, dict) for key, value in part.items()):
        if name == "config_sentence_transformers.json" and isinstance(value, str):
            most = PROMPT_CHARACTERS
            yield f"the length of {key!r}", len(value), most, f"expected at most {most:,} characters"
        if not isinstance(value, int):
            continue
        if name == GENERATOR:  # a search for replies
            for most in [most for pattern, most in SEARCH if fnmatch(key, pattern)][:1]:
                yield key, value, most, f"expected at most {most:,}"
        elif name == "config.json" and any(fnmatch(key, pattern) for pattern in LAYERS):
            yield key, value, tensors or HARMLESS_SIZE, f"but the weights have {tensors:,} tensors"
        elif name == "config.json" and any(fnmatch(key, pattern) for pattern in SIZES):
            yield key, value, max(numbers, HARMLESS_SIZE), f"but the weights have {numbers:,} numbers"


def _regular_files(folder: Path) -> Iterator[Path]:
    """The files of the model, after checking their kinds and sizes."""
    count = 0
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not any(fnmatch(name, pattern) for pattern in NOT_READ))
        count += len(names) + len(folders)
        if count > MOST_FILES:
            raise InputError(f"{folder}: has more than {MOST_FILES:,} files; pass the folder of one model.")
        for name in sorted(names):
            path = Path(place) / name
            try:
                facts = path.stat()
            except OSError as error:
                raise InputError(f"{path}: cannot be read ({error.strerror}); {again(folder)}.") from None
            if not stat.S_ISREG(facts.st_mode):
                raise InputError(f"{path}: expected a regular file or a link to one; {again(folder)}.")
            largest = _largest(path)
            if largest is not None and facts.st_size > largest:
                raise InputError(f"{path}: has {facts.st_size:,} bytes, expected at most {largest:,}; {again(folder)}.")
            yield path


def _largest(path: Path) -> int | None:
    return next((largest for pattern, largest in LARGEST if fnmatch(path.name, pattern)), None)


def _sizes(path: Path, folder: Path) -> Iterator[int]:
    """How many numbers each tensor of a file has; all must be finite."""
    try:
        for name, array in iter_arrays(path):
            parts = np.array_split(array.reshape(-1), array.size // AT_A_TIME + 1)
            if array.dtype.kind == "f" and not all(np.isfinite(part).all() for part in parts):
                raise InputError(f"{path}: the tensor {name} has NaN or infinite numbers; {again(folder)}.")
            yield array.size
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({first_line(error)}); {again(folder)}.") from None


def _settings(path: Path, folder: Path) -> Any:
    """The contents of a JSON file whose numbers are finite in float32."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, not JSON ({first_line(error)}); {again(folder)}.") from None
    rest = [("", content)]
    while rest:
        key, value = rest.pop()
        if isinstance(value, dict):
            rest += [(f"{key}.{name}" if key else name, one) for name, one in value.items()]
        elif isinstance(value, list):
            rest += [(f"{key}[{number}]", one) for number, one in enumerate(value)]
        elif isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:
            raise InputError(f"{path}: {key} is not a finite number; {again(folder)}.")
    return content


# --- tokenizers


def _try_patterns(path: Path, folder: Path) -> None:
    """Refuse regular expressions of a tokenizer on which its library gives up, by a panic."""
    patterns = dict.fromkeys(PATTERN.findall(path.read_bytes()))
    if not patterns:
        return
    from tokenizers import Regex
    from tokenizers.normalizers import Replace

    with tokenizer_probed(path, folder):
        for pattern in patterns:
            try:
                replace = Replace(Regex(json.loads(pattern)), "")
            except Exception as error:  # the library does not define its own class
                raise InputError(f"{path}: damaged ({first_line(error)}); {again(folder)}.") from None
            for text in PROBES:
                replace.normalize_str(text)


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of a Rust library, such as tokenizers; these do not inherit from `Exception`."""
    return type(error).__name__ == "PanicException"


@contextmanager
def panics_told(path: Path, folder: Path) -> Iterator[None]:
    """Turn a panic in the block into an InputError.

    Example:
        >>> with panics_told(Path("m"), Path("m")):
        ...     raise type("PanicException", (BaseException,), {})("Onig: retry-limit-in-match over")
        Traceback (most recent call last):
        mrs_suggest.common.errors.InputError: m: the tokenizer fails (Onig: retry-limit-in-match over); copy it again
        from an ...
    """
    try:
        yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise InputError(f"{path}: the tokenizer fails ({first_line(error)}); {again(folder)}.") from None


@contextmanager
def tokenizer_probed(path: Path, folder: Path) -> Iterator[None]:
    """As `panics_told`, without the report that Rust writes to standard error; for loading and the first use alone.

    The descriptor is the whole process's; other output to it in the meantime appears when the block has ended.
    """
    sys.stderr.flush()
    shown = os.dup(2)
    with tempfile.TemporaryFile() as report:
        os.dup2(report.fileno(), 2)
        panicked = False
        try:
            with panics_told(path, folder):
                try:
                    yield
                except BaseException as error:
                    panicked = is_panic(error)
                    raise
        finally:
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            report.seek(0)
            text = report.read()
            if text and not panicked:
                os.write(2, text)
