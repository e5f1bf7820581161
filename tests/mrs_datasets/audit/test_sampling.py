"""Samples of an audit: in proportion, seeded, no pair twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.audit.questions import KINDS
from mrs_datasets.audit.sampling import audited_languages, draw_sample, shares
from mrs_suggest.common.errors import InputError
from tests.audit_sheets import in_memory, numbered

WIDE = KINDS["wide"]


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=30), st.integers(0, 500))
def test_shares_are_proportional_and_whole(sizes: list[int], total: int) -> None:
    found = shares(sizes, total)
    total = min(total, sum(sizes))
    assert sum(found) == total
    for size, own in zip(sizes, found, strict=True):
        assert own <= size
        assert abs(own - (total * size / sum(sizes) if total else 0)) < 1


def test_no_pair_of_a_language_is_drawn_twice() -> None:
    repeated = [("hi", "hello")] * 50
    data = in_memory(
        {("en", "train"): [*repeated, *numbered("en", 9)], ("en", "test"): repeated, ("sv", "test"): repeated}
    )
    strata, drawn = draw_sample(data, ["en", "sv"], WIDE, 200, 1)
    assert [(s.language, s.split, s.rows, s.drawn) for s in strata] == [
        ("en", "train", 59, 10), ("en", "test", 50, 0), ("sv", "test", 50, 1),
    ]  # fmt: skip
    texts = [(pair.language, pair.message, pair.reply) for pair in drawn]
    assert len(set(texts)) == len(texts) == 11


def test_the_seed_draws_and_more_examples_extend_the_sample() -> None:
    data = in_memory({("en", "train"): numbered("en", 300), ("de", "train"): numbered("de", 300)})

    def rows(languages: list[str], examples: int, seed: int) -> list[int]:
        return [pair.row for pair in draw_sample(data, languages, WIDE, examples, seed)[1] if pair.language == "en"]

    first = rows(["en", "de"], 20, 1)
    assert first == rows(["en"], 20, 1)
    assert first == rows(["en"], 40, 1)[:20]
    assert first != rows(["en"], 20, 2)
    _, drawn = draw_sample(data, ["en", "de"], WIDE, 20, 1)
    assert all(pair.message == f"{pair.language} message {pair.row}" for pair in drawn)


def test_bad_languages() -> None:
    data = in_memory({("en", "train"): numbered("en", 3), ("sv", "train"): []})
    assert audited_languages(data, None) == ["en", "sv"]
    with pytest.raises(InputError, match="--languages: unknown language 'q'"):
        audited_languages(data, ["q"])
    with pytest.raises(InputError, match="--languages de: org/pairs has en sv"):
        audited_languages(data, ["de"])
    with pytest.raises(InputError, match="no pairs in sv"):
        draw_sample(data, ["sv"], WIDE, 1, 1)
    with pytest.raises(InputError, match="this is xcopa"):
        audited_languages(in_memory({("et", "test"): []}, data_set="xcopa"), None)
