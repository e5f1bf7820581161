"""`mrs data check`: planted damage is found by rule, row and split; sound data have no finding."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.check.check import Finding, check
from mrs_datasets.prepared.prepare import prepare, prepare_mrs
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.readers.sample import SAMPLE
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases

LANGUAGES = ("et", "it", "sw")
Rows = list[dict[str, Any]]


def example(number: int, split: str) -> dict[str, Any]:
    return {
        "premise": f"Premise {number} of {split}.", "choice1": f"One {number}.", "choice2": f"Two {number}.",
        "question": ("cause", "effect")[number % 2], "label": number % 2, "idx": number, "changed": False,
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, write_tree: Callable[..., Path]) -> Path:
    """XCOPA's sizes in three languages, without a fault."""
    base = tmp_path_factory.mktemp("xcopa")
    for name, rows in (("val", 100), ("test", 500)):
        text = "".join(json.dumps(example(n, name)) + "\n" for n in range(rows))
        write_tree(base / "source" / "data", {f"{code}/{name}.{code}.jsonl": text for code in LANGUAGES})
    prepare("xcopa", [str(base / "source")], base / "out")
    assert found(base / "out") == []
    return base / "out"


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "xcopa"))


def change(folder: Path, config: str, split: str, edit: Callable[[Rows], object]) -> None:
    """Rewrite the rows of a split."""
    (path,) = (folder / "data" / config).glob(f"{split}-*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def findings_of(folder: Path, *language_id: Any) -> list[Finding]:
    return list(check(open_prepared(str(folder), checked=False), *language_id))


def found(folder: Path) -> list[tuple[str, str, str, int]]:
    return [(f.level, f.rule, f.where, f.count) for f in findings_of(folder)]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        *(
            (lambda rows, cells=cells: rows[7].update(cells), found)
            for cells, found in cases(__file__, "test_planted_damage_is_found_in_its_split")
        ),
        (
            lambda rows: rows[7].update({**rows[3], "idx": 7, "label": 0}),
            ("error", "row identical to an earlier one", 1),
        ),
        (lambda rows: rows.pop(), ("error", "rows of a whole source", 1)),
        (lambda rows: rows.pop(), ("error", "rows that report.json counts", 1)),
        (lambda rows: [row.update(premise="The same.") for row in rows[:4]], ("warning", "premise of another row", 3)),
        (lambda rows: rows[7].update(choice2=rows[7]["choice1"]), ("warning", "equal choice1 and choice2", 1)),
    ],
)
def test_planted_damage_is_found_in_its_split(
    folder: Path, edit: Callable[[Rows], object], expected: tuple[str, str, int]
) -> None:
    change(folder, "it", "validation", edit)
    level, rule, count = expected
    findings = found(folder)
    assert (level, rule, "it/validation", count) in findings
    assert {where for _, _, where, _ in findings} == {"it/validation"}


def test_a_leak_across_splits_is_an_error_with_examples(folder: Path) -> None:
    leaked = [{**example(n, "val"), "idx": 100 + n} for n in range(5)]
    change(folder, "sw", "test", lambda rows: rows.__setitem__(slice(100, 105), leaked))
    (finding,) = (f for f in findings_of(folder) if f.rule == "row identical to one of validation")
    assert (finding.level, finding.where, finding.count) == ("error", "sw/test", 5)
    assert finding.examples[0] == "row 100: Premise 0 of val. | One 0. | Two 0. | cause"
    assert len(finding.examples) == 3


def test_a_wrong_schema_is_reported_and_the_split_not_checked(folder: Path) -> None:
    (path,) = (folder / "data" / "et").glob("test-*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.set_column(4, "label", table["label"].cast(pa.string())), path)
    (path,) = (folder / "data" / "it").glob("test-*.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["changed"]), path)
    (path,) = (folder / "data" / "sw").glob("test-*.parquet")
    path.write_bytes(path.read_bytes()[:-30])
    findings = {f.where: f.examples[0] for f in findings_of(folder) if f.rule == "schema"}
    assert "label is string, not int64" in findings["et/test"]
    assert "lacks changed" in findings["it/test"]
    assert "cannot be read as Parquet" in findings["sw/test"]


def test_missing_and_unknown_files(folder: Path) -> None:
    next((folder / "data" / "et").glob("test-*")).unlink()
    shutil.copytree(folder / "data" / "et", folder / "data" / "zh")
    shutil.rmtree(folder / "data" / "it")
    (folder / "data" / "xx").mkdir()
    rules = {(rule, where) for _, rule, where, _ in found(folder)}
    assert {
        ("split that report.json lists", "et/test"), ("split that report.json lists", "it/test"),
        ("split that report.json does not list", "zh/validation"), ("config unknown to the catalogue", "xx"),
    } <= rules  # fmt: skip
    shutil.rmtree(folder / "data")
    (folder / "data").mkdir()
    assert ("error", "no split", "xcopa", 1) in found(folder)
    with pytest.raises(InputError, match="only a folder can be checked"):
        list(check(PreparedData("org/name", None, None)))


def test_damage_below_the_footer_and_of_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = (folder / "data" / "et").glob("test-*.parquet")
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    (finding,) = (f for f in findings_of(folder) if f.rule == "schema")
    assert "cannot be read as Parquet" in finding.examples[0]
    (folder / "report.json").write_text("[1]")
    assert main(["data", "check", str(folder)]) == 2
    assert main(["data", "publish", str(folder), "--repo", "org/x", "--dry-run"]) == 2
    assert capsys.readouterr().err.count("cannot read the report") == 2


def test_a_partial_source_that_was_noted_is_a_warning(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    write_tree(tmp_path / "source", {"data/et/val.et.jsonl": json.dumps(example(0, "val")) + "\n"})
    prepare("xcopa", [str(tmp_path / "source")], tmp_path / "out")
    assert found(tmp_path / "out") == [
        ("warning", "rows of a whole source (noted in report.json)", "et/validation", 99)
    ]


def test_texts_that_are_identified_as_another_language(folder: Path) -> None:
    def identify(texts: Sequence[str]) -> list[tuple[str, float]]:
        """Everything with a 7 in it is surely Finnish, everything with an 8 only perhaps."""
        return [("fi", 0.99) if "7" in text else ("fi", 0.6) if "8" in text else ("und", 0.0) for text in texts]

    findings = findings_of(folder, identify, frozenset({"it"}))
    expected = {"it/validation": 19, "it/test": sum("7" in str(n) for n in range(500))}
    assert {f.where: f.count for f in findings} == expected, "Estonian and Swahili are not known to this identifier"
    assert {(f.level, f.rule) for f in findings} == {("warning", "identified as another language than it")}
    assert findings[0].examples[0].startswith("row 7: fi 0.99: Premise 7")

    def six_of_ten(texts: Sequence[str]) -> list[tuple[str, float]]:
        return [("fi", 0.9) if number % 10 < 6 else ("it", 0.9) for number, _ in enumerate(texts)]

    findings = findings_of(folder, six_of_ten, frozenset({"it"}))
    assert {f.level for f in findings} == {"warning"}


@pytest.mark.parametrize("code", ["hu", "ja"])
def test_a_file_in_the_wrong_language_is_an_error(tmp_path: Path, write_tree: Callable[..., Path], code: str) -> None:
    """A Portuguese file with the name of another track: identified by fastText, or by its script."""
    text = "\n".join(f"prompt_{n}|say {n}\ndiga outra vez {n}|1.0\n" for n in range(40))
    write_tree(tmp_path / "source", {f"en_{code}/dev.en_{code}.2020.gold.txt": text})
    prepare("staple", [str(tmp_path / "source")], tmp_path / "out")

    def identify(texts: Sequence[str]) -> list[tuple[str, float]]:
        """Portuguese, where there are three words; some prompts are not sure."""
        return [("pt", 0.9 if not text.endswith("7") else 0.5) if "diga" in text else ("en", 0.9) for text in texts]

    data = open_prepared(str(tmp_path / "out"))
    errors = {f.rule: f.count for f in check(data, identify, frozenset({code, "en"})) if f.level == "error"}
    assert errors.pop(f"most texts identified as pt, not {code}") == 36
    assert errors == ({"most texts without a letter of ja's script": 40} if code == "ja" else {})


@pytest.mark.parametrize("source", ["staple/en_pt", "replies", "dialogues/persona", "dialogues/coffee"])
def test_published_files_have_no_error(shared_data: Path, tmp_path: Path, source: str) -> None:
    if source.startswith("staple"):
        prepare("staple", [str(shared_data / source)], tmp_path / "out")
    else:
        prepare_mrs(str(shared_data / source), tmp_path / "out")
    assert [f for f in check(open_prepared(str(tmp_path / "out"))) if f.level == "error"] == []


def test_lists_of_translations_and_nulls_that_may_be(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    text = "\n".join(f"prompt_{n}|say {n}\ndiga {n}|0.75\nfala {n}|0.25\n" for n in "abc")
    write_tree(tmp_path / "source", {"en_pt/dev.en_pt.2020.gold.txt": text})
    prepare("staple", [str(tmp_path / "source")], tmp_path / "out")
    change(tmp_path / "out", "pt", "validation", lambda rows: rows[1]["translations"][1].update(text=" "))
    findings = [f for f in check(open_prepared(str(tmp_path / "out"))) if f.level == "error"]
    assert findings == [Finding("error", "empty text", "pt/validation", 1, ("row 1: say b",))]
    change(tmp_path / "out", "pt", "validation", lambda rows: rows[1]["translations"][1].update(text="b", weight=-0.25))
    rules = {(f.level, f.rule): f.examples for f in check(open_prepared(str(tmp_path / "out")))}
    assert rules["error", "entry without text or with an invalid weight"] == ("row 1: say b",)
    assert rules["error", "weights that do not sum to 1"] == ("row 1: say b",)


def test_a_message_of_training_with_another_reply_is_a_warning(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    before = found(folder)
    message = pq.read_table(next((folder / "data" / "en").glob("train-*.parquet")))["message"][0].as_py()
    change(folder, "en", "test", lambda rows: rows[1].update(message=message, reply="Nobody said so."))
    assert [f for f in found(folder) if f not in before] == [
        ("warning", "message of train with another reply", "en/test", 1)
    ]


def test_the_command_prints_a_summary_and_exits_1_only_on_errors(folder: Path, capsys) -> None:
    change(folder, "it", "test", lambda rows: rows[7].update(premise="[bold]x", choice2=rows[7]["choice1"]))
    assert main(["data", "check", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "equal choice1 and choice2" in out
    assert "row 7" not in out
    assert "0 errors, 1 warnings" in out
    assert "--findings lists the rows" in out
    assert main(["data", "check", str(folder), "--findings"]) == 0
    out = capsys.readouterr().out
    assert "warning: equal choice1 and choice2" in out
    assert "row 7: [bold]x | One 7." in out
    change(folder, "it", "test", lambda rows: rows[9].update(label=5))
    assert main(["data", "check", str(folder), "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content["errors"] == 2  # out of range, and other than in most languages
    assert {"level", "rule", "where", "count", "examples"} == set(content["findings"][0])
