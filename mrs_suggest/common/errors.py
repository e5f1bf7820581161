"""Errors that the user can act on.

Each carries one full sentence: what is wrong, where, what was expected, what to do. The command line prints that
sentence and exits with 2; everything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from pydantic import ValidationError


class MrsError(Exception):
    """Base of all errors caused by the input or the installation, not by a bug."""


class InputError(MrsError):
    """A file, row, key or argument is invalid."""


class ArgumentError(InputError, ValueError):
    """An argument of a function is invalid; the sentence begins with its name and value.

    Args:
        problem: what was expected and what to do, with the full stop.
        value: what was passed; left out if `problem` says what was found.

    >>> print(ArgumentError("k", "expected a whole number from 1.", 0))
    k=0: expected a whole number from 1.
    """

    def __init__(self, name: str, problem: str, value: object = ...) -> None:
        super().__init__(name, problem, value)
        self.name, self.problem, self.value = name, problem, value

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}" if self.value is ... else f"{self.name}={self.value!r}: {self.problem}"

    def as_option(self, options: Mapping[str, str]) -> InputError:
        """The same error with the command line's option names; `options` maps argument names to options."""
        if self.name not in options:
            return self
        value = "" if self.value is ... else f" {self.value}"
        return InputError(f"{options[self.name]}{value}: {self.problem}")


def require_least(options: object, least: int, *names: str) -> None:
    """InputError if an option, as it is spelled on the command line, has a value that is too small; None passes."""
    for name in names:
        value = getattr(options, name.replace("-", "_"))
        if value is not None and value < least:
            raise InputError(f"--{name}: expected {least} or more, found {value}.")


class MissingExtraError(MrsError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)  # as they came, so that worker processes can pickle it

    def __str__(self) -> str:
        package, extra, purpose = self.args
        return (
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"run `pip install '.[{extra}]'` in a clone (docs/install.md)."
        )


@contextmanager
def extra_needed(package: str, extra: str, purpose: str) -> Iterator[None]:
    """For the import of an extra's package: MissingExtraError if it is not installed."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None


@contextmanager
def metric_errors(where: str = "") -> Iterator[None]:
    """Turn a metric's ValueError, or its ImportError for a missing extra, into an InputError, after `where`."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error


def missing_extra(error: BaseException, purpose: str, extra: str | None = None) -> MissingExtraError | None:
    """The error for a failed import of a package of an extra; None if something else went wrong.

    Args:
        purpose: what needs the package, at the beginning of the sentence.
        error, extra: as for `mrs_suggest.common.extras.lacking`.
    """
    from mrs_suggest.common.extras import lacking  # looks at the metadata of what is installed

    found = lacking(error, extra)
    return None if found is None else MissingExtraError(*found, purpose)


class RemoteError(OSError):
    """An error of a remote storage, as an `OSError`, so that it is handled like a disk error.

    `str()` is the reason alone; `filename` is the URL, without credentials.
    """

    def __str__(self) -> str:
        return str(self.strerror)


def reason_of(error: OSError) -> str:
    """The reason that the disk or a remote storage gives, without the path.

    >>> reason_of(FileNotFoundError(2, "[Errno 2] Failed to open 'x'"))
    'No such file or directory'
    """
    return os.strerror(error.errno) if error.errno and not isinstance(error, RemoteError) else str(error)


def first_line(error: BaseException) -> str:
    """The first line of a library's error message, without its full stop; the error's type if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, in words: the path to the field, and what is wrong with it."""
    problem = error.errors(include_url=False)[0]
    path = [str(part) for part in problem["loc"]]
    for kind, what in (("missing", "missing"), ("unexpected", "unknown"), ("extra", "unknown")):
        if problem["type"].startswith(kind):
            *path, name = path
            return ": ".join([*filter(None, [", ".join(path)]), f"{what} field {name!r}"])
    said = problem["msg"].removeprefix("Value error, ")
    said = f"{said[0].lower()}{said[1:]}"
    if problem["type"] not in ("value_error", "json_invalid"):
        said += f", found {str(problem['input'])[:60]!r}"
    return ": ".join([*filter(None, [", ".join(path)]), said])


def diverged(sign: str, more: str = "") -> InputError:
    """The error for a run that has diverged; `more` is added to the advice."""
    advice = "lower --learning_rate, or warm up longer (--warmup_steps)"
    return InputError(f"the training has diverged ({sign}); {advice}{more}.")


def run_with_sentence(name: str, call: Callable[[], object], extra: str | None = None) -> int:
    """Run a command: its exit code, or 2 after one sentence on stderr, or 130 after Ctrl-C.

    Args:
        call: returns the exit code; anything that is not an integer means success.
        extra: the one that brings what most of the command needs; see `missing_extra`.
    """
    try:
        result = call()
        return result if isinstance(result, int) else 0
    except MrsError as error:
        print(f"{name}: {visible(error)}", file=sys.stderr)
        return 2
    except ImportError as error:
        missing = missing_extra(error, "this", extra)
        if missing is None:
            raise
        print(f"{name}: {visible(missing)}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None or error.strerror is None:
            raise
        print(f"{name}: {visible(error.filename)}: {error.strerror}; check the path and its rights.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted.", file=sys.stderr)
        return 130
