"""From a source, in any supported layout, to a prepared folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mrs_datasets.catalogue import DatasetRecord, read_record
from mrs_datasets.prepared.report import PreparedReport, Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.prepared.schema import MRS
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.archives import describe_nested, unpacked
from mrs_datasets.readers.official import find_official_root, read_official
from mrs_datasets.readers.pairs.own_pairs import PairOptions, is_pair_file, read_pair_files
from mrs_datasets.readers.pairs.pair_sets import HUB_ID, is_saved_set, is_set_folder, read_set
from mrs_datasets.readers.sample import BOOKS, SAMPLE_SOURCE, read_phrase_books
from mrs_datasets.readers.siqa import read_siqa
from mrs_datasets.readers.staple.staple import read_staple
from mrs_datasets.readers.xcopa import read_xcopa
from mrs_datasets.readers.xglue import read_xglue
from mrs_datasets.synthetic.generate import CHAT, GENERATED, read_synthetic, seed_of, write_chat_model
from mrs_datasets.tasks.xcopa_views import with_views
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, require_regular

MARKER = "report.json"  # every prepared folder has one
Progress = Callable[[Chunks], Chunks]
READERS: dict[str, Callable[[list[Path], Report], Chunks]] = {
    "xcopa": read_xcopa,
    "siqa": read_siqa,
    "staple": read_staple,
    "xglue": read_xglue,
}


def as_it_is(chunks: Chunks) -> Chunks:
    """No progress display."""
    return chunks


def prepare_mrs(
    source: str,
    out: Path,
    *,
    min_reply_count: int = 1,
    max_responses: int = MAX_RESPONSES,
    pairs: PairOptions | None = None,
    overwrite: bool = False,
    progress: Progress = as_it_is,
) -> PreparedReport:
    """Write the prepared folder `out` and return its report.

    Args:
        source: `sample`, the official archive, the folder that it unpacks to, or your own pairs: a file or folder of
            `LANG.tsv`, `LANG.csv` or `LANG.jsonl`, a folder that `datasets` can load, or a hub id.
        pairs: how your own pairs are read; None for `PairOptions()`.
        min_reply_count, max_responses: for response sets that are counted here (see `count_responses`).
        progress: wraps the stream of chunks, to show progress.

    Raises:
        InputError: the source is missing or broken, or `out` exists; then nothing is written.
    """
    path = Path(source)
    on_hub = not path.exists() and HUB_ID.fullmatch(source) is not None
    if not on_hub and (source != SAMPLE_SOURCE or path.exists()):
        _require_source(path, out, f"pass {MRS.source}")
    counted = {"min_reply_count": min_reply_count, "max_responses": max_responses}
    own = counted != {"min_reply_count": 1, "max_responses": MAX_RESPONSES}
    with atomic_folder(out, overwrite, MARKER) as partial:
        if source == SAMPLE_SOURCE and not path.exists():
            _refuse_pair_options(pairs, source)
            report = Report("sample", {"split": "80/10/10 by message", **counted})
            return write_prepared(partial, progress(read_phrase_books(BOOKS, report, **counted)), report, MRS, source)
        if on_hub or is_pair_file(path) or (path.is_dir() and is_saved_set(path)):
            return _prepare_pairs(source, partial, pairs or PairOptions(), counted, progress)
        with _as_folder(path, partial / "source", MRS) as folder:
            root = find_official_root(folder)
            if root is None and path.is_file():
                raise InputError(f"{source}: the archive has no train/, valid/ or test/ folder.")
            if root is None:
                return _prepare_pairs(source, partial, pairs or PairOptions(), counted, progress)
            _refuse_counts(own, path)
            _refuse_pair_options(pairs, source)
            report = Report("official")
            return write_prepared(partial, progress(read_official(root, report)), report, MRS, source)


def _prepare_pairs(
    source: str, partial: Path, options: PairOptions, counted: dict[str, int], progress: Progress
) -> PreparedReport:
    """MRS from your own pairs: files, a folder that `datasets` can load, or a hub id."""
    looked_at = "by script and fastText" if options.identify else "by script alone"
    report = Report("pairs", {"split": "80/10/10 by message", **counted, "languages": looked_at})
    path = Path(source)
    if path.is_file() or (path.is_dir() and not is_set_folder(path)):
        if options.language and path.is_dir():
            raise InputError(f"{source}: the file names give the languages; leave --language out.")
        chunks = read_pair_files(path, report, options, **counted)
    else:
        chunks = read_set(source, report, options, **counted)
    return write_prepared(partial, progress(chunks), report, MRS, source)


def prepare(
    name: str,
    sources: list[str],
    out: Path,
    *,
    views: Sequence[str] = (),
    overwrite: bool = False,
    progress: Progress = as_it_is,
) -> PreparedReport:
    """Write the prepared folder of a data set other than MRS, as far as the sources provide it; return its report.

    Args:
        name: one of `READERS` or `GENERATED`.
        sources: folders or archives; see the catalogue for each data set's.
        views: kinds in the catalogue that are written only on request (XCOPA has some).

    Raises:
        InputError: there is no source (the sentence says where to ask), a source is missing or broken, the data set
            lacks a view, or `out` exists; then nothing is written.
    """
    record = read_record(name)
    if not sources:
        ask = f"{record.restricted}; pass what you got" if record.restricted else f"pass {record.source}"
        raise InputError(f"{name}: no source; {ask} with --source PATH.")
    on_demand = [kind for kind, facts in record.kinds.items() if facts.on_demand]
    unknown = [view for view in views if view not in on_demand]
    if unknown:
        raise InputError(f"--views {unknown[0]}: {name} has {' '.join(on_demand) or 'no views'}.")
    report = Report(name, {"views": list(views)} if views else {}, partial=True)
    if name in GENERATED:
        if len(sources) > 1:
            raise InputError(f"{name}: expected one --source, found {len(sources)}; pass {record.source}.")
        seed = seed_of(sources[0])
        chunks = with_views(read_synthetic(name, seed, report), views, record)
        with atomic_folder(out, overwrite, MARKER) as partial:
            written = write_prepared(partial, progress(chunks), report, record, sources[0])
            if name == CHAT:
                write_chat_model(partial, seed)
            return written
    for source in sources:
        _require_source(Path(source), out, f"pass {record.source}")
    with atomic_folder(out, overwrite, MARKER) as partial, ExitStack() as archives:
        folders = []
        for number, source in enumerate(sources):
            beside = partial / f"source-{number}"
            folders.append(archives.enter_context(_as_folder(Path(source), beside, record)))
        chunks = READERS[name](folders, report)
        if views:
            chunks = with_views(chunks, views, record)
        return write_prepared(partial, progress(chunks), report, record, " ".join(sources))


@contextmanager
def _as_folder(source: Path, beside: Path, record: DatasetRecord) -> Iterator[Path]:
    """The folder itself, or an archive's contents; errors in these name the archive and its member."""
    if source.is_dir():
        yield source
        return
    beside.mkdir()
    with unpacked(source, beside, record.archive_gib << 30) as folder:
        try:
            yield folder
        except InputError as error:
            sentence = str(error).replace(str(folder), str(source))
            nested = describe_nested(folder)
            if nested and not any(path.suffix in (".jsonl", ".xml", ".txt", ".tsv") for path in folder.rglob("*")):
                sentence = f"{source}: contains another archive ({nested}); unpack it and pass that one."
            raise InputError(sentence) from None
    beside.rmdir()


def _refuse_counts(asked: bool, source: Path) -> None:
    if asked:
        raise InputError(f"{source}: already has response sets; leave --min-reply-count and --max-responses out.")


def _refuse_pair_options(pairs: PairOptions | None, source: str) -> None:
    if pairs is not None and pairs != PairOptions(identify=pairs.identify, known_languages=pairs.known_languages):
        raise InputError(
            f"{source}: --message-column, --reply-column, --language and --on-error are for your own pairs; leave "
            "them out."
        )


def _require_source(path: Path, out: Path, what: str) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; {what}.")
    require_regular(path)
    real = path.resolve()
    if real == out.resolve() or out.resolve() in real.parents:
        raise InputError(f"--out {out}: contains the source {path}; choose another folder.")
