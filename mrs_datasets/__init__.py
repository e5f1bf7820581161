"""Readers and builders of the data sets; their output is a prepared folder (card, Parquet, report).

Names are imported from their modules on first use, so that `import mrs_datasets` costs nothing.
"""

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_datasets.catalogue import DatasetRecord, catalogued, read_record
    from mrs_datasets.check.check import check as check_prepared
    from mrs_datasets.describe.describe import describe as describe_prepared
    from mrs_datasets.prepared.install import install_dataset
    from mrs_datasets.prepared.prepare import prepare as prepare_dataset
    from mrs_datasets.prepared.prepare import prepare_mrs
    from mrs_datasets.prepared.prepared import PreparedData, open_prepared

__all__ = [
    "DatasetRecord",
    "PreparedData",
    "catalogued",
    "check_prepared",
    "describe_prepared",
    "install_dataset",
    "open_prepared",
    "prepare_dataset",
    "prepare_mrs",
    "read_record",
]
if not TYPE_CHECKING:  # else a type checker would accept any name of the package
    __getattr__, __dir__ = lazy_names(__name__)
