"""`mrs install` and `mrs install --remove`: the literal calls from an empty folder, with fresh caches."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.install import install_dataset
from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_suggest.common.errors import InputError
from tests import warm_python

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
CALLS = """
import json
from datasets import load_dataset
import evaluate
rows = {split: list(rows["message"]) for split, rows in load_dataset("mrs", "es").items()}
responses = load_dataset("mrs", "es-responses")["train"].num_rows
rouge = evaluate.load("mrs_rouge").compute(predictions=[["Sí, claro."]], references=["Sí, claro."], language="es")
dist = evaluate.load("dist_n").compute(predictions=[["a b"]], references=["c"], language="en")
print(json.dumps([rows, responses, rouge["weighted"], dist["dist1"]]))
"""
Client = Callable[..., "subprocess.CompletedProcess[str]"]


def make_prepared(folder: Path, word: str, languages: tuple[str, ...] = ("es",)) -> Path:
    """A small prepared folder whose messages begin with `word`."""
    source = folder / f"source-{word}"
    source.mkdir(parents=True)
    for language in languages:
        lines = [f"{word} mensaje {n}\trespuesta {n % 4}\n" for n in range(50)]
        (source / f"{language}.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(source), folder / word)
    return folder / word


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_prepared(tmp_path_factory.mktemp("install"), "uno")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def client(tmp_path: Path, home: Path) -> Client:
    """A function that runs `mrs` or Python source in an empty folder, offline unless told."""
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(
        *arguments: object, source: str = "", env: dict[str, str] | None = None, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        start = ["-c", source] if source else ["-m", "mrs_suggest.cli.main"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "MRS_"))}
        environment = {**kept, "HF_HOME": str(home), **(OFFLINE if env is None else env)}
        done = warm_python.run([sys.executable, *start, *arguments], cwd=empty, env=environment)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr[-4000:]}"
        assert list(empty.iterdir()) == []
        return done

    return run


def listing(home: Path) -> dict[str, bytes]:
    """Every file and folder below the caches."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(home.rglob("*"))
        if "__pycache__" not in path.parts
    }


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The messages that the literal call gave, once everything else that it gave is as it must be."""
    rows, responses, rouge, dist = json.loads(done.stdout.splitlines()[-1])
    assert rows.keys() == {"train", "validation", "test"}
    assert responses > 0
    assert (round(rouge, 6), dist) == (1.0, 1.0)
    return [text for texts in rows.values() for text in texts]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_one_folder_a_config(prepared: Path, cache: Path) -> None:
    folders = install_dataset(prepared, "mrs")
    assert [folder.relative_to(cache).parts[:3] for folder in folders] == [
        ("mrs", "es", "0.0.0"), ("mrs", "es-responses", "0.0.0")
    ]  # fmt: skip
    assert len({folder.name for folder in folders}) == 1
    before = listing(cache)
    assert install_dataset(prepared, "mrs") == folders
    assert listing(cache) == before


def broken(kind: str, prepared: Path, folder: Path) -> Path:
    shutil.copytree(prepared, folder)
    file = next((folder / "data" / "es-responses").glob("*.parquet"))  # the last config
    if kind == "no report":
        (folder / "report.json").unlink()
    elif kind == "a file is missing":
        file.unlink()
    elif kind == "a file is cut off":
        file.write_bytes(file.read_bytes()[:-50])
    elif kind == "a file is damaged inside":
        data = bytearray(file.read_bytes())
        data[4:60] = bytes(56)
        file.write_bytes(bytes(data))
    return folder


@pytest.mark.parametrize("kind", ["no report", "a file is missing", "a file is cut off", "a file is damaged inside"])
def test_a_broken_folder_is_refused_and_leaves_nothing(kind: str, prepared: Path, cache: Path, tmp_path: Path) -> None:
    """Half an install would hide the whole one before it: `datasets` takes the newest folder of each config."""
    install_dataset(prepared, "mrs")
    before = {name for name in listing(cache) if not name.endswith(".lock")}
    other = make_prepared(tmp_path, "tres")
    with pytest.raises(InputError, match="broken"):
        install_dataset(broken(kind, other, tmp_path / "broken"), "mrs")
    assert {name for name in listing(cache) if not name.endswith(".lock")} == before


@pytest.mark.integration
def test_the_sample_from_an_empty_folder_and_away_again(client: Client, home: Path) -> None:
    load_another = (
        "from datasets import Dataset, load_dataset\n"
        "import pathlib, os\n"
        "folder = pathlib.Path(os.environ['HF_HOME']) / 'squad'\n"
        "folder.mkdir(parents=True)\n"
        "Dataset.from_dict({'x': [1]}).to_parquet(folder / 'train.parquet')\n"
        "load_dataset(str(folder))\n"
    )
    client(source=load_another)
    for name in ("datasets/mrs/es/mine.txt", "modules/mine.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    before = listing(home)
    done = client("install")
    assert "This is the embedded sample, not the MRS data set" in done.stdout
    for folder in [line.rpartition(": ")[2] for line in done.stdout.splitlines() if line.startswith("evaluate.load")]:
        assert Path(folder).is_dir()
    once = listing(home)
    assert len(set(messages(client(source=CALLS)))) > 100
    assert "earlier install" not in client("install").stdout
    assert {name: listing(home).get(name) for name in once} == once
    assert "folders removed" in client("install", "--remove").stdout
    after = listing(home)
    assert {name: after.get(name) for name in before} == before
    more = sorted(after.keys() - before.keys())
    # `evaluate` makes a package of the cache of modules, and keeps a folder of each metric that it has computed.
    theirs = ("modules", "metrics", "evaluate")
    assert [name for name in more if name.split("/")[0] not in theirs] == [], "left in the cache"
    assert [name for name in more if name.startswith("modules/") and ("mrs" in name or "dist_n" in name)] == []
    failed = client(source='from datasets import load_dataset\nload_dataset("mrs", "es")', code=1)
    assert "mrs" in failed.stderr.splitlines()[-1]
    assert client("install", "--remove").stdout == "nothing is installed\n"


@pytest.mark.integration
def test_a_folder_replaces_the_sample_and_a_broken_one_replaces_nothing(
    client: Client, prepared: Path, tmp_path: Path
) -> None:
    client("install")
    done = client("install", "--source", prepared)
    assert "embedded sample" not in done.stdout
    assert "of an earlier install" in done.stdout
    found = messages(client(source=CALLS))
    assert sorted(found) == sorted(f"uno mensaje {n}" for n in range(50))
    other = make_prepared(tmp_path, "tres")
    done = client("install", "--source", broken("a file is cut off", other, tmp_path / "broken"), code=2)
    assert done.stderr.startswith("mrs install: ")
    assert "broken" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(messages(client(source=CALLS))) == sorted(found)
    client("install", "--remove")
    client(source='from datasets import load_dataset\nload_dataset("mrs", "es")', code=1)
