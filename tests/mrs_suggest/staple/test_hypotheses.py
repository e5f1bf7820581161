"""The file of hypotheses: what is written is read, what is damaged is refused, and its export loses nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.readers.staple.staple_files import read_staple_predictions
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.hypotheses import FACTS, read_hypotheses, write_hypotheses
from tests.command import Result, refused
from tests.mrs_suggest.staple.hypotheses_files import PROMPTS, ROWS, hypotheses


def test_what_is_written_is_read_by_prompt(tmp_path: Path) -> None:
    found = hypotheses(ROWS, {"votes": [2.0, 1.0, 2.0, None]})
    write_hypotheses(found, tmp_path / "a.parquet")
    assert read_hypotheses(tmp_path / "a.parquet") == found
    texts = {key: rows["text"].to_pylist() for key, rows in hypotheses(ROWS).by_prompt()}
    assert texts == {
        "prompt_a": ["sim, claro", "claro que sim", "Sim, claro!"], "prompt_b": [], "prompt_c": ["talvez"]
    }  # fmt: skip


def test_export_writes_the_tasks_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_hypotheses(hypotheses([*ROWS[:2], ("prompt_a", "two", 1, "sim, claro", -1.0), ROWS[3]]), tmp_path / "a.pq")
    out = tmp_path / "deep" / "a.pred.txt"
    assert main(["staple", "export", str(tmp_path / "a.pq"), "--out", str(out)]) == 0
    assert out.read_text() == (
        "prompt_a|yes, of course\nsim, claro\nclaro que sim\n\nprompt_b|no\n\nprompt_c|maybe\ntalvez\n"
    )
    assert read_staple_predictions(out) == {"prompt_a": ["sim, claro", "claro que sim"], "prompt_b": [],
                                            "prompt_c": ["talvez"]}  # fmt: skip
    assert "3 translations of 3 prompts" in capsys.readouterr().out
    assert main(["staple", "export", str(tmp_path / "a.pq"), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _plain(path: Path) -> None:
    pq.write_table(hypotheses(ROWS).table, path)


def _facts(path: Path, **changes: object) -> None:
    table = pq.read_table(path)
    facts = {**json.loads(table.schema.metadata[FACTS]), **changes}
    pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(facts).encode()}), path)


def _column(path: Path, name: str, values: list[object]) -> None:
    table = pq.read_table(path)
    number = table.schema.get_field_index(name)
    array = pa.array(values, table.schema.field(number).type)
    pq.write_table(table.set_column(number, name, array), path)


DAMAGE = {
    "missing": (lambda path: path.unlink(), "no such file"),
    "cut": (_cut, "cannot be read"),
    "another Parquet": (_plain, "not a file of hypotheses"),
    "version": (lambda path: _facts(path, version=99), "version 99, expected 1"),
    "no prompts": (lambda path: _facts(path, prompts=None), "damaged"),
    "no members": (lambda path: _facts(path, members={}), "row 1: 'prompt_a' of member 'one' is not described"),
    "unknown feature": (lambda path: _facts(path, features={"votes": "x"}), "damaged"),
    "unknown prompt": (lambda path: _column(path, "id", ["x"] * 4), "is not described"),
    "rank": (lambda path: _column(path, "rank", [2, 1, 1, 1]), "row 2: prompt_a, one, rank 1 is out of order"),
    "order": (lambda path: _column(path, "id", ["prompt_c", "prompt_a", "prompt_a", "prompt_a"]), "row 2"),
    "null": (lambda path: _column(path, "text", ["a", "b", None, "d"]), "row 3: expected a translation on one line"),
    "line end": (lambda path: _column(path, "text", ["a", "b", "c", "d\u2028e"]), "row 4: expected"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_sentence(kind: str, tmp_path: Path, staple: Callable[..., Result]) -> None:
    path = tmp_path / "a.parquet"
    write_hypotheses(hypotheses(ROWS), path)
    damage, sentence = DAMAGE[kind]
    damage(path)
    error = refused(staple("export", path, "--out", tmp_path / "out.txt"))
    assert str(path) in error
    assert sentence in error
    assert not (tmp_path / "out.txt").exists()


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not described"):
        write_hypotheses(replace(hypotheses(ROWS), members={}), tmp_path / "a.parquet")
    write_hypotheses(hypotheses(ROWS), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="exists already"):
        write_hypotheses(hypotheses(ROWS), tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("key", ["prompt|x", "prompt\nx"])
def test_an_id_that_the_format_cannot_hold_is_refused(key: str, tmp_path: Path) -> None:
    from mrs_suggest.staple.hypotheses import write_predictions

    with pytest.raises(InputError, match="allows no"):
        write_predictions(replace(hypotheses([]), prompts={**PROMPTS, key: "x"}), tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())
