"""The official layout, as a folder and as an archive."""

import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_suggest.common.io import lines as lines_module
from tests.cases import cases
from tests.mrs_datasets.test_archives import pack

PLAIN = {f"{split}/en/a.tsv": "Hi\tHello\n" for split in ("train", "valid", "test")}
ENGLISH_TRAIN = [("Hi there", "Hello"), ("Are you in?", "Yes"), ("Thanks", "Any time"), ("Bye", "See you")]


@pytest.mark.parametrize("leading", ["", "mrs/"])
def test_the_official_folder_becomes_configs_and_splits(write_tree, official, rows, tmp_path, leading) -> None:
    source = write_tree(tmp_path / "src", {leading + name: content for name, content in official.items()})
    report = prepare_mrs(str(source), tmp_path / "out")
    out = tmp_path / "out"
    assert list(report["configs"]) == ["en", "es", "en-responses", "es-responses"]
    assert rows(out, "en", "train") == ENGLISH_TRAIN
    assert rows(out, "en", "validation") == [("Lunch?", "Sure")]
    assert rows(out, "en", "test") == [("Ready?", "Almost")]
    assert rows(out, "es", "validation") == [("¿Vienes?", "Voy")]
    assert rows(out, "en-responses", "train") == [
        ("Yes", None, -1.5, "7", "organic"),
        ("No way", None, -2.25, "3", "organic"),
    ]
    assert rows(out, "es-responses", "train") == [("Sí", None, -0.5, "11", None)]
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "report.json"]


@pytest.mark.parametrize("kind", ["tgz", "tar"])
def test_the_archive_gives_what_its_folder_gives(write_tree, official, rows, tmp_path, kind) -> None:
    folder = write_tree(tmp_path / "src", official)
    archive = tmp_path / f"mrs.{kind}"
    archive.write_bytes(pack(kind, [(f"mrs/{name}", (folder / name).read_bytes()) for name in official]))
    report = prepare_mrs(str(archive), tmp_path / "from_archive")
    assert report["configs"] == prepare_mrs(str(folder), tmp_path / "from_folder")["configs"]
    assert rows(tmp_path / "from_archive", "en", "train") == ENGLISH_TRAIN
    assert sorted(path.name for path in (tmp_path / "from_archive").iterdir()) == ["README.md", "data", "report.json"]


def test_machine_translated_pairs_are_a_config_with_a_training_split_alone(write_tree, rows, tmp_path) -> None:
    files = {"mt/es/a.tsv": "Hola\tBuenas\n", "mt/es/b.tsv": "Adiós\tHasta luego\n"}
    source = write_tree(tmp_path / "src", PLAIN | files)
    report = prepare_mrs(str(source), tmp_path / "out")
    assert list(report["configs"]) == ["en", "mt-es"]
    assert any("rsp_set/en" in note for note in report["notes"]), "no response set, which is noted"
    assert list(report["configs"]["mt-es"]) == ["train"]
    assert rows(tmp_path / "out", "mt-es", "train") == [("Hola", "Buenas"), ("Adiós", "Hasta luego")]


def test_folders_of_other_languages_are_left_out_with_a_note(write_tree, refused, tmp_path, capsys) -> None:
    others = {"train/ko/a.tsv": "no pair", "mt/xx/a.tsv": "a\tb\n", "rsp_set/ko/response_lm_cluster.txt": ""}
    report = prepare_mrs(str(write_tree(tmp_path / "src", PLAIN | others)), tmp_path / "first")
    assert list(report["configs"]) == ["en"]
    note = "left out train/ko, rsp_set/ko, mt/xx: MRS has the languages en es de pt fr ja sv it nl ru."
    assert note in report["notes"]
    assert capsys.readouterr().err == f"note: {note}\n"
    alone = write_tree(tmp_path / "alone", {"train/xx/a.tsv": "a\tb\n"})
    refused("no language folder below train, valid, test", prepare_mrs, str(alone))


def test_blank_rows_are_dropped_and_counted(write_tree, rows, tmp_path) -> None:
    files = PLAIN | {"train/en/a.tsv": " \tHello\nHi\t\nHi\tHello\nHo\t \t\n"}
    report = prepare_mrs(str(write_tree(tmp_path / "src", files)), tmp_path / "out")
    assert rows(tmp_path / "out", "en", "train") == [("Hi", "Hello")]
    assert report["dropped"] == {"en/train": {"empty message": 1, "empty reply": 2}}
    assert "2 rows dropped (empty reply)" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


NOISE = bytes(range(256)) * 8


@pytest.mark.parametrize(
    ("files", "words"),
    [
        *cases(__file__, "test_a_broken_folder_is_refused_with_file_and_line"),
        ({"train/en/b.tsv.gz": NOISE}, ["train/en/b.tsv.gz", "damaged"]),
        ({"train/en/b.tsv.xz": NOISE}, ["train/en/b.tsv.xz", "damaged"]),
    ],
)
def test_a_broken_folder_is_refused_with_file_and_line(write_tree, refused, tmp_path, files, words) -> None:
    tree = {name: content for name, content in {**PLAIN, **files}.items() if content is not None}
    sentence = refused(".", prepare_mrs, str(write_tree(tmp_path / "src", tree)))
    assert [word for word in words if word not in sentence] == []


@pytest.mark.parametrize("name", ["b.tsv", "b.tsv.gz"])
def test_a_line_without_an_end_is_refused_before_all_is_read(write_tree, refused, tmp_path, monkeypatch, name) -> None:
    monkeypatch.setattr(lines_module, "BLOCK", 1 << 10)
    monkeypatch.setattr(lines_module, "MAX_LINE", 1 << 16)
    longest, endless = "a\t" + "b" * ((1 << 16) - 2), "a\tb\n" + "\0" * (1 << 20)
    write_tree(tmp_path / "good", PLAIN | {f"train/en/{name}": f"a\tb\n{longest}\n{longest}"})
    prepare_mrs(str(tmp_path / "good"), tmp_path / "good_out")
    cut = write_tree(tmp_path / "src", PLAIN | {f"train/en/{name}": endless}) / "train" / "en" / name
    cut.write_bytes(cut.read_bytes()[:-9])  # who reads on to the end sees that the file is damaged
    refused(rf"train/en/{name}, line 2: no line end within", prepare_mrs, str(tmp_path / "src"))
