"""A hypothesis file: the format that every step of a STAPLE system reads and writes.

A Parquet file with a row for each translation that a member of the system proposes for a prompt. Its schema's metadata
hold facts about the whole: the prompts, those without any translation too, the members and the steps so far. It is
exported as a prediction file of the task, and as pairs to train on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.readers.staple.staple_files import write_staple_predictions
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_file, atomic_write, require_new_file, writing

VERSION = 1
FACTS = b"mrs_staple"  # the key in the schema's metadata
COLUMNS = pa.schema(
    [
        ("id", pa.string()),  # of the prompt, as in the data
        ("prompt", pa.string()),
        ("member", pa.string()),  # who proposes the translation
        ("rank", pa.int32()),  # among the member's translations of the prompt, from 1
        ("text", pa.string()),
        ("log_prob", pa.float64()),  # natural logarithm, of all tokens and the end token; null where it is not known
        ("length", pa.int32()),  # tokens and the end token; null where it is not known
    ]
)
BROKEN = "write it again with `mrs staple`"


@dataclass(frozen=True)
class Hypotheses:
    """Translations of prompts by one or several members.

    Attributes:
        table: `COLUMNS`, then a float64 column for each feature; prompt by prompt in the order of `prompts`, in a
            prompt member by member, in a member by rank.
        prompts: id -> text of each prompt, in the order of the data; a prompt may have no translation.
        data: what was translated: `id` and `content_hash` or `revision` of the data, and `split`.
        members: name -> facts, such as the run, its seed and its search.
        features: name of a further column -> what it means.
        steps: how this came about, one signature for each step.
    """

    table: pa.Table
    language: str
    prompts: Mapping[str, str]
    data: Mapping[str, Any] = field(default_factory=dict)
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[str] = ()

    def by_prompt(self) -> Iterator[tuple[str, pa.Table]]:
        """Each prompt's id and rows, possibly without rows."""
        begins: dict[str, tuple[int, int]] = {}
        begin = 0
        for key, rows in groupby(self.table["id"].to_pylist()):
            end = begin + sum(1 for _ in rows)
            begins[key] = (begin, end - begin)
            begin = end
        for key in self.prompts:
            yield key, self.table.slice(*begins.get(key, (0, 0)))


def read_hypotheses(path: Path) -> Hypotheses:
    """Read a file that `write_hypotheses` wrote; InputError if it is missing, damaged, or of another version."""
    try:
        table = pq.read_table(path)
        facts = json.loads((table.schema.metadata or {})[FACTS])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected hypotheses, which `mrs staple decode` writes.") from None
    except KeyError:
        raise InputError(f"{path}: not a file of hypotheses, which `mrs staple decode` writes.") from None
    except (OSError, pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a file of hypotheses ({error}); {BROKEN}.") from None
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        found = facts.get("version") if isinstance(facts, dict) else facts
        raise InputError(f"{path}: hypotheses of version {found!r:.40}, expected {VERSION}; {BROKEN}.")
    try:
        features, prompts = dict(facts["features"]), dict(facts["prompts"])
        wanted = schema_of(features)
        table = table.select(wanted.names).cast(wanted).replace_schema_metadata(None)
        found = Hypotheses(
            table, facts["language"], prompts, facts["data"], facts["members"], features, tuple(facts["steps"])
        )
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: damaged hypotheses ({error}); {BROKEN}.") from None
    require_sound(found, path)
    return found


def write_hypotheses(found: Hypotheses, path: Path, overwrite: bool = False) -> None:
    """Write hypotheses, whole or not at all; InputError if the file exists, or cannot be written."""
    require_new_file(path, overwrite)
    require_sound(found, path)
    facts = {
        "version": VERSION,
        "language": found.language,
        "prompts": list(found.prompts.items()),
        "data": dict(found.data),
        "members": {name: dict(facts) for name, facts in found.members.items()},
        "features": dict(found.features),
        "steps": list(found.steps),
    }
    table = found.table.cast(schema_of(found.features))
    table = table.replace_schema_metadata({FACTS: json.dumps(facts, ensure_ascii=False).encode()})
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as partial:
            pq.write_table(table, partial, compression="zstd")


def schema_of(features: Mapping[str, str]) -> pa.Schema:
    return pa.schema([*COLUMNS, *((name, pa.float64()) for name in features)])


def require_sound(found: Hypotheses, path: Path) -> None:
    """Refuse rows that the other steps could not read.

    Raises:
        InputError: a prompt or member without facts, prompts or ranks in another order, an empty translation, or a
            translation with a line end, which the task's format cannot hold.
    """
    places = {key: number for number, key in enumerate(found.prompts)}
    names = {name: number for number, name in enumerate(found.members)}
    before = (-1, -1, 0)
    columns = (found.table[name].to_pylist() for name in ("id", "member", "rank", "text"))
    for row, (key, member, rank, text) in enumerate(zip(*columns, strict=True), 1):
        if key not in places or member not in names:
            raise InputError(f"{path}, row {row}: {key!r:.60} of member {member!r:.60} is not described; {BROKEN}.")
        place = (places[key], names[member], rank if isinstance(rank, int) else 0)
        if place <= before:
            raise InputError(f"{path}, row {row}: {key}, {member}, rank {rank} is out of order; {BROKEN}.")
        if not text or not text.strip() or len(text.splitlines()) > 1:
            raise InputError(f"{path}, row {row}: expected a translation on one line, found {text!r:.60}; {BROKEN}.")
        before = place


def write_predictions(found: Hypotheses, path: Path, overwrite: bool = False) -> int:
    """Write each prompt with its translations, equal ones once, in their order; return how many were written."""
    require_new_file(path, overwrite)
    texts = {key: rows["text"].to_pylist() for key, rows in found.by_prompt()}
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_staple_predictions(found.prompts, texts, path)


def write_pairs(found: Hypotheses, path: Path, top: int = 1, swap: bool = False, overwrite: bool = False) -> int:
    """Write a line `prompt TAB translation` for the first translations of each prompt; return how many.

    The pairs serve back-translation (Sennrich et al. 2016) or training on a teacher's translations.
    Equal texts of several members are one pair. Tabs in a text become spaces.

    Args:
        top: translations of a prompt, in the order of the hypotheses.
        swap: the translation first: hypotheses of a model to English, decoded from a text, as sources of that text.

    Raises:
        InputError: the file exists or cannot be written, or `top` is below 1.
    """
    if top < 1:
        raise InputError(f"--top {top}: expected a whole number from 1.")
    require_new_file(path, overwrite)
    lines = []
    for key, rows in found.by_prompt():
        for text in list(dict.fromkeys(rows["text"].to_pylist()))[:top]:
            pair = (text, found.prompts[key]) if swap else (found.prompts[key], text)
            lines.append("\t".join(" ".join(side.split()) for side in pair))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, "".join(f"{line}\n" for line in lines))
    return len(lines)
