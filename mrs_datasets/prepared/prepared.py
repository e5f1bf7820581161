"""Opens prepared data: a prepared folder, here or at a URL, a hub id, or the embedded sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from mrs_datasets.catalogue import DatasetRecord, catalogued, read_record
from mrs_datasets.prepared.remote_data import fetched
from mrs_datasets.prepared.report import PreparedReport, parse_report
from mrs_datasets.prepared.schema import responses_config
from mrs_datasets.prepared.soundness import (
    Place,
    place_in,
    require_columns,
    require_footers,
    require_values,
    required_columns,
    row_of,
)
from mrs_datasets.readers.sample import SAMPLE, SAMPLE_SOURCE
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import require_no_revision
from mrs_suggest.common.io.files import content_hash
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
        """One split of one config.

        Raises:
            InputError: the source lacks the config or split (the sentence names those that it has), or has a row that
                cannot be used, see `soundness`.
        """
        if self.folder is None:
            rows = self._load_from_hub(config, split)
            self._require_sound(rows, config, partial(row_of, f"{self.name}, {config}/{split}", 0))
            return rows
        files = self.files(config, split)
        if not files:
            have = sorted(path.name for path in (self.folder / "data").iterdir())
            raise InputError(f"{self.folder}: no {split} split of {config!r}; the folder has {' '.join(have)}.")
        rows = _read_parquet(files)
        self._require_sound(rows, config, place_in([path for path in files if pq.read_metadata(path).num_rows]))
        return rows

    def require_footers(self) -> None:
        """Refuse a folder with Parquet files that the catalogue does not describe (see `soundness`).

        Raises:
            InputError: the sentence names the first such file, and what is wrong.
        """
        record = self.record()
        for config, _, _ in record.configs():
            for split in record.kind_of(config).splits:
                require_footers(self.files(config, split), record, config)

    def _require_sound(self, rows: Dataset, config: str, place: Place) -> None:
        required: list[str] = []
        if self.folder is None and not self.report():  # not a prepared folder
            require_values(rows.data.table, required, place)
            return
        record = read_record(self.data_set()).covering([config])
        if config in {name for name, _, _ in record.configs()}:
            require_columns(rows.data.schema, record, config, f"{self.name}, {config}")
            required = required_columns(record, config)
        require_values(rows.data.table, required, place)

    def data_set(self) -> str:
        """The data set's name in the catalogue; `mrs` if the source does not say."""
        report = self.report()
        if report and self.folder is not None and "data_set" not in report:
            raise InputError(f"{self.folder / 'report.json'}: does not name its data set; prepare the folder again.")
        name = str(report.get("data_set", "mrs"))
        if name not in catalogued():
            raise InputError(f"{self.name}: report.json names the data set {name!r}, which is not in the catalogue.")
        return name

    def record(self) -> DatasetRecord:
        """The catalogue's record of the data set, extended by other languages in the data."""
        return read_record(self.data_set()).covering(self._config_names())

    def title(self) -> str:
        """The title in the report; without one, the folder's or repository's name."""
        return str(self.report().get("name", self.name))

    def report(self) -> PreparedReport:
        """The report of the build; empty if there is none."""
        if self.folder is not None:
            path = self.folder / "report.json"
        else:
            from mrs_suggest.common.hub.hub import cached_file

            found = cached_file("dataset", self.name, "report.json", self.revision)
            if found is None:
                return {}
            path = found
        if self.folder is not None and not path.is_file():
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
        """The data's entry in `run.json`: id, and revision or hash of the contents used.

        Args:
            languages: those whose pairs and response sets were used.
            others: other configs that were used, such as `mt-es`.
        """
        if self.folder is None:
            title = self.name.rpartition("/")[2]
            reader = self.report().get("reader")
            return {"id": self.name, "title": title, "revision": self.revision or "unknown", "reader": reader}
        own = [config for code in languages for config in (code, responses_config(code))]
        configs = dict.fromkeys([*own, *others])
        files = [path for config in configs for path in (self.folder / "data" / config).glob("*.parquet")]
        report = self.report()
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
    """Open `sample`, a prepared folder, its URL, or a hub id (`namespace/name`, also `namespace/name@REVISION`).

    A folder at a URL (any storage of fsspec: s3, gs, http ...) is copied into the cache first, as `fetched` says.

    Args:
        checked: refuse a folder whose columns are not those of the catalogue, from the footers of its files; texts
            are checked when they are loaded.

    Raises:
        InputError: a folder that is not a prepared one or has other columns, a name that is none of the four, a URL
            that cannot be reached, or a revision of something that is not a hub repository.
    """
    opened = _opened(data, revision)
    if checked and opened.folder is not None and opened.folder != SAMPLE:
        opened.require_footers()
    return opened


def _opened(data: str, revision: str | None) -> PreparedData:
    from mrs_suggest.common.hub.hub import commit_of, is_repo_id, split_revision

    if is_url(data):
        require_no_revision(masked(data), revision, "is a URL")
        folder = fetched(data)
        return PreparedData(folder.name, folder, None)
    path = Path(data)
    if data == SAMPLE_SOURCE and not path.exists():
        require_no_revision(data, revision, "is in the package")
        return PreparedData(SAMPLE_SOURCE, SAMPLE, None)
    if path.is_dir():
        require_no_revision(data, revision, "is a folder")
        if not (path / "data").is_dir():
            raise InputError(f"{data}: not a prepared folder (no data/ in it); make one with `mrs data prepare`.")
        return PreparedData(path.resolve().name, path, None)
    name, revision = split_revision(data, revision)
    if is_repo_id(name) and not path.exists():
        # All configs from one commit; without the hub, the cache may still have them.
        return PreparedData(name, None, commit_of("dataset", name, revision) or revision)
    raise InputError(f"{data}: no such folder; pass a prepared folder, its URL, a hub id such as ORG/mrs, or `sample`.")


def downloaded(data: PreparedData) -> PreparedData:
    """The same data as a folder: a hub repository is downloaded completely.

    Raises:
        InputError: no such repository, no hub, or the repository does not have the layout of a prepared folder.
    """
    from mrs_suggest.common.hub.hub import download

    if data.folder is not None:
        return data
    folder = download(data.name, data.revision, ("README.md", "report.json", "data/*"), kind="dataset")
    if not (folder / "data").is_dir():
        raise InputError(f"{data.name}: not published from a prepared folder (no data/ in it), so it is not checked.")
    return replace(data, folder=folder)


def _read_parquet(files: list[Path]) -> Dataset:
    """Memory-mapped through the cache of `datasets`, keyed by the files' paths and times; with a bar for large ones."""
    import pyarrow as pa
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
