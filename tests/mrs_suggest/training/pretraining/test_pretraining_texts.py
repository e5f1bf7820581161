"""Text from every kind of source, what is held out, and rows of tokens."""

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import datasets
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.texts.text_sources import PairSource, Reading
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.training.pretraining.cache import cached_folder
from mrs_suggest.training.pretraining.rows import encode, encode_pairs, frame
from mrs_suggest.training.pretraining.streams import TextRows
from mrs_suggest.training.pretraining.texts import TextData, TextSource, read_texts

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return file


def read(*train: str, held_out: int = 0, pairs: str | None = None, **more: Any) -> TextData:
    splits = [train, more.pop("validation", ()), more.pop("test", ())]
    parts: list[list[Any]] = [[TextSource.parse(text, "--text") for text in split] for split in splits]
    if pairs:
        parts[0].append(PairSource.parse(pairs, "--parallel"))
    return read_texts(parts, Reading(), held_out, **more)


def trained(data: TextData) -> dict[str, list[str]]:
    found = {language: list(items) for language, items in data.train.items()}
    assert {language: len(items) for language, items in data.train.items()} == {k: len(v) for k, v in found.items()}
    return found


def test_text_files_and_folders(write: Write, tmp_path: Path) -> None:
    one = write("a.txt", "\ufeffone  sentence\r\n\n  two\n")
    write("many/b.txt", "b\n")
    write("many/c.txt.gz", gzip.compress(b"c\n"))
    write("many/d.txt.zst", zstandard.ZstdCompressor().compress(b"d\n"))
    write("many/e.json", "{}")
    data = read(f"ht={one}", f"ht={tmp_path / 'many'}", f"en={one}")
    assert trained(data) == {"ht": ["one sentence", "two", "b", "c", "d"], "en": ["one sentence", "two"]}
    assert "two" in data.train["ht"]
    assert [source["source"] for source in data.sources] == ["a.txt", "many", "a.txt"], "no folders above"
    assert data.facts()["data"]["rows"] == {"ht": {"train": 5}, "en": {"train": 2}}
    assert read(f"ht={one}").facts()["data"]["content_hash"] != data.facts()["data"]["content_hash"]


def test_a_prepared_folder_gives_the_texts_of_its_columns(prepared: PreparedData) -> None:
    data = read(f"en={prepared.folder}", f"ja={prepared.folder}:mt-ja:train")
    assert {text[:10] for text in data.train["en"]} >= {"en message", "en reply 3"}
    assert len(data.train["ja"]) == 2 * 30
    with pytest.raises(InputError, match="no text of 'fr'; the data have en"):
        read(f"fr={prepared.folder}")


def test_what_is_held_out_is_not_trained_on(write: Write) -> None:
    target = write("t.txt", "".join(f"t {n}\n" for n in range(200)))
    more = write("d.txt", "t 1\nt 2\nd 3\n")
    source = write("s.txt", "s 1\n")
    data = read(f"en={source}", f"ht={target}", f"ht={more}", held_out=15, validated=["ht"])
    assert data.validation.keys() == {"ht"}
    assert len(data.validation["ht"]) == 15
    assert set(data.validation["ht"]) <= {f"t {n}" for n in range(200)}, "of the language's first text"
    assert not set(data.validation["ht"]) & set(data.train["ht"])
    assert len(set(data.train["ht"]) | set(data.validation["ht"])) == 201
    again = read(f"ht={target}", held_out=15)
    assert again.validation == data.validation, "the text alone decides"
    assert len(read(f"ht={target}", held_out=5000).validation["ht"]) == 20, "one in ten at most"
    text, dev, test = (write(f"{n}.txt", body) for n, body in enumerate(["a\nb\nc\n", "b\nx\n", "c\n"]))
    data = read(f"ht={text}", held_out=9, validation=[f"ht={dev}"], test=[f"qu={test}"])
    assert (trained(data), data.validation, data.test) == ({"ht": ["a"]}, {"ht": ["b", "x"]}, {"qu": ["c"]})


def test_seeds_draw_the_same_sentences_as_from_a_list(write: Write) -> None:
    texts = np.array([f"t {n}" for n in range(200)])
    one = write("t.txt", "".join(f"{text}\n" for text in texts))
    data = read(f"ht={one}", held_out=15, most=50, seed=7)
    out = np.sort(np.argsort(np.random.default_rng(EVALUATION_SEED).random(200))[:15])
    assert data.validation["ht"] == texts[out].tolist()
    left = np.delete(texts, out)
    assert trained(data)["ht"] == left[np.sort(np.random.default_rng(7).permutation(185)[:50])].tolist()
    other = read(f"ht={one}", held_out=15, most=50, seed=8)
    assert data.facts()["data"]["content_hash"] != other.facts()["data"]["content_hash"]
    moved = write("u.txt", "".join(f"{text}\n" for text in texts))
    again = read(f"ht={moved}", held_out=15, most=50, seed=7)
    assert data.facts()["data"] == again.facts()["data"], "the contents decide, not the path"


def test_bad_sources_are_refused(write: Write, tmp_path: Path, prepared: PreparedData) -> None:
    (tmp_path / "nothing").mkdir()
    good = write("good.txt", "a\nb\n")
    os.mkfifo(tmp_path / "pipe")
    for text, sentence in {
        "ht": "expected LANG=SOURCE",
        "ht=": "expected LANG=SOURCE",
        f"klingon={good}": "'klingon' is not the code of a language",
        "ht=absent.txt": "ht=absent.txt: no such file or folder, and not a hub id",
        f"ht={write('empty.txt', '')}": "has no text",
        f"ht={write('blank.txt', ' ' + chr(10) * 3)}": "has no text",
        f"ht={write('picture.png', b'PNG' + bytes(9))}": "is a binary file; expected text in UTF-8",
        f"ht={write('latin.txt', 'é'.encode('latin-1'))}": "line 1: not UTF-8",
        f"ht={tmp_path / 'nothing'}": "the folder has no",
        f"ht={tmp_path / 'pipe'}": "is a pipe",
        f"ht={prepared.folder}:a:b:c": "CONFIG:SPLIT at most",
    }.items():
        with pytest.raises(InputError, match=sentence):
            read(text)
    with pytest.raises(InputError, match="--validation qu: --text lacks it"):
        read(f"ht={good}", held_out=1, validated=["qu"])
    with pytest.raises(InputError, match="--validation ht: --text has too little"):
        read(f"ht={good}", held_out=1)
    with pytest.raises(InputError, match="every sentence is held out too"):
        read(f"ht={good}", validation=[f"ht={good}"])
    own = TextSource.parse(f"ht={good}", "--denoising_text")
    with pytest.raises(InputError, match="^--denoising_text ht: every sentence"):
        read_texts([[own], [own], ()], Reading(), 0)


TOKENIZER = train_tokenizer(["aa bb cc dd"] * 9, 30)
TOKENIZER.add_special_tokens({"mask_token": "[MASK]"})
SENTENCES = st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "x"]), max_size=12).map(" ".join), max_size=12)


@given(sentences=SENTENCES, most=st.integers(8, 20))
def test_packing_loses_nothing_and_cutting_only_ends(sentences: list[str], most: int) -> None:
    special = set(TOKENIZER.all_special_ids)
    bodies = [TOKENIZER(text, add_special_tokens=False)["input_ids"] for text in sentences]
    known = [ids for ids in bodies if not special.issuperset(ids)]
    if not known:
        with pytest.raises(InputError, match="knows no piece of this text"):
            encode(sentences, TOKENIZER, most, True, "ht")
        return
    packed, single = (encode(sentences, TOKENIZER, most, pack, "ht") for pack in (True, False))
    assert packed.notes["unknown"] == single.notes["unknown"] == len(bodies) - len(known)
    begin, end = frame(TOKENIZER)
    assert (begin, end) == ([TOKENIZER.cls_token_id], [TOKENIZER.sep_token_id])
    for encoded in (packed, single):
        own = [encoded[n]["input_ids"] for n in range(len(encoded))]
        assert all(row[:1] == begin and row[-1:] == end and len(row) <= most for row in own)
        assert encoded.lengths.tolist() == [len(row) for row in own]
    inside = [token for n in range(len(packed)) for token in packed[n]["input_ids"] if token not in special]
    assert inside == [token for ids in known for token in ids if token not in special]
    cut = [single[n]["input_ids"][1:-1] for n in range(len(single))]
    kept = [ids[: most - 2] for ids in known if not special.issuperset(ids[: most - 2])]
    assert cut == kept
    assert single.notes["cut"] == sum(len(ids) > most - 2 for ids in known)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache" / "mrs-rows"


def kept_folders(cache: Path) -> int:
    return sum(path.is_dir() for path in cache.iterdir())


def test_rows_are_written_once_for_each_text_and_kind(
    write: Write, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, pairs = (
        ["aa bb cc", "dd aa", "[UNK]", "cc " * 9] * 5,
        [("aa bb", "cc"), ("[UNK]", "aa"), ("dd " * 9, "bb")] * 5,
    )
    text = write("t.txt", "".join(f"{text}\n" for text in texts))
    parallel = write("p.tsv", "".join("\t".join(pair) + "\n" for pair in pairs))

    def kinds(most: int) -> list[Any]:
        packed, single = (partial(encode, tokenizer=TOKENIZER, most=most, pack=pack) for pack in (True, False))
        return [packed, single, partial(encode_pairs, tokenizer=TOKENIZER, most=most)]

    def contents(rows: Any) -> list[object]:
        return [rows.notes, rows.lengths.tolist(), [rows[n] for n in range(len(rows))]]

    def streamed(most: int = 8) -> list[object]:
        data = read(f"ht={text}", pairs=f"en-ht={parallel}")
        own = [data.train["ht"], data.train["ht"], data.pairs.train["en-ht"]]
        return [contents(TextRows(one, kind, "ht", 0).part(0)) for one, kind in zip(own, kinds(most), strict=True)]

    cleaned = [" ".join(text.split()) for text in texts]
    in_memory = [contents(kind(own, where="ht")) for own, kind in zip([cleaned, cleaned, pairs], kinds(8), strict=True)]
    assert streamed() == in_memory
    assert kept_folders(cache) == 4, "what is known about the texts, and one for each kind"
    with monkeypatch.context() as patch:
        patch.setattr(TextSource, "lines", None)
        patch.setattr(PairSource, "lines", None)
        assert streamed() == in_memory, "neither read nor made again"
    assert streamed(9) != in_memory
    assert kept_folders(cache) == 7
    write("t.txt", "".join(f"{text}\n" for text in texts[::-1]))
    assert streamed() != in_memory, "as many bytes as before, but others"


def test_what_was_not_finished_is_not_trusted(cache: Path) -> None:
    run = (
        "import os; from mrs_suggest.training.pretraining.cache import cached_folder; "
        "cached_folder('k', lambda new: (new / 'a').{})"
    )
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache.parent)}
    killed = run.format("write_text('half') and os.kill(os.getpid(), 9)")
    assert subprocess.run([sys.executable, "-c", killed], env=environment, check=False).returncode == -9
    assert [path.suffix for path in cache.iterdir() if path.is_dir()] != [], "what was written before"

    def write_all(new: Path) -> None:
        (new / "a").write_text("whole")

    folder = cached_folder("k", write_all)
    assert (folder / "a").read_text() == "whole"
    assert kept_folders(cache) == 1, "the other one's is gone"


def test_one_of_two_processes_writes(cache: Path) -> None:
    run = (
        "import time; from mrs_suggest.training.pretraining.cache import cached_folder; "
        "print('ready', flush=True); input(); "
        "cached_folder('k', lambda new: (time.sleep(1), (new / 'a').write_text('a'), print('wrote', flush=True)))"
    )
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache.parent)}
    both = [
        subprocess.Popen([sys.executable, "-c", run], env=environment, text=True, stdin=PIPE, stdout=PIPE)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    assert sorted(process.communicate("\n")[0] for process in both) == ["", "wrote\n"]
    cached_folder("k", lambda new: pytest.fail("it is there"))
    assert kept_folders(cache) == 1
