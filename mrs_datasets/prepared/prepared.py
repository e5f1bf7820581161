"""Opens prepared data: a prepared folder, here or at a URL, a hub id, or embedded data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.catalogue import CONTEXT, DatasetRecord, catalogued, read_record
from mrs_datasets.everyday.situations import EMBEDDED, EVERYDAY, RECORD, TEXTS
from mrs_datasets.prepared.remote_data import cache_folder, fetched
from mrs_datasets.prepared.report import REPORT, PreparedReport, Report, parse_report
from mrs_datasets.prepared.schema import responses_config
from mrs_datasets.prepared.soundness import Place, place_in, require_columns, require_values, required_columns, row_of
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers.everyday import read_everyday
from mrs_datasets.readers.sample import SAMPLE, SAMPLE_SOURCE
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.baselines import require_no_revision
from mrs_suggest.common.io.files import atomic_folder, content_hash
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.io.storage import is_url

if TYPE_CHECKING:
    from datasets import Dataset

SILENT_BYTES = 100 << 20


@dataclass(frozen=True)
class PreparedData:
    """Prepared data and their source. `folder` is None for a hub repository."""

    name: str
    folder: Path | None
    revision: str | None

    def load(self, config: str, split: str) -> Dataset:
        """One split of one config; InputError if the source lacks it, or a row cannot be used (see `soundness`)."""
        if self.folder is None:
            rows = self._load_from_hub(config, split)
            place: Place = partial(row_of, f"{self.name}, {config}/{split}", 0)
        else:
            files = self.files(config, split)
            if not files:
                have = sorted(path.name for path in (self.folder / "data").iterdir())
                raise InputError(f"{self.folder}: no {split} split of {config!r}; the folder has {' '.join(have)}.")
            rows = _read_parquet(files)
            place = place_in([path for path in files if pq.read_metadata(path).num_rows])
        required: list[str] = []
        if self.folder is not None or self.report():
            record = read_record(self.data_set()).covering([config])
            if config in {name for name, _, _ in record.configs()}:
                require_columns(rows.data.schema, record, config, f"{self.name}, {config}")
                required = required_columns(record, config)
        require_values(rows.data.table, required, place)
        return rows

    def data_set(self) -> str:
        """The data set's name in the catalogue; `mrs` if the source does not say."""
        report = self.report()
        if report and self.folder is not None and "data_set" not in report:
            raise InputError(f"{self.folder / REPORT}: does not name its data set; prepare the folder again.")
        name = str(report.get("data_set", "mrs"))
        if name not in catalogued():
            raise InputError(f"{self.name}: {REPORT} names the data set {name!r}, which is not in the catalogue.")
        return name

    def record(self) -> DatasetRecord:
        """The catalogue's record of the data set, extended by other languages in the data."""
        record = read_record(self.data_set()).covering(self._config_names())
        return record.with_context(self.report().get("settings", {}).get(CONTEXT))

    def title(self) -> str:
        """The title in the report; without one, the folder's or repository's name."""
        return str(self.report().get("name", self.name))

    def report(self) -> PreparedReport:
        """The report of the build; empty for a source without one; InputError if it cannot be read or is invalid."""
        if self.folder is not None:
            path: Path | None = self.folder / REPORT
        else:
            from mrs_suggest.common.hub.hub import cached_file

            path = cached_file("dataset", self.name, REPORT, self.revision)
        if path is None or not path.is_file():
            return {}
        try:
            return parse_report(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot read the report ({error}); prepare the folder again.") from None

    def configs(self) -> list[str]:
        """The configs that the source has, in the order of the catalogue."""
        have = self._config_names()
        return [config for config, _, _ in self.record().configs() if config in have]

    def splits(self, config: str) -> list[str]:
        """The splits of a config, in the order of the catalogue."""
        kind = self.record().kind_of(config)
        if self.folder is not None:
            return [split for split in kind.splits if self.files(config, split)]
        from datasets import get_dataset_split_names

        try:
            have = get_dataset_split_names(self.name, config, revision=self.revision)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.name}: cannot list the splits of {config} ({error}).") from None
        return [split for split in kind.splits if split in have]

    def _config_names(self) -> set[str]:
        if self.folder is not None:
            return {path.name for path in (self.folder / "data").iterdir()}
        from datasets import get_dataset_config_names

        try:
            return set(get_dataset_config_names(self.name, revision=self.revision))
        except (OSError, ValueError) as error:  # the hub's and datasets' "not found" are both OSError
            raise InputError(f"{self.name}: neither a folder nor a data set on the hub ({error}).") from None

    def languages(self) -> list[str]:
        """The languages with pairs: those of MRS in the order of Table 1, then others by code."""
        have = self._config_names()
        found = [code for code in read_record("mrs").covering(have).languages if code in have]
        if not found:
            raise InputError(f"{self.name}: contains no pairs.")
        return found

    def identity(self, languages: Iterable[str], others: Iterable[str] = ()) -> dict[str, object]:
        """The data's entry in `run.json`: id, title, reader, and the revision or a hash of the contents used.

        Args:
            languages: those whose pairs and response sets were used.
            others: other configs that were used, such as `mt-es`.
        """
        report = self.report()
        if self.folder is None:
            title = self.name.rpartition("/")[2]
            facts = {"title": title, "revision": self.revision or "unknown"}
        else:
            own = [config for code in languages for config in (code, responses_config(code))]
            configs = dict.fromkeys([*own, *others])
            files = [path for config in configs for path in (self.folder / "data" / config).glob("*.parquet")]
            facts = {"title": report.get("name", self.name), "content_hash": content_hash(files)}
        return {"id": self.name, **facts, "reader": report.get("reader")}

    def files(self, config: str, split: str) -> list[Path]:
        """The Parquet files of a split of a folder."""
        assert self.folder is not None
        return sorted((self.folder / "data" / config).glob(f"{split}-*.parquet"))

    def _load_from_hub(self, config: str, split: str) -> Dataset:
        from datasets import load_dataset
        from datasets.exceptions import DatasetNotFoundError

        try:
            return load_dataset(self.name, config, split=split, revision=self.revision)
        except (DatasetNotFoundError, ValueError, ConnectionError, FileNotFoundError) as error:
            raise InputError(f"{self.name}: cannot load {config}/{split} from the hub ({error}).") from None


def open_prepared(data: str, revision: str | None = None, checked: bool = True) -> PreparedData:
    """Open `sample` or `mrs-everyday` (both are in the package), a prepared folder, its URL, or a hub id
    (`namespace/name`, also `namespace/name@REVISION`).

    A folder at a URL (any storage of fsspec: s3, gs, http ...) is copied into the cache first (see `fetched`).

    Args:
        checked: refuse a folder whose columns are not those of the catalogue; texts are checked when they are loaded.

    Raises:
        InputError: not a prepared folder, other columns, an unknown name, a URL that cannot be reached, or a revision
            of something that is not a hub repository.
    """
    from mrs_suggest.common.hub.hub import commit_of, is_repo_id, split_revision

    path = Path(data)
    if data in (SAMPLE_SOURCE, EVERYDAY) and not path.exists():
        require_no_revision(data, revision, "is in the package")
        return PreparedData(data, SAMPLE if data == SAMPLE_SOURCE else _everyday(), None)
    if path.is_dir():
        require_no_revision(data, revision, "is a folder")
        if not (path / "data").is_dir():
            raise InputError(f"{data}: not a prepared folder (no data/ in it); make one with `mrs data prepare`.")
        opened = PreparedData(path.resolve().name, path, None)
    elif is_url(data):
        require_no_revision(masked(data), revision, "is a URL")
        path = fetched(data)
        opened = PreparedData(path.name, path, None)
    else:
        name, revision = split_revision(data, revision)
        if not is_repo_id(name) or path.exists():
            raise InputError(
                f"{data}: no such folder; pass a prepared folder, its URL, a hub id such as ORG/mrs, `sample` or "
                "`mrs-everyday`."
            )
        # All configs from one commit; without the hub, the cache may still have them.
        return PreparedData(name, None, commit_of("dataset", name, revision) or revision)
    if checked:
        record = opened.record()
        for config, _, kind in record.configs():
            for file in (file for split in kind.splits for file in opened.files(config, split)):
                try:
                    require_columns(pq.read_schema(file), record, config, str(file))
                except (pa.ArrowException, OSError) as error:
                    raise InputError(
                        f"{file}: cannot be read as Parquet ({first_line(error)}); prepare the folder again."
                    ) from None
    return opened


def _everyday() -> Path:
    """The prepared folder of the embedded mrs-everyday, which is made in the cache on first use."""
    made_of = [*(path for path in TEXTS.iterdir() if path.is_file()), RECORD]
    folder = cache_folder(EVERYDAY, content_hash(made_of))
    if not (folder / REPORT).is_file():
        report = Report(EVERYDAY, {}, partial=True)
        with atomic_folder(folder, overwrite=True, marker=REPORT) as partial:
            write_prepared(partial, read_everyday([TEXTS], report), report, read_record(EVERYDAY), EMBEDDED)
    return folder


def downloaded(data: PreparedData) -> PreparedData:
    """The same data as a folder: a hub repository, which must have that layout, is downloaded completely."""
    from mrs_suggest.common.hub.hub import download

    if data.folder is not None:
        return data
    folder = download(data.name, data.revision, ("README.md", REPORT, "data/*"), kind="dataset")
    if not (folder / "data").is_dir():
        raise InputError(f"{data.name}: not published from a prepared folder (no data/ in it), so it is not checked.")
    return replace(data, folder=folder)


def _read_parquet(files: list[Path]) -> Dataset:
    """Files, memory-mapped through the cache of `datasets`, with a progress bar for large ones."""
    from datasets import Dataset
    from datasets.exceptions import DatasetGenerationError

    with bars_for_long_work(sum(path.stat().st_size for path in files) >= SILENT_BYTES):
        try:
            filled = [path for path in files if pq.read_metadata(path).num_rows]
            if not filled:  # which `datasets` cannot read
                return Dataset(pq.read_schema(files[0]).empty_table())
            return Dataset.from_parquet([str(path) for path in filled])
        except (DatasetGenerationError, pa.ArrowInvalid) as error:
            raise InputError(f"{files[0]}: cannot be read as Parquet ({error}); prepare the folder again.") from error


@contextmanager
def bars_for_long_work(long: bool) -> Iterator[None]:
    """Hide the progress bars of `datasets` for work that is too short for them."""
    from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    silent = not long and not are_progress_bars_disabled()
    if silent:
        disable_progress_bars()
    try:
        yield
    finally:
        if silent:
            enable_progress_bars()
