"""A user's own pairs: formats, languages, what is counted, what stops, and data sets of the library `datasets`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.readers.pairs.own_pairs import PairOptions
from mrs_datasets.readers.pairs.pair_files import Columns
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases

GOOD = "Message 1\tyes\nMessage 3\tyes\nMessage 0\tyes\n"  # train, validation, test
SKIP = PairOptions(on_error="skip")


def findings(report: dict[str, Any]) -> dict[str, tuple[int, list[str]]]:
    return {found["finding"]: (found["count"], found["examples"]) for found in report.get("findings", [])}


def test_what_is_unusual_is_counted_with_its_lines(write_tree, rows, tmp_path: Path) -> None:
    text = f"Prompt\tResponse\n{GOOD} Message 2 \tyes\n\u200b\tyes\nMessage 5\t\x01\nMessage 7 {'long ' * 80}\tyes\n"
    text += "Message 8\tПриходите завтра\nПриходи завтра\tХорошо\n"
    source = write_tree(tmp_path / "src", {"pl.tsv": text})
    report = prepare_mrs(str(source), tmp_path / "out")
    found = findings(report)
    assert found.pop("header line, left out") == (1, ["pl.tsv:1"])
    assert found.pop("spaces at the ends, removed") == (2, ["pl.tsv:5", "pl.tsv:8"])
    assert found.pop("dropped: empty message") == (1, ["pl.tsv:6"])
    assert found.pop("dropped: empty reply") == (1, ["pl.tsv:7"])
    (long,) = (what for what in found if what.startswith("message of more than 70 words"))
    assert found.pop(long) == (1, ["pl.tsv:8"])
    (script,) = found
    assert "none of pl's script" in script
    assert found[script] == (1, ["pl.tsv:10"])
    assert report["dropped"] == {"pl": {"empty message": 1, "empty reply": 1}}
    assert ("Message 2", "yes") in rows(tmp_path / "out", "pl", "train")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- pl: header line, left out: 1" in card
    assert "- pl\n" in card.split("---")[1], "the card names the language"


def test_rows_in_another_language_are_counted_where_a_model_tells(write_tree, tmp_path: Path) -> None:
    def identify(texts: Sequence[str]) -> list[tuple[str, float]]:
        return [("de", 0.9) if "3" in text else ("en", 0.9) if "1" in text else ("fr", 0.6) for text in texts]

    source = write_tree(tmp_path / "src", {"en.tsv": GOOD})
    report = prepare_mrs(str(source), tmp_path / "out", pairs=PairOptions(identify=identify))
    assert findings(report) == {}, "the model does not know English"
    options = PairOptions(identify=identify, known_languages=frozenset({"en"}))
    report = prepare_mrs(str(source), tmp_path / "again", pairs=options)
    assert findings(report) == {"in another language than en (fastText, above 0.7), kept": (1, ["en.tsv:2"])}


CSV = '\ufeffid;reply;Message\r\n1;"yes,\r\nsure";Message 1\r\n\r\n2;"say ""hi""";Message 3\r\n3;ok;Message 0\r\n'
OBJECTS = [{"message": f"Message {n}", "reply": reply} for n, reply in ((1, "ja"), (3, "ok"), (0, "nee"))]
JSON = "".join(json.dumps(row) + "\n" for row in OBJECTS)


def test_csv_and_json_lines_in_any_language(write_tree, rows, tmp_path: Path, capsys) -> None:
    files = {"hi.csv": CSV, "zh.jsonl.gz": JSON, "pt-BR.tsv": GOOD, "fil.tsv": GOOD, "mt-uk.csv.xz": CSV}
    out = tmp_path / "out"
    report = prepare_mrs(str(write_tree(tmp_path / "src", files)), out)
    assert rows(out, "hi", "train") == [("Message 1", "yes,\nsure")]
    assert rows(out, "hi", "validation") == [("Message 3", 'say "hi"')]
    assert rows(out, "zh", "test") == [("Message 0", "nee")]
    assert len(rows(out, "mt-uk", "train")) == 3
    pairs = ["fil", "hi", "pt-BR", "zh"]
    assert sorted(report["configs"]) == sorted([*pairs, *(f"{code}-responses" for code in pairs), "mt-uk"])
    assert open_prepared(str(out)).languages() == pairs
    assert main(["data", "check", str(out)]) == 0
    capsys.readouterr()
    assert main(["data", "stats", str(out), "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)["splits"]
    assert {row["language"] for row in counted} == set(pairs)
    assert all(row["tokenizer"] and row["tokens"] for row in counted)


START = {"en.tsv": GOOD, "en.jsonl": JSON, "en.csv": CSV}
BROKEN = {
    **{what: (name, START[name] + more, *told) for what, (name, more, *told) in cases(__file__, "BROKEN").items()},
    "not UTF-8": ("en.tsv", GOOD.encode() + b"\xff\tb\n", "not UTF-8", 4),
    "a cell too many": (
        "en.tsv",
        "message\treply\n" + GOOD + "a\tb\tc\n",
        "another number of columns than the header",
        5,
    ),
}


@pytest.mark.parametrize(("name", "content", "reason", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_row_stops_or_is_counted(write_tree, rows, refused, tmp_path, name, content, reason, line) -> None:
    source = write_tree(tmp_path / "src", {name: content})
    refused(rf"{name}, line {line}: .*--on-error skip\.$", prepare_mrs, str(source))
    report = prepare_mrs(str(source), tmp_path / "out", pairs=SKIP)
    assert report["dropped"] == {"en": {reason: 1}}
    assert findings(report)[f"dropped: {reason}"] == (1, [f"{name}:{line}"])
    assert len([row for split in ("train", "validation", "test") for row in rows(tmp_path / "out", "en", split)]) == 3


@pytest.mark.parametrize(("name", "content", "sentence"), cases(__file__, "test_what_no_option_can_mend_is_refused"))
def test_what_no_option_can_mend_is_refused(write_tree, refused, tmp_path: Path, name, content, sentence) -> None:
    refused(sentence, prepare_mrs, str(write_tree(tmp_path / "src", {name: content})), pairs=SKIP)


def test_columns_by_name_and_a_file_of_any_name(write_tree, rows, tmp_path: Path) -> None:
    content = "a\tq\nyes\tMessage 1\nyes\tMessage 3\nyes\tMessage 0\n"
    source = write_tree(tmp_path / "src", {"chat.tsv": content}) / "chat.tsv"
    with pytest.raises(InputError, match=r"unknown language 'chat'"):
        prepare_mrs(str(source), tmp_path / "out")
    options = PairOptions(Columns("q", "a"), language="cs")
    prepare_mrs(str(source), tmp_path / "out", pairs=options)
    assert rows(tmp_path / "out", "cs", "train") == [("Message 1", "yes")]
    with pytest.raises(InputError, match=r"line 1: expected a header with the columns 'x' and 'a'"):
        prepare_mrs(str(source), tmp_path / "again", pairs=PairOptions(Columns("x", "a"), language="cs"))


def test_folders_of_the_library_datasets(rows, tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    pairs = [{"q": f"Message {n}", "a": None if n == 7 else " ja "} for n in (1, 2, 3, 7, 0)]
    data = Dataset.from_list(pairs)
    data.save_to_disk(str(tmp_path / "saved"))
    options = PairOptions(Columns("q", "a"), language="nl")
    report = prepare_mrs(str(tmp_path / "saved"), tmp_path / "a", pairs=options)
    assert [rows(tmp_path / "a", "nl", split) for split in ("train", "validation", "test")] == [
        [("Message 1", "ja"), ("Message 2", "ja")],
        [("Message 3", "ja")],
        [("Message 0", "ja")],
    ]
    assert findings(report)["dropped: empty reply"] == (1, ["train:3"])
    with pytest.raises(InputError, match=r"does not give its language.*--language CODE"):
        prepare_mrs(str(tmp_path / "saved"), tmp_path / "b", pairs=PairOptions(Columns("q", "a")))
    with pytest.raises(InputError, match=r"saved, train: expected the column 'message', found q, a"):
        prepare_mrs(str(tmp_path / "saved"), tmp_path / "b", pairs=PairOptions(language="nl"))
    # a test split of its own stays, and nothing of train joins it; validation comes out of train
    DatasetDict(train=data, test=data.select([1])).save_to_disk(str(tmp_path / "split"))
    prepare_mrs(str(tmp_path / "split"), tmp_path / "c", pairs=options)
    assert rows(tmp_path / "c", "nl", "test") == [("Message 2", "ja")]
    assert [message for message, _ in rows(tmp_path / "c", "nl", "train")] == ["Message 1", "Message 2", "Message 0"]
    assert rows(tmp_path / "c", "nl", "validation") == [("Message 3", "ja")]
    # a folder that load_dataset takes
    (tmp_path / "files").mkdir()
    data.to_json(str(tmp_path / "files" / "train.jsonl"))
    prepare_mrs(str(tmp_path / "files"), tmp_path / "d", pairs=options)
    assert rows(tmp_path / "d", "nl", "train") == rows(tmp_path / "a", "nl", "train")


def test_the_command_prints_what_was_found(write_tree, tmp_path: Path, capsys) -> None:
    source = write_tree(tmp_path / "src", {"nl.tsv": GOOD + "bad\n" + "Message 2\t yes\n" * 7})
    arguments = ["data", "prepare", "mrs", "--source", str(source), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "nl.tsv, line 4" in capsys.readouterr().err
    assert main([*arguments, "--on-error", "skip"]) == 0
    out = capsys.readouterr().out
    assert "nl: 1 rows dropped (fewer than two columns): nl.tsv:4" in out
    assert "nl: spaces at the ends, removed: 7 (nl.tsv:5, nl.tsv:6, nl.tsv:7, nl.tsv:8, nl.tsv:9 ...)" in out
