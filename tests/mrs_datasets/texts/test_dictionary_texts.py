"""The texts that are made from a bilingual dictionary, and the commands that write them."""

from pathlib import Path

import pytest

from mrs_datasets.texts.dictionary_texts import Entry, TermReplacer, read_dictionary
from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from tests.cases import cases

LINES = "dlo\tjuice\t1\ndlo\twater\t9\nbwè dlo\tdrink\t5\nkay\thouse\t7\nkay\thouse\t2\nC++\tsee\t3\n"


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    path = tmp_path / "ht-en.tsv"
    path.write_text(LINES, encoding="utf-8")
    return path


def test_the_most_reliable_pairs_come_first_and_once(dictionary: Path) -> None:
    assert read_dictionary(dictionary, 3) == [Entry("dlo", "water"), Entry("kay", "house"), Entry("bwè dlo", "drink")]


def test_terms_are_replaced_as_whole_words_the_longest_first(dictionary: Path) -> None:
    replace = TermReplacer(read_dictionary(dictionary))
    assert replace("Dlo a; mwen bwè dlo nan KAY la, dlope kayla 3dlo.") == (
        "Water a; mwen drink nan House la, dlope kayla 3dlo."
    )
    assert replace.replaced == 3
    assert replace("C++ !") == "See !"
    assert replace("") == ""


@pytest.mark.parametrize(("text", "sentence"), cases(__file__, "test_a_broken_dictionary_is_refused"))
def test_a_broken_dictionary_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_dictionary(path)


def test_the_commands_write_whole_files(dictionary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = tmp_path / "t.txt", tmp_path / "new" / "d.txt"
    text.write_text("Dlo a.\nAnyen.\n", encoding="utf-8")
    quasi = ["quasi-sentences", "--dictionary", str(dictionary), "--out", str(out)]
    assert run_verb("data", [*quasi, "--pairs", "2"]) == 0
    assert out.read_text(encoding="utf-8") == "water dlo\nhouse kay\n"
    with pytest.raises(InputError, match="exists already"):
        run_verb("data", quasi)
    options = ["--text", str(text), "--dictionary", str(dictionary), "--out", str(out), "--overwrite"]
    assert run_verb("data", ["replace-terms", *options]) == 0
    assert out.read_text(encoding="utf-8") == "Water a.\nAnyen.\n"
    assert "2 sentences, 1 terms replaced" in capsys.readouterr().out
    with pytest.raises(InputError, match="cannot read the file"):
        run_verb("data", ["replace-terms", *["--text", "absent.txt"], *options[2:]])
    assert out.read_text(encoding="utf-8") == "Water a.\nAnyen.\n", "the old text stays"
    assert [path.name for path in out.parent.iterdir()] == ["d.txt"]
    with pytest.raises(InputError, match="--pairs: expected 1 or more"):
        run_verb("data", [*quasi, "--pairs", "0", "--overwrite"])
