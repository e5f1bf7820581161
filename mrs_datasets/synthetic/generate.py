"""Data sets generated from a seed: `mrs data prepare NAME --source synthetic[:SEED] --out DIR`.

Each is a module with a function `tables(seed)`; columns and configs are those of its record in the catalogue. Equal
seeds give equal rows.
"""

from importlib import import_module
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.synthetic.language_models import can_train, train_language_model
from mrs_suggest.common.errors import InputError

CHAT = "synthetic-chat"
GENERATED = (CHAT, "synthetic-copa", "synthetic-staple", "synthetic-xglue")
SOURCE, SEED = "synthetic", 42
LANGUAGE_MODEL = "language_model.ftz"  # next to the configs of synthetic-chat
IDENTIFIED, BUCKETS = 5000, 5000  # sentences of each language that the model learns from; 0.4 MB


def seed_of(source: str) -> int:
    """The seed in `synthetic` or `synthetic:SEED`; InputError for any other source."""
    name, colon, number = source.partition(":")
    if name != SOURCE or (colon and not number.isdecimal()):
        raise InputError(f"--source {source}: expected {SOURCE} or {SOURCE}:SEED, such as {SOURCE}:7.")
    return int(number) if colon else SEED


def read_synthetic(name: str, seed: int, report: Report) -> Chunks:
    """The tables of a generated data set."""
    report.settings["seed"] = seed
    if name == CHAT and not can_train():
        report.notes.append(f"{LANGUAGE_MODEL} was not written: install fastText (extra langid), and prepare again.")
    record = read_record(name)
    world = import_module(f"mrs_datasets.synthetic.{name.removeprefix('synthetic-')}")
    for config, split, rows in world.tables(seed):
        yield config, split, pa.Table.from_pylist(rows, record.schema(config))


def write_chat_model(folder: Path, seed: int) -> None:
    """Write a fastText model that identifies the languages of synthetic-chat to its folder, if fastText is there."""
    import pyarrow.parquet as pq

    if can_train():
        columns = {
            code: pq.read_table(folder / "data" / f"text-{code}", columns=["text"])["text"].slice(0, IDENTIFIED)
            for code in read_record(CHAT).languages
        }
        texts = ((code, text) for code, column in columns.items() for text in column.to_pylist())
        train_language_model(texts, folder / LANGUAGE_MODEL, seed, BUCKETS)
