"""Puts a prepared folder into the cache of `datasets`, so that `load_dataset("mrs", "es")` works in any folder,
and the metrics into that of `evaluate`.

A bare name never resolves on the hub; `datasets` then looks for `CACHE/NAME/CONFIG/VERSION/HASH`, which is what a
builder with that name and hash creates.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.exceptions import DatasetGenerationError

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.report import REPORT, PreparedReport
from mrs_metrics.spaces import install_metric, metric_names
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.installed import installed_folders, record_installed, remove_cached
from mrs_suggest.common.io.files import content_hash


class Installation(NamedTuple):
    """The result of `install`."""

    name: str  # of the data set, for `load_dataset`
    report: PreparedReport
    cache: Path  # the data set's folder in the cache of `datasets`, with those of its configs
    configs: list[Path]
    metrics: dict[str, Path]
    removed: list[Path]  # folders of an earlier install


def install(source: str) -> Installation:
    """Install what `open_prepared` opens as a folder, and every metric; an earlier install of the same data set is
    replaced."""
    earlier = installed_folders()
    data = open_prepared(source)
    if data.folder is None:
        raise InputError(f"--source {source}: not a folder; the hub's data sets are loaded by their id.")
    name = data.data_set()
    configs = install_dataset(data.folder, name)
    cache = configs[0].parents[2]
    others = [folder for folder in earlier if folder.parents[2] != cache and folder.parents[2].parent == cache.parent]
    record_installed([*others, *configs])  # now, so that they can be uninstalled whatever happens to the metrics
    metrics = {metric: install_metric(metric) for metric in metric_names()}
    record_installed(metrics.values())
    return Installation(name, data.report(), cache, configs, metrics, [path for path in earlier if not path.exists()])


def install_dataset(folder: Path, name: str) -> list[Path]:
    """Build the cache of every config of a prepared folder; return the folders that hold them.

    Raises:
        InputError: `folder` is not a prepared folder, or one of its files cannot be read; an earlier install stays
            unchanged.
    """
    files = {
        config: {split: [folder / file["path"] for file in facts["files"]] for split, facts in splits.items()}
        for config, splits in PreparedData(str(folder), folder, None).report().get("configs", {}).items()
    }
    every = [path for splits in files.values() for paths in splits.values() for path in paths]
    if not every:
        raise InputError(
            f"{folder}: not a prepared folder (no {REPORT} that lists its files); make one with `mrs data prepare`."
        )
    for path in every:
        if not path.is_file():
            raise InputError(f"{path}: the file is missing, although {REPORT} lists it; prepare the folder again.")
    digest = content_hash(every)
    earlier = installed_folders()
    built: list[Path] = []
    try:
        for config, splits in files.items():
            builder = _builder_class(name, config, splits)(dataset_name=name, config_name=config, hash=digest)
            builder.download_and_prepare()
            os.utime(builder.cache_dir)  # `datasets` takes the newest
            built.append(Path(builder.cache_dir))
    except (DatasetGenerationError, pa.ArrowException, OSError) as error:
        for path in built:  # `datasets` takes a config's newest folder: a partial one would hide the old
            if path not in earlier:
                remove_cached(path)
        problem = first_line(error.__cause__ or error)
        raise InputError(f"{folder}: cannot be installed ({problem}); prepare the folder again.") from None
    return built


def _builder_class(name: str, config: str, splits: dict[str, list[Path]]) -> type[datasets.ArrowBasedBuilder]:
    """A builder of one config; its inputs must not be arguments, or they would become part of the folder's name."""

    class PreparedBuilder(datasets.ArrowBasedBuilder):
        BUILDER_CONFIGS = [datasets.BuilderConfig(name=config, version=datasets.Version("0.0.0"))]  # noqa: RUF012

        def _info(self) -> datasets.DatasetInfo:
            schema = pq.read_schema(next(iter(splits.values()))[0])
            features = datasets.Features.from_arrow_schema(schema)
            for column, described in read_record(name).columns.items():
                if column in features and described.dtype == "class_label":  # stored as numbers in Parquet
                    features[column] = datasets.ClassLabel(names=list(described.names))
            return datasets.DatasetInfo(features=features)

        def _split_generators(self, dl_manager: object) -> list[datasets.SplitGenerator]:
            return [datasets.SplitGenerator(name, gen_kwargs={"files": files}) for name, files in splits.items()]

        def _generate_tables(self, files: list[Path]) -> Iterator[tuple[tuple[int, int], pa.Table]]:
            for number, file in enumerate(files):
                for batch_number, batch in enumerate(pq.ParquetFile(file).iter_batches(batch_size=10_000)):
                    yield (number, batch_number), pa.Table.from_batches([batch])

    return PreparedBuilder
