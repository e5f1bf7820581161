"""A folder of LANG.tsv files: the stable split and the counted response set."""

import math
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import count_responses
from mrs_datasets.readers.pairs.pairs import split_of, split_pairs
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from tests.cases import cases

WORDS = st.text("ab! É", min_size=1, max_size=4).filter(lambda text: bool(text.strip()))
GOOD = "Message 1\tyes\nMessage 3\tyes\nMessage 0\tyes\n"  # train, validation, test
PAIRS = st.lists(st.tuples(WORDS, WORDS), max_size=40)


@pytest.mark.parametrize(("message", "split"), cases(__file__, "test_the_split_of_a_message_never_changes"))
def test_the_split_of_a_message_never_changes(message: str, split: str) -> None:
    assert split_of(message) == split


@given(PAIRS)
def test_all_pairs_of_a_message_fall_on_one_side_and_none_is_lost(pairs: list[tuple[str, str]]) -> None:
    assume(len({normalise_reply(message) for message, _ in pairs}) >= 3)
    found: Counter[tuple[str, str]] = Counter()
    sides: dict[str, set[str]] = {}
    for config, split, table in split_pairs("en", iter(pairs), Report("pairs")):
        if config == "en":
            for row in table.to_pylist():
                found[row["message"], row["reply"]] += 1
                sides.setdefault(normalise_reply(row["message"]), set()).add(split)
    assert found == Counter(pairs)
    assert all(len(side) == 1 for side in sides.values())
    assert set.union(*sides.values()) == {"train", "validation", "test"}
    by_hash = {form: {split_of(form)} for form in sides}
    if set.union(*by_hash.values()) == {"train", "validation", "test"}:  # else one message had to fill a gap
        assert sides == by_hash


@given(PAIRS)
def test_the_response_set_counts_the_training_replies_alone(pairs: list[tuple[str, str]]) -> None:
    assume(len({normalise_reply(message) for message, _ in pairs}) >= 3)
    chunks = list(split_pairs("en", iter(pairs), Report("pairs")))
    (table,) = [table for config, _, table in chunks if config == "en-responses"]
    naive: dict[str, int] = {}
    for config, split, part in chunks:
        for row in part.to_pylist() if (config, split) == ("en", "train") else []:
            naive[row["reply"]] = naive.get(row["reply"], 0) + 1
    found = table.to_pylist()
    assert {row["reply"]: row["count"] for row in found} == naive
    total = sum(naive.values()) + len(naive)
    for row in found:
        assert row["log_prob"] == pytest.approx(math.log((naive[row["reply"]] + 1) / total))
        assert row["cluster"] == normalise_reply(row["reply"])
        assert row["source"] == "organic"
    order = [(-row["count"], row["reply"]) for row in found]
    assert order == sorted(order)


def test_the_limits_of_a_response_set_leave_the_probabilities_alone() -> None:
    counts = Counter({"yes": 5, "b no": 2, "a no": 2, "maybe": 1})
    whole = {row["reply"]: row for row in count_responses(counts).to_pylist()}
    assert sum(math.exp(row["log_prob"]) for row in whole.values()) == pytest.approx(1.0)
    assert [*whole] == ["yes", "a no", "b no", "maybe"]
    for limits, kept in [({"min_reply_count": 2}, 3), ({"max_responses": 2}, 2), ({"min_reply_count": 6}, 0)]:
        found = count_responses(counts, **limits).to_pylist()
        assert found == list(whole.values())[:kept]
    assert count_responses(Counter()).num_rows == 0


def test_a_folder_of_pairs_becomes_configs_and_splits(write_tree, rows, tmp_path) -> None:
    source = write_tree(
        tmp_path / "src",
        {
            "en.tsv": "\ufeffMessage 1\tyes\textra\nMessage 1\tno\nMessage 2\tyes\n"
            "Message 3\tyes\nMessage 0\tok\n \tx\nx\t\n",
            "nl.tsv.gz": "Hoe gaat het?\tgoed\r\nMessage 1\tja\r\nMessage 0\tnee",
            "mt-nl.tsv.xz": "Message 0\tnee\nMessage 3\tja\n",
            "LICENSE.md": "not data",
        },
    )
    report = prepare_mrs(str(source), tmp_path / "out")
    out = tmp_path / "out"
    assert list(report["configs"]) == ["en", "nl", "en-responses", "nl-responses", "mt-nl"]
    assert rows(out, "en", "train") == [("Message 1", "yes"), ("Message 1", "no"), ("Message 2", "yes")]
    assert rows(out, "en", "validation") == [("Message 3", "yes")]
    assert rows(out, "en", "test") == [("Message 0", "ok")]
    assert [row[:2] for row in rows(out, "en-responses", "train")] == [("yes", 2), ("no", 1)]
    assert rows(out, "nl", "validation") == [("Hoe gaat het?", "goed")]
    assert rows(out, "nl", "test") == [("Message 0", "nee")]
    assert rows(out, "mt-nl", "train") == [("Message 0", "nee"), ("Message 3", "ja")]
    assert report["dropped"] == {"en": {"empty message": 1, "empty reply": 1}}


@pytest.mark.parametrize(("files", "words"), cases(__file__, "test_a_broken_folder_of_pairs_is_refused"))
def test_a_broken_folder_of_pairs_is_refused(write_tree, refused, tmp_path, files, words) -> None:
    told = refused(".", prepare_mrs, str(write_tree(tmp_path / "src", files)))
    assert [word for word in words if word not in told] == []


def test_the_source_is_never_overwritten_and_an_absent_one_is_named(write_tree, tmp_path) -> None:
    source = write_tree(tmp_path / "src", {"mine/en.tsv": GOOD})
    for out in (source / "mine", source):
        with pytest.raises(InputError):
            prepare_mrs(str(source / "mine"), out, overwrite=True)
    assert (source / "mine" / "en.tsv").read_text() == GOOD
    with pytest.raises(InputError, match=r"none: no such file or folder"):
        prepare_mrs(str(tmp_path / "none"), tmp_path / "out")
