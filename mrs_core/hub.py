"""Publishing to the Hugging Face hub: one commit, or the old revision as it was.

The token comes from where the hub's own client finds it (`hf auth login`, `HF_TOKEN`) and is never printed.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mrs_core.errors import InputError, first_line
from mrs_core.files import FULL
from mrs_core.manifest import require_as_named

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TRIES = 3
SECONDS_BETWEEN_TRIES = 1.0
KINDS = ("model", "dataset", "space")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Publication:
    """A folder to publish as one commit of a repository.

    Attributes:
        kind: model, dataset or space.
        repo_id: `ORG/NAME`.
        folder: what the repository shall hold; None where `instead` has everything.
        left_out: patterns of names directly in the folder (files or folders) that stay at home.
        instead: contents or files that take the place of files of the folder, or join them, by their path.
        space_sdk: of a Space.
    """

    kind: str
    repo_id: str
    folder: Path | None
    left_out: tuple[str, ...] = ()
    instead: Mapping[str, bytes | Path] = field(default_factory=dict)
    space_sdk: str | None = None

    def files(self) -> dict[str, Path | bytes]:
        """Path in the repository -> the file or its contents, sorted; hidden files and folders are left out."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()] if self.folder else []
        found = {path.relative_to(self.folder): path for path in paths if self.folder}
        kept: dict[str, Path | bytes] = {name.as_posix(): path for name, path in found.items() if not self._stays(name)}
        return dict(sorted({**kept, **self.instead}.items()))

    def sizes(self) -> dict[str, int]:
        """Path in the repository -> bytes."""
        return {
            name: len(content) if isinstance(content, bytes) else content.stat().st_size
            for name, content in self.files().items()
        }

    def _stays(self, path: Path) -> bool:
        hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
        return hidden or any(fnmatch(path.parts[0], pattern) for pattern in self.left_out)


def publish(publication: Publication, message: str, private: bool | None = None, token: str | None = None) -> str:
    """Make the repository hold the publication's files and no others, in one commit; return the commit's id.

    Args:
        message: of the commit.
        private: visibility of a repository that is created; an existing one keeps its own.
        token: default where the hub's client finds it.

    Raises:
        InputError: no token, no right, no hub, or somebody else published meanwhile; the sentence says what to do.
            The revision that was there before is whole.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    require_repo_id(publication.repo_id)
    files = publication.files()
    if not files:
        raise InputError(f"{publication.folder}: nothing to publish there.")
    api = HfApi(token=token)
    name, kind = publication.repo_id, publication.kind
    _asked(
        publication,
        lambda: api.create_repo(name, repo_type=kind, private=private, exist_ok=True, space_sdk=publication.space_sdk),
    )
    head = _head(api, publication)
    there = _asked(publication, lambda: api.list_repo_files(name, repo_type=kind, revision=head))
    foreign = set(there) - {".gitattributes", "README.md"}
    if foreign and not foreign & set(files):
        raise InputError(
            f"{name}: holds other files ({min(foreign)!r} among them), which publishing would remove; choose another "
            "repository, or empty that one."
        )
    gone = sorted(set(there) - set(files) - {".gitattributes"})
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in files.items()
        ),
        *(CommitOperationDelete(path) for path in gone),
    ]
    for attempt in range(1, TRIES + 1):
        try:
            info = api.create_commit(name, operations, repo_type=kind, commit_message=message, parent_commit=head)
            return str(info.oid)
        except Exception as error:
            stale = isinstance(error, HfHubHTTPError) and error.response.status_code == 412  # by our own, perhaps
            if not stale:
                _raise_unless_passing(error, publication)
            landed = _landed(api, publication, head, message, error)
            if landed:
                return landed
            if stale:
                raise InputError(_overtaken(publication, head)) from None
            if attempt == TRIES:
                raise InputError(
                    f"{publication.repo_id}: the push was cut off ({_why(error)}); revision {head[:12]} is as "
                    "it was. Run the same command again: what was uploaded is not sent twice."
                ) from None
            time.sleep(SECONDS_BETWEEN_TRIES * attempt)
    raise AssertionError("unreachable")


def describe(publication: Publication) -> str:
    """What `--dry-run` prints: the repository, the files with their sizes, and the card."""
    sizes = publication.sizes()
    lines = [f"{publication.kind} {publication.repo_id}: {len(sizes)} files, {sum(sizes.values()):,} bytes"]
    lines += [f"  {size:>12,}  {name}" for name, size in sizes.items()]
    card = publication.files().get("README.md")
    if card is not None:
        text = card.decode("utf-8") if isinstance(card, bytes) else card.read_text(encoding="utf-8")
        lines += ["", "README.md:", "", text]
    return "\n".join(lines)


def require_token(repo_id: str, token: str | None = None) -> None:
    """Refuse to start what is to be published when there is no token that the hub knows.

    Raises:
        InputError: no token, an unknown one, or no hub.
    """
    from huggingface_hub import HfApi

    _asked(Publication("model", repo_id, None), lambda: HfApi(token=token).whoami())


def require_repo_id(repo_id: str) -> None:
    """Refuse what is no `ORG/NAME`."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"{repo_id!r}: not a repository name ({first_line(error)}); pass ORG/NAME.") from None
    if repo_id.count("/") != 1:
        raise InputError(f"{repo_id!r}: the organisation is missing; pass ORG/NAME.")


def download(
    repo_id: str,
    revision: str | None = None,
    patterns: Iterable[str] = ("*",),
    force: bool = False,
    verify: bool = False,
) -> Path:
    """Download a model repository (or take it from the cache) and return its folder.

    What comes over the line is compared with the hash that the hub names: its SHA-256 for a large file, git's hash for
    a small one. A file that differs does not stay in the cache.

    Args:
        force: download again what the cache has.
        verify: compare what the cache had, too.

    Raises:
        InputError: no such repository or revision, no hub and nothing in the cache, no room on the disk, or something
            else arrived than the hub has.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.file_download import repo_folder_name

    require_repo_id(repo_id)
    publication = Publication("model", repo_id, None)
    blobs = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo_id, repo_type="model") / "blobs"
    before = set() if force or verify else {path.name for path in blobs.glob("*")}
    folder = Path(
        _asked(
            publication,
            lambda: snapshot_download(repo_id, revision=revision, allow_patterns=list(patterns), force_download=force),
            doing="download",
        )
    )
    require_as_named(repo_id, folder, before)
    return folder


def commit_of(kind: str, repo_id: str, revision: str | None = None) -> str | None:
    """The commit that a revision of a repository stands for now; None where the hub does not tell."""
    from huggingface_hub import HfApi

    try:
        return HfApi().repo_info(repo_id, repo_type=kind, revision=revision).sha
    except Exception as error:
        if isinstance(error, (OSError, ValueError, *_network_errors())):  # the client's own are OSErrors or ValueErrors
            return None
        raise


def cached_file(kind: str, repo_id: str, name: str, revision: str | None = None) -> Path | None:
    """One file of a repository, from the cache or the hub; None where there is none."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo_id, name, repo_type=kind, revision=revision))
    except Exception as error:
        if isinstance(error, (OSError, ValueError, *_network_errors())):
            return None
        raise


def _head(api: HfApi, publication: Publication) -> str:
    return str(_asked(publication, lambda: api.repo_info(publication.repo_id, repo_type=publication.kind).sha))


def _landed(api: HfApi, publication: Publication, head: str, message: str, error: Exception) -> str | None:
    """The commit of ours that took effect though its answer was lost; None where `head` is the newest still.

    Raises:
        InputError: somebody else was faster, or the hub does not tell.
    """
    try:
        landed = _head(api, publication)
        ours = landed != head and _asked(publication, lambda: _holds(api, publication, landed, message))
    except InputError:
        raise InputError(
            f"{publication.repo_id}: the push was cut off ({_why(error)}) and the hub does not say whether it "
            f"took effect; the repository holds either revision {head[:12]} or the new one, whole. Run the same "
            "command again when the hub answers."
        ) from None
    if landed != head and not ours:
        raise InputError(_overtaken(publication, landed, "now at")) from None
    return landed if ours else None


def _overtaken(publication: Publication, revision: str, where: str = "you started from") -> str:
    return (
        f"{publication.repo_id}: somebody else published there meanwhile ({where} {revision[:12]}); look at that "
        "revision, then run the same command again."
    )


def _holds(api: HfApi, publication: Publication, revision: str, message: str) -> bool:
    """Whether the newest commit is the one that was asked for: its title, and the names and sizes of the files."""
    from huggingface_hub.hf_api import RepoFile

    name, kind = publication.repo_id, publication.kind
    title = api.list_repo_commits(name, repo_type=kind, revision=revision)[0].title
    tree = api.list_repo_tree(name, repo_type=kind, revision=revision, recursive=True)
    sizes = {item.path: item.size for item in tree if isinstance(item, RepoFile) and item.path != ".gitattributes"}
    return title == message.splitlines()[0] and sizes == publication.sizes()


def _asked(publication: Publication, call: Callable[[], Result], doing: str = "publish") -> Result:
    """Run a request of the client; a passing fault is tried again."""
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        except Exception as error:
            _raise_unless_passing(error, publication, doing)
            if attempt == TRIES:
                raise InputError(
                    f"{publication.repo_id}: cannot {doing} ({_why(error)}); nothing was changed. "
                    "Run the same command again when the hub answers."
                ) from None
            time.sleep(SECONDS_BETWEEN_TRIES * attempt)
    raise AssertionError("unreachable")


def _raise_unless_passing(error: Exception, publication: Publication, doing: str = "publish") -> None:
    """Return for faults that may pass (the network, 5xx, 429); raise a sentence for others, and bugs as they are."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import (
        FileMetadataError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = publication.repo_id
    network = _network_errors()
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if isinstance(error, LocalTokenNotFoundError) or (status == 401 and doing == "publish" and get_token() is None):
        raise InputError(f"{name}: no token to {doing} with; run `hf auth login` or set HF_TOKEN.") from None
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, FileMetadataError):
        raise InputError(
            f"{name}: cannot {doing}: another server than the hub answers, a proxy or a login page perhaps; look at "
            "the connection, then run the same command again."
        ) from None
    if isinstance(error, (OfflineModeIsEnabled, LocalEntryNotFoundError)):
        raise InputError(f"{name}: cannot {doing}: the hub is out of reach or HF_HUB_OFFLINE is set.") from None
    if isinstance(error, RevisionNotFoundError):
        raise InputError(f"{name}: no such revision on the hub; look at the repository's history.") from None
    if isinstance(error, RepositoryNotFoundError):
        raise InputError(
            f"{name}: no such {publication.kind} on the hub, or the token may not see it; check the name and the token."
        ) from None
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code if error.response is not None else 0
        if status in (401, 403):
            raise InputError(f"{name}: the token may not {doing} there (HTTP {status}); check its rights.") from None
        if status == 409:
            raise InputError(
                f"{name}: somebody else published there meanwhile; look at the newest revision, then run the same "
                "command again."
            ) from None
        if status < 500 and status not in (408, 429):
            raise InputError(f"{name}: the hub refused to {doing} (HTTP {status}: {first_line(error)}).") from None
        return
    if isinstance(error, (*network, ConnectionError, TimeoutError)):
        return
    if isinstance(error, ValueError) and "README.md" in str(error):  # the hub looks at the card's YAML first
        raise InputError(f"{name}: the hub refuses the YAML of README.md ({_last_line(error)}); correct it.") from None
    if isinstance(error, (OSError, RuntimeError)) and isinstance(error.__cause__, (*network, HfHubHTTPError)):
        return
    if isinstance(error, json.JSONDecodeError) or _is_other_content(error):
        return
    if doing == "download" and _is_full(error):
        from huggingface_hub import constants

        raise InputError(
            f"{name}: cannot download: no room on the disk at {constants.HF_HUB_CACHE}; make room there, or set "
            "HF_HOME to a folder of another disk, then run the same command again."
        ) from None
    raise error


def _is_other_content(error: Exception) -> bool:
    """Whether the client found a file of another size than the hub named: another server's page, or a cut file."""
    return isinstance(error, OSError) and "Consistency check failed" in str(error)


def _is_full(error: Exception) -> bool:
    """Whether the disk had no room; the client's own downloader in Rust tells it in words alone."""
    told = isinstance(error, RuntimeError) and os.strerror(errno.ENOSPC) in str(error)
    return told or (isinstance(error, OSError) and error.errno in FULL)


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "the answer is not the hub's: the page of a proxy or of a login, perhaps"
    if _is_other_content(error):
        return "something else arrived than the hub's file: the page of a proxy or a part, perhaps"
    return first_line(error)


def _network_errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises for the network: it goes through httpx up to 1.x and through httpx2 from 2.x on."""
    found = []
    for library in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(library).HTTPError)
    return tuple(found)


def _last_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1].strip(" -.")
