"""Tags of stored replies, with which a request allows or denies replies."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.starting_points import TAGS
from mrs_suggest.suggest.index.response_index import ByLanguage, ResponseIndex


@dataclass(frozen=True)
class ReplyTags:
    """The tags of the N replies of a response index; create them with `of`.

    Attributes:
        size: N.
        rows: tag -> (n,) int64 numbers of the replies with the tag, ascending.
    """

    size: int
    rows: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, replies: Sequence[Iterable[str]]) -> Self:
        """From the tags of each reply, in the order of the index.

        >>> tags = ReplyTags.of([["formal"], [], ["formal", "sales"]])
        >>> tags.chosen(["formal"], ["sales"]).tolist(), tags.chosen([], ["sales"]).tolist()
        ([0], [0, 1])
        """
        rows: dict[str, list[int]] = {}
        for row, tags in enumerate(replies):
            for tag in dict.fromkeys(tags):
                rows.setdefault(tag, []).append(row)
        return cls(len(replies), {tag: np.array(rows[tag], np.int64) for tag in sorted(rows)})

    def chosen(self, allow: Collection[str], deny: Collection[str]) -> NDArray[np.int64]:
        """Numbers of the replies with one of the tags `allow` (empty: all) and none of the tags `deny`, ascending."""
        keep = np.full(self.size, not allow)
        for tag in allow:
            keep[self.rows.get(tag, [])] = True
        for tag in deny:
            keep[self.rows.get(tag, [])] = False
        return np.flatnonzero(keep)

    def by_reply(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(self.size)]
        for tag in sorted(self.rows):
            for row in self.rows[tag]:
                found[row].append(tag)
        return found

    def save(self, folder: Path) -> None:
        """Write `tags.json` to the folder of an index, if any reply has a tag."""
        if self.rows:
            content = {"replies": self.size, "tags": {tag: rows.tolist() for tag, rows in self.rows.items()}}
            atomic_write(folder / TAGS, json.dumps(content, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path, size: int) -> Self:
        """Read the tags of an index of `size` replies; without a file, no reply has a tag.

        Raises:
            InputError: the file is damaged, or belongs to another index.
        """
        if not (folder / TAGS).is_file():
            return cls(size)
        content = _read(folder)
        try:
            rows = {tag: np.array(numbers, np.int64) for tag, numbers in content["tags"].items()}
            fits = content.get("replies") == size and all(
                one.ndim == 1 and len(one) and one[0] >= 0 and one[-1] < size and np.all(np.diff(one) > 0)
                for one in rows.values()
            )
        except (ValueError, TypeError, OverflowError):
            fits = False
        if not fits:
            raise InputError(f"{folder / TAGS}: made for another response index; {again(folder)}.")
        return cls(size, rows)


def _read(folder: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((folder / TAGS).read_text(encoding="utf-8"))
        content["tags"].items()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"{folder / TAGS}: damaged; {again(folder)}.") from None
    return content


class TagsByLanguage(ByLanguage[ReplyTags]):
    """The tags of a model's response indexes by language, each read on first use.

    Args:
        folder: of the indexes, `response_index/`; None: no reply has a tag.
        indexes: language -> index, whose length the tags must match.
    """

    def __init__(self, folder: Path | None = None, indexes: Mapping[str, ResponseIndex] | None = None) -> None:
        super().__init__(indexes or {})
        self._folder, self._indexes = folder, indexes or {}

    def read(self, language: str) -> ReplyTags:
        size = len(self._indexes[language].replies)
        return ReplyTags.load(self._folder / language, size) if self._folder else ReplyTags(size)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The sorted tags by language, without reading the indexes; languages without tags are left out."""
        folders = {code: self._folder / code for code in self._indexes} if self._folder else {}
        found = {code: sorted(_read(folder)["tags"]) for code, folder in folders.items() if (folder / TAGS).is_file()}
        return {code: names for code, names in found.items() if names}
