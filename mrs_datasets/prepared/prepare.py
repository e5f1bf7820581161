"""From a source, in any supported layout, to a prepared folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_datasets.catalogue import DatasetRecord, read_record
from mrs_datasets.everyday.situations import EMBEDDED, EVERYDAY, TEXTS
from mrs_datasets.prepared.report import REPORT, PreparedReport, Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.prepared.schema import MRS
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.archives import describe_nested, unpacked
from mrs_datasets.readers.everyday import read_everyday
from mrs_datasets.readers.official import find_official_root, read_official
from mrs_datasets.readers.pairs.own_pairs import (
    HUB_ID,
    PairOptions,
    is_pair_file,
    is_saved_set,
    is_set_folder,
    read_loaded,
    read_pair_files,
    read_set,
)
from mrs_datasets.readers.sample import BOOKS, SAMPLE_SOURCE, read_phrase_books
from mrs_datasets.readers.siqa import read_siqa
from mrs_datasets.readers.staple.staple import read_staple
from mrs_datasets.readers.xcopa import read_xcopa
from mrs_datasets.readers.xglue import read_xglue
from mrs_datasets.synthetic.generate import CHAT, GENERATED, read_synthetic, seed_of, write_chat_model
from mrs_datasets.tasks.xcopa_views import with_views
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, require_regular

if TYPE_CHECKING:
    from datasets import Dataset

Progress = Callable[[Chunks], Chunks]
READERS: dict[str, Callable[[list[Path], Report], Chunks]] = {
    "xcopa": read_xcopa,
    "siqa": read_siqa,
    "staple": read_staple,
    "xglue": read_xglue,
    EVERYDAY: read_everyday,
}


def prepare_mrs(
    source: str,
    out: Path,
    *,
    min_reply_count: int = 1,
    max_responses: int = MAX_RESPONSES,
    pairs: PairOptions | None = None,
    overwrite: bool = False,
    progress: Progress = iter,
) -> PreparedReport:
    """Write the prepared folder `out` of MRS and return its report.

    Args:
        source: `sample`, the official archive, the folder that it unpacks to, or your own pairs: a file or folder of
            `LANG.tsv`, `LANG.csv` or `LANG.jsonl`, a folder that `datasets` can load, or a hub id.
        min_reply_count, max_responses: limits of response sets that are counted here (see `count_responses`).
        pairs: how your own pairs are read; None for `PairOptions()`.
        progress: wraps the stream of chunks, to show progress.

    Raises:
        InputError: the source is missing or broken, or `out` exists; nothing is written then.
    """
    path = Path(source)
    is_sample = source == SAMPLE_SOURCE and not path.exists()
    on_hub = not path.exists() and HUB_ID.fullmatch(source) is not None
    if not on_hub and not is_sample:
        _require_source(path, out, MRS)
    counted = {"min_reply_count": min_reply_count, "max_responses": max_responses}
    with atomic_folder(out, overwrite, REPORT) as partial, ExitStack() as archives:
        root = None
        is_pairs = on_hub or is_pair_file(path) or (path.is_dir() and is_saved_set(path))
        if not is_sample and not is_pairs:
            root = find_official_root(archives.enter_context(_as_folder(path, partial / "source", MRS)))
            if root is None and path.is_file():
                raise InputError(f"{source}: the archive has no train/, valid/ or test/ folder.")
        if is_sample:
            report = Report("sample", {"split": "80/10/10 by message", **counted})
            chunks = read_phrase_books(BOOKS, report, **counted)
        elif root is None:
            options = pairs or PairOptions()
            languages = "by script and fastText" if options.identify else "by script alone"
            report = Report("pairs", {"split": "80/10/10 by message", **counted, "languages": languages})
            if path.is_file() or (path.is_dir() and not is_set_folder(path)):
                if options.language and path.is_dir():
                    raise InputError(f"{source}: the file names give the languages; leave --language out.")
                chunks = read_pair_files(path, report, options, **counted)
            else:
                chunks = read_set(source, report, options, **counted)
        else:
            if (min_reply_count, max_responses) != (1, MAX_RESPONSES):
                raise InputError(
                    f"{source}: already has response sets; leave --min-reply-count and --max-responses out."
                )
            report = Report("official")
            chunks = read_official(root, report)
        own = pairs and PairOptions(identify=pairs.identify, known_languages=pairs.known_languages)
        if report.reader != "pairs" and pairs != own:
            raise InputError(
                f"{source}: --message-column, --reply-column, --language and --on-error are for your own pairs; leave "
                "them out."
            )
        return write_prepared(partial, progress(chunks), report, MRS, source)


def prepare_pairs(
    splits: Mapping[str, Dataset], out: Path, *, pairs: PairOptions | None = None, overwrite: bool = False
) -> PreparedReport:
    """Write the prepared folder `out` of pairs that are in memory, as `prepare_mrs` does of files; return its report.

    Args:
        splits: train, validation or test -> rows, with a `language` column or with `pairs.language`. Splits that are
            missing are taken from train, by the message's hash.

    Raises:
        InputError: a column or a language is missing, or `out` exists; nothing is written then.
    """
    settings = {"split": "80/10/10 by message", "min_reply_count": 1, "max_responses": MAX_RESPONSES}
    report = Report("pairs", {**settings, "languages": "by script alone"})
    with atomic_folder(out, overwrite, REPORT) as partial:
        chunks = read_loaded(splits, report, pairs or PairOptions())
        return write_prepared(partial, chunks, report, MRS, "a data set in memory")


def prepare(
    name: str,
    sources: list[str],
    out: Path,
    *,
    views: Sequence[str] = (),
    overwrite: bool = False,
    progress: Progress = iter,
) -> PreparedReport:
    """Write the prepared folder of a data set other than MRS and return its report.

    Configs and splits that the sources do not have are left out.

    Args:
        name: one of `READERS` or `GENERATED`.
        sources: folders or archives; see the catalogue for each data set's.
        views: kinds in the catalogue that are written only on request (XCOPA has some).

    Raises:
        InputError: no source (the sentence says where to ask), a missing or broken one, an unknown view, or `out`
            exists; nothing is written then.
    """
    record = read_record(name)
    if not sources:
        ask = f"{record.restricted}; pass your copy" if record.restricted else f"pass {record.source}"
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
        with atomic_folder(out, overwrite, REPORT) as partial:
            written = write_prepared(partial, progress(chunks), report, record, sources[0])
            if name == CHAT:
                write_chat_model(partial, seed)
            return written
    if name == EVERYDAY and sources == [EMBEDDED] and not Path(EMBEDDED).exists():
        sources = [str(TEXTS)]
    for source in sources:
        _require_source(Path(source), out, record)
    with atomic_folder(out, overwrite, REPORT) as partial, ExitStack() as archives:
        folders = [
            archives.enter_context(_as_folder(Path(source), partial / f"source-{number}", record))
            for number, source in enumerate(sources)
        ]
        chunks = READERS[name](folders, report)
        if views:  # which need all tables in memory
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


def _require_source(path: Path, out: Path, record: DatasetRecord) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; pass {record.source}.")
    require_regular(path)
    real = path.resolve()
    if real == out.resolve() or out.resolve() in real.parents:
        raise InputError(f"--out {out}: contains the source {path}; choose another folder.")
