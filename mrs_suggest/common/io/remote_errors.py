"""What storages answer when they refuse or break: a reason in words, without secrets, and if it passes by itself."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from mrs_suggest.common.errors import InputError, RemoteError, first_line

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

TRIES = 7  # of one read that brings nothing; chosen: with FIRST_WAIT, half a minute in all
FIRST_WAIT = 0.5  # seconds; doubled from try to try
CHANGED = "the file has changed while it was read; begin again"
NO_BUCKET = "there is no such bucket; check its name, the region and the endpoint"
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
# S3's codes (docs.aws.amazon.com, "Error responses") in words.
_CODES = {
    "ExpiredToken": "the credentials have expired; renew them",
    "ExpiredTokenException": "the credentials have expired; renew them",
    "RequestExpired": "the credentials have expired; renew them",
    "TokenRefreshRequired": "the credentials have expired; renew them",
    "InvalidAccessKeyId": "the storage does not know the access key; check the credentials",
    "InvalidClientTokenId": "the storage does not know the access key; check the credentials",
    "InvalidToken": "the storage does not accept the session token; renew the credentials",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key; check the credentials",
    "AccessDenied": "the storage gives no right to do this; check the rights of the credentials",
    "NoSuchBucket": NO_BUCKET,
    "400": "the storage refuses the request; check credentials, region and endpoint",
    "403": "the storage gives no right to do this; check the rights of the credentials",
}
_NO_BODY = frozenset({"400", "403"})  # what an answer to HEAD has instead of a code
_NO_RIGHT = frozenset({"AccessDenied", "403"})
Result = TypeVar("Result")


def masked(text: str) -> str:
    """A text without possible secrets in its URLs.

    >>> masked("ftp://me:secret@host/a: 403 at https://host/b?token=c")
    'ftp://***@host/a: 403 at https://host/b?***'
    """
    return _QUERY.sub(r"\1?***", _CREDENTIALS.sub(r"\1***@", text))


@dataclass(frozen=True, repr=False)
class Location:
    """A place in an fsspec storage, as an error names it.

    Attributes:
        filesystem: of fsspec; it can be pickled, credentials included.
        path: as the file system expects it, without the protocol if it needs none.
    """

    filesystem: AbstractFileSystem
    path: str

    def __str__(self) -> str:
        """The URL, without credentials."""
        return masked(str(self.filesystem.unstrip_protocol(self.path)))

    @property
    def protocols(self) -> frozenset[str]:
        """All names of its protocol."""
        names = self.filesystem.protocol
        return frozenset({names} if isinstance(names, str) else names)

    def size(self) -> int:
        """Bytes of the file.

        Raises:
            InputError: the storage does not say.
        """
        with translated(self):
            found = self.filesystem.info(self.path)["size"]
        if found is None:
            raise InputError(f"{self}: its server does not give its size; fetch the file and pass its path.")
        return int(found)


@contextmanager
def translated(path: Location) -> Iterator[None]:
    """Turn whatever a storage raises into a `RemoteError`: each storage has its own errors."""
    try:
        yield
    except RemoteError:
        raise
    except Exception as error:
        raise _remote_error(_cause(error), path) from None


def retried(path: Location, call: Callable[[], Result]) -> Result:
    """What `call` returns; it is called again, after a wait, where an error may pass by itself.

    Raises:
        RemoteError: another error, or one that did not pass.
    """
    for number in range(TRIES):
        try:
            return call()
        except RemoteError:
            raise
        except Exception as error:
            true = _cause(error)
            if not is_passing(true):
                with translated(path):
                    raise
            if number == TRIES - 1:
                raise _remote_error(true, path, f", {TRIES} times") from None
        sleep(FIRST_WAIT * 2**number)
    raise AssertionError("unreachable")


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a little later: timeouts, broken connections, 429 and 5xx.

    >>> is_passing(ConnectionResetError()), is_passing(PermissionError())
    (True, False)
    """
    while error.__cause__ is not None and not isinstance(error, FileNotFoundError | PermissionError):
        if _passes(error):
            return True
        error = error.__cause__
    return _passes(error)


def _passes(error: BaseException) -> bool:
    if isinstance(error, TimeoutError | ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return True
    status = getattr(error, "status", None) or _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    if status in _PASSING_STATUS:
        return True
    if isinstance(error, OSError) and error.errno in _PASSING_NUMBERS:
        return True
    return any(kind.__name__ in _PASSING_KINDS for kind in type(error).__mro__)


def _response(error: BaseException) -> dict[str, Any]:
    """What botocore's errors say of the answer."""
    found = getattr(error, "response", None)
    return found if isinstance(found, dict) else {}


def _code(error: BaseException) -> str:
    """S3's code of an error, or of its cause."""
    for each in (error, error.__cause__):
        if each is not None and (code := _response(each).get("Error", {}).get("Code")):
            return str(code)
    return ""


def _cause(error: BaseException) -> BaseException:
    """The real reason for fsspec's "not found" over HTTP: no connection or no permission, perhaps."""
    cause = error.__cause__
    if cause is None or not isinstance(error, FileNotFoundError) or isinstance(cause, FileNotFoundError):
        return error
    refused = getattr(cause, "status", None) not in (None, 404, 410)
    return cause if refused or isinstance(cause, OSError) or is_passing(cause) else error


def _remote_error(error: BaseException, path: Location, more: str = "") -> RemoteError:
    code = _code(error)
    if code in _NO_BODY:
        code = _told_by_list(path) or code
    number = errno.EACCES if code in _NO_RIGHT else _number(error)
    return RemoteError(number, (_CODES.get(code) or _reason(error)) + more, str(path))


def _number(error: BaseException) -> int:
    known = {FileNotFoundError: errno.ENOENT, NotADirectoryError: errno.ENOTDIR, FileExistsError: errno.EEXIST}
    number = getattr(error, "errno", None)
    found = next((value for kind, value in known.items() if isinstance(error, kind)), errno.EIO)
    return number if isinstance(number, int) else found


def _reason(error: BaseException) -> str:
    if type(error).__name__ == "FileExpired":  # s3fs: the ETag is another one than when the file was opened
        return CHANGED
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
        return "there are no complete credentials for the storage; set them as its package expects them"
    if isinstance(error, FileNotFoundError):
        return os.strerror(errno.ENOENT)
    if "range requests" in str(error) or "streaming HTTP" in str(error):
        return NO_PARTS
    if isinstance(error, OSError) and error.strerror:
        return masked(str(error.strerror))
    return masked(first_line(error))


def _told_by_list(path: Location) -> str:
    """The code that S3 gives for a request whose answer has a body, where HEAD was refused without one."""
    ask = getattr(path.filesystem, "call_s3", None)
    if ask is None:
        return ""
    bucket, _, key = path.path.partition("/")
    try:
        ask("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)
    except Exception as error:
        return _code(error)
    return ""
