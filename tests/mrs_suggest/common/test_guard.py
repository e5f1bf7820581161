"""The word lists of the guard: every language's build half, harmless idioms, notation, and replies."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.suggest.guard import EVERYDAY, REASONS, SENSITIVE
from mrs_suggest.suggest.guard.lists import GuardData, WordLists
from mrs_suggest.suggest.guard.patterns import Phrases, fold, spellings
from mrs_suggest.suggest.guard.replies import unfit

SHEET = Path(__file__).parents[2] / "guard_sheet.tsv"
TEN = {"en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru"}


@pytest.fixture(scope="module")
def data() -> GuardData:
    return GuardData()


@pytest.fixture(scope="module")
def sheet() -> list[list[str]]:
    with SHEET.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def test_every_language_has_lists_and_examples_of_every_reason(data: GuardData) -> None:
    assert set(data) == set(data.prototypes) == TEN
    for language in data:
        data[language].check()
        assert set(data.prototypes[language]) == {*SENSITIVE, EVERYDAY}
    assert set(SENSITIVE) == set(REASONS)


def test_the_sheet_has_as_many_messages_of_each_language(sheet: list[list[str]]) -> None:
    halves = Counter((language, half) for language, half, _, _ in sheet if half != "sample")
    wished = {"build": 100, "held_out": 60, "earlier": 40}
    assert halves == {(language, half): count for language in TEN for half, count in wished.items()}
    texts = [(language, message) for language, _, _, message in sheet]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("language", sorted(TEN))
def test_the_lists_find_the_build_half_and_let_idioms_pass(
    data: GuardData, sheet: list[list[str]], language: str
) -> None:
    own = [(kind, message) for code, half, kind, message in sheet if (code, half) == (language, "build")]
    found = {message: data[language].sensitive(message) for _, message in own}
    missed = [message for kind, message in own if kind != EVERYDAY and found[message] is None]
    assert len(missed) <= 1, missed  # one cannot be told from everyday words: a swear word with asterisks
    assert [message for kind, message in own if kind == EVERYDAY and found[message]] == []


@pytest.mark.parametrize("language", sorted(TEN))
def test_the_lists_let_the_samples_everyday_messages_pass(
    data: GuardData, sheet: list[list[str]], language: str
) -> None:
    annotated = {message for code, half, _, message in sheet if (code, half) == (language, "sample")}
    sample = open_prepared("sample")
    texts = {text for split in ("validation", "test") for text in sample.load(language, split)["message"]} - annotated
    assert [text for text in sorted(texts) if data[language].sensitive(text)] == []


def test_what_hurts_most_is_told_first(data: GuardData) -> None:
    assert data["en"].sensitive("I was fired and I want to kill myself") == "self_harm"


@pytest.mark.parametrize("text", ["KILL YOURSELF", "kill\u200b yourself", "kill  yourself!!", "Just ｋｉｌｌ yourself"])
def test_case_width_spaces_and_invisible_characters_hide_nothing(data: GuardData, text: str) -> None:
    assert data["en"].sensitive(text) == "self_harm"


def test_a_harmless_phrase_hides_only_itself(data: GuardData) -> None:
    assert data["en"].sensitive("My phone died") is None
    assert data["en"].sensitive("My phone died when my dad died") == "grief"


def test_accents_are_dropped_where_the_list_says_so(data: GuardData) -> None:
    assert data["es"].sensitive("mi papá murió") == data["es"].sensitive("mi papa murio") == "grief"
    kept = WordLists({"grief": ["våld"]}, "sv")
    assert (kept.sensitive("våld"), kept.sensitive("vald")) == ("grief", None)


def test_the_notation() -> None:
    def found(phrase: str, text: str, spaced: bool = True) -> str | None:
        return Phrases([phrase], {"kin": "mum/step dad"}, spaced).first(text)

    assert (found("died", "she died."), found("died", "studied")) == ("died", None)
    assert found("*weg", "der schulweg") == "schulweg"
    assert found("<kin> died", "my step dad died") == "step dad died"
    assert all(found("want [really to/to] die", text) for text in ("i want really to die", "want die"))
    assert found("my ... went", "my old and very dear dog went") is None
    assert (found("my ... went", "my old dog went"), found("my ... went", "my. went")) == ("my old dog went", None)
    assert found("(a/b (c/d)) e", "b d e") == "b d e"
    assert found("父...死", "父が昨日死んだ", spaced=False) == "父が昨日死" or found(
        "父 ... 死", "父が昨日死んだ", spaced=False
    )
    with pytest.raises(ValueError, match="begin with a word"):
        Phrases(["... died"], {})


def test_phrases_in_any_order_of_one_sentence() -> None:
    phrases = Phrases(["rent & (can't pay/owe)", "a & b & c"], {})
    assert phrases.first("the rent is due and i owe")
    assert phrases.first("i owe the landlord two months of rent")
    assert phrases.first("i pay the rent. i owe you a coffee") is None, "two sentences"
    assert phrases.first("rent " + "and so on " * 9 + "i owe") is None, "too far apart"
    assert phrases.first("c x a x b")
    assert phrases.first("b a") is None
    assert Phrases(["薬 & 二回"], {}, spaced=False).first("二回も薬を飲んだ")
    with pytest.raises(ValueError, match="what follows a &"):
        Phrases(["rent & [my] owe"], {})
    with pytest.raises(ValueError, match="more than 2 &"):
        Phrases(["a & b & c & d"], {})


def test_stretched_letters_hide_nothing(data: GuardData) -> None:
    assert data["en"].sensitive("my dad diiiied") == "grief"
    assert data["en"].sensitive("killl yourself") == "self_harm", "two of the letters are right"
    assert data["en"].sensitive("coooool, byeee") is None


@pytest.mark.parametrize("language", sorted(TEN))
def test_any_text_is_read(data: GuardData, language: str) -> None:
    generator = random.Random(language)
    letters = "aаあéßİ\u0301\u200b\ud800'’`´()[]{}*&|\\.!?\n\t ＫkKﬁ👍🏽𝕜０9" + "".join(map(chr, range(32)))
    for length in (0, 1, 2, 5, 40, 300) * 20:
        text = "".join(generator.choices(letters, k=length))
        assert data[language].sensitive(text) in (None, *SENSITIVE)
        assert all(isinstance(part, str) for part in spellings(fold(text, accents=False)))


def test_the_guard_takes_accents_away_from_german_as_telephones_do(data: GuardData) -> None:
    assert data["de"].sensitive("mein mann schlagt mich") == data["de"].sensitive("Mein Mann schlägt mich") == "abuse"


@pytest.mark.parametrize("text", ["she beat me at chess", "the court is free at six", "mum lost her glasses again"])
def test_what_only_sounds_grave_is_answered(data: GuardData, text: str) -> None:
    assert data["en"].sensitive(text) is None


def test_a_long_message_is_read_quickly(data: GuardData) -> None:
    assert data["en"].sensitive("my dad and I " * 1000 + "went home") is None


@pytest.mark.parametrize(
    ("language", "reply", "reason"),
    [
        ("de", "Du Idiot", "slur"),
        ("fr", "Je connais un bon plombier.", None),
        ("es", "A las nueve y media.", "date"),
        ("ru", "В пятницу.", "date"),
        ("ja", "三時に行くね", "date"),
        ("it", "Sono a Milano", "place"),
        ("sv", "Storgatan 5", "private_data"),
        ("nl", "Bel 06 12345678", "private_data"),
        ("pt", "Vê em www.exemplo.com.br", "link"),
        ("en", "Sounds good, see you soon!", None),
        ("en", "I may come later.", None),
        ("en", "@anna knows", "private_data"),
        ("en", "In 2019", "date"),
        ("en", "10 minutes!", None),
    ],
)
def test_unfit_replies(data: GuardData, language: str, reply: str, reason: str | None) -> None:
    assert unfit(reply, "?", data[language]) == reason


def test_a_folder_of_ones_own_is_checked(tmp_path: Path) -> None:
    (tmp_path / "prototypes").mkdir()
    (tmp_path / "prototypes" / "xx-no.yaml").write_text("grief: [a]\n")
    with pytest.raises(InputError, match="name it LANG.yaml"):
        GuardData(tmp_path)
    assert "xx-no" not in LANGUAGES
