"""STAPLE: read, checked, described, written back."""

import re
from pathlib import Path

import pytest

from mrs_datasets.describe.paper_tables import staple_split_statistics
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from tests.cases import cases

GOLD = "prompt_a|yes, please.\nsim, por favor|0.75\na|b |0.25\n\nprompt_b|go!\nvá!|1.0\n"
AWS = "prompt_b|go!\nVá!\n\nprompt_a|yes, please.\nSim.\n"
ROWS = cases(__file__, "ROWS")


def task(folder: Path, **files: str | bytes) -> Path:
    """Write files of the Portuguese track: `dev_gold`, `dev_aws`, `dev_blind` and so on."""
    names = {"gold": "2020-02-20.gold.txt", "aws": "aws_baseline.pred.txt", "blind": "blind.txt", "own": "own.pred.txt"}
    (folder / "en_pt").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        split, _, kind = name.partition("_")
        content = content.encode("utf-8") if isinstance(content, str) else content
        (folder / "en_pt" / f"{split}.en_pt.{names[kind]}").write_bytes(content)
    return folder


def test_the_real_sample_is_prepared_counted_and_written_back(shared_data: Path, tmp_path: Path) -> None:
    report = prepare("staple", [str(shared_data / "staple" / "en_pt")], tmp_path / "out")
    assert report["notes"] == [
        "pt: the validation split has 150 prompts and 17,724 translations, a complete source has 500 and 60,294.",
        "not in the source: hu ja ko vi pt/train pt/test.",
    ]
    data = open_prepared(str(tmp_path / "out"))
    (row,) = staple_split_statistics(data)
    assert (row.prompts, row.translations, row.references) == (150, 17_724, 150)
    assert row.ratio == pytest.approx(17_724 / 150)
    source = (shared_data / "staple" / "en_pt" / "dev.en_pt.sample.gold.txt").read_text(encoding="utf-8")
    blocks = [
        [f"{row['id']}|{row['prompt']}", *(f"{one['text']}|{one['weight']!r}" for one in row["translations"]), ""]
        for row in data.load("pt", "validation")
    ]
    assert "\n".join("\n".join(block) for block in blocks) == source


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_windows_line_ends_and_compression(tmp_path: Path, write_tree, ending: str) -> None:
    text = (GOLD + "\n\n").replace("\n", "\r\n")
    write_tree(tmp_path / "src", {f"test.en_ko.x.gold.txt{ending}": text})
    prepare("staple", [str(tmp_path / "src")], tmp_path / "out")
    found = open_prepared(str(tmp_path / "out")).load("ko", "test").to_list()
    assert found == [{**row, "reference": None} for row in ROWS]


@pytest.mark.parametrize("blind", ["prompt_a|yes, please.\n\nprompt_b|go!\n", "prompt_a|yes, please.\nprompt_b|go!\n"])
def test_blind_prompts_have_no_translations(tmp_path: Path, blind: str) -> None:
    task(tmp_path / "src", dev_gold=GOLD, dev_blind="not read where there is gold", test_blind=blind, train_aws=AWS)
    report = prepare("staple", [str(tmp_path / "src")], tmp_path / "out")
    data = open_prepared(str(tmp_path / "out"))
    assert data.load("pt", "test").to_list() == [{**row, "reference": None, "translations": []} for row in ROWS]
    assert data.load("pt", "train").to_list() == [{**row, "translations": []} for row in reversed(ROWS)]
    assert "pt: the test split is blind: 2 prompts without accepted translations." in report["notes"]
    assert [row.translations for row in staple_split_statistics(data)] == [0, 3, 0]


def test_weights_that_do_not_sum_to_one_and_prompts_without_reference_are_noted(tmp_path: Path) -> None:
    gold = GOLD + "\nprompt_c|x\ny|0.4\n\nprompt_d|x\ny|1.2\n\nprompt_e|x\ny|1.0005\n"
    task(tmp_path / "src", dev_gold=gold, dev_aws=AWS)
    notes = prepare("staple", [str(tmp_path / "src")], tmp_path / "out")["notes"]
    assert (
        "pt: the validation split has 2 prompts whose weights do not sum to 1; furthest is prompt_c, line 8, with 0.4."
    ) in notes
    assert "pt: the validation split has 3 prompts without a reference translation." in notes


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        *(
            (name, (GOLD if name == "gold" else AWS).replace(old, new), told)
            for name, old, new, told in cases(__file__, "test_damage_is_refused_with_file_and_line")
        ),
        ("gold", "\n \n", r"the file has no prompts"),
        ("gold", GOLD.replace("vá!|1.0", "vá!|x\n\n").encode() + b"\xff", r"line 6: expected a number"),
        ("gold", GOLD.replace("1.0\n", "0.4\nvou|0.6")[:-1], r"line 7: .* sum to 0\.4, not 1; it is truncated"),
        ("gold", "\ufeff" + GOLD, r"line 1: a byte-order mark"),
        ("gold", GOLD.replace("\n", "\r\n", 2), r"line 3: a different line end than in the lines before"),
        ("gold", GOLD.encode() + "prompt_c|x\né|1".encode("latin-1"), r"line \d: not UTF-8"),
    ],
)
def test_damage_is_refused_with_file_and_line(tmp_path: Path, refused, name: str, text, sentence: str) -> None:
    source = task(tmp_path / "src", **{"dev_gold": GOLD, f"dev_{name}": text})
    told = refused(sentence, prepare, "staple", [str(source)])
    assert f"dev.en_pt.{'aws_baseline.pred' if name == 'aws' else '2020-02-20.gold'}.txt" in told


def test_without_a_source_it_says_where_to_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"10\.7910/DVN/380JR6.*--source PATH"):
        run_verb("data", ["prepare", "staple", "--out", str(tmp_path / "out")])
    with pytest.raises(InputError, match="mrs: expected one --source, found 0 --source"):
        run_verb("data", ["prepare", "mrs", "--out", str(tmp_path / "out")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file of the STAPLE task"):
        run_verb("data", ["prepare", "staple", "--source", str(tmp_path / "empty"), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_stats_print_table_2_and_the_oracles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare("staple", [str(task(tmp_path / "src", dev_gold=GOLD, test_aws=AWS))], tmp_path / "out")
    assert run_verb("data", ["stats", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    # k = 1: 1.5 / 1.75 and 1; the official scorer takes `a|b` apart
    found = [re.findall(r"[\w.,/-]+", line) for line in printed.splitlines() if "Portuguese" in line]
    assert found == [
        ["Portuguese", "pt", "validation", "2", "3", "1.5", "1/1/1", "0", "0.929", "0.800", "0.800"],
        ["Portuguese", "pt", "test", "2", "0", "0.0", "0/0/0", "2"],
    ]
    with pytest.raises(InputError, match="--language hu: out has pt"):
        run_verb("data", ["stats", str(tmp_path / "out"), "--language", "hu"])
