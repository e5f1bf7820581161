"""What exports of encoders and of generators share: which runs can have one, speeds, and how one gets into the run."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.io.manifest import has_hashes
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.starting_points import ADAPTER_RECORD
from mrs_suggest.training.export.allowlist import CARD, EXPORTS, RECORD
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.export.families import Family, family_of, write_record
from mrs_suggest.training.record import as_json, read_record

TIMED = 100  # messages
KINDS = tuple(dict.fromkeys(name.partition("/")[0] for name in EXPORTS))


def require_exportable(run: Path) -> None:
    """Refuse a run whose model is damaged or elsewhere.

    Raises:
        InputError: it is, or the folder holds adapters only.
    """
    if (run / ADAPTER_RECORD).is_file():
        raise InputError(f"{run}: holds adapters only; pass the folder of their run, where they are merged.")
    open_model_folder(run, verify=has_hashes(run))  # the record gets the hashes of all files anew


@contextmanager
def partial_export(run: Path, kind: str) -> Iterator[Path]:
    """A folder to make an export in, inside the run's own; it goes whatever happens."""
    with writing(run):
        folder = tempfile.TemporaryDirectory(prefix=f".{kind}.partial-", dir=run)
    with folder as place:
        yield Path(place)


def size_and_versions(made: Path, int8: bool, packages: Sequence[str]) -> Record:
    """What the record has of any export."""
    size = sum(path.stat().st_size for path in made.iterdir())
    return {"int8": int8, "bytes": size, "versions": {name: metadata.version(name) for name in packages}}


def speeds(what: str, systems: Mapping[str, Callable[[str], object]], texts: Sequence[str]) -> dict[str, float]:
    """Median milliseconds of one message alone; the systems take turns, so that a busy machine hits all of them.

    Args:
        what: the work, for the line that is printed.
    """
    times: dict[str, list[float]] = {name: [] for name in systems}
    for text in texts[:TIMED]:
        for name, call in systems.items():
            begin = time.perf_counter()
            call(text)
            times[name].append(1000 * (time.perf_counter() - begin))
    found = {name: round(statistics.median(some), 3) for name, some in times.items()}
    print(f"{what}: " + ", ".join(f"{name} {value:.2f} ms" for name, value in found.items()))
    return found


def keep_export(run: Path, record: Record, made: Path, facts: Record, family: Family) -> None:
    """Move an export into the run's folder, and list it in the record with its hashes."""
    record = _removed(run, record, family)  # first, so that an interrupted export leaves a folder that loads
    made.rename(run / made.name)
    write_record(run, {**record, "exports": {made.name: facts}}, family)


def remove_export(run: Path) -> None:
    """Take the exports out of a run's folder, its record and its card: its weights answer again.

    Raises:
        InputError: it is no run, or has none.
    """
    record = read_record(run)
    family = family_of(record, run / RECORD)
    if not record.get("exports") and not any((run / kind).is_dir() for kind in KINDS):
        raise InputError(f"{run}: has no export.")
    with writing(run):
        _removed(run, record, family)


def _removed(run: Path, record: Record, family: Family) -> Record:
    """The record without exports; they are taken out of the folder after it."""
    rest = {key: value for key, value in record.items() if key != "exports"}
    if rest != record:
        rest["files"] = {name: entry for name, entry in record["files"].items() if name not in EXPORTS}
        atomic_write(run / CARD, family.render(rest))
        atomic_write(run / RECORD, as_json(rest))
    for kind in KINDS:
        shutil.rmtree(run / kind, ignore_errors=True)
    return rest
