"""Errors of remote storages: a reason in words, without secrets, and whether and when it may pass by itself."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from mrs_suggest.common.errors import RemoteError, first_line
from mrs_suggest.common.io.packaged import read_packaged

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

TRIES = 7  # of one read; chosen: with FIRST_WAIT, half a minute in all
FIRST_WAIT = 0.5  # seconds; doubled from try to try
CHANGED = "the file changed while it was read; start again"
NO_PARTS = "its server does not send parts of a file; fetch it and pass its path"
_CREDENTIALS = re.compile(r"(://)[^/\s'\"]*@")
_QUERY = re.compile(r"(://[^\s?'\"]*)\?[^\s'\")]*")
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_PASSING_NUMBERS = frozenset({errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.ENETUNREACH})
# Of aiohttp and botocore, by name, since neither need be installed.
_PASSING_KINDS = frozenset(
    {"ClientPayloadError", "ServerDisconnectedError", "IncompleteRead", "IncompleteReadError", "ResponseStreamingError",
     "ReadTimeoutError", "ConnectTimeoutError", "ConnectionClosedError", "FSTimeoutError"}
)  # fmt: skip
_CODES: dict[str, str] = read_packaged("mrs_suggest.common.io", "s3_errors.yaml")
NO_BUCKET, _NO_RIGHT = _CODES["NoSuchBucket"], _CODES["AccessDenied"]
Result = TypeVar("Result")


def masked(text: str) -> str:
    """A text without possible secrets in its URLs.

    >>> masked("ftp://me:secret@host/a: 403 at https://host/b?token=c")
    'ftp://***@host/a: 403 at https://host/b?***'
    """
    return _QUERY.sub(r"\1?***", _CREDENTIALS.sub(r"\1***@", text))


def shown_url(filesystem: AbstractFileSystem, path: str) -> str:
    """The URL of a path, without credentials."""
    return masked(str(filesystem.unstrip_protocol(path)))


@contextmanager
def translated(filesystem: AbstractFileSystem, path: str) -> Iterator[None]:
    """Turn any error of a storage into a `RemoteError`."""
    try:
        yield
    except RemoteError:
        raise
    except Exception as error:
        raise _remote_error(error, filesystem, path) from None


def retried(filesystem: AbstractFileSystem, path: str, call: Callable[[], Result]) -> Result:
    """The result of `call`, repeated after a wait while an error may pass by itself; else RemoteError."""
    for number in range(TRIES):
        try:
            return call()
        except RemoteError:
            raise
        except Exception as error:
            passing = is_passing(_cause(error))
            if not passing or number == TRIES - 1:
                raise _remote_error(error, filesystem, path, f", {TRIES} times" if passing else "") from None
        sleep(FIRST_WAIT * 2**number)
    raise AssertionError("unreachable")


def is_passing(error: BaseException | None) -> bool:
    """Whether the same request may succeed a little later: timeouts, broken connections, 429 and 5xx.

    >>> is_passing(ConnectionResetError()), is_passing(PermissionError())
    (True, False)
    """
    if error is None:
        return False
    if isinstance(error, TimeoutError | ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return True
    status = getattr(error, "status", None) or _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    if status in _PASSING_STATUS or (isinstance(error, OSError) and error.errno in _PASSING_NUMBERS):
        return True
    if any(kind.__name__ in _PASSING_KINDS for kind in type(error).__mro__):
        return True
    return not isinstance(error, FileNotFoundError | PermissionError) and is_passing(error.__cause__)


def seconds_to_wait(retry_after: str) -> float | None:
    """The seconds of a header `Retry-After`, given as a number or as a date; None if it is unreadable."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return None if math.isnan(seconds) else max(seconds, 0.0)


def _response(error: BaseException) -> dict[str, Any]:
    """The answer in an error of botocore."""
    found = getattr(error, "response", None)
    return found if isinstance(found, dict) else {}


def _code(error: BaseException) -> str:
    """S3's code of an error, or of its cause."""
    codes = [_response(each).get("Error", {}).get("Code") for each in (error, error.__cause__) if each is not None]
    return next((str(code) for code in codes if code), "")


def _cause(error: BaseException) -> BaseException:
    """The real reason of fsspec's "not found" over HTTP, which may be a failed connection or a missing permission."""
    cause = error.__cause__
    if cause is None or not isinstance(error, FileNotFoundError) or isinstance(cause, FileNotFoundError):
        return error
    refused = getattr(cause, "status", None) not in (None, 404, 410)
    return cause if refused or isinstance(cause, OSError) or is_passing(cause) else error


def _remote_error(error: BaseException, filesystem: AbstractFileSystem, path: str, more: str = "") -> RemoteError:
    error = _cause(error)
    code = _code(error)
    if code in ("400", "403"):
        code = _code_of_listing(filesystem, path) or code
    reason = _CODES.get(code) or _reason(error)
    return RemoteError(
        errno.EACCES if reason == _NO_RIGHT else _number(error), reason + more, shown_url(filesystem, path)
    )


def _number(error: BaseException) -> int:
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    known = {FileNotFoundError: errno.ENOENT, NotADirectoryError: errno.ENOTDIR, FileExistsError: errno.EEXIST}
    return next((value for kind, value in known.items() if isinstance(error, kind)), errno.EIO)


def _reason(error: BaseException) -> str:
    if type(error).__name__ == "FileExpired":  # s3fs: the ETag is not the one that the file had when it was opened
        return CHANGED
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
        return "the credentials for the storage are missing or incomplete; set them as its package expects them"
    if isinstance(error, FileNotFoundError):
        return os.strerror(errno.ENOENT)
    if "range requests" in str(error) or "streaming HTTP" in str(error):
        return NO_PARTS
    return masked(str(error.strerror) if isinstance(error, OSError) and error.strerror else first_line(error))


def _code_of_listing(filesystem: AbstractFileSystem, path: str) -> str:
    """S3's code for a request whose answer has a body, if HEAD was refused without one."""
    bucket, _, key = path.partition("/")
    try:
        if (ask := getattr(filesystem, "call_s3", None)) is not None:
            ask("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)
    except Exception as error:
        return _code(error)
    return ""
