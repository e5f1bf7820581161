"""Translations from every kind of source, Parquet and streams, what is held out, and rows of two texts."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from mrs_datasets.texts.text_sources import PairSource, Reading, TextSource
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.training.pretraining.rows import encode_pairs, fair_cut, pair_frame
from mrs_suggest.training.pretraining.texts import TextData, read_texts
from tests.cases import cases
from tests.hub.fixtures import Client

PAIRS = [("one  en", "one ht"), ("two en", "two ht")]
CLEAN = [("one en", "one ht"), ("two en", "two ht")]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with translations in every form, where the test runs."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{one}\t{two}\n" for one, two in PAIRS]
    Path("pairs.tsv").write_text("".join([lines[0], "\n", "only en\t \n", lines[1]]), encoding="utf-8")
    Path("folder").mkdir()
    Path("folder/a.tsv.gz").write_bytes(gzip.compress(lines[0].encode()))
    Path("folder/notes.txt").write_text("no pair")
    for side, name in enumerate(("x.en", "x.ht")):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in [*PAIRS, ("alone", "")]), encoding="utf-8")
    columns = {"en": [pair[0] for pair in PAIRS] + [None], "ht": [pair[1] for pair in PAIRS] + ["x"], "n": [1, 2, 3]}
    pq.write_table(pa.table(columns), "pairs.parquet")
    pq.write_table(pa.table({"text": ["one\ntwo", "", None, "three"], "n": [1, 2, 3, 4]}), "texts.parquet")
    pq.write_table(pa.table({"translation": [{"en": one, "ht": two} for one, two in PAIRS]}), "folder/b.parquet")
    return tmp_path


def pairs(value: str, **reading: Any) -> list[tuple[str, str]]:
    return list(PairSource.parse(value, "--parallel").items(Reading(**reading)))


def test_translations_and_sentences_of_files_and_folders(at: Path) -> None:
    assert pairs("en-ht=pairs.tsv") == CLEAN
    assert pairs("en-ht=x.en,x.ht") == CLEAN
    assert pairs("ht-en=x.ht,x.en") == [pair[::-1] for pair in CLEAN]
    assert pairs("en-ht=pairs.parquet") == CLEAN
    assert pairs("pt-BR-zh-Hant=pairs.parquet", pair_columns=("ht", "en")) == [pair[::-1] for pair in CLEAN]
    assert pairs("en-ht=folder") == [CLEAN[0], *CLEAN], "a.tsv.gz, then b.parquet"
    assert pairs("ht-en=folder/b.parquet") == [pair[::-1] for pair in CLEAN]
    assert list(TextSource.parse("ht=texts.parquet", "--text").items(Reading())) == ["one", "two", "three"]
    (at / "more").mkdir()
    (at / "texts.parquet").rename("more/b.parquet")
    (at / "more" / "a.txt").write_text("zero\n")
    assert list(TextSource.parse("ht=more", "--text").items(Reading())) == ["zero", "one", "two", "three"]


def test_prepared_translations_name_their_columns(prepared: Any) -> None:
    found = pairs(f"en-ja={prepared.folder}:mt-ja:train", pair_columns=("message", "reply"))
    assert found[0] == ("translated message 0", "translated reply 0")
    with pytest.raises(InputError, match="no columns en and ja; pass --parallel_columns, two of .*message reply"):
        pairs(f"en-ja={prepared.folder}:mt-ja:train")


def test_bad_translations_are_refused_in_a_sentence(at: Path) -> None:
    Path("three.tsv").write_text("a\tb\na\tb\tc\n")
    Path("broken.parquet").write_bytes(b"PAR1 and nothing")
    Path("short.ht").write_text("one\n")
    Path("empty.tsv").write_text("\n")
    for value, sentence in cases(__file__, "REFUSED"):
        with pytest.raises(InputError) as caught:
            pairs(value)
        assert sentence in str(caught.value), value
    with pytest.raises(InputError, match="expected texts, found int; name another column"):
        pairs("en-ht=pairs.parquet", pair_columns=("en", "n"))
    with pytest.raises(InputError, match="no column 'text'; pass --text_column, one of en ht n"):
        list(TextSource.parse("en=pairs.parquet", "--text").items(Reading()))


@pytest.mark.integration
def test_a_hub_data_set_is_streamed_no_further_than_wanted(hub_client: Client) -> None:
    hub_client("""
from datasets import Dataset
from mrs_datasets.texts.text_sources import PairSource, Reading, TextSource
rows = [{"text": f"line {n}", "translation": {"en": f"en {n}", "ht": f"ht {n}"}} for n in range(50)]
Dataset.from_list(rows).push_to_hub("org/d")
source = TextSource.parse("ht=org/d", "--text")
found, revision = list(source.items(Reading(stream=True, most=3))), source.resolved[1]
assert found == ["line 0", "line 1", "line 2"] and len(revision) == 40, (found, revision)
assert list(source.items(Reading(most=3))) == [f"line {n}" for n in range(50)]
parallel = PairSource.parse("en-ht=org/d", "--parallel")
pairs = list(parallel.items(Reading(stream=True, most=2)))
assert pairs == [("en 0", "ht 0"), ("en 1", "ht 1")], pairs
assert list(parallel.items(Reading())) == [(f"en {n}", f"ht {n}") for n in range(50)]
""")


def read(at: Path, text: list[str], parallel: list[str], **more: Any) -> TextData:
    for name, lines in (("t.txt", text), ("p.tsv", parallel)):
        (at / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sources = TextSource.parse(f"ht={at / 't.txt'}", "--text"), PairSource.parse(f"en-ht={at / 'p.tsv'}", "--parallel")
    return read_texts([sources, (), ()], Reading(), 5, **more)


def test_no_sentence_that_is_held_out_trains_alone_or_in_a_pair(at: Path) -> None:
    data = read(at, [f"ht {n}" for n in range(100)], [f"en {n}\tht {n}" for n in range(100)])
    assert len(data.validation["ht"]) == len(data.pairs.validation["en-ht"]) == 5
    held = {*data.validation["ht"], *(text for pair in data.pairs.validation["en-ht"] for text in pair)}
    assert not held & set(data.train["ht"])
    assert not held & {text for pair in data.pairs.train["en-ht"] for text in pair}
    assert len(data.train["ht"]) == len(list(data.train["ht"])) == 95
    assert {text for pair in data.pairs.train["en-ht"] for text in pair} <= set(data.texts())


def test_the_record_has_the_pairs_beside_the_sentences(at: Path) -> None:
    data = read(at, [f"a {n}" for n in range(60)], [f"en {n}\tht {n}" for n in range(30)], most=20)
    facts = data.facts()["data"]
    assert facts["rows"] == {"ht": {"train": 20, "validation": 5}, "en-ht": {"train": 20, "validation": 3}}
    assert facts["title"] == "text in ht, translations en-ht"
    other = read(at, [f"a {n}" for n in range(60)], [f"en {n}\tht. {n}" for n in range(30)], most=20)
    assert other.facts()["data"]["content_hash"] != facts["content_hash"]
    one_kind = read(at, [f"a {n}" for n in range(60)], [f"en {n}\tht {n}" for n in range(30)], validated=["ht"])
    assert one_kind.pairs.validation, "--validation names a language of --text, and none of --parallel"
    with pytest.raises(InputError, match="--validation en-fr: --parallel lacks it; pass --validation_parallel"):
        read(at, ["a"] * 60, ["b\tc"] * 60, validated=["en-fr"])
    with pytest.raises(InputError, match="--parallel en-ht: every pair has a sentence that is held out too"):
        read(at, [f"a {n}" for n in range(60)], ["b\tc"] * 60)


TOKENIZER = train_tokenizer(["aa bb cc dd"] * 9, 30)
WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "\U00012000"]), max_size=12).map(" ".join)


def like_xlm_r() -> PreTrainedTokenizerFast:
    """`[CLS] a [SEP][SEP] b [SEP]`."""
    tokenizer = train_tokenizer(["aa bb cc dd"] * 9, 30)
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B:1 [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    return tokenizer


@given(one=st.integers(0, 40), two=st.integers(0, 40), room=st.integers(2, 50))
def test_the_longer_text_loses_tokens_first(one: int, two: int, room: int) -> None:
    expected = [one, two]
    while sum(expected) > room:
        expected[0 if expected[0] > expected[1] else 1] -= 1
    assert sorted(fair_cut(one, two, room)) == sorted(expected)
    assert [kept <= length for kept, length in zip(fair_cut(one, two, room), (one, two), strict=True)] == [True, True]


@pytest.mark.parametrize("doubled", [False, True])
@given(pair=st.tuples(WORDS, WORDS), most=st.integers(8, 20))
def test_a_row_is_the_tokenizers_own_of_two_texts(doubled: bool, pair: tuple[str, str], most: int) -> None:
    tokenizer = XLM_R if doubled else TOKENIZER
    own = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in pair]
    room = most - 3 - doubled
    kept = [ids[:length] for ids, length in zip(own, fair_cut(*map(len, own), room), strict=True)]
    if any(set(ids) <= {tokenizer.unk_token_id} for ids in kept):
        with pytest.raises(InputError, match="knows no piece of this text"):
            encode_pairs([pair], tokenizer, most, "--parallel en-ht")
        return
    found = encode_pairs([pair, ("", "aa")], tokenizer, most, "--parallel en-ht")
    row = found[0]
    sep = [tokenizer.sep_token_id]
    first = [tokenizer.cls_token_id, *kept[0], *sep]
    assert row == {"input_ids": [*first, *sep * doubled, *kept[1], *sep]}
    assert found.notes == {"unknown": 1, "cut": sum(map(len, own)) > room, "tokens": sum(map(len, kept))}
    if not found.notes["cut"]:
        assert row["input_ids"] == tokenizer(*pair)["input_ids"]


XLM_R = like_xlm_r()


def test_the_frame_of_a_pair_has_a_separator() -> None:
    assert pair_frame(XLM_R)[1] == [XLM_R.sep_token_id] * 2
    bare = train_tokenizer(["aa bb cc dd"] * 9, 30)
    bare.backend_tokenizer.post_processor = processors.Sequence([])
    assert pair_frame(bare) == ([], [bare.sep_token_id], [])
    with pytest.raises(InputError, match="--max_tokens 4: leaves no room for two texts"):
        encode_pairs([("aa", "bb")], TOKENIZER, 4, "pairs")
