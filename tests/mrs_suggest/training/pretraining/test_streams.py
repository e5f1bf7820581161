"""Rows that are written while they train: the order in which they come, whoever writes them, and however many ranks."""

import shutil
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from mrs_datasets.texts.text_sources import PairSource, Reading, TextSource
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.training.pretraining import texts
from mrs_suggest.training.pretraining.rows import encode
from mrs_suggest.training.pretraining.streams import TextRows, TextSampler, written_ahead
from mrs_suggest.training.pretraining.texts import TextData, drawn, read_texts
from mrs_suggest.training.sampling import KeyedRows, MixedSampler

TOKENIZER = train_tokenizer([" ".join(f"a{n}" for n in range(40))] * 9, 200)
LANGUAGES = {"ht": 700, "en": 150, "qu": 3}  # sentences


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and parts so small that the texts below have many."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(texts, "BLOCK", 200)
    for language, count in LANGUAGES.items():
        lines = [f"a{n % 40}  a{n % 7} {language} {n}\n" for n in range(count)]
        (tmp_path / f"{language}.txt").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    return tmp_path / "cache" / "mrs-rows"


def read(folder: Path, *languages: str, held_out: int = 5, **more: Any) -> TextData:
    sources = [TextSource.parse(f"{language}={folder / language}.txt", "--text") for language in languages]
    return read_texts([sources, (), ()], Reading(), held_out, **more)


def rows_of(data: TextData, seed: int = 1, pack: bool = False) -> list[TextRows]:
    encoder = partial(encode, tokenizer=TOKENIZER, most=16, pack=pack)
    return [TextRows(own, encoder, language, seed) for language, own in data.train.items()]


def trained(rows: list[TextRows], epochs: int = 1, **named: Any) -> list[list[Any]]:
    """The batches of a rank, as they train."""
    sampler = TextSampler(rows, 8 // named.get("world_size", 1), seed=1, **named)
    keyed, found = KeyedRows(list(enumerate(rows))), []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        found += [[keyed[number] for number in batch] for batch in sampler]
    assert len(found) == epochs * len(sampler)
    return found


def test_large_files_are_read_where_they_are_and_others_are_copied(cache: Path, tmp_path: Path) -> None:
    data = read(tmp_path, *LANGUAGES, validated=["ht", "en"])
    (facts,) = (path.parent for path in cache.glob("*/facts.json"))
    assert (facts / "copied.txt").read_text() == "a0 a0 qu 0\na1 a1 qu 1\na2 a2 qu 2\n"
    assert len(data.train["ht"].parts) > 20
    assert {part.file for part in data.train["ht"].parts} == {str(tmp_path / "ht.txt")}
    assert next(iter(data.train["qu"])) == "a0 a0 qu 0", "no byte-order mark, and single spaces"
    for language, count in LANGUAGES.items():
        own, out = list(data.train[language]), data.validation.get(language, [])
        assert len(out) == (0 if language == "qu" else 5)
        assert sorted([*own, *out]) == sorted(f"a{n % 40} a{n % 7} {language} {n}" for n in range(count))
    assert [source["sentences"] for source in data.sources] == [*LANGUAGES.values()]
    sample = read(tmp_path, "ht", most=50, seed=3).train["ht"]
    assert len(sample) == len(set(sample) & {f"a{n % 40} a{n % 7} ht {n}" for n in range(700)}) == 50
    few = read(tmp_path, *LANGUAGES, validated=["ht"], most=50)
    assert sorted(few.train["qu"]) == ["a0 a0 qu 0", "a1 a1 qu 1", "a2 a2 qu 2"]
    assert not [path for path in cache.glob("*/copied.txt") if path.parent != facts], "only the sample is kept"
    (tmp_path / "ht.txt").write_text((tmp_path / "ht.txt").read_text().replace("ht 9", "ht 8"))
    with pytest.raises(InputError, match="ht.txt: changed while it was being read"):
        list(data.train["ht"])


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (TextSource, "ok\n" * 99 + "\xe9\n", "line 100: not UTF-8"),
        (PairSource, "a\tb\n" * 99 + "a\tb\tc\n", "line 100: expected a text, a tab"),
        (TextSource, "\0" * 300, "is a binary file"),
        (TextSource, " \n" * 300, "^--text ht=.*bad: has no text; leave it out"),
        (TextSource, "ok\n" * 99 + "a" * (80 << 20), "line 100: no line end within 64 MiB"),
    ],
)
def test_what_is_wrong_with_a_large_file_is_said_before_training(
    cache: Path, tmp_path: Path, kind: Any, text: str, sentence: str
) -> None:
    (tmp_path / "bad").write_bytes(text.encode("latin-1"))
    language = "en-ht" if kind is PairSource else "ht"
    with pytest.raises(InputError, match=sentence):
        read_texts([[kind.parse(f"{language}={tmp_path / 'bad'}", "--text")], (), ()], Reading(), 0)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_draw_depends_on_the_lines_alone_and_each_has_the_same_chance(size: int) -> None:
    lines = [str(n) for n in range(100)]
    numbers = np.random.default_rng(3).random(100)
    kept = drawn(in_batches(lines, size), 9, 3)
    assert [line for _, _, line in kept] == [lines[n] for n in np.argsort(numbers)[:9]]
    assert [place for _, place, _ in kept] == np.argsort(numbers)[:9].tolist()
    assert drawn(in_batches(lines, size), 0, 3) == []


@pytest.mark.parametrize("options", [{"mixed": True}, {"mixed": True, "lengths": True, "window": 3}, {"lengths": True}])
def test_the_same_rows_come_in_the_same_order_wherever_they_are_from(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    data = read(tmp_path, *LANGUAGES, validated=["ht"])
    first = trained(rows_of(data), 2, alpha=0.3, **options)
    assert first[: len(first) // 2] != first[len(first) // 2 :], "epochs differ"
    with monkeypatch.context() as patch:
        patch.setattr(TextSource, "lines", None)
        assert trained(rows_of(data), 2, alpha=0.3, **options) == first, "nothing is tokenized again"
    for number, folder in enumerate(sorted(cache.iterdir())):
        if number % 3 and folder.is_dir() and not (folder / "facts.json").exists():
            shutil.rmtree(folder)
    assert trained(rows_of(data), 2, alpha=0.3, **options) == first, "some parts were there, others were not"
    ranks = [trained(rows_of(data), 2, alpha=0.3, world_size=2, rank=rank, **options) for rank in range(2)]
    assert [one + two for one, two in zip(*ranks, strict=True)] == first
    assert trained(rows_of(data, seed=2), 2, alpha=0.3, **options) != first


def test_an_epoch_is_about_all_rows_and_starts_with_few_parts(cache: Path, tmp_path: Path) -> None:
    data = read(tmp_path, "ht", held_out=0)
    (text,) = rows_of(data)
    written = sum(path.is_dir() for path in cache.iterdir()) - 1
    assert written == 1, "the part that tells how many rows there are"
    seen = list(islice(text.shuffled(0), 8))
    assert sum(path.is_dir() for path in cache.iterdir()) - 1 <= 4
    assert abs(text.size - 700) < 70
    every = [text[int(number)]["input_ids"] for number in islice(text.shuffled(0), 700)]
    assert sorted(every) == sorted(TOKENIZER(list(data.train["ht"]))["input_ids"]), "a pass has each row once"
    assert every != [text[int(number)]["input_ids"] for number in islice(text.shuffled(1), 700)]
    assert [text[int(number)]["input_ids"] for number in seen] == every[:8]
    lengths = [int(number) % (1 << 16) for number in islice(text.shuffled(0), 50)]
    assert lengths == [len(row) for row in every[:50]]


@pytest.mark.parametrize("window", [0, 3, 50])
def test_an_epoch_has_every_row_once_however_small_a_text_is(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(texts, "BLOCK", 1 << 20)
    rows = rows_of(read(tmp_path, "ht", "en", held_out=0))
    sampler = TextSampler(rows, 10, lengths=True, window=window, seed=1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        numbers = [number for batch in sampler for number in batch]
        assert len(numbers) == len(set(numbers)) == 700 + 150


def test_a_tiny_part_does_not_tell_how_many_rows_there_are(cache: Path, tmp_path: Path) -> None:
    sources = [TextSource.parse(f"ht={tmp_path}/{name}.txt", "--text") for name in ("ht", "long")]
    (tmp_path / "long.txt").write_text("a1 a2 a3 a4 " * 9 + "\n", encoding="utf-8")
    data = read_texts([sources, (), ()], Reading(), 0)
    tiny = len(data.train["ht"].parts) - 1
    seeds = [seed for seed in range(300) if np.random.default_rng([seed, 0, 0]).permutation(tiny + 1)[0] == tiny][:2]
    found = [rows_of(data, seed=seed)[0] for seed in (1, *seeds)]
    assert len({text.size for text in found}) == 1
    assert abs(found[0].size - 701) < 70
    assert {int(text.groups(0, 0)[0][0]) for text in found} != {tiny}
    assert all(sorted(np.concatenate(text.groups(0, 0))) == list(range(tiny + 1)) for text in found)


def test_objectives_take_turns_without_reading_ahead(cache: Path, tmp_path: Path) -> None:
    data = read(tmp_path, "ht", "en", held_out=0)
    both = [rows_of(data, pack=pack) for pack in (True, False)]
    samplers = [TextSampler(rows, 4, alpha=0.3, mixed=True, seed=1) for rows in both]
    mixed = MixedSampler(samplers, [sum(map(len, rows)) for rows in both], [0.75, 0.25], 1)
    rows = KeyedRows([(number, text) for number, own in enumerate(both) for text in own], 99)
    assert len(rows) == 99
    before = sum(path.is_dir() for path in cache.iterdir())
    steps = iter(mixed)
    some = [next(steps) for _ in range(4)]
    assert sum(path.is_dir() for path in cache.iterdir()) <= before + 12
    kinds = [{rows[number][0] for number in step} for step in [*some, *steps]]
    assert all(len(kind) == 1 for kind in kinds)
    assert sum(kind == {0} for kind in kinds) == pytest.approx(0.75 * len(mixed), abs=1)


def test_another_process_writes_every_part(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TOKENIZER.backend_tokenizer.enable_truncation(4)  # as in some checkpoints' tokenizer.json, until the first use
    rows = rows_of(read(tmp_path, *LANGUAGES, held_out=0))
    parts, end = sum(text.parts for text in rows), time.monotonic() + 240
    assert len(list(cache.glob("*/rows.npz"))) < parts
    (tmp_path / "pickle.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.chdir(tmp_path)  # modules of the current folder are not imported
    with written_ahead(rows):
        while len(list(cache.glob("*/rows.npz"))) < parts:
            assert time.monotonic() < end, "it did not write them"
            time.sleep(0.05)
    monkeypatch.setattr(TextSource, "lines", None)
    trained(rows, alpha=1.0, mixed=True)


def test_the_other_process_leaves_nothing_unfinished(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qu.txt").write_text("a1 a2 a3 a4 a5 a6\n" * 200_000, encoding="utf-8")
    monkeypatch.setattr(texts, "BLOCK", 1 << 20)
    rows, end = rows_of(read(tmp_path, "qu", held_out=0)), time.monotonic() + 240
    with written_ahead(rows):
        while not list(cache.glob(".*partial*")):
            assert time.monotonic() < end, "it did not begin"
            time.sleep(0.01)
    assert not list(cache.glob(".*partial*"))


def test_a_row_may_be_longer_than_its_number_tells(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "qu.txt").write_text("a3\n" + "a1 " * 70_000 + "\na2\n", encoding="utf-8")
    encoder = partial(encode, tokenizer=TOKENIZER, most=100_000, pack=False)
    text = TextRows(read(tmp_path, "qu", held_out=0).train["qu"], encoder, "qu", 1)
    assert sorted(len(text[int(number)]["input_ids"]) for number in islice(text.shuffled(0), 3)) == [3, 3, 70_002]


def test_a_text_that_the_tokenizer_does_not_know_is_refused(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "ru.txt").write_text("[UNK]\n" * 200, encoding="utf-8")
    with pytest.raises(InputError, match="^ru: the tokenizer knows no piece of this text"):
        rows_of(read(tmp_path, "ru", held_out=0))
