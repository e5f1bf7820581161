"""The generated causal questions: no shortcut without premise or question, known rules, two languages that agree."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.synthetic.copa import SIZES, tables
from mrs_datasets.synthetic.generate import seed_of
from mrs_suggest.common.errors import InputError

Row = dict[str, Any]
MASKS = [("premise",), ("question",), ("premise", "question")]


@cache
def generated(seed: int) -> dict[tuple[str, str], list[Row]]:
    return {(config, split): rows for config, split, rows in tables(seed)}


def best_possible(rows: Iterable[Row], hidden: tuple[str, ...]) -> float:
    """The accuracy of the best function of what is left: it answers each group of equal texts with their majority."""
    seen: dict[tuple[str, ...], Counter[int]] = {}
    for row in rows:
        left = tuple(row[name] for name in ("premise", "choice1", "choice2", "question") if name not in hidden)
        seen.setdefault(left, Counter())[row["label"]] += 1
    return sum(max(labels.values()) for labels in seen.values()) / sum(sum(labels.values()) for labels in seen.values())


@settings(max_examples=3, deadline=None)  # half a second each
@given(st.integers(0, 2**32))
def test_no_function_of_a_masked_question_is_better_than_chance(seed: int) -> None:
    for (config, split), rows in generated(seed).items():
        assert len(rows) == SIZES[split]
        assert best_possible(rows, ()) == 1
        for hidden in MASKS:
            assert best_possible(rows, hidden) == 0.5, (config, split, hidden)
        assert Counter(row["label"] for row in rows) == {0: len(rows) / 2, 1: len(rows) / 2}


def test_languages_share_questions_and_no_word_and_splits_share_no_row() -> None:
    data = generated(3)
    words: dict[str, set[str]] = {"qaa": set(), "qab": set()}
    seen: set[tuple[str, ...]] = set()
    for (config, split), rows in data.items():
        for row, other in zip(rows, data["qaa", split], strict=True):
            assert (row["idx"], row["label"], row["question"]) == (other["idx"], other["label"], other["question"])
            if config in words:
                texts = (row["premise"], row["choice1"], row["choice2"])
                words[config].update(word for text in texts for word in text.rstrip(".").lower().split())
                key = (*texts, row["question"])
                assert key not in seen, "in two splits, or twice in one"
                seen.add(key)
    assert not words["qaa"] & words["qab"]
    changed = [row["changed"] for row in data["qab", "train"]]
    assert 0.02 < sum(changed) / len(changed) < 0.06
    assert not any(row["changed"] for row in data["qaa", "train"])
    texts = ("premise", "choice1", "choice2")
    translated, own = data["translation-qab", "test"], data["qaa", "test"]
    assert [[row[name] for name in texts] for row in translated] == [[row[name] for name in texts] for row in own]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    out = tmp_path_factory.mktemp("synthetic") / "out"
    prepare("synthetic-copa", ["synthetic:7"], out, views=["noq", "pairs", "joined"])
    return open_prepared(str(out))


def test_it_is_prepared_checked_and_loaded_like_xcopa(folder: PreparedData) -> None:
    from datasets import load_dataset

    findings = list(check(folder))
    assert {f.level for f in findings} <= {"warning"}
    assert {f.where.partition("-")[0] for f in findings} <= {"noq", "pairs"}, "equal texts in the views alone"
    assert folder.report()["settings"] == {"views": ["noq", "pairs", "joined"], "seed": 7}
    rows = load_dataset(str(folder.folder), "qab", split="test")
    assert rows.to_list() == generated(7)["qab", "test"]
    assert rows.features["label"].names == ["choice1", "choice2"]
    assert "question" not in folder.load("noq-qaa", "test").column_names
    assert folder.load("joined-qab", "test")["premise_translated"] == folder.load("qaa", "test")["premise"]


def test_the_source_names_the_seed_and_another_source_is_refused() -> None:
    assert [seed_of(source) for source in ("synthetic", "synthetic:0", "synthetic:7")] == [42, 0, 7]
    assert generated(3)["qaa", "train"] != generated(7)["qaa", "train"]
    for source in ("copa", "synthetic:", "synthetic:x", "synthetic:-1", "synthetic:1.5", ""):
        with pytest.raises(InputError, match=r"--source .*: expected synthetic or synthetic:SEED"):
            seed_of(source)
