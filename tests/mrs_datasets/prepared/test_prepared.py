"""The prepared folder: Parquet, card and report, and how plain `datasets` and the project's other packages read it."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mrs_datasets.describe.paper_tables import split_statistics
from mrs_datasets.prepared import writer as writer_module
from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunk
from mrs_suggest.common.errors import InputError

THREE = "Message 1\tyes\nMessage 3\tyes\nMessage 0\tyes\n"  # train, validation, test


@pytest.fixture
def prepared(write_tree, official, tmp_path) -> Path:
    """Return a prepared folder of the small official layout with machine-translated pairs."""
    files = official | {"mt/es/a.tsv": "Buenos días\tHola\n"}
    prepare_mrs(str(write_tree(tmp_path / "src", files)), tmp_path / "prepared")
    return tmp_path / "prepared"


def pair_chunks(*sizes: int, config: str = "mt-en") -> Iterator[Chunk]:
    """Chunks of these sizes whose rows count up from 0."""
    start = 0
    for size in sizes:
        texts = pa.array([f"m{i}" for i in range(start, start + size)], pa.string())
        yield config, "train", pa.table([texts, texts], PAIR_SCHEMA)
        start += size


@pytest.mark.parametrize("streaming", [False, True])
def test_plain_datasets_loads_every_config_with_its_types(prepared: Path, rows, streaming: bool) -> None:
    from datasets import Features, Value, load_dataset

    text = Value("string")
    pairs = Features({"message": text, "reply": text})
    responses = Features(
        {"reply": text, "count": Value("int64"), "log_prob": Value("float64"), "cluster": text, "source": text}
    )
    three = ["train", "validation", "test"]
    for config, splits, features in [
        ("en", three, pairs),
        ("es", three, pairs),
        ("en-responses", ["train"], responses),
        ("es-responses", ["train"], responses),
        ("mt-es", ["train"], pairs),
    ]:
        loaded = load_dataset(str(prepared), config, streaming=streaming)
        assert list(loaded) == splits
        for split in splits:
            assert loaded[split].features == features
            assert [tuple(row.values()) for row in loaded[split]] == rows(prepared, config, split)


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        ({"en.tsv": "Message 1\tyes\n"}, {}),  # no validation, no test
        ({"en.tsv": THREE, "mt-en.tsv": " \tblank\n"}, {}),
        ({"en.tsv": THREE}, {"min_reply_count": 20}),  # no reply is so frequent
        ({"train/en/a.tsv": THREE, "valid/en/a.tsv": " \tblank\n", "test/en/a.tsv": THREE}, {}),
    ],
    ids=["few messages", "blank mt", "rare replies", "blank split"],
)
def test_an_empty_split_is_refused_or_loads(write_tree, tmp_path, files, limits) -> None:
    from datasets import load_dataset  # which cannot load a Parquet file without rows

    write_tree(tmp_path / "src", files)
    refused = ""
    try:
        report = prepare_mrs(str(tmp_path / "src"), tmp_path / "out", **limits)
    except InputError as error:
        refused = str(error)
    if refused:
        assert re.search(r"split|train|validation|test|mt-en|min.reply.count", refused)
        assert [path.name for path in tmp_path.iterdir()] == ["src"]
        assert files != {"en.tsv": "Message 1\tyes\n"} or refused.endswith("each split; found 1.")
        return
    data = open_prepared(str(tmp_path / "out"))
    for config, splits in report["configs"].items():
        for streaming in (False, True):
            loaded = load_dataset(str(tmp_path / "out"), config, streaming=streaming)
            assert {split: len(list(rows)) for split, rows in loaded.items()} == {s: splits[s]["rows"] for s in splits}
        for split, facts in splits.items():
            assert len(data.load(config, split)) == facts["rows"]
    assert len(list(split_statistics(data))) == 3


def test_the_card_tells_the_hub_what_is_there(prepared: Path) -> None:
    front = yaml.safe_load((prepared / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    names = ["en", "es", "en-responses", "es-responses", "mt-es"]
    assert [entry["config_name"] for entry in front["configs"]] == names
    assert [entry["config_name"] for entry in front["configs"] if entry.get("default")] == ["en"]
    assert front["language"] == ["en", "es"]
    assert front["license"] == "unknown"
    matched = {
        path.relative_to(prepared).as_posix()
        for entry in front["configs"]
        for files in entry["data_files"]
        for path in prepared.glob(files["path"])
    }
    assert matched == {path.relative_to(prepared).as_posix() for path in prepared.rglob("*.parquet")}
    assert [entry["config_name"] for entry in front["dataset_info"]] == names
    for info in front["dataset_info"]:
        files = sorted((prepared / "data" / info["config_name"]).iterdir())
        assert info["download_size"] == sum(path.stat().st_size for path in files)
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])
        for split in info["splits"]:
            (file,) = [path for path in files if path.name.startswith(f"{split['name']}-")]
            table = pq.read_table(file)
            assert split["num_examples"] == table.num_rows
            text = sum(len(str(v).encode()) for row in table.to_pylist() for v in row.values() if v is not None)
            assert 0.3 * text <= split["num_bytes"] <= 2 * text + 64 * (table.num_rows + 1)
            assert [(f["name"], f["dtype"]) for f in info["features"]] == [
                (column.name, {"double": "float64"}.get(str(column.type), str(column.type))) for column in table.schema
            ]


def test_the_report_counts_and_hashes_what_was_written(prepared: Path) -> None:
    report = json.loads((prepared / "report.json").read_text(encoding="utf-8"))
    assert report["configs"]["en"]["train"]["rows"] == 4
    files = [f for splits in report["configs"].values() for facts in splits.values() for f in facts["files"]]
    assert len(files) == 9
    for file in files:
        content = (prepared / file["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])


@pytest.mark.parametrize(("sizes", "shards"), [((3, 3, 4), [4, 4, 2]), ((1, 11), [4, 4, 4]), ((2,), [2])])
def test_shards_keep_the_order_and_name_their_number(tmp_path: Path, rows, monkeypatch, sizes, shards) -> None:
    from datasets import load_dataset

    monkeypatch.setattr(writer_module, "SHARD_ROWS", 4)
    report = write_prepared(tmp_path, pair_chunks(*sizes), Report("pairs"), MRS, "src")
    files = sorted((tmp_path / "data" / "mt-en").iterdir())
    assert [path.name for path in files] == [f"train-{i:05d}-of-{len(shards):05d}.parquet" for i in range(len(shards))]
    assert [pq.read_metadata(path).num_rows for path in files] == shards
    assert [file["path"] for file in report["configs"]["mt-en"]["train"]["files"]] == [
        path.relative_to(tmp_path).as_posix() for path in files
    ]
    expected = [f"m{i}" for i in range(sum(sizes))]
    assert [row[0] for row in rows(tmp_path, "mt-en", "train")] == expected
    assert load_dataset(str(tmp_path), "mt-en", split="train")["message"][:] == expected


def test_nothing_at_all_or_a_config_without_a_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="src: the source has no data"):
        write_prepared(tmp_path / "a", iter(()), Report("pairs"), MRS, "src")
    with pytest.raises(InputError, match="src: the validation split of en is missing"):
        write_prepared(tmp_path / "b", pair_chunks(3, config="en"), Report("pairs"), MRS, "src")


# Files may not grow any more, as on a full disk, once some chunks are written; the shards of the others are open.
ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.common.io.files import atomic_folder
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA
from mrs_datasets.prepared.writer import write_prepared

def chunks(before):
    texts = pa.array([f"text {i}" for i in range(1000)])
    for number, config in enumerate(("mt-en", "mt-es", "mt-de", "")):
        if number == before:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8, resource.RLIM_INFINITY))
        if config:
            yield config, "train", pa.table([texts, texts], PAIR_SCHEMA)

def call():
    out = Path(sys.argv[1])
    with atomic_folder(out) as folder:
        write_prepared(folder, chunks(int(sys.argv[2])), Report("pairs"), MRS, "src")

sys.exit(run_with_sentence("mrs data", call))
"""


@pytest.mark.parametrize("before", [0, 3], ids=["the first shard", "the ends of all"])
def test_a_full_disk_is_one_sentence_and_nothing_more(tmp_path: Path, before: int) -> None:
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path / "out"), str(before)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    sentence = f"{tmp_path / 'out'}: cannot be written (File too large); free space there, or choose another folder."
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"mrs data: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


def test_open_prepared_gives_what_the_folder_has(prepared: Path) -> None:
    data = open_prepared(str(prepared))
    assert data.languages() == ["en", "es"]
    assert data.load("en", "train")["message"][:] == ["Hi there", "Are you in?", "Thanks", "Bye"]
    with pytest.raises(InputError, match=r"prepared: no train split of 'ru'; the folder has en en-responses es"):
        data.load("ru", "train")
    with pytest.raises(InputError, match=r"no test split of 'mt-es'"):
        data.load("mt-es", "test")


def test_the_identity_follows_the_contents_of_the_languages_used(prepared: Path, tmp_path: Path) -> None:
    def identity(folder: Path, *languages: str) -> str:
        return open_prepared(str(folder)).identity(languages)["content_hash"]

    copy = tmp_path / "copy"
    shutil.copytree(prepared, copy)
    english, spanish = identity(prepared, "en"), identity(prepared, "es")
    assert english != spanish
    assert identity(copy, "en") == english
    (file,) = (copy / "data" / "en").glob("test-*")
    pq.write_table(pa.table([["Ready?"], ["Always"]], PAIR_SCHEMA), file)
    assert identity(copy, "en") != english
    assert identity(copy, "es") == spanish
    assert identity(copy, "en", "es") != identity(prepared, "en", "es")
    (file,) = (copy / "data" / "es-responses").glob("train-*")
    file.unlink()
    assert identity(copy, "es") != spanish


def test_what_is_no_prepared_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: not a prepared folder"):
        open_prepared("empty")
    for name in ("none", "./a/b", "a/b/c", str(tmp_path / "none")):
        with pytest.raises(InputError, match="no such folder"):
            open_prepared(name)
