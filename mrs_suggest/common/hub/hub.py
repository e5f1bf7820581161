"""Requests to the Hugging Face hub: downloads, names and revisions, with one sentence for each kind of failure.

The token comes from where the hub's own client finds it (`hf auth login`, `HF_TOKEN`) and is never printed.
"""

import contextlib
import errno
import hashlib
import importlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.common.io.files import FULL, file_sha256

TRIES = 3
SECONDS_BETWEEN_TRIES = 1.0
NOT_THE_HUB = "the answer is not from the hub, perhaps from a proxy or a login page"
Result = TypeVar("Result")
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def require_token(repo_id: str, token: str | None = None) -> None:
    """Refuse to start work that will be published without a valid hub token, or if the hub cannot be reached."""
    from huggingface_hub import HfApi

    asked(Publication("model", repo_id, None), lambda: HfApi(token=token).whoami())


def require_repo_id(repo_id: str) -> None:
    """Refuse a name that is not of the form `ORG/NAME`."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"{repo_id!r}: not a repository name ({first_line(error)}); pass ORG/NAME.") from None
    if repo_id.count("/") != 1:
        raise InputError(f"{repo_id!r}: the organisation is missing; pass ORG/NAME.")
    if not _NAME.fullmatch(repo_id):  # older clients pass other alphabets and a line break at the end
        raise InputError(f"{repo_id!r}: not a repository name (letters a to z, digits, - _ . alone); pass ORG/NAME.")


def is_repo_id(name: str) -> bool:
    """Whether a name has the form of a hub repository, `ORG/NAME` or `ORG/NAME@REVISION`.

    The caller checks whether a local folder has that name.

    >>> [is_repo_id(name) for name in ("org/m", "org/m@refs/pr/1", "bert-base-uncased", "./m", "build/a/b", "~/m")]
    [True, True, False, False, False, False]
    """
    return name.partition("@")[0].count("/") == 1 and not name.startswith((".", "/", "~"))


def split_revision(name: str, revision: str | None = None) -> tuple[str, str | None]:
    """Split `ORG/NAME@REVISION`; the revision is a branch, a tag, a commit, or `refs/pr/1`.

    Raises:
        InputError: nothing follows the `@`, or the two name different revisions.

    >>> split_revision("org/mrs@refs/pr/1"), split_revision("org/mrs", "v1")
    (('org/mrs', 'refs/pr/1'), ('org/mrs', 'v1'))
    """
    repo_id, at, own = name.partition("@")
    if at and not own:
        raise InputError(f"{name}: nothing follows the @; pass ORG/NAME@REVISION, or ORG/NAME.")
    if own and revision not in (None, own):
        raise InputError(f"{name}: names another revision than the one passed with it ({revision}); pass only one.")
    return repo_id, own or revision


def download(
    repo_id: str,
    revision: str | None = None,
    patterns: Iterable[str] = ("*",),
    kind: str = "model",
    *,
    force: bool = False,
    verify: bool = False,
) -> Path:
    """Download a repository of a model or a data set (or take it from the cache) and return its folder.

    Each downloaded file is compared with the hash that the hub gives: SHA-256 for a large file, git's hash for a small
    one. A file that differs is removed from the cache.

    Raises:
        InputError: no such repository or revision, no hub and nothing in the cache, no space on the disk, or a
            downloaded file differs from the hub's.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.file_download import repo_folder_name

    require_repo_id(repo_id)
    publication = Publication(kind, repo_id, None)
    blobs = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo_id, repo_type=kind) / "blobs"
    before = set() if force or verify else {path.name for path in blobs.glob("*")}
    folder = Path(
        asked(
            publication,
            lambda: snapshot_download(
                repo_id, repo_type=kind, revision=revision, allow_patterns=list(patterns), force_download=force
            ),
            doing="download",
        )
    )
    drop_damaged(repo_id, folder, before)
    return folder


def drop_damaged(repo_id: str, folder: Path, before: set[str]) -> None:
    """Remove from the cache, by an InputError, new files of a snapshot that differ from the hashes in their names."""
    # In the cache, a file is a link to one whose name is its hash by the hub; equal files share it.
    links = {path: path.resolve() for path in sorted(folder.rglob("*")) if path.is_symlink()}
    wrong = {blob for blob in set(links.values()) if blob.name not in before and not _is_as_named(blob)}
    damaged = [path for path, blob in links.items() if blob in wrong]
    for path in (*damaged, *wrong):
        path.unlink()
    if damaged:
        names = ", ".join(path.relative_to(folder).as_posix() for path in damaged)
        raise InputError(
            f"{repo_id}: {names} arrived damaged (not the hub's hash) and left the cache; run the same command again."
        )


def _is_as_named(blob: Path) -> bool:
    """Whether a file has the hash in its name; a name that is not a hash proves nothing."""
    if re.fullmatch("[0-9a-f]{64}", blob.name):
        return file_sha256(blob) == blob.name
    if re.fullmatch("[0-9a-f]{40}", blob.name):  # git's for a small file; a mirror may give the plain one
        data = blob.read_bytes()
        return blob.name in (hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(), hashlib.sha1(data).hexdigest())
    return True


def commit_of(kind: str, repo_id: str, revision: str | None = None) -> str | None:
    """The commit of a repository's revision; None if the hub does not say, InputError if it has no such revision."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RevisionNotFoundError

    try:
        return HfApi().repo_info(repo_id, repo_type=kind, revision=revision).sha
    except RevisionNotFoundError:
        raise InputError(f"{repo_id}: no revision {revision} on the hub; look at the repository's history.") from None
    except _unanswered():
        return None


def require_there(kind: str, repo_id: str) -> None:
    """Ask the hub for a repository that a library is about to load: a missing one, or no hub, is an InputError."""
    from huggingface_hub import HfApi

    require_repo_id(repo_id)
    asked(Publication(kind, repo_id, None), lambda: HfApi().repo_info(repo_id, repo_type=kind), doing="load")


def cached_file(kind: str, repo_id: str, name: str, revision: str | None = None) -> Path | None:
    """One file of a repository, from the cache or the hub; None if it does not exist."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo_id, name, repo_type=kind, revision=revision))
    except _unanswered():
        return None


def asked(publication: Publication, call: Callable[[], Result], doing: str = "publish") -> Result:
    """Run a request of the client; retry after temporary failures."""
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        except Exception as error:
            raise_unless_passing(error, publication, doing)
            if attempt == TRIES:
                state = "; nothing was changed" if doing == "publish" else ""
                raise InputError(
                    f"{publication.repo_id}: cannot {doing} ({why(error)}){state}. "
                    "Run the same command again when the hub answers."
                ) from None
            time.sleep(SECONDS_BETWEEN_TRIES * attempt)
    raise AssertionError("unreachable")


def raise_unless_passing(error: Exception, publication: Publication, doing: str = "publish") -> None:
    """Return for temporary failures (the network, 5xx, 429); raise a sentence for others, and bugs unchanged."""
    from huggingface_hub.errors import HfHubHTTPError

    if refusal := _refusal(error, publication.kind, doing):
        raise InputError(f"{publication.repo_id}: {refusal}") from None
    network = _network_errors()
    behind = isinstance(error, (OSError, RuntimeError)) and isinstance(error.__cause__, (*network, HfHubHTTPError))
    passing = (*network, HfHubHTTPError, ConnectionError, TimeoutError, json.JSONDecodeError)
    if not isinstance(error, passing) and not behind and not _is_other_content(error):
        raise error


def _refusal(error: Exception, kind: str, doing: str) -> str | None:
    """The problem and its remedy in words; None for what may pass by itself, and for bugs."""
    from huggingface_hub import constants, errors, get_token

    status = getattr(getattr(error, "response", None), "status_code", 0)
    if isinstance(error, errors.LocalTokenNotFoundError) or (status == 401 and doing == "publish" and not get_token()):
        return f"no token to {doing} with; run `hf auth login` or set HF_TOKEN."
    if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, errors.FileMetadataError):
        return f"cannot {doing}: {NOT_THE_HUB}; check the connection, then run the same command again."
    if isinstance(error, (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError)):
        return f"cannot {doing}: the hub cannot be reached, or HF_HUB_OFFLINE is set."
    if isinstance(error, errors.RevisionNotFoundError):
        return "no such revision on the hub; look at the repository's history."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"no such {kind} on the hub, or the token may not see it; check the name and the token."
    if isinstance(error, errors.HfHubHTTPError):
        if status in (401, 403):
            return f"the token is not allowed to {doing} there (HTTP {status}); check its rights."
        if status == 409:
            return (
                "another commit was published meanwhile; look at the newest revision, then run the same command again."
            )
        if status < 500 and status not in (408, 429):
            return f"the hub refused to {doing} (HTTP {status}: {first_line(error)})."
        return None
    if isinstance(error, ValueError) and "README.md" in str(error):  # the hub checks the card's YAML first
        last = str(error).strip().splitlines()[-1].strip(" -.")
        return f"the hub refuses the YAML of README.md ({last}); correct it."
    # the client's downloader in Rust reports a full disk in its message only
    full = isinstance(error, RuntimeError) and os.strerror(errno.ENOSPC) in str(error)
    if doing == "download" and (full or (isinstance(error, OSError) and error.errno in FULL)):
        return (
            f"cannot download: no space on the disk at {constants.HF_HUB_CACHE}; free some space there, or set HF_HOME "
            "to a folder of another disk, then run the same command again."
        )
    return None


def _is_other_content(error: Exception) -> bool:
    """Whether a file's size differs from the one the hub gave: another server's page, or a truncated file."""
    return isinstance(error, OSError) and "Consistency check failed" in str(error)


def why(error: Exception) -> str:
    """The client's error message, or our own words where it misleads."""
    if isinstance(error, json.JSONDecodeError):
        return NOT_THE_HUB
    if _is_other_content(error):
        return "the file that arrived is not the hub's: perhaps a proxy's page, or truncated"
    return first_line(error)


def _unanswered() -> tuple[type[Exception], ...]:
    """Errors of a question that the hub may leave open; the client's own are OSErrors or ValueErrors."""
    return OSError, ValueError, *_network_errors()


def _network_errors() -> tuple[type[Exception], ...]:
    """Network errors of the hub's client, which uses httpx up to 1.x and httpx2 from 2.x on."""
    found = []
    for library in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(library).HTTPError)
    return tuple(found)
