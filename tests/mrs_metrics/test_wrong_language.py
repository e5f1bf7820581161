"""Suggestions in a wrong language: real answers of an identifier, the rules, a real fastText model, and properties."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics.language_match import (
    MIN_LETTERS,
    THRESHOLD,
    aggregate,
    fasttext_identifier,
    language_interval,
    score_languages,
)
from tests.mrs_metrics.modules import golden

GOLDEN: dict[str, Any] = golden("wrong_language")
LONG = "a sentence"  # letters enough


def answering(answers: dict[str, tuple[str, float]]) -> Callable[[list[str]], list[tuple[str, float]]]:
    return lambda texts: [tuple(answers[text]) for text in texts]


def always(code: str, probability: float = 0.99) -> Callable[[list[str]], list[tuple[str, float]]]:
    return lambda texts: [(code, probability)] * len(texts)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_worked_cases(case: dict[str, Any]) -> None:
    scores = score_languages(case["predictions"], case["languages"], answering(GOLDEN["answers"]))
    flags = np.stack([scores.wrong, scores.undecided, scores.too_short], axis=1)
    names = [("wrong", "undecided", "too_short")[row.argmax()] if row.any() else "right" for row in flags]
    assert names == case["verdicts"]
    assert (flags.sum(axis=1) <= 1).all()
    found = aggregate(scores)
    count = Counter(case["verdicts"])
    assert found["n"] == len(names)
    assert found["wrong"] == pytest.approx(case["wrong"])
    assert found["any_wrong"] == pytest.approx(case["any_wrong"])
    assert found["undecided"] == pytest.approx(count["undecided"] / len(names))
    assert found["too_short"] == pytest.approx(count["too_short"] / len(names))
    assert found["decided"] == count["right"] + count["wrong"]


def test_a_message_without_a_decided_suggestion_is_in_no_share() -> None:
    predictions = [["Ok", ""], [], ["Bis morgen dann!"], ["I don't know, sorry.", "Ok"]]
    scores = score_languages(predictions, "de", answering(GOLDEN["answers"]))
    assert scores.example.tolist() == [0, 0, 2, 3, 3]
    assert scores.identified == ("und", "und", "de", "en", "und")
    found = aggregate(scores)
    assert (found["messages"], found["any_wrong"], found["wrong"]) == (2, 0.5, 0.5)
    assert (found["empty"], found["too_short"]) == (1, 3 / 5)


def test_a_verdict_counts_above_the_threshold_only() -> None:
    for probability, decided in ((THRESHOLD, 0), (THRESHOLD + 1e-6, 1)):
        scores = score_languages([[LONG]], "en", always("en", probability))
        assert int((~scores.undecided).sum()) == decided
    assert score_languages([[LONG]], "en", always("und", 1.0)).undecided.all()
    assert score_languages([[LONG]], "en", always("", 1.0)).undecided.all()


@pytest.mark.parametrize(
    ("text", "short"), [("abcde", True), ("abcdef", False), ("a1 b2 c3!", True), ("Да, друг", False)]
)
def test_letters_are_counted_in_any_script(text: str, short: bool) -> None:
    assert MIN_LETTERS == 6
    assert score_languages([[text]], "en", always("en")).too_short.tolist() == [short]


@pytest.mark.parametrize(
    ("own", "found", "wrong"),
    [("pt", "pt-BR", False), ("zh-Hant", "zh", False), ("EN", "en", False), ("zh_TW", "zh", False), ("pt", "gl", True)],
)
def test_main_subtags_are_compared(own: str, found: str, wrong: bool) -> None:
    assert score_languages([[LONG]], own, always(found)).wrong.tolist() == [wrong]


def test_the_identifier_is_asked_once_for_each_text_and_not_for_short_ones() -> None:
    asked: list[list[str]] = []

    def identify(texts: list[str]) -> list[tuple[str, float]]:
        asked.append(texts)
        return [("en", 0.9)] * len(texts)

    score_languages([[LONG, "Ok", LONG], ["another text", LONG]], ["en", "de"], identify)
    assert asked == [[LONG, "another text"]]
    scores = score_languages([["Ok"], []], "en", identify)
    assert len(asked) == 1
    with pytest.raises(ValueError, match="decided for none of the 1 suggestions: 1 are too short, 0 undecided"):
        aggregate(scores)


def test_the_signature_says_the_rules() -> None:
    scores = score_languages([[LONG]] * 2, ["de", "nl"], always("en"), 0.5, 3, "lid.176.ftz")
    head = "wrong_language|lang:de,nl|above:0.5|letters:3|of:decided|identifier:lid.176.ftz|version:"
    assert scores.signature.startswith(head)
    assert "|lang:4 languages|" in score_languages([[LONG]] * 4, ["a", "b", "c", "d"], always("en")).signature


def test_the_interval_resamples_messages() -> None:
    # All suggestions of a message share its fate: as wide as for 40 single suggestions, wider than for 120.
    codes = {f"text number {i} {letter}": ("en" if i % 2 else "de", 1.0) for i in range(120) for letter in "abc"}
    texts = list(codes)
    of_three = language_interval(score_languages([texts[3 * i : 3 * i + 3] for i in range(40)], "de", answering(codes)))
    of_one = language_interval(score_languages([[texts[3 * i]] for i in range(40)], "de", answering(codes)))
    assert of_three == pytest.approx(of_one)
    many = language_interval(score_languages([[texts[3 * i]] for i in range(120)], "de", answering(codes)))
    assert many[1] - many[0] < of_three[1] - of_three[0]
    none = language_interval(score_languages([texts[:3]] * 40, "de", always("de")))
    assert (none[0], none.method) == (0, "Clopper-Pearson")
    assert none[1] == pytest.approx(1 - 0.025 ** (1 / 40)), "of 40 messages, not 120 suggestions"


@pytest.mark.parametrize(
    ("predictions", "languages", "identify", "options", "sentence"),
    [
        (["ab"], "en", always("en"), {}, "predictions of example 0 must be a list of texts"),
        ([[LONG]], ["en", "de"], always("en"), {}, "one for each of the 1 examples, not 2"),
        ([[LONG]], [""], always("en"), {}, "language of example 0 must be a BCP-47 code"),
        ([[LONG]], "en", always("en"), {"threshold": 1.0}, "threshold"),
        ([[LONG]], "en", lambda texts: [], {}, "0 answers to 1 texts"),
        ([[LONG]], "en", always("en", 1.2), {}, "probability from 0 to 1, not .*1.2"),
        ([[LONG]], "en", always("en", float("nan")), {}, "probability from 0 to 1"),
        ([[LONG]], "en", lambda texts: ["en"] * len(texts), {}, "must answer with a code and a probability"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(
    predictions: Any, languages: Any, identify: Any, options: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        score_languages(predictions, languages, identify, **options)
    assert str(caught.value).endswith(".")


text = st.one_of(st.text(max_size=20), st.sampled_from([LONG, "ok", "see you tomorrow", "bis morgen dann"]))
probability = st.floats(0, 1)


@given(st.lists(st.lists(text, max_size=3), max_size=4), st.data())
def test_verdicts_add_up_and_shares_stay_within_bounds(predictions: list[list[str]], data: st.DataObject) -> None:
    asked = {text for texts in predictions for text in texts}
    answers = {text: (data.draw(st.sampled_from(["en", "de", "und"])), data.draw(probability)) for text in asked}
    scores = score_languages(predictions, "en", answering(answers))
    assert len(scores.wrong) == sum(map(len, predictions))
    flags = scores.wrong.astype(int) + scores.undecided + scores.too_short
    assert (flags <= 1).all()
    if (scores.undecided | scores.too_short).all():
        return
    found = aggregate(scores)
    assert all(0 <= found[name] <= 1 for name in ("wrong", "any_wrong", "undecided", "too_short"))
    assert found["decided"] + round((found["undecided"] + found["too_short"]) * found["n"]) == found["n"]
    low, high = language_interval(scores).ends or (0, 1)
    assert 0 <= low < high <= 1
    backwards = aggregate(score_languages(predictions[::-1], "en", answering(answers)))
    assert backwards == pytest.approx(found)


# --- fastText -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real model of two languages."""
    fasttext = pytest.importorskip("fasttext", reason="needs fasttext")
    folder = tmp_path_factory.mktemp("model")
    lines = [
        "__label__en see you tomorrow at the station", "__label__en i do not know what you mean",
        "__label__de bis morgen am bahnhof dann", "__label__de ich weiß nicht was du meinst",
    ]  # fmt: skip
    (folder / "train.txt").write_text("\n".join(lines * 20) + "\n", encoding="utf-8")
    # Each thread sets a tenth of the matrix at the start, rounded down: with fewer than 11 some numbers stay unset.
    trained = fasttext.train_supervised(
        str(folder / "train.txt"), dim=8, epoch=30, lr=0.5, minn=1, maxn=3, bucket=1000, thread=11, verbose=0
    )
    trained.save_model(str(folder / "small.bin"))
    return folder / "small.bin"


def test_a_fasttext_model_is_asked(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    identify = fasttext_identifier(model)
    texts = ["see you\ntomorrow", "bis morgen", "", "i do not \ud800 know", "\0"]
    found = identify(texts)
    assert [code for code, _ in found[:3]] == ["en", "de", "und"]
    assert all(0 <= probability <= 1 for _, probability in found)
    assert [identify([text])[0] for text in texts] == found, "the answer depends on the batch"
    assert capfd.readouterr().err == ""
    scores = score_languages([["see you tomorrow", "bis morgen dann"]], "de", identify)
    assert scores.wrong.tolist() == [True, False]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fasttext", reason="needs fasttext")
    with pytest.raises(
        ValueError, match=r"language model .*absent.ftz' does not exist; download lid.176.ftz from https://"
    ):
        fasttext_identifier(tmp_path / "absent.ftz")
    (tmp_path / "page.ftz").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match=r"page.ftz' is not a fastText classifier"):
        fasttext_identifier(tmp_path / "page.ftz")


def test_without_fasttext_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "fasttext.FastText", None)
    with pytest.raises(ImportError, match="pip install fasttext, or pass a function `identify`"):
        fasttext_identifier(tmp_path / "lid.176.ftz")
