"""The generated prompts: known shares of learners, rules that hold, test prompts of new combinations."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.check.check import check
from mrs_datasets.describe.paper_tables import lrf_weights
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.synthetic import staple
from mrs_datasets.synthetic.grammar.english import PRONOUNS, Meaning, draw_meaning, pairs
from mrs_datasets.synthetic.grammar.paraphrases import (
    DECLENSION,
    LOANWORD,
    NUMBER,
    PHENOMENA,
    PRONOUN,
    VERB_SUFFIX,
    WORD_ORDER,
    made_up_languages,
)
from mrs_datasets.synthetic.staple import SIZES, Drawn, counted, draw_prompts, prompt_id, row

SEED = 9
LANGUAGES = made_up_languages(SEED)
QAA, QAB = LANGUAGES["qaa"], LANGUAGES["qab"]
codes = pytest.mark.parametrize("code", list(LANGUAGES))
meanings = st.builds(
    lambda number, pair: draw_meaning(pair, Random(number)), st.integers(0, 10**6), st.sampled_from(pairs(wider=True))
)


@codes
@settings(max_examples=25, deadline=None)
@given(meanings, st.integers(0, 99))
def test_translations_with_an_error_are_never_accepted(code: str, meaning: Meaning, number: int) -> None:
    language = LANGUAGES[code]
    accepted = language.accepted(meaning)
    wrong = language.wrong_translations(meaning, accepted, Random(number))
    assert set(wrong) <= set(PHENOMENA)
    assert not set(wrong.values()) & {one.text for one in accepted}
    assert {WORD_ORDER, VERB_SUFFIX, DECLENSION} <= set(wrong)
    assert (PRONOUN in wrong) == (meaning.subject in PRONOUNS)
    assert (NUMBER in wrong) == (meaning.number > 1)
    usual = accepted[0].text.split()
    if NUMBER in wrong:  # one word is another one, which the language knows as a number
        (left,), (right,) = set(usual) - set(wrong[NUMBER].split()), set(wrong[NUMBER].split()) - set(usual)
        assert {left, right} <= set(language.vocabulary[NUMBER])
    if LOANWORD in wrong:
        assert language.lexicon.loans[meaning.noun] in wrong[LOANWORD]
    if PRONOUN in wrong:
        assert set(wrong[PRONOUN].split()) & set(language.vocabulary[PRONOUN])
    assert sorted(wrong[WORD_ORDER].split()) in [sorted(one.text.split()) for one in accepted]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return draw_prompts(SEED)


@pytest.fixture(scope="module")
def folder(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    out = tmp_path_factory.mktemp("synthetic") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staple, "draw_prompts", lambda seed: drawn)  # once is enough
        prepare("synthetic-staple", [f"synthetic:{SEED}"], out)
    return open_prepared(str(out))


@pytest.fixture(scope="module")
def rows(folder: PreparedData) -> dict[tuple[str, str], list[dict[str, Any]]]:
    return {(code, split): folder.load(code, split).to_list() for code in LANGUAGES for split in SIZES}


def test_it_is_prepared_and_checked_without_findings(folder: PreparedData) -> None:
    assert list(check(folder)) == []
    assert folder.report()["settings"]["seed"] == SEED
    assert set(folder.configs()) == {"qaa", "qab", "parallel-qaa", "parallel-qab"}


def test_test_prompts_are_new_combinations_of_known_words(
    rows: dict[tuple[str, str], list[dict[str, Any]]], folder: PreparedData, drawn: Drawn
) -> None:
    prompts: set[str] = set()
    for split, found in drawn.splits.items():
        assert [row["prompt"] for row in rows["qaa", split]] == [one.english() for one in found]
        assert [row["id"] for row in rows["qab", split]] == [prompt_id(one.english()) for one in found]
        prompts |= {one.english() for one in found}
    assert len(prompts) == sum(SIZES.values()), "a prompt comes twice"
    pairs_of = {split: {(one.verb, one.noun) for one in found} for split, found in drawn.splits.items()}
    assert not pairs_of["train"] & (pairs_of["validation"] | pairs_of["test"])
    assert not pairs_of["validation"] & pairs_of["test"]
    for code in LANGUAGES:
        known = {word for row in rows[code, "train"] for one in row["translations"] for word in one["text"].split()}
        new = [
            sum(set(one["text"].split()) - known != set() for one in row["translations"]) / len(row["translations"])
            for row in rows[code, "test"]
        ]
        assert sum(new) / len(new) < 0.1, "most translations of test prompts consist of words of training"
        parallel = folder.load(f"parallel-{code}", "train")
        assert not prompts & set(parallel["prompt"])
        assert len(set(parallel["prompt"])) == len(parallel) == 4000
    english = {word for row in rows["qaa", "train"] for word in row["prompt"].split()}
    for meaning in [*drawn.splits["validation"], *drawn.splits["test"]]:
        assert set(meaning.english().split()) <= english
    assert {"translates", "museum"} <= {word for prompt in parallel["prompt"] for word in prompt.split()} - english


@codes
def test_weights_are_those_of_learners_drawn_from_the_known_shares(
    code: str, rows: dict[tuple[str, str], list[dict[str, Any]]], drawn: Drawn
) -> None:
    language, meanings = LANGUAGES[code], drawn.splits["test"][:60]
    counts_of, expected_of = 0.0, 0.0
    chi, free = 0.0, 0
    for meaning, found in zip(meanings, rows[code, "test"], strict=False):
        accepted, counts = counted(language, meaning, SEED)
        weights = dict(zip((one.text for one in accepted), lrf_weights(counts), strict=True))
        assert {one["text"]: one["weight"] for one in found["translations"]} == weights
        total, share = sum(counts), math.fsum(one.share for one in accepted)
        expected = [total * one.share / share for one in accepted]
        chi += sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True) if e >= 5)
        free += sum(e >= 5 for e in expected) - 1
        counts_of += max(counts) / total
        expected_of += max(expected) / total
    assert abs(chi / free - 1) < 0.2, "Pearson's statistic is as large as its degrees of freedom"
    assert counts_of == pytest.approx(expected_of, rel=0.03)


def test_a_seed_gives_equal_rows_and_another_one_other_words_and_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(staple.SIZES, "train", 30)
    monkeypatch.setattr(staple, "PARALLEL", 10)
    once, again, other = draw_prompts(5), draw_prompts(5), draw_prompts(6)
    assert once.splits == again.splits
    assert once.parallel == again.parallel
    first = once.splits["train"][0]
    assert row(once.languages["qaa"], first, 5) == row(again.languages["qaa"], first, 5)
    assert row(once.languages["qaa"], first, 6) != row(once.languages["qaa"], first, 5)
    assert once.splits["train"] != other.splits["train"]
    lexicons = [drawn.languages["qaa"].lexicon for drawn in (once, other)]
    loans = set(QAA.lexicon.loans.values())
    stems = []
    for lexicon in lexicons:
        found = [stem for options in (*lexicon.nouns.values(), *lexicon.verbs.values()) for stem, _ in options]
        stems.append([stem for stem in found if stem not in loans])
        assert len(set(stems[-1])) == len(stems[-1]), "a word means two things"
    assert len(set(stems[0]) & set(stems[1])) < 20
