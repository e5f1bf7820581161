"""The metrics do not use the project's errors: they raise ValueError, and ImportError for a missing extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from mrs_suggest.common.errors import InputError


@contextmanager
def metric_errors(where: str = "") -> Iterator[None]:
    """Turn a metric's ValueError or ImportError into the error that the command line prints, after `where`."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error
