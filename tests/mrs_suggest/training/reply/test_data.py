"""The data of one run: what the plan asks for, seeded samples, response sets, reply ids."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from transformers import TrainingArguments

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.language_data import LanguageData, examples_hash, load_language
from mrs_suggest.training.reply.data import (
    load_reply_data,
    load_run_data,
    published_figures,
    read_more_text,
    texts_to_copy,
    warn_about_small_sources,
)
from mrs_suggest.training.reply.options import ReplyArguments
from tests.cases import cases


def sizes_of(part: LanguageData) -> dict[str, int]:
    return {split: len(getattr(part, split)) for split in ("train", "validation", "test")}


def test_whole_splits_without_limits(prepared: PreparedData) -> None:
    part = load_language(prepared, "en", {}, 0)
    sizes = sizes_of(part)
    assert sum(sizes.values()) == 80
    assert min(sizes.values()) > 0
    assert sorted(part.responses.replies) == sorted(set(part.train["reply"]))
    assert part.responses.clusters == [reply.replace(" ", "") for reply in part.responses.replies]
    assert all(value is not None and value < 0 for value in part.responses.log_probs)
    assert all(row["message"].startswith("en message") for row in part.test)


def test_limits_are_seeded_samples_in_the_order_of_the_file(prepared: PreparedData) -> None:
    whole = load_language(prepared, "en", {}, 0)
    limits = {"train": 20, "validation": 3, "test": 10_000}
    one, again, other = (load_language(prepared, "en", limits, seed) for seed in (1, 1, 2))
    assert sizes_of(one) == {**sizes_of(whole), "train": 20, "validation": 3}
    assert list(one.validation) == list(other.validation), "runs of several seeds are tested on the same examples"
    assert list(one.train) == list(again.train)
    assert list(one.train) != list(other.train)
    order = [row["message"] for row in whole.train]
    places = [order.index(row["message"]) for row in one.train]
    assert places == sorted(set(places))
    assert places != list(range(20))  # a sample, not the first rows
    assert one.responses.replies == whole.responses.replies


def test_the_hash_of_the_test_examples_is_theirs_alone(prepared: PreparedData) -> None:
    def hash_of(seed: int, *codes: str, **limits: int) -> str:
        return examples_hash({code: load_language(prepared, code, limits, seed).test for code in codes})

    assert hash_of(1, "en", train=20) == hash_of(2, "en", train=10, validation=3)
    assert hash_of(1, "en", test=3) == hash_of(1, "en", test=3)
    others = [hash_of(1, "en"), hash_of(1, "ja"), hash_of(1, "en", "ja"), hash_of(1, "en", test=3)]
    assert len({*others, hash_of(1, "en", test=4)}) == 5


def test_a_run_without_a_setting_has_its_languages_three_times(prepared: PreparedData) -> None:
    data = load_run_data(prepared, ReplyArguments(), 0)
    assert list(data.sources) == ["en", "ja"]
    assert [part.language for part in data.validation] == [part.language for part in data.test] == ["en", "ja"]
    parts = {code: load_language(prepared, code, {}, 0) for code in ("en", "ja")}
    assert data.rows() == {code: {**sizes_of(part), "responses": 7} for code, part in parts.items()}
    assert all(list(data.sources[code]) == list(part.train) for code, part in parts.items())
    assert [list(part.test) for part in data.test] == [list(part.test) for part in parts.values()]


def test_translated_pairs_train_and_real_ones_test(prepared: PreparedData) -> None:
    data = load_run_data(prepared, ReplyArguments(setting="mt"), 0)
    own = load_language(prepared, "ja", {}, 0)
    assert data.plan.setting == "mt"
    assert list(data.sources) == ["mt-ja"]
    assert all(row["reply"].startswith("translated") for row in data.sources["mt-ja"])
    (part,) = data.test
    assert data.validation == data.test
    assert list(part.train) == list(own.train), "the baselines know the language's own pairs"
    assert all(row["reply"].startswith("ja") for row in part.test)
    del (sizes := sizes_of(own))["train"]
    assert data.rows() == {"mt-ja": {"train": 30}, "ja": {**sizes, "responses": 7}}


def test_a_limit_that_cuts_a_split_is_told(
    prepared: PreparedData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = sizes_of(load_language(prepared, "ja", {}, 0))
    options = ReplyArguments(
        data=str(prepared.folder), languages=["ja"], max_test_examples=2, max_validation_examples=sizes["validation"]
    )
    training = TrainingArguments(str(tmp_path), per_device_train_batch_size=1, use_cpu=True)
    facts = load_reply_data(options, training, True).facts()["data"]
    assert facts["rows"]["ja"]["test"] == 2
    assert facts["rows_before_limits"] == {"ja/test": sizes["test"]}, "the validation split is whole"
    told = capsys.readouterr().err
    assert f"note: the --max_..._examples limits take a sample of ja/test with {sizes['test']} rows.\n" in told
    whole = load_reply_data(replace(options, max_test_examples=None), training, True)
    assert "rows_before_limits" not in whole.facts()["data"]
    assert capsys.readouterr().err == ""


def test_english_alone_trains_and_validates_zero_shot(prepared: PreparedData) -> None:
    data = load_run_data(prepared, ReplyArguments(setting="zero_shot", languages=["ja"]), 0)
    assert list(data.sources) == ["en"]
    assert [part.language for part in data.validation] == ["en"]
    assert [part.language for part in data.test] == ["ja"]
    rows = data.rows()
    assert rows.keys() == {"en", "ja"}
    assert rows["en"].keys() == {"train", "validation"}
    assert rows["ja"].keys() == {"test", "responses"}


@pytest.mark.parametrize(("options", "named"), cases(__file__, "test_what_the_data_lack_is_named"))
def test_what_the_data_lack_is_named(prepared: PreparedData, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        load_run_data(prepared, ReplyArguments(**options), 0)


@pytest.fixture
def without_responses(tmp_path: Path) -> PreparedData:
    """One language with replies in several spellings, whose response set is gone."""
    (tmp_path / "source").mkdir()
    replies = ["Thanks!", "thanks", "No", "THANKS.", "no", "Maybe"]
    lines = "".join(f"message {n}\t{replies[n % 6]}\n" for n in range(60))
    (tmp_path / "source" / "en.tsv").write_text(lines)
    prepare_mrs(str(tmp_path / "source"), tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "data" / "en-responses")
    return open_prepared(str(tmp_path / "data"))


def test_a_missing_response_set_is_refused_or_made_of_the_most_frequent_replies(
    without_responses: PreparedData,
) -> None:
    with pytest.raises(InputError, match="en-responses.* A retriever needs a response set"):
        load_language(without_responses, "en", {}, 0)
    with pytest.raises(InputError, match="en-responses"):
        load_run_data(without_responses, ReplyArguments(), 0)
    (part,) = load_run_data(without_responses, ReplyArguments(), 0, need_responses=False).test
    counts = Counter(normalise_reply(reply) for reply in part.train["reply"])
    assert part.responses.clusters == ["thanks", "no", "maybe"] == [form for form, _ in counts.most_common()]
    assert [normalise_reply(reply) for reply in part.responses.replies] == part.responses.clusters
    assert set(part.responses.replies) <= set(part.train["reply"]), "each is spelled as somebody wrote it"
    assert part.responses.log_probs == [None, None, None]


@pytest.mark.parametrize("split", ["validation", "test"])
def test_an_empty_split_is_named(prepared: PreparedData, tmp_path: Path, split: str) -> None:
    assert prepared.folder is not None
    shutil.copytree(prepared.folder, tmp_path / "data")
    for path in (tmp_path / "data" / "data" / "en").glob(f"{split}-*.parquet"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    folder = open_prepared(str(tmp_path / "data"))
    assert folder.load("en", split).column_names == ["message", "reply"]
    with pytest.raises(InputError, match=f"data: the {split} split of en is empty; prepare the folder from more pairs"):
        load_run_data(folder, ReplyArguments(languages=["en"]), seed=1)


@pytest.mark.parametrize(("batches", "told"), [("language", ["mt-ja has"]), ("mixed", [])])
def test_sources_smaller_than_a_step_are_told(
    prepared: PreparedData, capsys: pytest.CaptureFixture[str], batches: str, told: list[str]
) -> None:
    data = load_run_data(prepared, ReplyArguments(train=["ja", "mt-ja"], languages=["ja"]), seed=1)
    least, most = sorted(len(pairs) for pairs in data.sources.values())
    warn_about_small_sources(data, batches, most)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("note: ")[1][: len(start)] for line, start in zip(lines, told, strict=True)] == told
    warn_about_small_sources(data, "mixed", 2 * (least + most))
    assert f"note: ja mt-ja has {least + most} training pairs, fewer than the" in (said := capsys.readouterr().err)
    assert "each is repeated about 2 times in it; lower --per_device_train_batch_size." in said


def test_the_papers_rows_stand_beside_a_setting_alone() -> None:
    def rows(family: str, *languages: str, **options: Any) -> list[dict[str, Any]]:
        return published_figures(family, ReplyArguments(**options), list(languages))

    found = rows("retrieval", "es", setting="monolingual")
    places = [(row["model"], row["table"], row["setting"], row["language"]) for row in found]
    assert places == [("mbert", 3, "monolingual", "es"), ("xlmr", 5, "monolingual", "es")]
    assert found[0]["rouge"] == 0.0187
    assert {row["language"] for row in rows("retrieval", "es", "ja", setting="mt")} == {"es", "ja"}
    assert rows("retrieval", "es") == []
    assert rows("retrieval", "es", setting="mt", train=["en"]) == [], "other data than the paper's"
    assert {row["model"] for row in rows("generation", "es", setting="monolingual")} == {"xdae"}


def test_a_student_copies_pairs_lone_texts_perturbed_ones_and_further_sentences(
    prepared: PreparedData, tmp_path: Path
) -> None:
    (tmp_path / "ja.txt").write_text("一つ\n二つ\n", encoding="utf-8")
    (tmp_path / "sv.txt").write_text("ett\n", encoding="utf-8")
    values = [f"{language}={tmp_path / language}.txt" for language in ("ja", "sv")]
    data = replace(load_run_data(prepared, ReplyArguments(), 0), more_text=read_more_text("--distill_text", values))
    found = texts_to_copy(data, 2, seed=0)
    assert len(found) == len(data.sources) + 2
    for pairs, source in zip(found, data.sources.values(), strict=False):
        assert pairs[: len(source)]["message"] == source["message"][:]
        learned = len({*source["message"][:], *pairs["message"][len(source) :]})
        assert len(pairs) > 3 * len(source), "two perturbed copies of each text, and lone ones"
        assert learned > len(source)
    assert [pairs.to_dict() for pairs in found[-2:]] == [
        {"message": ["一つ"], "reply": ["二つ"]}, {"message": ["ett"], "reply": ["ett"]}
    ]  # fmt: skip
