"""The data of one run: languages, seeded samples, reply ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from datasets import Dataset

from mrs_core.errors import InputError
from mrs_datasets.prepare import prepare_mrs
from mrs_datasets.prepared import PreparedData, open_prepared
from mrs_training.data import chosen_languages, load_language, rows_used, with_reply_ids


def test_whole_splits_without_limits(prepared: PreparedData) -> None:
    part = load_language(prepared, "en", {}, 0)
    sizes = rows_used([part])["en"]
    assert sizes["train"] + sizes["validation"] + sizes["test"] == 80
    assert min(sizes.values()) > 0
    assert sizes["responses"] == len(part.responses.replies) == len(set(part.train["reply"]))
    assert part.responses.clusters == [reply.replace(" ", "") for reply in part.responses.replies]
    assert all(value is not None and value < 0 for value in part.responses.log_probs)
    assert all(row["message"].startswith("en message") for row in part.test)


def test_limits_are_seeded_samples_in_the_order_of_the_file(prepared: PreparedData) -> None:
    whole = load_language(prepared, "en", {}, 0)
    limits = {"train": 20, "validation": 3, "test": 10_000}
    one, again, other = (load_language(prepared, "en", limits, seed) for seed in (1, 1, 2))
    assert rows_used([one])["en"] == {**rows_used([whole])["en"], "train": 20, "validation": 3}
    assert list(one.train) == list(again.train)
    assert list(one.train) != list(other.train)
    order = [row["message"] for row in whole.train]
    places = [order.index(row["message"]) for row in one.train]
    assert places == sorted(set(places))
    assert places != list(range(20))  # a sample, not the first rows
    assert one.responses.replies == whole.responses.replies


def test_chosen_languages(prepared: PreparedData) -> None:
    assert chosen_languages(prepared, ["all"]) == ["en", "ja"]
    assert chosen_languages(prepared, ["ja"]) == ["ja"]
    assert chosen_languages(prepared, ["ja", "en", "ja"]) == ["ja", "en"]
    with pytest.raises(InputError, match=r"--language es: data has en ja\."):
        chosen_languages(prepared, ["es"])
    with pytest.raises(InputError, match=r"--language: unknown language 'xx'"):
        chosen_languages(prepared, ["xx"])


def test_a_missing_response_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "en.tsv").write_text("".join(f"message {n}\treply {n}\n" for n in range(60)))
    prepare_mrs(str(tmp_path / "source"), tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "data" / "en-responses")
    with pytest.raises(InputError, match="en-responses"):
        load_language(open_prepared(str(tmp_path / "data")), "en", {}, 0)


def test_data_prepared_again_in_the_same_place_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    seen = []
    for word in ("old", "new"):  # the same sizes: only the contents differ
        lines = "".join(f"message {n}\t{word} {n}\n" for n in range(60))
        (tmp_path / "source" / "en.tsv").write_text(lines)
        prepare_mrs(str(tmp_path / "source"), tmp_path / "data", overwrite=True)
        data = open_prepared(str(tmp_path / "data"))
        part = load_language(data, "en", {}, 0)
        assert all(row["reply"].startswith(word) for row in part.train)
        assert all(reply.startswith(word) for reply in part.responses.replies)
        seen.append(data.identity(["en"])["content_hash"])
    assert seen[0] != seen[1]


def test_reply_ids_are_equal_for_equal_forms() -> None:
    replies = ["Thanks!", "thanks", " THANKS. ", "thank", "?!", "", "ありがとう。", "ありがとう"]
    pairs = Dataset.from_dict({"message": ["m"] * len(replies), "reply": replies})
    labelled = with_reply_ids(pairs)
    assert labelled.column_names == ["message", "reply", "label"]
    assert labelled.features["label"].dtype == "int64"
    ids = labelled["label"]
    assert ids[0] == ids[1] == ids[2]
    assert ids[6] == ids[7]
    assert len(set(ids)) == 5
    # The same on every machine and in every run, unlike `hash()`.
    assert list(with_reply_ids(pairs.select([1]))["label"]) == [ids[1]]
