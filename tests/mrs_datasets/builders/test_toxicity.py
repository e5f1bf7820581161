"""The toxicity pass: the paper's rules by hand, equal to brute force, no text scored twice."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.builders import passes as running
from mrs_datasets.builders.passes import run_passes
from mrs_datasets.builders.toxicity import ENGLISH_THRESHOLD, THRESHOLD, Rule, ToxicityPass
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.publishing import prepared_publication
from mrs_datasets.prepared.report import Report, pass_tables
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA, SPLITS
from mrs_datasets.prepared.writer import write_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import location
from mrs_suggest.common.text.text_services import ServiceFacts
from tests.cases import cases
from tests.dumps import all_bytes
from tests.scoring_server import hashed


@dataclass
class Fake:
    """A scorer that counts what it is asked.

    Attributes:
        fails_after: texts, after which it is interrupted, or stops with `error`.
    """

    name: str = "fake"
    version: str = "1"
    at_once: int | None = 50
    known: frozenset[str] | None = None
    gives: Callable[[str], float] = hashed
    fails_after: int | None = None
    error: BaseException = field(default_factory=KeyboardInterrupt)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def facts(self) -> ServiceFacts:
        return ServiceFacts("fake", self.name, self.version, "mit")

    def languages(self) -> frozenset[str] | None:
        return self.known

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        assert len(texts) <= (self.at_once or len(texts))
        if self.fails_after is not None and self.asked.total() >= self.fails_after:
            raise self.error
        self.asked.update((language, text) for text in texts)
        return [self.gives(text) for text in texts]


def by_words(text: str) -> float:
    """`9` scores .95, `6` .6, `f` .5 exactly; all else .1."""
    return max([0.1, *(score for word, score in (("9", 0.95), ("6", 0.6), ("f", 0.5)) if word in text.split())])


PAIRS = cases(__file__, "PAIRS")
KEPT = {
    ("en", "train"): [0, 2, 3],
    ("en", "validation"): [2, 3],  # .5 is not above .5
    ("en", "test"): [1],
    ("es", "train"): [2, 3],
    ("es", "validation"): [0, 1],
    ("es", "test"): [0, 2],
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder made by hand, with response sets and translated pairs."""
    chunks = [(code, split, pairs(*found)) for code, splits in PAIRS.items() for split, found in splits.items()]
    for code, splits in PAIRS.items():
        counted = Counter(reply for _, reply in splits["train"])
        chunks.append((f"{code}-responses", "train", response_table(sorted(counted.items()), 4, len(counted))))
    return written(
        tmp_path_factory.mktemp("small") / "mrs", [*chunks, ("mt-es", "train", pairs(("t", "u 9"), ("v", "w")))]
    )


def pairs(*found: tuple[str, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("message", "reply"), pair, strict=True)) for pair in found], PAIR_SCHEMA)


def written(folder: Path, chunks: Sequence[tuple[str, str, pa.Table]]) -> Path:
    write_prepared(folder, chunks, Report("pairs", partial=True), MRS, "made by hand")
    return folder


def rows(folder: Path, config: str, split: str) -> list[dict[str, object]]:
    data = open_prepared(str(folder))
    return list(pa.concat_tables([pq.read_table(path) for path in data.files(config, split)]).to_pylist())


def paper(first: Fake, second: Fake | None = None, **options: int) -> ToxicityPass:
    rules = [Rule(first, THRESHOLD), *([Rule(second, ENGLISH_THRESHOLD, True)] if second else [])]
    return ToxicityPass(tuple(rules), **options)


def test_the_rules_of_the_paper_by_hand(small: Path, tmp_path: Path) -> None:
    first, second = Fake(gives=by_words), Fake("second", gives=by_words)
    report = run_passes(str(small), [paper(first, second)], tmp_path / "out")
    for (config, split), places in KEPT.items():
        before = rows(small, config, split)
        assert rows(tmp_path / "out", config, split) == [before[place] for place in places]
    assert [row["message"] for row in rows(tmp_path / "out", "mt-es", "train")] == ["v"]
    # Replies of the training split: English ones are looked at by both, Spanish ones by the first alone.
    assert {row["reply"] for row in rows(tmp_path / "out", "en-responses", "train")} == {"b", "d", "g"}
    assert {row["reply"] for row in rows(tmp_path / "out", "es-responses", "train")} == {"b", "f 6", "h"}
    (entry,) = report["passes"]
    assert (entry["in"], entry["out"]) == (19, 12)
    assert entry["dropped"] == {"toxic": 5, "toxic (English scorer)": 2}
    parts = entry["about"]["parts"]
    assert parts["en/validation"] == {"rows": 4, "dropped": 2, "toxic": 1, "toxic (English scorer)": 2}
    assert parts["es/train"] == {"rows": 4, "dropped": 2, "toxic": 2}
    assert parts["en-responses/train"]["toxic (English scorer)"] == 1
    assert {code for code, _ in second.asked} == {"en"}
    assert ("en", "c 9") not in second.asked  # a message of the training split
    assert entry["about"]["models"] == [
        {"rule": "toxic", "kind": "fake", "name": "fake", "version": "1", "licence": "mit", "dropped above": 0.9,
         "looks at": "all"},
        {"rule": "toxic (English scorer)", "kind": "fake", "name": "second", "version": "1", "licence": "mit",
         "dropped above": 0.5, "looks at": "English validation, test, responses"},
    ]  # fmt: skip
    assert entry["about"]["scores"]["toxic"]["from .9"] == sum(
        by_words(str(row.get("message"))) > 0.9 or by_words(str(row["reply"])) > 0.9
        for config, splits in report["configs"].items()
        for split in splits
        for row in rows(small, config, split)
    )
    card = (tmp_path / "out" / "README.md").read_text()
    assert "In 19, out 12; dropped: toxic 5, toxic (English scorer) 2." in card
    assert "| toxic | fake | fake | 1 | mit | 0.9 | all |" in card
    assert [title for title, _ in pass_tables(entry)] == ["models", "parts", "scores"]


def test_equal_to_brute_force_with_small_shards(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROWS", 100)
    scorer = Fake()
    report = run_passes(str(sample), [paper(scorer)], tmp_path / "out")
    dropped = 0
    for config, splits in report["configs"].items():
        for split in splits:
            before = rows(sample, config, split)
            wanted = [
                row
                for row in before
                if max(hashed(str(row[name])) for name in ("message", "reply") if name in row) <= np.float32(0.9)
            ]
            assert rows(tmp_path / "out", config, split) == wanted
            if config in open_prepared(str(sample)).languages():
                dropped += len(before) - len(wanted)
    (entry,) = report["passes"]
    assert entry["in"] - entry["out"] == dropped == sum(entry["dropped"].values()) > 100
    assert set(scorer.asked.values()) == {1}  # though messages and replies repeat in every shard


def test_an_interrupted_pass_and_one_with_a_cache_ask_for_no_text_again(sample: Path, tmp_path: Path) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    for most, error in (
        (60, KeyboardInterrupt()),
        (200, InputError("the key has expired.")),
        (400, KeyboardInterrupt()),
    ):
        scorer = Fake(fails_after=most, error=error)
        with pytest.raises(type(error)):
            run_passes(str(sample), [paper(scorer)], tmp_path / "out", resume=True)
        asked += scorer.asked
    last = Fake()
    report = run_passes(str(sample), [paper(last)], tmp_path / "out", resume=True)
    assert set((asked + last.asked).values()) == {1}
    run_passes(str(sample), [paper(Fake())], tmp_path / "whole")
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
    silent = Fake(fails_after=0)
    assert run_passes(str(sample), [paper(silent)], tmp_path / "out", resume=True) == report  # which is complete
    cache = tmp_path / "cache.sqlite"
    for fails_after in (None, 0):
        run_passes(str(sample), [paper(Fake(fails_after=fails_after))], tmp_path / f"{fails_after}", cache=cache)
        assert all_bytes(tmp_path / f"{fails_after}") == all_bytes(tmp_path / "whole")


def test_a_remote_folder_is_resumed_without_asking_again(sample: Path, tmp_path: Path) -> None:
    out = location("memory://toxicity/out", tmp_path / "scratch")
    first, second = Fake(fails_after=500), Fake()
    with pytest.raises(KeyboardInterrupt):
        run_passes(str(sample), [paper(first)], out)
    report = run_passes(str(sample), [paper(second)], out, resume=True)
    assert set((first.asked + second.asked).values()) == {1}
    run_passes(str(sample), [paper(Fake())], tmp_path / "whole")
    assert (out / "report.json").read_text(encoding="utf-8") == (tmp_path / "whole" / "report.json").read_text()
    assert report["passes"][0]["out"] < report["passes"][0]["in"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_split_that_would_be_empty_is_one_sentence(small: Path, tmp_path: Path) -> None:
    scorer = Fake(gives=lambda text: 0.95 if text in ("m", "o 9", "q") else 0.0)
    with pytest.raises(InputError, match=r"es/test: all of its 3 rows are above --toxicity-threshold 0.9 \(fake\)"):
        run_passes(str(small), [paper(scorer)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_languages_that_a_scorer_does_not_know(small: Path, tmp_path: Path) -> None:
    report = run_passes(str(small), [paper(Fake(gives=by_words, known=frozenset({"es"})))], tmp_path / "out")
    assert rows(tmp_path / "out", "en", "train") == rows(small, "en", "train")
    note = report["notes"][-1]
    assert note.startswith("en: 14 rows were not scored by fake (toxic), which does not know")
    with pytest.raises(InputError, match=r"--toxicity fake: knows none of the .* mrs \(en es\), but fi; pass"):
        run_passes(str(small), [paper(Fake(known=frozenset({"fi"})))], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_examples_are_masked_and_not_published(small: Path, tmp_path: Path) -> None:
    texts = [("write to ana@example.org 9", "no"), ("9 u/some_one", "see https://example.org/a"), ("good", "fine")]
    written(tmp_path / "private", [("es", split, pairs(*texts)) for split in SPLITS])
    report = run_passes(str(tmp_path / "private"), [paper(Fake(gives=by_words), examples=1)], tmp_path / "out")
    shown = report["passes"][0]["about"]["rejects"]["toxic"]
    assert shown[0] == {"part": "es/train", "score": 0.95, "message": "write to <email> 9", "reply": "no"}
    assert Counter(row["part"] for row in shown) == {"es/train": 1, "es/validation": 1, "es/test": 1}
    assert "example" not in json.dumps(shown)
    with pytest.raises(InputError, match=r"contains texts that were dropped \(--keep-rejects\)"):
        prepared_publication(tmp_path / "out", "org/mrs")
    run_passes(str(tmp_path / "private"), [paper(Fake(gives=by_words))], tmp_path / "none")
    prepared_publication(tmp_path / "none", "org/mrs")
    assert "rejects" not in (tmp_path / "none" / "README.md").read_text()


def test_a_damaged_file_of_scores_is_named(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_passes(str(sample), [paper(Fake(fails_after=500))], tmp_path / "out")
    path = next((tmp_path / ".out.build" / "toxicity").glob("*.npy"))
    np.save(path, np.full((1, 3), 0.5, np.float32))
    with pytest.raises(InputError, match=rf"{path.name}: is damaged"):
        run_passes(str(sample), [paper(Fake())], tmp_path / "out", resume=True)
