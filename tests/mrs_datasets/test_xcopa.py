"""XCOPA and English COPA: read, checked, described, loaded."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_datasets.describe.paper_tables import agreement, xcopa_split_statistics
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases
from tests.mrs_datasets.test_siqa import lines

ROW = {"premise": "P.", "choice1": "A.", "choice2": "B.", "question": "cause", "label": 1, "idx": 0, "changed": False}
WRITTEN = {**ROW, "question_corrected": "cause"}
CODES = ["et", "ht", "id", "it", "qu", "sw", "ta", "th", "tr", "vi", "zh"]
TABLE_3 = {  # Ponti et al. 2020, Table 3: % of labels that agree with the majority
    "validation": (97, 97, 99, 98, 98, 99, 100, 99, 97, 97, 96),
    "test": (98.2, 96.4, 100, 97, 94.8, 99, 98.6, 98.2, 96.4, 98.4, 96.6),
}


def repository(folder: Path, text: str | bytes, code: str = "et") -> Path:
    for name in ("val", "test"):
        path = folder / "data" / code / f"{name}.{code}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return folder


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    out = tmp_path_factory.mktemp("real") / "out"
    prepare("xcopa", [str(shared_data / "xcopa"), str(shared_data / "copa")], out)
    return open_prepared(str(out))


def test_every_config_of_the_real_data_and_the_figures_of_the_paper(shared_data: Path, real: PreparedData) -> None:
    pytest.importorskip("statsmodels")
    data, notes = real, real.report()["notes"]
    assert len(data.configs()) == 11 + 10 + 1
    found = {(row.config, row.split): row.agreement for row in xcopa_split_statistics(data, CODES)}
    expected = {
        (code, split): value for split, values in TABLE_3.items() for code, value in zip(CODES, values, strict=True)
    }
    assert found == pytest.approx(expected)
    assert agreement(data) == pytest.approx({"validation": 0.921, "test": 0.911}, abs=5e-4)
    source = [
        json.loads(line) for line in (shared_data / "xcopa/data/qu/test.qu.jsonl").read_text("utf-8").splitlines()
    ]
    assert data.load("qu", "test").to_list() == [{**row, "question_corrected": row["question"]} for row in source]
    assert notes[0] == "en: the train split has 368 rows, a complete source has 400."
    assert len(notes) == 3, "and one on the questions of each split"


WRONG = {  # rows whose `question` is not the other languages': an effect where they have a cause
    "validation": {"id": 5, "it": 5, "sw": 6, "th": 52, "tr": 52},
    "test": {"id": 4, "it": 4, "sw": 37, "th": 250, "tr": 51},
}


def test_the_wrong_questions_of_the_real_files_are_corrected_and_counted(
    real: PreparedData, capsys: pytest.CaptureFixture[str]
) -> None:
    data, notes, folder = real, real.report()["notes"], Path(str(real.folder))
    for split, wrong in WRONG.items():
        causes = 52 if split == "validation" else 250  # of English COPA
        corrected = set()
        for config in [*CODES, *(f"translation-{code}" for code in CODES if code != "qu")]:
            rows = pq.read_table(data.files(config, split)).to_pylist()
            differing = [row for row in rows if row["question"] != row["question_corrected"]]
            assert len(differing) == wrong.get(config.removeprefix("translation-"), 0)
            assert {(row["question"], row["question_corrected"]) for row in differing} <= {("effect", "cause")}
            corrected.add(tuple(row["question_corrected"] for row in rows))
        assert len(corrected) == 1, "the same in all languages"
        assert corrected.pop().count("cause") == causes
        told = ", ".join(f"{code} {count}" for code, count in wrong.items())
        assert any(f"{split} whose question_corrected differs from question: {told}, " in one for one in notes)
    assert data.load("th", "test")["question"] == ["effect"] * 500, "the published column stays"
    assert "question_corrected" in (folder / "README.md").read_text(encoding="utf-8")
    assert main(["data", "check", str(folder), "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    counted = {f["where"]: f["count"] for f in findings if f["rule"] == "question other than question_corrected"}
    expected = {f"{code}/{split}": count for split, wrong in WRONG.items() for code, count in wrong.items()}
    assert counted == {f"{prefix}{part}": n for part, n in expected.items() for prefix in ("", "translation-")}


@pytest.mark.parametrize(
    ("others", "expected"), cases(__file__, "test_a_question_is_corrected_by_any_of_the_right_languages")
)
def test_a_question_is_corrected_by_any_of_the_right_languages(
    tmp_path: Path, others: list[str], expected: str
) -> None:
    repository(tmp_path / "x", lines({**ROW, "question": "effect"}), "th")
    for code in others:
        repository(tmp_path / "x", lines(ROW), code)
    prepare("xcopa", [str(tmp_path / "x")], tmp_path / "out")
    (row,) = open_prepared(str(tmp_path / "out")).load("th", "test").to_list()
    assert (row["question"], row["question_corrected"]) == ("effect", expected)


def test_a_partial_source_is_noted_and_only_what_it_has_is_written(tmp_path: Path) -> None:
    repository(tmp_path / "source" / "xcopa-master", lines(ROW))
    report = prepare("xcopa", [str(tmp_path / "source")], tmp_path / "out")
    assert list(report["configs"]) == ["et"]
    assert "not in the source (original): ht id it qu sw ta th tr vi zh." in report["notes"]
    assert "et: the test split has 1 rows, a complete source has 500." in report["notes"]


def test_english_copa_as_superglue_and_as_the_original_xml(tmp_path: Path, write_tree) -> None:
    row = {name: value for name, value in ROW.items() if name != "changed"}
    glue = write_tree(tmp_path / "glue", {"train.jsonl": lines(row), "val.jsonl": lines(row)})
    prepare("xcopa", [str(glue)], tmp_path / "a")
    assert open_prepared(str(tmp_path / "a")).load("en", "train").to_list() == [WRITTEN]

    item = '<item id="{}" asks-for="cause" most-plausible-alternative="2"><p>P.</p><a1>A.</a1><a2>B.</a2></item>'
    files = {"dev": item.format(1) + item.format(401), "test": item.format(501)}
    files = {f"copa-{name}.xml": f"<copa-corpus>{items}</copa-corpus>" for name, items in files.items()}
    xml = write_tree(tmp_path / "xml", files)
    prepare("xcopa", [str(xml)], tmp_path / "b")
    data = open_prepared(str(tmp_path / "b"))
    assert data.splits("en") == ["train", "validation", "test"]
    assert all(data.load("en", split).to_list() == [WRITTEN] for split in data.splits("en"))
    with pytest.raises(InputError, match=r"en/train is in .* already"):
        prepare("xcopa", [str(glue), str(xml)], tmp_path / "c")


@pytest.mark.parametrize("encoding", ["foo", "big5"])
def test_an_xml_file_of_an_unknown_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "copa-test.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?><copa-corpus/>')
    with pytest.raises(InputError, match=r"copa-test\.xml: not valid XML"):
        prepare("xcopa", [str(tmp_path)], tmp_path.parent / "never")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *(
            (lines({**ROW, **change}), told)
            for change, told in cases(__file__, "test_damage_is_refused_with_file_and_line")
        ),
        (lines(ROW)[:-20], r"line 1: not a JSON object .*truncated"),
        (lines(ROW, {**ROW, "label": 2, "idx": 1}), r"line 2: expected 'label' to be 0 or 1, found 2"),
        (lines({name: value for name, value in ROW.items() if name != "idx"}), r"expected 'idx' .* found nothing"),
        (lines(ROW, ROW), r"line 2: idx 0 is in .*line 1 already"),
        (lines(ROW).replace('{"premise"', '{"label": 1, "premise"'), r"line 1: the key 'label' is repeated"),
        ("[" * 100_000 + "\n", r"line 1: not a JSON object"),
        (lines(ROW).replace("P.", "\\ud800"), r"line 1: half a character"),
        ("\ufeff" + lines(ROW), r"line 1: a byte-order mark, which the published file does not have"),
        (lines(ROW).encode() + lines({**ROW, "idx": 1, "premise": "São."}).encode("latin-1"), r"line 2: not UTF-8"),
        (lines({k: v for k, v in ROW.items() if k != "changed"}), r"'changed' to be true or false, found nothing"),
    ],
)
def test_damage_is_refused_with_file_and_line(tmp_path: Path, refused, text: str | bytes, sentence: str) -> None:
    source = repository(tmp_path / "source", text)
    assert "val.et.jsonl" in refused(sentence, prepare, "xcopa", [str(source)])


def test_a_folder_without_any_layout_is_refused(tmp_path: Path, refused) -> None:
    (tmp_path / "source").mkdir()
    refused("neither XCOPA's folder", prepare, "xcopa", [str(tmp_path / "source")])
    refused("no such file or folder", prepare, "xcopa", [str(tmp_path / "nothing")])
