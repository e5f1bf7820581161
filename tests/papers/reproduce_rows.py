"""`make test-reproduce`: one tiny cell of every row of the papers' tables, and its figures next to the printed ones.

    python -m tests.papers.reproduce_rows [NAME/TABLE/ROW ...]      such as mrs/3/* or xcopa/*; default: all rows

Data are small: generated, cut from the embedded sample, or written here. To continue after a stop, run it again:
finished cells are kept. Exit code 1: a row that has a cell has no figure.
"""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import mrs_trainers
import pyarrow.parquet as pq

from mrs_suggest.reproduce.table import Place, Table, at_scale, read_table

FOLDER = Path("build") / "test-reproduce"
CONFIGS = Path(mrs_trainers.__path__[0]) / "configs" / "reproduce"
TABLES = {
    "mrs": ("1", "3", "4", "5"),
    "staple": ("2", "3", "6", "7"),
    "xcopa": ("5", "6", "6-copa", "7", "8"),
    "xglue": ("4", "5", "6", "7", "8", "9", "10", "11"),
}
WORDS = ["rain", "sun", "wind", "snow", "dog", "cat", "bird", "fish", "tree", "leaf", "road", "bridge"]
XCOPA = ["et", "ht", "id", "it", "qu", "sw", "ta", "th", "tr", "vi", "zh"]
STOOD_FOR = [*(f"xnli-{code}" for code in ("ar", "bg", "el", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")), "ntg-ru"]


class Row(NamedTuple):
    """A row of a table with the place of its first figure; a place without a cell says why."""

    table: str
    name: str
    column: str | None
    place: Place


def rows_of(table: Table, name: str, patterns: Sequence[str]) -> Iterator[Row]:
    """The rows that the patterns choose; averages of other rows have no runs of their own."""
    for printed in TABLES[name]:
        grid = table.tables[printed]
        for row in grid.rows:
            if not any(fnmatchcase(f"{name}/{printed}/{row}", pattern) for pattern in patterns):
                continue
            columns = [one for one in grid.columns or (None,) if not grid.averaged(row, one)]
            places = [(column, grid.place(row, column)) for column in columns]
            if known := [one for one in places if one[1].cell or one[1].empty]:
                yield Row(printed, row, *known[0])


# --- data


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=4)) + "."


def json_lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_mrs(folder: Path, draw: random.Random) -> None:
    """Up to 240 messages of each language of the embedded sample; `mt-LANG` has other replies to them."""
    from mrs_datasets.prepared.prepared import open_prepared

    sample = open_prepared("sample")
    for code in sample.languages():
        pairs = [(row["message"], row["reply"]) for split in ("train", "test") for row in sample.load(code, split)]
        messages, replies = zip(*list(dict(pairs).items())[:240], strict=True)
        for name, own in ((code, replies), (f"mt-{code}", replies[9:] + replies[:9])):
            if name != "mt-en":
                text = "".join(f"{one}\t{other}\n" for one, other in zip(messages, own, strict=True))
                write(folder / f"{name}.tsv", text)


def write_xcopa(folder: Path, draw: random.Random) -> None:
    def rows(count: int) -> str:
        return json_lines(
            [
                {"premise": sentence(draw), "choice1": sentence(draw), "choice2": sentence(draw) + " too",
                 "question": draw.choice(["cause", "effect"]), "label": draw.randrange(2), "idx": n, "changed": False}
                for n in range(count)
            ]
        )  # fmt: skip

    write(folder / "copa" / "train.jsonl", rows(32))
    write(folder / "copa" / "val.jsonl", rows(12))
    for code in XCOPA:
        for split in ("val", "test"):
            write(folder / "data" / code / f"{split}.{code}.jsonl", rows(12))
    shutil.copytree(folder / "data", folder / "data-gmt")
    shutil.rmtree(folder / "data-gmt" / "qu")


def write_siqa(folder: Path, draw: random.Random) -> None:
    for split, count in (("train", 32), ("dev", 12)):
        rows = [
            {"context": sentence(draw), "question": "Why?"}
            | {f"answer{one}": f"{sentence(draw)} {one}" for one in "ABC"}
            for _ in range(count)
        ]
        write(folder / f"{split}.jsonl", json_lines(rows))
        write(folder / f"{split}-labels.lst", "".join(f"{draw.randrange(1, 4)}\n" for _ in range(count)))


def write_texts(folder: Path, draw: random.Random) -> None:
    for name in ("S.en", *(f"{kind}.{code}" for kind in ("T", "D", "T-REP", "dev") for code in ("ht", "qu"))):
        write(folder / f"{name}.txt", "".join(f"{name} {n} {sentence(draw)}\n" for n in range(60)))


def write_xglue(folder: Path, draw: random.Random) -> None:
    """The generated tasks; for languages that they lack, English rows, of which `training` is read from files."""
    from mrs_datasets.prepared.prepare import prepare

    prepare("synthetic-xglue", [f"synthetic:{draw.randrange(1000)}"], folder)
    for config in STOOD_FOR:
        english, other = folder / "data" / f"{config[:-2]}en", folder / "data" / config
        [test] = shutil.copytree(english, other, ignore=shutil.ignore_patterns("train-*")).glob("test-*")
        write(folder / f"{config.replace('-', '.')}.jsonl", json_lines(pq.read_table(test).to_pylist()))


MADE: dict[str, dict[str, Callable[[Path, random.Random], None]]] = {
    "mrs": {"mrs": write_mrs},
    "xcopa": {"xcopa": write_xcopa, "siqa": write_siqa, "texts": write_texts},
    "xglue": {"xglue": write_xglue, "training": write_xglue},
}


def made(name: str) -> list[str]:
    """`--data` of a table's data sets, written unless they stand; the tables generate the others."""
    words = []
    for data, make in MADE.get(name, {}).items():
        folder = FOLDER / "data" / data
        if not folder.is_dir():
            shutil.rmtree(partial := folder.with_name(f"{data}.partial"), ignore_errors=True)
            make(partial, random.Random(data))
            partial.rename(folder)
        words.append(f"{data}={folder}")
    return ["--data", *words] if words else []


# --- runs


def told(row: Row, record: dict[str, Any]) -> tuple[str, bool]:
    """A row's figure next to the paper's, or why there is none; and whether it is as expected."""
    figures = [one for one in record["figures"] if (one["table"], one["row"]) == row[:2]]  # tiny data lack languages
    found = next((one for one in figures if one["mean"] is not None), None)
    if not row.place.cell:
        return f"not run: {row.place.empty}", True
    if found is None:
        return f"no figure: {figures[0]['missing'] if figures else 'the command failed, see above'}", False
    values = found["mean"] * (100 if found["percent"] else 1), found["paper"] or 0
    mean, paper = (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in values)
    printed = f"paper {paper}" if found["paper"] is not None else "not printed in the paper"
    return f"{found['metric']} {mean}, {printed} ({row.place.cell}, {found['column'] or 'all'})", True


def run(name: str, patterns: Sequence[str]) -> bool:
    """Run a cell of each chosen row; whether all have figures."""
    table = at_scale(read_table(CONFIGS, name), "tiny")
    rows = list(rows_of(table, name, patterns))
    if not rows:
        return True
    cells = list(
        dict.fromkeys(f"{row.place.cell}/{table.cells[row.place.cell].seeds[0]}" for row in rows if row.place.cell)
    )
    tables = list(dict.fromkeys(row.table for row in rows))
    if cells:
        words = [
            "reproduce", name, "--scale", "tiny", "--table", *tables, "--only", *cells, *made(name),
            "--output", str(FOLDER / name),
        ]  # fmt: skip
        subprocess.run([sys.executable, "-m", "mrs_suggest.cli.main", *words], stdout=subprocess.DEVNULL, check=False)
    path = FOLDER / name / "tiny" / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if cells and path.is_file() else {"figures": []}
    sound = True
    for row in rows:
        line, fine = told(row, record)
        print(f"{name} {row.table}, {row.name}: {line}", flush=True)
        sound &= fine
    return sound


def main(patterns: Sequence[str]) -> int:
    sound = [run(name, patterns or ["*"]) for name in TABLES]
    return int(not all(sound))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
