"""Word lists as a scorer."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.services.scorers.opening import open_scorer
from mrs_suggest.services.scorers.words import own_words, read_words
from mrs_suggest.suggest.guard.patterns import fold, spellings
from tests.cases import cases


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists") / "mine"
    folder.mkdir()
    (folder / "es.txt").write_text("# made up\nzorg\n\n  muy zúrg \n", encoding="utf-8")
    (folder / "ja.txt").write_text("ぞるぐ\n", encoding="utf-8")
    return folder


def test_whole_words_in_any_case(lists: Path) -> None:
    scorer = open_scorer(f"words:{lists}")
    texts = ["¡ZORG!", "zorgas", "un zorg.", "muy  Zúrg", "zúrg", "zooooorg", "", "azorg"]
    assert scorer.score(texts, "es") == [1, 0, 1, 1, 0, 1, 0, 0]
    assert scorer.score(["これはぞるぐだ", "ぞる", "zorg"], "ja") == [1, 0, 0]
    assert scorer.languages() == {"es", "ja"}
    assert scorer.at_once is None


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("zorgZORG -.'\u0301\u200b"), max_size=40))
def test_equal_to_a_plain_search(lists: Path, text: str) -> None:
    found = any(re.search(r"(?<!\w)(zorg|muy[^\w.!?\n]+zúrg)(?!\w)", each) for each in spellings(fold(text)))
    assert read_words(lists).score([text], "es") == [float(found)]


def test_the_package_has_lists_of_all_ten_languages() -> None:
    scorer = own_words()
    assert len(scorer.languages()) == 10
    assert scorer.score(["what the FUCK", "what the duck"], "en") == [1, 0]
    assert scorer.facts.licence == "apache-2.0"
    assert scorer.facts == own_words().facts


def test_the_version_follows_the_words(lists: Path, tmp_path: Path) -> None:
    one = read_words(lists)
    copy = shutil.copytree(lists, tmp_path / "mine")
    assert read_words(copy).facts == one.facts
    (copy / "ja.txt").rename(copy / "zh.txt")
    assert read_words(copy).facts.version != one.facts.version
    (copy / "es.txt").write_text("other\n")
    (copy / "zh.txt").rename(copy / "ja.txt")
    assert read_words(copy).facts.version != one.facts.version


@pytest.mark.parametrize(("name", "content", "problem"), cases(__file__, "test_bad_lists_are_one_sentence"))
def test_bad_lists_are_one_sentence(tmp_path: Path, name: str, content: str | None, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=problem):
        open_scorer(f"words:{tmp_path / name}")
