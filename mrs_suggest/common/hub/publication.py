"""The files of a folder that are published to a hub repository: those of an allowlist, and nothing else."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible

KINDS = ("model", "dataset", "space")


@dataclass(frozen=True)
class Publication:
    """A folder to publish as one commit of a repository.

    Attributes:
        kind: model, dataset or space.
        folder: the files' folder; None if `instead` has everything.
        allowed: patterns of the paths to publish, such as `response_index/*/replies.json`: `*` stands for characters
            within one name, so each pattern has a fixed depth. Files that match none of them stay.
        reasons: pattern of a path's first name -> the reason to leave it out (`left_behind`); the first match counts.
        instead: path -> contents or file to publish in place of the folder's file, or in addition.
    """

    kind: str
    repo_id: str
    folder: Path | None
    allowed: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, bytes | Path] = field(default_factory=dict)
    space_sdk: str | None = None

    def files(self) -> dict[str, Path | bytes]:
        """Path in the repository -> the file or its contents, sorted.

        Raises:
            InputError: a file to publish is a link, is behind one, or is not a regular file: its contents could be
                those of any file on this machine.
        """
        kept: dict[str, Path | bytes] = {**self._sorted_out[0]}
        return dict(sorted({**kept, **self.instead}.items()))

    def sizes(self) -> dict[str, int]:
        """Path in the repository -> bytes."""
        return {
            name: len(content) if isinstance(content, bytes) else content.stat().st_size
            for name, content in self.files().items()
        }

    def left_behind(self) -> dict[str, str]:
        """File that stays -> why; a folder that stays as a whole is named once, with a `/`."""
        going, staying = self._sorted_out
        busy = {parent for name in going for parent in PurePosixPath(name).parents}
        counts: Counter[tuple[str, str]] = Counter()
        for name, reason in staying.items():
            idle = [parent for parent in PurePosixPath(name).parents if parent not in busy and parent.name]
            counts[f"{idle[-1]}/" if idle else name, reason] += 1
        found: dict[str, list[str]] = {}
        for (name, reason), count in counts.items():
            found.setdefault(name, []).append(f"{reason} ({count:,} files)" if count > 1 else reason)
        return {name: "; ".join(reasons) for name, reasons in sorted(found.items())}

    @cached_property
    def _sorted_out(self) -> tuple[dict[str, Path], dict[str, str]]:
        """The files to publish, and those that stay with the reason."""
        going: dict[str, Path] = {}
        staying: dict[str, str] = {}
        for path, kind in _entries(self.folder) if self.folder else ():
            name = path.relative_to(self.folder or "")
            parts = name.parts
            hidden = any(part.startswith((".", "__pycache__")) for part in parts)
            wanted = not hidden and any(_begins(parts, pattern, kind == "folder link") for pattern in self.allowed)
            if wanted and kind:
                what = "is a link" if "link" in kind else "is not a regular file"
                raise InputError(
                    f"{visible(path)}: {what}, and would be published; put the file itself there, or remove it."
                )
            if wanted:
                going[name.as_posix()] = path
            else:
                staying[name.as_posix()] = "a link" if "link" in kind else self._reason(parts, hidden)
        return going, staying

    def _reason(self, parts: tuple[str, ...], hidden: bool) -> str:
        named = next((why for pattern, why in self.reasons.items() if fnmatchcase(parts[0], pattern)), "")
        return "hidden" if hidden else named or "not among the published files"


def describe(publication: Publication) -> str:
    """The text of `--dry-run`: the repository, the files with their sizes, those left out, and the card."""
    sizes = publication.sizes()
    lines = [f"{publication.kind} {publication.repo_id}: {len(sizes)} files, {sum(sizes.values()):,} bytes"]
    lines += [f"  {size:>12,}  {visible(name)}" for name, size in sizes.items()]
    if stays := publication.left_behind():
        lines += ["", "stays behind:", *(f"  {visible(name)}: {reason}" for name, reason in stays.items())]
    card = publication.files().get("README.md")
    if card is not None:
        text = card.decode("utf-8") if isinstance(card, bytes) else card.read_text(encoding="utf-8")
        lines += ["", "README.md:", "", visible(text, "\n\t")]
    return "\n".join(lines)


def _entries(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below a folder, with "" for a regular file and the kind of any other; links are not followed."""

    def refuse(error: OSError) -> None:  # else a folder that cannot be read would be skipped silently
        raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        for name in sorted(folders):
            if (path := Path(place, name)).is_symlink():
                yield path, "folder link"
        for name in sorted(names):
            mode = (path := Path(place, name)).lstat().st_mode
            yield path, "" if stat.S_ISREG(mode) else "link" if stat.S_ISLNK(mode) else "special"


def _begins(parts: tuple[str, ...], pattern: str, folder: bool) -> bool:
    """Whether a pattern matches a path; for a folder, whether it matches something in it."""
    wanted = pattern.split("/")
    if (len(parts) >= len(wanted)) if folder else (len(parts) != len(wanted)):
        return False
    return all(fnmatchcase(part, pattern) for part, pattern in zip(parts, wanted, strict=False))
