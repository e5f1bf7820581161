"""Small sources and a look into prepared folders."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mrs_suggest.common.errors import InputError

Tree = dict[str, "str | bytes"]
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="session")
def write_tree() -> Callable[[Path, Tree], Path]:
    """Return a function that writes files; a text is compressed as its name says, bytes are written as they are."""

    def write(folder: Path, files: Tree) -> Path:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                compress = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
                content = compress(content.encode("utf-8"))
            path.write_bytes(content)
        return folder

    return write


@pytest.fixture
def rows() -> Callable[[Path, str, str], Rows]:
    """Return a function that reads the rows of a config and split of a prepared folder, shard after shard."""

    def read(folder: Path, config: str, split: str) -> Rows:
        shards = sorted((folder / "data" / config).glob(f"{split}-*.parquet"))
        assert shards, f"no {config}/{split} in {folder}"
        return [tuple(row.values()) for shard in shards for row in pq.read_table(shard).to_pylist()]

    return read


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Return a function that prepares a bad source: the sentence, which matches, after a look that nothing is left."""

    def call(match: str, prepare: Callable[..., object], *arguments: object, **options: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError, match=match) as caught:
            prepare(*arguments, tmp_path / "out", **options)
        assert sorted(tmp_path.rglob("*")) == before, "something was left behind"
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return call


@pytest.fixture
def official() -> Tree:
    """Return the files of a small official layout with English and Spanish."""
    return {
        "train/en/a.tsv": "Hi there\tHello\nAre you in?\tYes\n",
        "train/en/b.tsv.gz": "Thanks\tAny time\textra\tcolumns\n",
        "train/en/c.tsv.xz": "Bye\tSee you\r\n",
        "valid/en/a.tsv": "Lunch?\tSure\n",
        "test/en/a.tsv": "Ready?\tAlmost",
        "train/es/a.tsv": "Hola\tBuenas\n",
        "valid/es/a.tsv": "¿Vienes?\tVoy\n",
        "test/es/a.tsv": "Gracias\tDe nada\n",
        "rsp_set/en/response_lm_cluster.txt": "-1.5\tYes\t7\n-2.25e0\tNo way\t3\textra\n",
        "rsp_set/es/response_lm_cluster.txt.gz": "-0.5\tSí\t11\n",
    }
