"""Near duplicates: the estimate against the Jaccard index itself, and what may and may not be dropped."""

from __future__ import annotations

import random
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.cleaning import near_duplicates as module
from mrs_datasets.builders.reddit.cleaning.near_duplicates import (
    Arrival,
    NearRules,
    near_duplicates,
    repeated,
    sign_pairs,
    signatures,
)

RULES = NearRules()
TEXTS = st.lists(st.text("ab日\U0001f600", max_size=12), min_size=1, max_size=12)


def shingles(text: str, width: int = 5) -> set[str]:
    return {text[place : place + width] for place in range(max(1, len(text) - width + 1))}


def jaccard(a: str, b: str) -> float:
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


def random_text(draw: random.Random, length: int) -> str:
    return "".join(draw.choices("abcdefghij klmnop", k=length))


def edited(draw: random.Random, text: str, edits: int) -> str:
    letters = list(text)
    for place in draw.sample(range(len(text)), edits):
        letters[place] = "Z"
    return "".join(letters)


def signed(pairs: list[tuple[str, str]], rules: NearRules = RULES) -> np.ndarray:
    return sign_pairs([message for message, _ in pairs], [reply for _, reply in pairs], rules)


def near(found: np.ndarray, rules: NearRules = RULES, order: list[int] | None = None, **options: Any) -> np.ndarray:
    """Which pairs have a near one before them; they came in the order in which they stand, if not said otherwise."""
    numbers = np.array(range(found.shape[1]) if order is None else order, np.uint64)
    return near_duplicates(found, rules, Arrival(numbers, np.zeros_like(numbers)), **options)


@given(TEXTS)
def test_equal_sets_have_equal_signatures_whatever_stands_beside_them(texts: list[str]) -> None:
    together = signatures(texts, RULES)
    assert together.shape == (len(texts), RULES.bands, RULES.rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_SHINGLES", 20)
        assert (signatures(texts, RULES) == together).all()
    for place, text in enumerate(texts):
        assert (signatures([text], RULES)[0] == together[place]).all()
        for other in range(place):
            same = shingles(text) == shingles(texts[other])
            assert same == bool((together[place] == together[other]).all())


def test_the_estimate_is_that_of_the_jaccard_index() -> None:
    draw = random.Random(1)
    errors, sizes = [], []
    for _ in range(400):
        text = random_text(draw, draw.randrange(10, 200))
        other = edited(draw, text, draw.randrange(0, 1 + len(text) // 20))
        a, b = signatures([text, other], RULES)
        true = jaccard(text, other)
        errors.append((a == b).mean() - true)
        sizes.append((true * (1 - true) / a.size) ** 0.5)
    assert abs(statistics.mean(errors)) < 0.015
    assert statistics.pstdev(errors) == pytest.approx(statistics.fmean(size**2 for size in sizes) ** 0.5, rel=0.2)


def test_another_seed_gives_other_signatures_and_the_same_seed_the_same() -> None:
    texts = ["a text of some length", "short"]
    assert (signatures(texts, NearRules(seed=7)) == signatures(texts, NearRules(seed=7))).all()
    assert (signatures(texts, NearRules(seed=7)) != signatures(texts, NearRules(seed=8))).mean() > 0.9
    assert signatures(["yes"], RULES).ravel()[:4].tolist() == [22041, 15549, 36414, 55838]


def test_near_pairs_are_found_and_others_are_not() -> None:
    draw = random.Random(8)
    originals = [(random_text(draw, 150), random_text(draw, 150)) for _ in range(900)]
    alike = [(edited(draw, message, 1), edited(draw, reply, 1)) for message, reply in originals[:300]]
    other_reply = [(edited(draw, message, 1), random_text(draw, 150)) for message, _ in originals[300:600]]
    far = [(edited(draw, message, 30), edited(draw, reply, 30)) for message, reply in originals[600:]]
    found = near(signed(originals + alike + other_reply + far))
    assert not found[:900].any()
    assert found[900:1200].mean() > 0.97  # a few that are .93 alike are estimated to be below .8
    assert not found[1200:].any()


def test_replies_to_one_message_stay_and_short_texts_are_alike_only_if_equal() -> None:
    message = random_text(random.Random(3), 300)
    replies = ["yes", "yep", "no", "no!", "", "thank you", "thanks you"]
    assert not near(signed([(message, reply) for reply in replies])).any()
    short = [("no", "yes"), ("on", "yes"), ("no", "yes")]
    assert near(signed(short)).tolist() == [False, False, True]


def test_a_chain_and_a_crowd_keep_their_first() -> None:
    draw = random.Random(5)
    message, reply = random_text(draw, 200), random_text(draw, 100)
    crowd = [(message, reply)] + [(edited(draw, message, 1), edited(draw, reply, 1)) for _ in range(2000)]
    found = near(signed(crowd))
    assert not found[0]
    assert found[1:].mean() > 0.98
    assert (found == near(signed(crowd))).all()


def test_comparing_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(6)
    base = [(random_text(draw, 60), random_text(draw, 60)) for _ in range(40)]
    pairs = [(edited(draw, message, 1), edited(draw, reply, 1)) for message, reply in base for _ in range(5)]
    whole = near(signed(pairs))
    monkeypatch.setattr(module, "BATCH_PAIRS", 3)
    assert (near(signed(pairs)) == whole).all()
    assert 0 < whole.sum() < len(pairs)


def test_only_the_pairs_asked_for_are_looked_at_in_the_order_of_their_arrival() -> None:
    draw = random.Random(7)
    text = random_text(draw, 150)
    pairs = [(text, "yes"), ("another", "no"), (edited(draw, text, 1), "yes"), (text, "yes")]
    assert near(signed(pairs)).tolist() == [False, False, True, True]
    assert near(signed(pairs), order=[3, 2, 1, 0]).tolist() == [True, False, True, False]
    bands: list[None] = []
    among = np.array([True, True, False, True])
    found = near(signed(pairs), among=among, each_band=lambda: bands.append(None))
    assert (found.tolist(), len(bands)) == ([False, False, False, True], RULES.bands)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30), st.integers(1, 9), st.data())
def test_repeated_values_come_together_whatever_the_parts(
    rows: list[tuple[int, int]], part: int, data: st.DataObject
) -> None:
    values, thread = (np.array([row[side] for row in rows], np.uint64) for side in (0, 1))
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.uint64) // np.uint64(2)
    among = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    expected = []
    for value in range(4):
        places = [n for n in range(len(rows)) if values[n] == value and among[n]]
        if len(places) > 1:
            expected.append(sorted(places, key=lambda n: (order[n], thread[n], n)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_PAIRS", part)
        patch.setattr(module, "SCAN_PAIRS", 4)
        found = []
        for places, opens in repeated(values, Arrival(order, thread), among):
            assert len(places) == len(opens)
            starts = np.flatnonzero(opens).tolist()
            found += [group.tolist() for group in np.split(places, starts[1:])] if starts else []
    assert sorted(found) == sorted(expected)


def test_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(9)
    base = [(random_text(draw, 60), random_text(draw, 60)) for _ in range(20)]
    pairs = [(edited(draw, message, 1), edited(draw, reply, 1)) for message, reply in base for _ in range(4)]
    whole = near(signed(pairs))
    monkeypatch.setattr(module, "PART_PAIRS", 7)
    monkeypatch.setattr(module, "SCAN_PAIRS", 16)
    assert (near(signed(pairs)) == whole).all()
    assert 0 < whole.sum() < len(pairs)


@pytest.mark.parametrize("part", [100, 20, 5])
def test_every_pair_is_read_once_a_band_however_many_parts(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    draw = random.Random(10)
    pairs = [(random_text(draw, 40), random_text(draw, 40)) for _ in range(100)]
    read: list[int] = []
    keys = module._band_keys
    monkeypatch.setattr(module, "PART_PAIRS", part)
    monkeypatch.setattr(module, "_band_keys", lambda band: (read.append(len(band)), keys(band))[1])
    near(signed(pairs))
    assert sum(read) == RULES.bands * len(pairs)


def test_no_pairs_and_one_pair_have_no_duplicates() -> None:
    assert near(signed([])).shape == (0,)
    assert near(signed([("a", "b")])).tolist() == [False]


def test_the_threshold_and_the_bands_decide() -> None:
    draw = random.Random(8)
    message, reply = random_text(draw, 200), random_text(draw, 200)
    pairs = [(message, reply), (edited(draw, message, 8), edited(draw, reply, 8))]  # about .67
    assert not near(signed(pairs))[1]
    loose = NearRules(threshold=0.4, bands=40, rows=1)
    assert near(signed(pairs, loose), loose)[1]
