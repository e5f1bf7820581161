"""Duplicates over all buckets of a language, from numbers alone; near duplicates and what only looks like one."""

import os
import random
import statistics
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tqdm import tqdm

from mrs_datasets.builders.pipeline import stages
from mrs_datasets.builders.pipeline.stages import Shard, Workers, read_codes, read_pairs, write_array, write_batches
from mrs_datasets.builders.pipeline.work_folder import WorkFolder
from mrs_datasets.builders.reddit import duplicates as module
from mrs_datasets.builders.reddit import repeated
from mrs_datasets.builders.reddit.alike import FEWEST, KANA, OFTEN, alike, count_words
from mrs_datasets.builders.reddit.duplicates import (
    BANDS,
    COLUMNS,
    EXACT,
    EXACT_CODE,
    KEPT_CODE,
    KEY,
    NEAR,
    NEAR_CODE,
    ROWS,
    SAMPLES,
    SCANS,
    duplicates_shard,
    find_duplicates,
    keyed_pairs,
    near_duplicates,
    pieces_of,
    sign_pairs,
    signature_file,
    signatures,
)
from mrs_datasets.builders.reddit.partition import stable_hashes
from mrs_datasets.builders.reddit.plan import Build, Funnel, Part, Slice, make_settings
from mrs_datasets.readers.sample import PACKAGE, exchanges_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.text.text import normalise_reply
from tests.cases import cases

HIRAGANA = "".join(map(chr, range(0x3041, 0x3094)))
LONG = "I have been looking for a good recipe for lentil soup since last winter, does anybody here know one?"
SIDES = st.sampled_from(["yes", "Yes!", "no", LONG, LONG + " Thanks", LONG.lower()])


def table(*rows: tuple[str, str, str, int]) -> pa.Table:
    """Language, message, reply and order, sorted as the build sorts them."""
    language, message, reply, order = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "message": pa.array(message, pa.string()),
        "reply": pa.array(reply, pa.string()),
        "thread": pa.array([0] * len(rows), pa.uint64()),
        "order": pa.array(order, pa.uint64()),
        "language": pa.array(language, pa.string()),
    }
    return pa.table(columns).sort_by([("language", "ascending"), ("order", "ascending")])


def write_bucket(path: Path, *rows: tuple[str, str, str, int]) -> Path:
    pairs, signed = keyed_pairs(table(*rows))
    write_array(signature_file(path), signed)
    write_batches(path, pairs.schema, pairs.to_batches())
    return path


def codes_of(paths: list[Path], language: str) -> dict[int, int]:
    """`order` -> code."""
    target = paths[0].parent / f"{language}.npy"
    tables = [read_pairs(path, language, ["order"])[0] for path in paths]
    pairs = {path: {language: [found.num_rows]} for path, found in zip(paths, tables, strict=True)}
    [part] = Part.divide(pairs, language, 1 << 20)
    counts = duplicates_shard(part, language, 1, target, lambda _: None)
    orders = np.concatenate([found["order"].to_numpy() for found in tables])
    codes = read_codes(target, len(orders))
    assert (counts[EXACT], counts[NEAR]) == ((codes == EXACT_CODE).sum(), (codes == NEAR_CODE).sum())
    assert len(counts[SAMPLES]) == min(counts[NEAR], 1)
    return dict(zip(orders.tolist(), codes.tolist(), strict=True))


def test_the_first_by_order_stays_whichever_bucket_it_is_in(tmp_path: Path) -> None:
    one = write_bucket(
        tmp_path / "1.arrow",
        ("en", "Where are you?", "At home", 5),
        ("sv", "Where are you?", "At home", 9),
        ("en", LONG, "I do!", 2),
        ("en", LONG, "I don't", 6),
    )
    two = write_bucket(
        tmp_path / "2.arrow", ("en", "where are you", "AT HOME!", 3), ("en", LONG + " Thanks", "I do", 4)
    )
    assert codes_of([one, two], "en") == {5: EXACT_CODE, 3: KEPT_CODE, 2: KEPT_CODE, 4: NEAR_CODE, 6: KEPT_CODE}
    assert codes_of([one, two], "sv") == {9: KEPT_CODE}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.arrow", "1.signatures.npy", "2.arrow", "2.signatures.npy", "en.npy", "sv.npy",
    ]  # fmt: skip


def test_pairs_have_the_keys_of_their_normalised_sides() -> None:
    pairs, signed = keyed_pairs(table(("en", LONG, "Yes!", 1), ("en", "yes", LONG, 2), ("sv", LONG, "yes", 3)))
    long = normalise_reply(LONG)
    assert (signed == sign_pairs([long, "yes", long], ["yes", long, "yes"])).all()
    keys = pairs[KEY].to_pylist()
    assert keys[0] == keys[2] == stable_hashes(pa.array([f"{normalise_reply(LONG)}\0yes"]))[0] != keys[1]
    assert keyed_pairs(table())[1].shape == (len(signed), 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["en", "ja"]), SIDES, SIDES), min_size=1, max_size=14), st.integers(1, 4))
def test_the_buckets_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], buckets: int
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    numbered = [(*row, (7 * place) % 15) for place, row in enumerate(rows)]
    whole = [write_bucket(folder / "whole.arrow", *numbered)]
    split = [write_bucket(folder / f"{n}.arrow", *numbered[n::buckets]) for n in range(buckets)]
    for language in {row[0] for row in rows}:
        found = codes_of(whole, language)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(repeated, "PART_PAIRS", 4)  # several parts
            assert codes_of(split, language) == found


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


class Stopping(Workers):
    """Shards in this process, until so many are done."""

    def __init__(self, left: int) -> None:
        super().__init__(1)
        self.left, self.done = left, 0

    def do(self, shards: Sequence[Shard], bar: Any) -> Iterator[tuple[Shard, Any]]:
        for shard, counts in super().do(shards, bar):
            yield shard, counts
            self.done += 1
            if self.done == self.left:
                raise KeyboardInterrupt


class Large:
    """Pairs of two languages in five files, with exact and near duplicates."""

    def __init__(self, folder: Path) -> None:
        draw, self.folder = random.Random(4), folder
        chat = [pair for one in exchanges_of("en")[:60] for pair in zip(one.messages, one.replies, strict=False)][:40]
        wrong = [(with_error(draw, message), with_error(draw, reply)) for message, reply in chat[:20]]
        rows = [*chat, *wrong, *((f"{message}!", reply.upper()) for message, reply in chat[15:30])]
        numbered = [("en", *row, draw.randrange(1 << 60)) for row in rows]
        swedish = [
            ("Hej, vad gör du?", "Inget särskilt"),
            ("Hej, vad gör du?", "inget särskilt!"),
            ("Hej, vad görr du?", "Inget särskiltt"),
        ]
        draw.shuffle(numbered)
        numbered += [("sv", *row, number) for number, row in enumerate([*swedish, ("Hej", "1"), ("Hej", "2")])]
        self.pairs: dict[Location, dict[str, list[int]]] = {}
        for number in range(5):
            own = numbered[number::5]
            path = write_bucket(folder / f"{number}.arrow", *own)
            codes = [code for code, *_ in own]
            self.pairs[path] = {code: [codes.count(code)] for code in ("en", "sv") if code in codes}

    def find(self, name: str, engine: Workers, least: int = 1) -> tuple[Any, ...]:
        """The codes of both languages, the samples and the counts."""
        work = WorkFolder(self.folder / name, {}, resume=True, overwrite=False)
        outcomes = Counter({("en", "kept"): 75, ("sv", "kept"): 5})
        chosen = replace(make_settings("clean"), min_examples=least, keep_rejects=9)
        build = Build(None, chosen, Path(), work, Funnel({}), print)  # type: ignore[arg-type]
        try:
            codes = find_duplicates(build, self.pairs, outcomes, engine)
        finally:
            work.leave()
        assert sorted(path.name for path in work.stage(module.STAGE).iterdir()) == [
            f"{language}.{kind}" for language in codes for kind in ("json", "npy")
        ]
        return *(path.read_bytes() for path, _ in codes.values()), build.funnel.rejects, build.funnel.stages


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Large:
    monkeypatch.setattr(repeated, "PART_PAIRS", 30)
    monkeypatch.setattr(module, "VOCABULARY", 40)
    return Large(tmp_path)


def test_a_language_that_workers_share_has_the_same_codes_and_samples(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Stopping(0)
    expected = large.find("alone", alone)
    assert alone.done == 2
    assert expected[3][0]["dropped"][EXACT] >= 10
    assert expected[3][0]["dropped"][NEAR] >= 10
    assert len(expected[2]["near duplicate, en"]) == 9
    assert len(expected[2]["near duplicate, sv"]) == 1
    for number, (pairs, files, scans) in enumerate([(40, 2, 3), (15, 5, 3), (9, 5, SCANS)]):
        if scans == SCANS:  # with more parts, other samples are the first
            with monkeypatch.context() as patch:
                patch.setattr(module, "FILE_PAIRS", 1 << 20)
                monkeypatch.setattr(repeated, "PART_PAIRS", 3)
                expected = *expected[:2], *large.find("alone in many parts", Stopping(0))[2:]
        monkeypatch.setattr(module, "FILE_PAIRS", pairs)
        together = Stopping(0)
        assert large.find(f"{number}", together) == expected
        assert together.done == files + scans * (COLUMNS - 2) + 1


def test_the_search_has_one_bar_which_ends_at_all_pairs(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Bar(tqdm):
        def __init__(self, *values: Any, **options: Any) -> None:
            super().__init__(*values, **options)
            bars.append(self)

    for where in (module, stages):
        monkeypatch.setattr(where, "tqdm", Bar)
    monkeypatch.setattr(module, "FILE_PAIRS", 15)
    for stopping in (50, 0):
        with pytest.raises(KeyboardInterrupt) if stopping else nullcontext():
            large.find("bar", Stopping(stopping))
    assert [(bar.desc, bar.n, bar.total) for bar in bars[1:]] == [("duplicates", 80, 80)]
    assert bars[0].n < 80


def test_a_shared_search_that_is_interrupted_goes_on_where_it_was(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = large.find("alone", Stopping(0))
    monkeypatch.setattr(module, "FILE_PAIRS", 15)
    every = 5 + 3 * (COLUMNS - 2) + 1
    for before in (1, 4, 5, 6, 50, every - 1):
        with pytest.raises(KeyboardInterrupt):
            large.find(f"{before}", Stopping(before))
        after = Stopping(0)
        assert large.find(f"{before}", after) == expected
        assert after.done == every - before
    finish = WorkFolder.finish
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):  # the codes are there, but not their counts
        patch.setattr(WorkFolder, "finish", lambda *values: finish(*values) if "." in values[2] else 1 / 0)
        large.find("joined", Stopping(0))
    (large.folder / "joined" / "duplicates" / "en.7.1-2.npy").unlink()
    after = Stopping(0)
    assert large.find("joined", after) == expected
    assert after.done == 2  # the lost one, and Swedish


def test_two_large_languages_are_shared_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this process divides a language: `FILE_PAIRS` need not be patched in the workers, which are spawned."""
    large = Large(tmp_path)
    expected = large.find("alone", Stopping(0))
    monkeypatch.setattr(module, "FILE_PAIRS", 4)
    together = Stopping(0)
    assert large.find("large", together) == expected
    assert together.done == 5 + 2 + 2 * (COLUMNS - 2)
    with Workers(2) as engine:
        assert large.find("processes", engine) == expected
        assert engine._pool is not None
        assert len(engine._pool._processes or ()) == 2


@pytest.mark.parametrize("harm", [lambda path: path.write_bytes(b""), lambda path: path.write_bytes(bytes(5000)), cut])
def test_results_of_a_damaged_gathered_file_are_not_kept(
    large: Large, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], object]
) -> None:
    expected = large.find("alone", Stopping(0))
    monkeypatch.setattr(module, "FILE_PAIRS", 15)
    with pytest.raises(KeyboardInterrupt):
        large.find("harmed", Stopping(20))
    folder = large.folder / "harmed" / "duplicates"
    write_array(folder / "en.3.0-1.npy", np.arange(75))
    harm(folder / "en.1.pairs")
    with pytest.raises(InputError, match=r"en\.1\.pairs: is damaged \(.*(15 pairs|empty file)\); delete it and"):
        large.find("harmed", Stopping(0))
    (folder / "en.1.pairs").unlink()
    after = Stopping(0)
    assert large.find("harmed", after) == expected
    assert after.done == 1 + 3 * (COLUMNS - 2) + 1


def test_a_worker_that_misses_files_of_a_shared_search_says_which(tmp_path: Path) -> None:
    equal, words = tmp_path / "x.exact.npy", tmp_path / "x.words.json"
    values = (equal, words, "en", 0, (0, range(1)), tmp_path / "x.0.npy", int)
    with pytest.raises(InputError, match=r"x\.pairs: is missing; put --out, .* on a disk that all workers share"):
        module._near_shard({tmp_path / "x.pairs": 1}, *values)
    write_array(equal, np.zeros(0, np.bool_))
    with pytest.raises(InputError, match=r"x\.words\.json: is damaged \(.*continue with --resume"):
        module._near_shard({}, *values)


def test_nothing_is_left_of_a_shared_search_of_a_language_that_is_dropped(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_PAIRS", 4)
    for done in (1, 60):
        with pytest.raises(KeyboardInterrupt):
            large.find(f"{done}", Stopping(done))
        large.find(f"{done}", Stopping(0), least=100)
        assert not list((large.folder / f"{done}" / "duplicates").iterdir())


def test_equal_pairs_of_many_files_are_marked_with_a_byte_per_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated, "PART_PAIRS", 50_000)
    monkeypatch.setattr(module, "VOCABULARY", 500)
    files, rows = 200, 10_000
    numbers = np.random.default_rng(2).integers(0, 1 << 20, (files, 4, rows), np.uint64)

    def texts(row: int) -> list[str]:
        return [f"{'abcdefgh'[row % 8]}{'abcdefgh'[row // 8 % 8]}{'ab'[row % 99 // 98]}", "yes"]

    tracemalloc.start()
    try:
        exact, counts = module._exact_duplicates((list(numbers), [], texts), "en", tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 5 * exact.size
    finally:
        tracemalloc.stop()
    order, thread, key = (numbers[:, column].ravel() for column in range(3))
    sorting = np.lexsort((thread, order, key))
    expected = np.zeros(exact.size, bool)
    expected[sorting[1:]] = key[sorting][1:] == key[sorting][:-1]
    assert (exact == expected).all()
    kept = np.flatnonzero(~exact)
    chosen = kept[order[kept] < np.sort(order[kept])[500]]
    found = count_words((text for row in chosen.tolist() for text in texts(row)), "en")
    assert counts == {word: number for word, number in found.items() if number >= OFTEN}
    assert len(count_words([], "en")) < len(found) > len(counts)


def of_another_bucket(path: Path) -> None:
    write_array(path, keyed_pairs(table(("en", "a", "b", 1)))[1])


@pytest.mark.parametrize("harm", [Path.unlink, cut, of_another_bucket, lambda path: path.write_bytes(b"")])
def test_a_damaged_file_of_signatures_is_named(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    path = write_bucket(tmp_path / "1.arrow", ("en", "a", "b", 1), ("en", "c", "d", 2))
    harm(signature_file(path))
    with pytest.raises(InputError, match=r"1\.signatures\.npy: is damaged \(.*--resume"):
        duplicates_shard(Part((Slice(path, 0, 0, 2),)), "en", 0, tmp_path / "en.npy", lambda _: None)
    assert not list(tmp_path.glob(".*"))
    write_array(tmp_path / "en.npy", np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="3 entries for 4 rows"):
        read_codes(tmp_path / "en.npy", 4)


class Column(list[np.ndarray]):
    """Arrays that count how often they are read one after the other."""

    read = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        self.read += 1
        return super().__iter__()


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_values_that_repeat_are_found_part_by_part_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    draw = np.random.default_rng(3)
    files = [draw.integers(0, 300, rows).astype(kind) for rows in (200, 0, 1, 300)]
    values, without = np.concatenate(files), draw.random(501) < 0.1
    arrival = [draw.integers(0, 99, (2, len(own)), np.uint64) for own in files]
    numbers = list(zip(*np.concatenate(arrival, axis=1).tolist(), range(501), strict=True))
    monkeypatch.setattr(repeated, "PART_PAIRS", 40)
    parts = repeated.parts_of(len(values))
    assert len(parts) == 13
    column = Column(files)
    found = [*repeated.repeated(column, arrival, parts, tmp_path, without)]
    assert column.read == 2  # for the number of values, and the values
    assert not list(tmp_path.iterdir())
    for part, (rows, opens) in zip(parts, found, strict=True):
        groups = [group.tolist() for group in np.split(rows, np.flatnonzero(opens)[1:])]
        expected = [np.flatnonzero((values == value) & ~without) for value in np.unique(values[values % 13 == part])]
        assert sorted(groups) == sorted(sorted(rows, key=numbers.__getitem__) for rows in expected if len(rows) > 1)
        [alone] = repeated.repeated(files, arrival, range(part, part + 1), tmp_path, without)
        assert [array.tolist() for array in alone] == [rows.tolist(), opens.tolist()]


def test_many_files_take_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(repeated, "PART_PAIRS", 100)
    kind, files = resource.RLIMIT_NOFILE, [np.arange(9, dtype=np.uint64)] * 200
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (len(os.listdir("/dev/fd")) + 50, before[1]))
    try:
        found = [*repeated.repeated(files, [], repeated.parts_of(1800), tmp_path)]
    finally:
        resource.setrlimit(kind, before)
    assert sum(len(rows) for rows, _ in found) == 1800


# --- Near duplicates ------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text("ab日\U0001f600", max_size=12), min_size=1, max_size=12)


def shingles(text: str, width: int = 5) -> set[str]:
    return {text[place : place + width] for place in range(max(1, len(text) - width + 1))}


def jaccard(a: str, b: str) -> float:
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


def random_text(draw: random.Random, length: int) -> str:
    return "".join(draw.choices("abcdefghij klmnop", k=length))


def edited(draw: random.Random, text: str, edits: int) -> str:
    letters = list(text)
    for place in draw.sample(range(len(text)), edits):
        letters[place] = "z"
    return "".join(letters)


def near(pairs: list[tuple[str, str]], language: str = "en") -> np.ndarray:
    """Which pairs have a near one before them, in the order of the list."""
    numbers = np.zeros((4, len(pairs)), np.uint64)
    numbers[0] = np.arange(len(pairs))
    sides = ([normalise_reply(text) for text in side] for side in zip(*pairs, strict=True))
    gathered = [numbers], [sign_pairs(*sides)], pairs.__getitem__
    words = count_words((text for pair in pairs for text in pair), language)
    exact, found = np.zeros(len(pairs), bool), np.zeros(len(pairs), bool)
    found[near_duplicates(gathered, exact, words, language, 0, pieces_of(len(pairs)), Path())[0]] = True
    return found


@given(TEXTS)
def test_equal_sets_have_equal_signatures_whatever_the_other_texts(texts: list[str]) -> None:
    together = signatures(texts)
    assert together.shape == (len(texts), BANDS, ROWS)
    for place, text in enumerate(texts):
        assert (signatures([text])[0] == together[place]).all()
        for other in range(place):
            same = shingles(text) == shingles(texts[other])
            assert same == bool((together[place] == together[other]).all())


def test_the_estimate_is_that_of_the_jaccard_index() -> None:
    draw = random.Random(1)
    errors, sizes = [], []
    for _ in range(400):
        text = random_text(draw, draw.randrange(10, 200))
        other = edited(draw, text, draw.randrange(0, 1 + len(text) // 20))
        a, b = signatures([text, other])
        true = jaccard(text, other)
        errors.append((a == b).mean() - true)
        sizes.append((true * (1 - true) / a.size) ** 0.5)
    assert abs(statistics.mean(errors)) < 0.015
    assert statistics.pstdev(errors) == pytest.approx(statistics.fmean(size**2 for size in sizes) ** 0.5, rel=0.2)


def test_signatures_never_change() -> None:
    assert signatures(["yes"]).ravel()[:4].tolist() == [22041, 15549, 36414, 55838]


def test_near_pairs_are_found_and_others_are_not() -> None:
    draw = random.Random(8)
    originals = [(random_text(draw, 150), random_text(draw, 150)) for _ in range(900)]
    alike = [(edited(draw, message, 1), edited(draw, reply, 1)) for message, reply in originals[:300]]
    other_reply = [(edited(draw, message, 1), random_text(draw, 150)) for message, _ in originals[300:600]]
    far = [(edited(draw, message, 30), edited(draw, reply, 30)) for message, reply in originals[600:]]
    found = near(originals + alike + other_reply + far)
    assert not found[:900].any()
    assert found[900:1200].mean() > 0.97  # but for errors that divide a word, or make one of another word
    assert not found[1200:].any()


def with_error(draw: random.Random, text: str, letters: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    """The text with one typing error: a letter changed, left out, inserted, or two exchanged."""
    places = [place for place, letter in enumerate(text) if letters != HIRAGANA or letter in KANA]
    while True:
        place, letter = draw.choice(places), draw.choice(letters)
        start, end = text[:place], text[place:]
        wrong = draw.choice(
            [start + letter + end[1:], start + end[1:], start + letter + end, start + end[1::-1] + end[2:]]
        )
        if normalise_reply(wrong) not in ("", normalise_reply(text)):
            return wrong


def test_chat_with_a_typing_error_on_each_side_is_found() -> None:
    shares = {}
    for language in ("en", "de", "es", "fr", "it", "nl", "pt", "ru", "sv"):
        draw = random.Random(5)
        chat = {pair: None for one in exchanges_of(language) for pair in zip(one.messages, one.replies, strict=False)}
        wrong = [(with_error(draw, message), with_error(draw, reply)) for message, reply in draw.sample([*chat], 150)]
        found = near([*chat, *wrong], language)
        assert not found[: len(chat)].any()
        shares[language] = found[len(chat) :].mean()
    assert statistics.mean(shares.values()) > 0.9, shares
    assert min(shares.values()) > 0.85, shares


def test_japanese_chat_with_a_wrong_kana_on_each_side_is_found() -> None:
    draw, chat = random.Random(5), {}
    for block in (PACKAGE / "everyday" / "ja.txt").read_text(encoding="utf-8").split("\n\n"):
        lines = [(line[:1], line.split("] ")[-1].lstrip("<> ")) for line in block.splitlines()]
        sides = ([text for mark, text in lines if mark == side] for side in "><")
        chat |= dict.fromkeys(pair for pair in zip(*sides, strict=False) if not any(map(KANA.isdisjoint, pair)))
    some = draw.sample([*chat], 600)
    wrong = [tuple(with_error(draw, side, HIRAGANA) for side in pair) for pair in some[:200]]
    found = near([*some, *wrong], "ja")
    assert not found[: len(some)].any()
    assert found[len(some) :].mean() > 0.5  # .54: each side alone is found in about 7 of 10


@pytest.mark.parametrize(("language", "one", "other"), cases(__file__, "test_another_meaning_is_no_typing_error"))
def test_another_meaning_is_no_typing_error(language: str, one: str, other: str) -> None:
    for pairs in ([("And then?", one), ("And then?", other)], [(one, "I see."), (other, "I see.")]):
        assert not near(pairs, language).any()
        assert not near(pairs[::-1], language).any()
    if language == "ja":  # even where all of a text is common, and nothing of the other
        for text in (one, other):
            assert not alike(one, other, common(text), language)


def common(text: str) -> Counter[str]:
    """Counts as if many texts had all words of a text, and none another."""
    return Counter(dict.fromkeys(count_words([text], "none"), FEWEST))


def test_a_wrong_kana_needs_many_texts() -> None:
    right, wrong = "ありがとうございます", "ありがとうごほいます"
    counts = common(right)
    assert alike(right, wrong, counts, "ja")
    assert alike(wrong, right, counts, "ja")
    assert not alike(right, wrong, Counter(dict.fromkeys(counts, FEWEST - 1)), "ja")
    assert not alike(right, wrong, counts + common(wrong), "ja")
    for entry in {entry for entry in counts if entry[0] == "_"} - {*common(wrong)}:
        assert not alike(right, wrong, counts - Counter({entry: FEWEST}), "ja"), entry


def test_no_two_of_many_japanese_texts_are_one(shared_data: Path) -> None:
    lines = (PACKAGE / "everyday" / "ja.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.split("] ")[-1].lstrip("<> ") for line in lines]
    texts += (shared_data / "replies" / "ja.tsv").read_text(encoding="utf-8").replace("\t", "\n").splitlines()
    counts, groups = count_words(texts, "ja"), dict[str, set[str]]()
    for text in {normalise_reply(text) for text in texts}:
        for place in range(len(text) + 1):  # at last, the text itself
            groups.setdefault(text[:place] + text[place + 1 :], set()).update([text])
    close = [pair for group in groups.values() for pair in combinations(sorted(group), 2)]
    known = [pair for language, *pair in cases(__file__, "test_another_meaning_is_no_typing_error") if language == "ja"]
    assert len(close) > 100
    assert not [pair for pair in [*close, *known] if alike(*pair, counts, "ja")]


def test_pairs_that_share_a_half_with_many_others_are_found() -> None:
    pairs = [(f"{LONG[:50]} {number}", "Sounds good to me") for number in range(12)]
    assert near([*pairs, (pairs[3][0], "Sounds good to mee")]).tolist() == [False] * 12 + [True]


def test_replies_to_one_message_stay_and_short_texts_are_alike_only_if_equal() -> None:
    message = random_text(random.Random(3), 300)
    replies = ["yes", "yep", "no", "no!", "", "thank you", "thanks you"]
    assert not near([(message, reply) for reply in dict.fromkeys(replies) if reply != "no!"]).any()
    short = [("no", "yes"), ("on", "yes"), ("no", "yes")]
    assert near(short).tolist() == [False, False, True]
