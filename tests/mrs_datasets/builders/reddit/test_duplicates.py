"""Duplicates over all buckets of a language, from numbers alone; near duplicates and what only looks like one."""

import random
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.stages import read_codes, read_pairs, write_array, write_batches
from mrs_datasets.builders.reddit import duplicates as module
from mrs_datasets.builders.reddit.alike import count_words
from mrs_datasets.builders.reddit.duplicates import (
    BANDS,
    COLUMNS,
    EXACT,
    EXACT_CODE,
    KEPT_CODE,
    KEY,
    NEAR,
    NEAR_CODE,
    ROWS,
    SAMPLES,
    Gathered,
    duplicates_shard,
    keyed_pairs,
    near_duplicates,
    sign_pairs,
    signature_file,
    signatures,
)
from mrs_datasets.builders.reddit.partition import stable_hashes
from mrs_datasets.readers.sample import exchanges_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from tests.cases import cases

LONG = "I have been looking for a good recipe for lentil soup since last winter, does anybody here know one?"
SIDES = st.sampled_from(["yes", "Yes!", "no", LONG, LONG + " Thanks", LONG.lower()])


def table(*rows: tuple[str, str, str, int]) -> pa.Table:
    """Language, message, reply and order, sorted as the build sorts them."""
    language, message, reply, order = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "message": pa.array(message, pa.string()),
        "reply": pa.array(reply, pa.string()),
        "thread": pa.array([0] * len(rows), pa.uint64()),
        "order": pa.array(order, pa.uint64()),
        "language": pa.array(language, pa.string()),
    }
    return pa.table(columns).sort_by([("language", "ascending"), ("order", "ascending")])


def write_bucket(path: Path, *rows: tuple[str, str, str, int]) -> Path:
    pairs, signed = keyed_pairs(table(*rows))
    write_array(signature_file(path), signed)
    write_batches(path, pairs.schema, pairs.to_batches())
    return path


def codes_of(paths: list[Path], language: str) -> dict[int, int]:
    """`order` -> code."""
    target = paths[0].parent / f"{language}.npy"
    tables = [read_pairs(path, language, ["order"])[0] for path in paths]
    buckets = [(path, found.num_rows) for path, found in zip(paths, tables, strict=True) if found.num_rows]
    counts = duplicates_shard(buckets, language, 1, target, lambda _: None)
    orders = np.concatenate([found["order"].to_numpy() for found in tables])
    codes = read_codes(target, len(orders))
    assert (counts[EXACT], counts[NEAR]) == ((codes == EXACT_CODE).sum(), (codes == NEAR_CODE).sum())
    assert len(counts[SAMPLES]) == min(counts[NEAR], 1)
    return dict(zip(orders.tolist(), codes.tolist(), strict=True))


def test_the_first_by_order_stays_whichever_bucket_it_is_in(tmp_path: Path) -> None:
    one = write_bucket(
        tmp_path / "1.arrow",
        ("en", "Where are you?", "At home", 5),
        ("sv", "Where are you?", "At home", 9),
        ("en", LONG, "I do!", 2),
        ("en", LONG, "I don't", 6),
    )
    two = write_bucket(
        tmp_path / "2.arrow", ("en", "where are you", "AT HOME!", 3), ("en", LONG + " Thanks", "I do", 4)
    )
    assert codes_of([one, two], "en") == {5: EXACT_CODE, 3: KEPT_CODE, 2: KEPT_CODE, 4: NEAR_CODE, 6: KEPT_CODE}
    assert codes_of([one, two], "sv") == {9: KEPT_CODE}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.arrow", "1.signatures.npy", "2.arrow", "2.signatures.npy", "en.npy", "sv.npy",
    ]  # fmt: skip


def test_pairs_have_the_keys_of_their_normalised_sides() -> None:
    pairs, signed = keyed_pairs(table(("en", LONG, "Yes!", 1), ("en", "yes", LONG, 2), ("sv", LONG, "yes", 3)))
    long = normalise_reply(LONG)
    assert (signed == sign_pairs([long, "yes", long], ["yes", long, "yes"])).all()
    keys = pairs[KEY].to_pylist()
    assert keys[0] == keys[2] == stable_hashes(pa.array([f"{normalise_reply(LONG)}\0yes"]))[0] != keys[1]
    assert keyed_pairs(table())[1].shape == (len(signed), 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["en", "ja"]), SIDES, SIDES), min_size=1, max_size=14), st.integers(1, 4))
def test_the_buckets_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], buckets: int
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    numbered = [(*row, (7 * place) % 15) for place, row in enumerate(rows)]
    whole = [write_bucket(folder / "whole.arrow", *numbered)]
    split = [write_bucket(folder / f"{n}.arrow", *numbered[n::buckets]) for n in range(buckets)]
    for language in {row[0] for row in rows}:
        found = codes_of(whole, language)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "PART_PAIRS", 4)  # several parts
            assert codes_of(split, language) == found


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def of_another_bucket(path: Path) -> None:
    write_array(path, keyed_pairs(table(("en", "a", "b", 1)))[1])


@pytest.mark.parametrize("harm", [Path.unlink, cut, of_another_bucket, lambda path: path.write_bytes(b"")])
def test_a_damaged_file_of_signatures_is_named(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    path = write_bucket(tmp_path / "1.arrow", ("en", "a", "b", 1), ("en", "c", "d", 2))
    harm(signature_file(path))
    with pytest.raises(InputError, match=r"1\.signatures\.npy: is damaged \(.*--resume"):
        duplicates_shard([(path, 2)], "en", 0, tmp_path / "en.npy", lambda _: None)
    assert not list(tmp_path.glob(".*"))
    write_array(tmp_path / "en.npy", np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="3 entries for 4 rows"):
        read_codes(tmp_path / "en.npy", 4)


# --- Near duplicates ------------------------------------------------------------------------------------------------

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
        letters[place] = "z"
    return "".join(letters)


def near(pairs: list[tuple[str, str]], language: str = "en") -> np.ndarray:
    """Which pairs have a near one before them, in the order of the list."""
    numbers = np.zeros((4, len(pairs)), np.uint64)
    numbers[0] = np.arange(len(pairs))
    sides = ([normalise_reply(text) for text in side] for side in zip(*pairs, strict=True))
    gathered = Gathered([numbers], [sign_pairs(*sides)], pairs.__getitem__)
    words = count_words((text for pair in pairs for text in pair), language)
    exact, found = np.zeros(len(pairs), bool), np.zeros(len(pairs), bool)
    found[near_duplicates(gathered, exact, words, language, [(column, 0) for column in range(COLUMNS - 2)])[0]] = True
    return found


@given(TEXTS)
def test_equal_sets_have_equal_signatures_whatever_the_other_texts(texts: list[str]) -> None:
    together = signatures(texts)
    assert together.shape == (len(texts), BANDS, ROWS)
    for place, text in enumerate(texts):
        assert (signatures([text])[0] == together[place]).all()
        for other in range(place):
            same = shingles(text) == shingles(texts[other])
            assert same == bool((together[place] == together[other]).all())


def test_the_estimate_is_that_of_the_jaccard_index() -> None:
    draw = random.Random(1)
    errors, sizes = [], []
    for _ in range(400):
        text = random_text(draw, draw.randrange(10, 200))
        other = edited(draw, text, draw.randrange(0, 1 + len(text) // 20))
        a, b = signatures([text, other])
        true = jaccard(text, other)
        errors.append((a == b).mean() - true)
        sizes.append((true * (1 - true) / a.size) ** 0.5)
    assert abs(statistics.mean(errors)) < 0.015
    assert statistics.pstdev(errors) == pytest.approx(statistics.fmean(size**2 for size in sizes) ** 0.5, rel=0.2)


def test_signatures_never_change() -> None:
    assert signatures(["yes"]).ravel()[:4].tolist() == [22041, 15549, 36414, 55838]


def test_near_pairs_are_found_and_others_are_not() -> None:
    draw = random.Random(8)
    originals = [(random_text(draw, 150), random_text(draw, 150)) for _ in range(900)]
    alike = [(edited(draw, message, 1), edited(draw, reply, 1)) for message, reply in originals[:300]]
    other_reply = [(edited(draw, message, 1), random_text(draw, 150)) for message, _ in originals[300:600]]
    far = [(edited(draw, message, 30), edited(draw, reply, 30)) for message, reply in originals[600:]]
    found = near(originals + alike + other_reply + far)
    assert not found[:900].any()
    assert found[900:1200].mean() > 0.97  # but for errors that divide a word, or make one of another word
    assert not found[1200:].any()


def with_error(draw: random.Random, text: str) -> str:
    """The text with one typing error: a letter changed, left out, inserted, or two exchanged."""
    while True:
        place, letter = draw.randrange(len(text)), draw.choice("abcdefghijklmnopqrstuvwxyz")
        start, end = text[:place], text[place:]
        wrong = draw.choice(
            [start + letter + end[1:], start + end[1:], start + letter + end, start + end[1::-1] + end[2:]]
        )
        if normalise_reply(wrong) not in ("", normalise_reply(text)):
            return wrong


def test_chat_with_a_typing_error_on_each_side_is_found() -> None:
    shares = {}
    for language in ("en", "de", "es", "fr", "it", "nl", "pt", "ru", "sv"):
        draw = random.Random(5)
        chat = {pair: None for one in exchanges_of(language) for pair in zip(one.messages, one.replies, strict=False)}
        wrong = [(with_error(draw, message), with_error(draw, reply)) for message, reply in draw.sample([*chat], 150)]
        found = near([*chat, *wrong], language)
        assert not found[: len(chat)].any()
        shares[language] = found[len(chat) :].mean()
    assert statistics.mean(shares.values()) > 0.9, shares
    assert min(shares.values()) > 0.85, shares


@pytest.mark.parametrize(("language", "one", "other"), cases(__file__, "test_another_meaning_is_no_typing_error"))
def test_another_meaning_is_no_typing_error(language: str, one: str, other: str) -> None:
    for pairs in ([("And then?", one), ("And then?", other)], [(one, "I see."), (other, "I see.")]):
        assert not near(pairs, language).any()
        assert not near(pairs[::-1], language).any()


def test_pairs_that_share_a_half_with_many_others_are_found() -> None:
    pairs = [(f"{LONG[:50]} {number}", "Sounds good to me") for number in range(12)]
    assert near([*pairs, (pairs[3][0], "Sounds good to mee")]).tolist() == [False] * 12 + [True]


def test_replies_to_one_message_stay_and_short_texts_are_alike_only_if_equal() -> None:
    message = random_text(random.Random(3), 300)
    replies = ["yes", "yep", "no", "no!", "", "thank you", "thanks you"]
    assert not near([(message, reply) for reply in dict.fromkeys(replies) if reply != "no!"]).any()
    short = [("no", "yes"), ("on", "yes"), ("no", "yes")]
    assert near(short).tolist() == [False, False, True]
