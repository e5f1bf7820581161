"""From a source to a prepared folder, whichever of its layouts the source has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mrs_core.errors import InputError
from mrs_core.files import whole_folder
from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.official import find_official_root, read_official, unpacked
from mrs_datasets.readers.pairs import read_pair_folder
from mrs_datasets.readers.sample import BOOKS, read_phrase_books
from mrs_datasets.readers.staple import STAPLE, read_staple
from mrs_datasets.readers.xcopa import XCOPA, read_xcopa
from mrs_datasets.report import Report
from mrs_datasets.responses import MAX_RESPONSES
from mrs_datasets.schema import MRS
from mrs_datasets.writer import write_prepared

SAMPLE_SOURCE = "sample"
MARKER = "report.json"  # every prepared folder has one
Progress = Callable[[Chunks], Chunks]


def as_it_is(chunks: Chunks) -> Chunks:
    """No progress to show."""
    return chunks


def prepare_mrs(
    source: str,
    out: Path,
    *,
    min_reply_count: int = 1,
    max_responses: int = MAX_RESPONSES,
    overwrite: bool = False,
    progress: Progress = as_it_is,
) -> dict[str, Any]:
    """Write the prepared folder `out` and return its report.

    Args:
        source: `sample`, the official archive, the folder that it unpacks to, or a folder of `LANG.tsv` files.
        min_reply_count, max_responses: for response sets that are counted here (see `count_responses`).
        progress: wraps the stream of chunks, to show how far it is.

    Raises:
        InputError: the source is missing or broken, or `out` exists; nothing is left behind.
    """
    path = Path(source)
    if source != SAMPLE_SOURCE or path.exists():
        _require_source(path, out, "pass the official archive, a folder of LANG.tsv files, or `sample`")
    counted = {"min_reply_count": min_reply_count, "max_responses": max_responses}
    own = counted != {"min_reply_count": 1, "max_responses": MAX_RESPONSES}
    with whole_folder(out, overwrite, MARKER) as partial:
        if source == SAMPLE_SOURCE and not path.exists():
            report = Report("sample", {"split": "80/10/10 by message", **counted})
            return write_prepared(partial, progress(read_phrase_books(BOOKS, report, **counted)), report, MRS, source)
        if path.is_file():
            with unpacked(path, partial) as folder:
                root = find_official_root(folder)
                if root is None:
                    raise InputError(f"{source}: the archive has no train/, valid/ or test/ folder.")
                _refuse_counts(own, source)
                report = Report("official")
                return write_prepared(partial, progress(read_official(root, report)), report, MRS, source)
        root = find_official_root(path)
        if root is not None:
            _refuse_counts(own, source)
            report = Report("official")
            return write_prepared(partial, progress(read_official(root, report)), report, MRS, source)
        report = Report("pairs", {"split": "80/10/10 by message", **counted})
        chunks = read_pair_folder(path, report, min_reply_count, max_responses)
        return write_prepared(partial, progress(chunks), report, MRS, source)


def prepare_xcopa(
    sources: list[str], out: Path, *, overwrite: bool = False, progress: Progress = as_it_is
) -> dict[str, Any]:
    """Write the prepared folder of XCOPA and English COPA, as far as the sources have them; return its report.

    Args:
        sources: folders of XCOPA's repository and of COPA.

    Raises:
        InputError: a source is missing or broken, or `out` exists; nothing is left behind.
    """
    hint = "pass XCOPA's repository folder, and COPA's for the config `en`"
    return _prepare_folders(XCOPA, read_xcopa, sources, out, hint, overwrite, progress)


def prepare_staple(
    sources: list[str], out: Path, *, overwrite: bool = False, progress: Progress = as_it_is
) -> dict[str, Any]:
    """Write the prepared folder of STAPLE, as far as the sources have its tracks; return its report.

    Args:
        sources: folders that the task handed out. Without one the sentence says where to ask: the data may not be
            passed on.

    Raises:
        InputError: there is no source, a source is missing or broken, or `out` exists; nothing is left behind.
    """
    if not sources:
        raise InputError(
            "staple: the data are CC BY-NC 4.0 and not downloaded from here; ask for them at "
            "https://doi.org/10.7910/DVN/380JR6 (Dataverse) or https://sharedtask.duolingo.com (Duolingo), unpack "
            "them, and pass the folder with --source FOLDER."
        )
    hint = "pass the unpacked folder of the STAPLE task (with en_pt/ and so on)"
    return _prepare_folders(STAPLE, read_staple, sources, out, hint, overwrite, progress)


def _prepare_folders(
    record: DatasetRecord,
    read: Callable[[list[Path], Report], Chunks],
    sources: list[str],
    out: Path,
    hint: str,
    overwrite: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Write what the folders have of a data set; `hint` ends the sentence about a missing one."""
    for source in sources:
        _require_source(Path(source), out, hint)
    report = Report(record.name, partial=True)
    with whole_folder(out, overwrite, MARKER) as partial:
        chunks = read([Path(source) for source in sources], report)
        return write_prepared(partial, progress(chunks), report, record, " ".join(sources))


def _refuse_counts(asked: bool, source: str) -> None:
    if asked:
        raise InputError(f"{source}: has response sets of its own; leave --min-reply-count and --max-responses out.")


def _require_source(path: Path, out: Path, what: str) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; {what}.")
    real = path.resolve()
    if real == out.resolve() or out.resolve() in real.parents:
        raise InputError(f"--out {out}: holds the source {path}; choose another folder.")
