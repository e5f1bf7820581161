"""The three baselines, by hand."""

import math

import numpy as np
import pytest

from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.baselines import TIE_NOISE, MostFrequentReplies, RandomReplies, TfidfReplies
from mrs_suggest.suggest.answering import reply_texts

NEAR = 10 * TIE_NOISE


def test_random_never_repeats_and_is_seeded() -> None:
    replies = list("abcdefgh")
    messages = ["m"] * 200
    answers = reply_texts(RandomReplies(replies, 1).suggest(messages, "en", 3))
    assert all(len(set(answer)) == 3 for answer in answers)
    assert len({tuple(answer) for answer in answers}) > 50
    assert {reply for answer in answers for reply in answer} == set("abcdefgh")
    assert answers == reply_texts(RandomReplies(replies, 1).suggest(messages, "en", 3))
    assert answers != reply_texts(RandomReplies(replies, 2).suggest(messages, "en", 3))
    assert sorted(reply_texts(RandomReplies(["x", "y"], 1).suggest(["m"], "en", 3))[0]) == ["x", "y"]


def test_most_frequent_counts_normalised_training_replies() -> None:
    training = ["Thanks!", "thanks", "No", "YES", "yes", "yes.", "rare"]
    system = MostFrequentReplies(training, ["No", "never seen", "Thanks!", "Yes", "no way"], 0)
    assert reply_texts(system.suggest(["a", "b"], "en", 3)) == [["Yes", "Thanks!", "No"]] * 2
    assert reply_texts(system.suggest(["a"], "en", 9)) == [["Yes", "Thanks!", "No", "never seen", "no way"]]
    pools = np.array([[0, 1, 2], [2, 1, 0]])
    scores = system.score_pools(["a", "b"], ["thanks", "unheard", "Yes!!"], pools)
    assert scores == pytest.approx(np.array([[2, 0, 3], [3, 0, 2]]), abs=NEAR)


def test_tfidf_gives_the_replies_of_an_identical_message_first() -> None:
    messages = ["one two", "three", "one two", "one", "four", "one two"]
    replies = ["Thanks!", "no", "THANKS", "maybe", "never", "sure"]
    system = TfidfReplies(messages, replies, str.split, 0)
    # The last reply is that of the next message, which shares a word.
    assert reply_texts(system.suggest(["One two"], "en", 3)) == [["Thanks!", "sure", "maybe"]]
    assert reply_texts(system.suggest(["three"], "en", 1)) == [["no"]]
    everything = reply_texts(system.suggest(["three"], "en", 50))[0]
    assert len(everything) == 5
    assert len({normalise_reply(reply) for reply in everything}) == 5


def test_tfidf_pool_scores_by_hand() -> None:
    # Two messages: "a b" and "c". Both words of the first have one weight, so that "a" lies at 45 degrees to it.
    system = TfidfReplies(["a b", "c", "c"], ["Yes", "No", "yes!"], str.split, 0)
    candidates = ["YES", "no", "unheard"]
    pools = np.array([[0, 1, 2], [2, 1, 0], [0, 1, 2], [1, 0, 2]])
    scores = system.score_pools(["a", "a b", "c", "unknown words"], candidates, pools)
    half = 1 / math.sqrt(2)
    assert scores == pytest.approx(np.array([[half, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]]), abs=NEAR)


def test_tfidf_of_nothing_known_is_seeded_and_not_the_first_of_the_file() -> None:
    messages, replies = [f"w{n}" for n in range(50)], [f"r{n}" for n in range(50)]
    system = TfidfReplies(messages, replies, str.split, 5)
    unknown = [f"strange {n}" for n in range(20)]
    answers = reply_texts(system.suggest(unknown, "en", 3))
    assert answers == reply_texts(TfidfReplies(messages, replies, str.split, 5).suggest(unknown, "en", 3))
    assert sum(answer == ["r0", "r1", "r2"] for answer in answers) <= 1
    assert len({tuple(answer) for answer in answers}) > 10
