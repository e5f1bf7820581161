"""Features of pooled hypotheses against slow definitions."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.features import LEAST_SHARE, MEANINGS, add_features, consensus
from mrs_suggest.staple.hypotheses import write_hypotheses
from mrs_suggest.staple.pooling import pool
from tests.command import Result, refused
from tests.mrs_suggest.staple.hypotheses_files import ROWS, hypotheses

TEXTS = st.text(st.sampled_from("ab 日é😀"), max_size=8)


def grams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[at : at + n] for n in (2, 3) for at in range(len(padded) - n + 1)}


@given(st.lists(st.lists(st.tuples(TEXTS, st.sampled_from([0.0, 0.1, 0.7])), max_size=5), max_size=4))
def test_consensus_is_its_definition(lists: list[list[tuple[str, float]]]) -> None:
    rows = [row for entries in lists for row in entries]
    starts = np.concatenate([[0], np.cumsum([len(entries) for entries in lists])]).astype(np.int64)
    found = consensus([text for text, _ in rows], np.array([share for _, share in rows]), starts)
    expected = []
    for entries in lists:
        for place, (text, _) in enumerate(entries):
            others = [entry for other, entry in enumerate(entries) if other != place]
            weights = [share + LEAST_SHARE for _, share in others]
            similar = [
                2 * len(grams(text) & grams(other)) / (len(grams(text)) + len(grams(other))) for other, _ in others
            ]
            weighted = sum(w * s for w, s in zip(weights, similar, strict=True))
            expected.append(weighted / sum(weights) if others else math.nan)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_features_of_a_pool() -> None:
    found = add_features(pool([(Path("a"), hypotheses(ROWS))]))
    first, second, third = found.table.to_pylist()
    assert set(MEANINGS) <= set(found.features)
    assert (first["characters"], first["length_ratio"], first["prompt_words"]) == (10, 10 / len("yes, of course"), 3)
    assert (first["list_size"], third["list_size"], third["list_entropy"]) == (2, 1, 0)
    shares = [first["probability_in_list"], second["probability_in_list"]]
    assert first["list_entropy"] == pytest.approx(-sum(share * math.log(share) for share in shares))
    assert third["consensus"] is None
    with pytest.raises(InputError, match="have a column 'consensus', which `combine` computes"):
        add_features(pool([(Path("a"), hypotheses(ROWS, {"consensus": [1.0] * 4}))]))


def test_similarity_by_an_encoder_is_the_cosine() -> None:
    seen: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([[len(text), 3.0] for text in texts], np.float32)

    found = add_features(pool([(Path("a"), hypotheses(ROWS))]), encode, "ORG/encoder")
    assert len(seen) == len(set(seen))
    for row in found.table.to_pylist():
        one, two = np.array([len(row["prompt"]), 3.0]), np.array([len(row["text"]), 3.0])
        assert row["prompt_similarity"] == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    assert "ORG/encoder" in found.features["prompt_similarity"]


def test_an_encoder_that_is_none_is_one_sentence(tmp_path: Path, staple: Callable[..., Result]) -> None:
    write_hypotheses(hypotheses(ROWS), tmp_path / "a.parquet")
    words = ("combine", tmp_path / "a.parquet", "--out", tmp_path / "b", "--encoder", tmp_path)
    assert f"--encoder {tmp_path}" in refused(staple(*words))
    assert not (tmp_path / "b").exists()
