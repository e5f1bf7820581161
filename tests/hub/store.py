"""What the loopback hub keeps: repositories with commits, branches, tags; contents lie in a temporary folder."""

import hashlib
import re
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

KINDS = ("model", "dataset", "space")
PREFIXES = {"model": "", "dataset": "datasets/", "space": "spaces/"}
LFS_SUFFIXES = (
    ".parquet", ".arrow", ".safetensors", ".bin", ".pt", ".onnx", ".npy", ".npz", ".zst", ".gz", ".zip", ".png",
)  # fmt: skip
LFS_SIZE = 10 * 1024 * 1024
ATTRIBUTES = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LFS_SUFFIXES).encode()
SPACE_SDKS = ("gradio", "streamlit", "docker", "static")
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)?---[ \t]*(\r?\n|\Z)", re.DOTALL)


class HubError(Exception):
    """An answer that is an error; `code` is the X-Error-Code that the clients look at."""

    def __init__(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}
        self.extra: dict[str, Any] = {}


def no_repository() -> HubError:
    return HubError(404, "Repository not found", "RepoNotFound")


@dataclass(frozen=True)
class Blob:
    """A file's content: `oid` is git's (of the pointer, for LFS), `sha256` names the file that holds it."""

    sha256: str
    oid: str
    size: int
    lfs: bool

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid


@dataclass(frozen=True)
class Commit:
    sha: str
    parent: str | None
    title: str
    message: str
    date: str
    files: dict[str, Blob]


class Objects:
    """Contents by SHA-256, in one folder; a content is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clear()

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def path(self, sha256: str) -> Path:
        return self.folder / sha256

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def add(self, data: bytes) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        part = self.folder / f"{sha256}.{threading.get_ident()}.part"
        part.write_bytes(data)
        part.replace(self.path(sha256))
        return sha256

    def blob(self, data: bytes) -> Blob:
        """Store a regular file."""
        return Blob(self.add(data), git_oid(data), len(data), False)

    def pointer(self, sha256: str) -> Blob:
        """Refer to an LFS object, which must have been uploaded."""
        if not re.fullmatch("[0-9a-f]{64}", sha256) or not self.has(sha256):
            raise HubError(400, "Your push was rejected because an LFS pointer pointed to a file that does not exist.")
        size = self.path(sha256).stat().st_size
        return Blob(sha256, git_oid(pointer_text(sha256, size)), size, True)


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pointer_text(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def is_lfs(path: str, sample: bytes, size: int) -> bool:
    return path.endswith(LFS_SUFFIXES) or size > LFS_SIZE or b"\0" in sample


@dataclass
class Repository:
    """One repository; a revision is a branch, a tag or a commit's sha. Tests read it by `files`, `text`, `commits`."""

    kind: str
    id: str
    objects: Objects
    private: bool = False
    heads: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    history: dict[str, Commit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.heads:
            self._record("main", None, "initial commit", "", {".gitattributes": self.objects.blob(ATTRIBUTES)})

    def resolve(self, revision: str = "main") -> Commit:
        sha = self.heads.get(revision) or self.tags.get(revision) or revision
        if sha not in self.history:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.history[sha]

    def sha(self, revision: str = "main") -> str:
        return self.resolve(revision).sha

    def files(self, revision: str = "main") -> list[str]:
        return sorted(self.resolve(revision).files)

    def entry(self, path: str, revision: str = "main") -> Blob:
        commit = self.resolve(revision)
        if path not in commit.files:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": commit.sha})
        return commit.files[path]

    def read(self, path: str, revision: str = "main") -> bytes:
        return self.objects.path(self.entry(path, revision).sha256).read_bytes()

    def text(self, path: str, revision: str = "main") -> str:
        return self.read(path, revision).decode("utf-8")

    def commits(self, revision: str = "main") -> list[Commit]:
        """Return the commits of a revision, the newest first."""
        found = [self.resolve(revision)]
        while found[-1].parent is not None:
            found.append(self.history[found[-1].parent])
        return found

    def _record(self, branch: str, parent: str | None, title: str, message: str, files: dict[str, Blob]) -> Commit:
        listing = "".join(f"{path}\0{blob.oid}\n" for path, blob in sorted(files.items()))
        name = f"{self.kind} {self.id} {parent} {len(self.history)} {title}\n{listing}"
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        commit = Commit(hashlib.sha1(name.encode()).hexdigest(), parent, title, message, date, files)
        self.history[commit.sha] = commit
        self.heads[branch] = commit.sha
        return commit

    def commit(
        self, operations: Iterable[tuple[str, str, Blob | None]], title: str, message: str = "", *,
        branch: str = "main", parent: str | None = None,
    ) -> Commit:  # fmt: skip
        """Apply (action, path, blob) operations as one commit on a branch whose head must be `parent`, if given."""
        if branch not in self.heads:
            raise HubError(404, f"Invalid rev id: {branch}", "RevisionNotFound")
        head = self.resolve(branch)
        if parent is not None and not (len(parent) >= 7 and head.sha.startswith(parent)):
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
        files = dict(head.files)
        for action, path, blob in operations:
            if blob is not None:
                check_path(path)
                files[path] = blob
                continue
            folder = f"{path.rstrip('/')}/"
            gone = [p for p in files if (p.startswith(folder) if action == "deletedFolder" else p == path)]
            if not gone:
                raise HubError(404, "A file with this name doesn't exist", "EntryNotFound")
            for name in gone:
                del files[name]
        return self._record(branch, head.sha, title, message, files)

    def write(self, path: str, text: str | bytes, title: str = "by another writer", branch: str = "main") -> str:
        """Commit one file as another writer would, without a request; return the commit's sha."""
        data = text.encode() if isinstance(text, str) else text
        blob = self.objects.pointer(self.objects.add(data)) if is_lfs(path, data, 0) else self.objects.blob(data)
        return self.commit([("file", path, blob)], title, branch=branch).sha

    def write_folder(self, folder: Path) -> None:
        """Commit every file of a folder, each as `write` does."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.write(path.relative_to(folder).as_posix(), path.read_bytes())

    def items(self, revision: str) -> dict[str, dict[str, Any]]:
        """Return what the tree routes say of every file and folder, by path."""
        commit = self.resolve(revision)
        found: dict[str, dict[str, Any]] = {}
        for path, blob in sorted(commit.files.items()):
            parts = path.split("/")
            for depth in range(1, len(parts)):
                folder = "/".join(parts[:depth])
                oid = hashlib.sha1(f"{commit.sha} {folder}".encode()).hexdigest()
                found.setdefault(folder, {"type": "directory", "path": folder, "oid": oid, "size": 0})
            found[path] = {"type": "file", "path": path, "size": blob.size, "oid": blob.oid}
            if blob.lfs:
                pointer = len(pointer_text(blob.sha256, blob.size))
                found[path]["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": pointer}
        return found


def check_path(path: str) -> None:
    parts = path.split("/")
    if not path or any(part in ("", ".", "..", ".git") for part in parts):
        raise HubError(400, f"Invalid path: {path!r}")


def front_matter(text: str) -> dict[str, Any] | None:
    """Return a card's YAML, None where it has none; raise ValueError where it is broken."""
    match = FRONT_MATTER.match(text)
    if match is None:
        return None
    try:
        data = yaml.safe_load(match.group(1) or "")
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        raise ValueError(f"invalid YAML: {str(error).splitlines()[0]}") from error
    if data is None:
        return None
    if not isinstance(data, dict):
        raise ValueError("the YAML metadata must be a mapping")
    return data


def card_errors(text: str, kind: str) -> tuple[list[str], list[str]]:
    """Return the errors and the warnings of a card's metadata: the hub's most common rules, not all of them."""
    try:
        data = front_matter(text)
    except ValueError as error:
        return [str(error)], []
    if data is None:
        return [], ["empty or missing yaml metadata in repo card"]
    errors = []
    for key in ("license", "language", "tags", "datasets", "metrics", "base_model"):
        value = data.get(key)
        values: list[Any] = value if isinstance(value, list) else [value]
        if value is not None and not all(isinstance(item, str) for item in values):
            errors.append(f'"{key}" must be a string or a list of strings')  # `no` is a Boolean in YAML
        elif key == "language" and value is not None:
            wrong = [item for item in values if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]+)*|code|multilingual", item)]
            errors += [
                f'"language" must only contain ISO 639 codes, "code" or "multilingual", not {w!r}' for w in wrong
            ]
    if kind == "space" and data.get("sdk") not in SPACE_SDKS:
        errors.append(f'"sdk" must be one of {", ".join(SPACE_SDKS)}')
    for key in ("configs", "dataset_info", "model-index"):
        if key in data and not isinstance(data[key], (list, dict) if key == "dataset_info" else list):
            errors.append(f'"{key}" must be an array')
    models = data.get("model-index")
    for entry in models if isinstance(models, list) else []:
        results = entry.get("results") if isinstance(entry, dict) else None
        if not isinstance(results, list) or "name" not in entry:
            errors.append('"model-index[]" must have a name and results')
            continue
        for result in results:
            parts = [result.get(part) for part in ("task", "dataset", "metrics")] if isinstance(result, dict) else []
            if len(parts) != 3 or not all(parts):
                errors.append('"model-index[].results[]" must have a task, a dataset and metrics')
    return errors, []
