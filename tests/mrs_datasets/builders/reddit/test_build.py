"""The build from dumps to the data set, on pairs counted by hand, with a stub for the language model."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tqdm import tqdm

from mrs_datasets.builders.pipeline.stages import Shard
from mrs_datasets.builders.pipeline.work_folder import work_place
from mrs_datasets.builders.reddit import build as module
from mrs_datasets.builders.reddit import months as months_stage
from mrs_datasets.builders.reddit import pairs as pairs_stage
from mrs_datasets.builders.reddit import write as write_stage
from mrs_datasets.builders.reddit.build import build
from mrs_datasets.builders.reddit.plan import BuildPlan, Settings, make_build_plan, make_settings
from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.schema import SPLITS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from tests.dumps import leftovers, parquet_bytes, read_pairs, read_report

JANUARY, JUNE_2019 = 1514764800, 1559347200
FEW = {"min_examples": 1, "min_reply_count": 1, "buckets": 3}


class Stub:
    """Takes the first word for the language; `?` is a language that is not sure."""

    def identify(self, texts: list[str]) -> list[tuple[str, float]]:
        words = [text.split()[0] if text.split() else "und" for text in texts]
        return [("en", 0.7) if word == "?" else (word, 0.0 if word == "und" else 0.9) for word in words]


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageIdentifier, "open", lambda _: Stub())


class Month:
    """A dump that grows by pairs, each in a new thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []

    def add(self, message: str, reply: str, created: int = JANUARY, author: str = "somebody", **fields: Any) -> None:
        number = len(self.lines)
        link = f"t3_{self.path.stem}{number}"
        comment = {"link_id": link, "score": 1, "created_utc": created, "author": author}
        first = {"id": f"c{number}", "parent_id": link, "body": message}
        second = {"id": f"c{number + 1}", "parent_id": f"t1_c{number}", "body": reply, **fields}
        self.lines += [json.dumps({**comment, **first}), json.dumps({**comment, **second})]

    def write(self) -> Path:
        self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return self.path


def plan_of(tmp_path: Path, *months: Month, buckets: int = 3) -> BuildPlan:
    return make_build_plan([month.write() for month in months], tmp_path / "out", 1, 8 * 10**9, buckets)


def make(tmp_path: Path, model: Path, plan: BuildPlan, settings: Settings, **options: Any) -> dict[str, Any]:
    return build(plan, tmp_path / "out", settings, model, say=lambda _: None, **options)


def filled(path: Path, pairs: int = 60, created: int = JANUARY) -> Month:
    """Enough pairs in English and German for all splits."""
    month = Month(path)
    for number in range(pairs):
        for language in ("en", "de"):
            month.add(f"{language} message {number}", f"yes number {number % 7}", created)
    return month


def test_every_reason_is_counted_by_language(tmp_path: Path, model: Path) -> None:
    month = filled(tmp_path / "RC_2018-01")
    month.add("en late", "of June 2019", JUNE_2019)
    month.add("de late", "of June 2019", JUNE_2019)
    month.add("tlh nuqneH", "no language of MRS")
    month.add("? who", "knows")
    month.add("sv enda", "paret")
    month.add("en to a removed", "[removed]")
    settings = make_settings("paper", **{**FEW, "min_examples": 2})
    report = make(tmp_path, model, plan_of(tmp_path, month), settings)
    stages = report["pipeline"]["stages"]
    assert [(stage["stage"], stage["in"], stage["out"]) for stage in stages] == [
        ("read", 252, 252), ("filter", 252, 251), ("join", 251, 125), ("language", 125, 122),
        ("enough pairs", 122, 121),
    ]  # fmt: skip
    assert stages[1]["dropped"] == {"removed": 1}
    assert stages[2]["dropped"] == {"parent is a post": 126}
    assert report["pipeline"]["languages"] == {
        "de": {"kept": 61},
        "en": {"English of another month": 1, "kept": 60, "language uncertain": 1},
        "sv": {"language with too few pairs": 1},
        "tlh": {"not a language of MRS": 1},
    }
    assert [note for note in report["notes"] if "English" in note] == [
        "English pairs outside of 2018-01:2018-12 were dropped (1); --english-months all keeps them."
    ]
    pairs = read_pairs(tmp_path / "out")
    assert Counter(language for language, *_ in pairs.elements()) == {"de": 61, "en": 60}
    assert {split for _, split, *_ in pairs} == {"train", "validation", "test"}
    assert read_report(tmp_path / "out") == report
    assert leftovers(tmp_path, "out", "lid.ftz", "RC_2018-01") == []


@pytest.mark.parametrize(
    ("months", "kept"),
    [((), 120), (("2019-06", "2019-06"), 60), (("2018-01", "2019-05"), 60), (("2018-02", "2019-05"), 0)],
)
def test_english_of_all_months_and_of_some(tmp_path: Path, model: Path, months: tuple[str, ...], kept: int) -> None:
    """The reply's month counts; other languages are of all months."""
    files = [filled(tmp_path / "RC_2018-01"), filled(tmp_path / "RC_2019-06", created=JUNE_2019)]
    made = make(tmp_path, model, plan_of(tmp_path, *files), make_settings("paper", **FEW, english_months=months))
    languages = made["pipeline"]["languages"]
    assert languages["en"].get("kept", 0) == kept == 120 - languages["en"].get("English of another month", 0)
    assert languages["de"] == {"kept": 120}
    assert sum(made["configs"].get("en", {}).get(split, {}).get("rows", 0) for split in SPLITS) == kept


def test_masks_and_duplicates_across_buckets(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrs_datasets.builders.reddit.duplicates.tqdm", partial(tqdm, disable=True))  # TQDM_DISABLE=1
    month = filled(tmp_path / "RC_2018-01")
    for _ in range(40):
        month.add("en say it", "again")
    month.add("en see https://reddit.com/r/x/comments/abc", "thanks /u/somebody and me@some.example")
    long = "en I have been looking for a recipe for lentil soup since last winter, does anybody here know one"
    for number in range(20):
        month.add(f"{long}{' please' * (number % 2)}?", "Ask my mother, she has one that everybody likes.")
    for profile, again in (("paper", 40), ("clean", 1)):
        settings = make_settings(profile, **FEW, split_by="example")
        report = make(tmp_path, model, plan_of(tmp_path, month), settings, overwrite=True)
        pairs = Counter((message, reply) for _, _, message, reply in read_pairs(tmp_path / "out").elements())
        assert pairs["en say it", "again"] == again
        assert pairs["en see <url>", "thanks <user> and <email>"] == 1
        assert sum(count for (message, _), count in pairs.items() if message.startswith(long)) == (
            20 if again > 1 else 1
        )
        assert report["pipeline"]["languages"]["en"]["kept"] == sum(c for (m, _), c in pairs.items() if m[:2] == "en")
        assert report["pipeline"]["stages"][-1]["out"] == pairs.total()


def test_what_stays_does_not_depend_on_the_buckets(tmp_path: Path, model: Path) -> None:
    month = filled(tmp_path / "RC_2018-01")
    for number in range(60):
        month.add(
            f"en a message that comes in a few ways, number {number % 3}",
            "Yes! No problem at all, of course."[number % 2 :],
        )
        month.add(f"de {number % 5}", f"{'!' * (number % 4)} ja {'.' * (number % 7)}")
        month.add("sv samma", "sak")
    found = []
    for buckets in (1, 2, 7):
        plan = plan_of(tmp_path, month, buckets=buckets)
        settings = make_settings("clean", **{**FEW, "buckets": buckets, "min_examples": 3, "keep_rejects": 2})
        report = make(tmp_path, model, plan, settings, overwrite=True)
        groups = report["pipeline"]["rejects"]["near duplicate, en"]
        found.append(
            (read_pairs(tmp_path / "out"), report["pipeline"]["stages"], report["pipeline"]["languages"], groups)
        )
    assert found[0] == found[1] == found[2]
    assert {"exact duplicate", "near duplicate"} <= found[0][2]["en"].keys()
    assert len(groups) == 2
    for group in groups:  # both pairs, the earlier one first
        assert len({side.split(" → ")[0] for side in group.split(" ≈ ")}) == 1
    # Languages are chosen after duplicates are dropped.
    assert found[0][2]["sv"] == {"exact duplicate": 59, "language with too few pairs": 1}


def test_a_build_that_was_cut_off_after_its_last_step_is_whole(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, settings = plan_of(tmp_path, filled(tmp_path / "RC_2018-01")), make_settings("paper", **FEW)
    with monkeypatch.context() as patch:
        patch.setattr(module.WorkFolder, "remove", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path, model, plan, settings)
    assert work_place(tmp_path / "out").is_dir()
    before = parquet_bytes(tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        make(tmp_path, model, plan, settings)
    with pytest.raises(InputError, match="exists already"):
        make(tmp_path, model, plan, make_settings("paper", **{**FEW, "min_reply_count": 2}), resume=True)
    assert make(tmp_path, model, plan, settings, resume=True) == read_report(tmp_path / "out")
    assert parquet_bytes(tmp_path / "out") == before
    assert leftovers(tmp_path, "out", "lid.ftz", "RC_2018-01") == []


def test_half_written_and_replaced_data_sets_do_not_stay(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replaced one stays until the new one is there."""
    plan, settings = plan_of(tmp_path, filled(tmp_path / "RC_2018-01")), make_settings("paper", **FEW)
    for name in (".out.partial-abc", ".out.old-abc"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(
            write_stage, "funnel_page", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        with pytest.raises(InputError, match=r"out: cannot be written \(No space left"):
            make(tmp_path, model, plan, settings)
    assert leftovers(tmp_path, "lid.ftz", "RC_2018-01") == [".out.build", ".out.old-abc"]
    make(tmp_path, model, plan, settings, resume=True)
    assert leftovers(tmp_path, "lid.ftz", "RC_2018-01") == ["out"]


def test_months_stay_where_only_the_pairs_come_from_other_values(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, filled(tmp_path / "RC_2018-01"))
    with pytest.raises(InputError, match="lower --min-examples"):
        make(tmp_path, model, plan, make_settings("paper", **{**FEW, "min_examples": 1000}))
    monkeypatch.setattr(months_stage, "month_shard", lambda *_: 1 / 0)  # months are not read again
    said: list[str] = []
    settings = make_settings("clean", **FEW, drop_bots=False, english_months=("2018-01", "2018-02"))
    build(plan, tmp_path / "out", settings, model, resume=True, say=said.append)
    changed, _, consequence = said[0].partition(": ")
    assert changed == "resuming with different english_months, clean, min_examples, responses_from, split_by"
    assert consequence == "dependent stages are rebuilt, the rest is reused"
    resumed = parquet_bytes(tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(LanguageIdentifier, "open", lambda _: Stub())
    make(tmp_path, model, plan, settings, overwrite=True)
    assert parquet_bytes(tmp_path / "out") == resumed


def test_a_lost_file_of_signatures_is_made_again(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, settings = plan_of(tmp_path, filled(tmp_path / "RC_2018-01")), make_settings("clean", **FEW)
    whole = make(tmp_path, model, plan, settings)
    expected = parquet_bytes(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(write_stage, "write_data_set", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(tmp_path, model, plan, settings, overwrite=True)
    place = work_place(tmp_path / "out")
    for path in [*place.glob("pairs/*.npy"), *place.glob("duplicates/*.npy")]:
        path.unlink()
    shutil.rmtree(tmp_path / "out")
    assert make(tmp_path, model, plan, settings, resume=True) == whole
    assert parquet_bytes(tmp_path / "out") == expected


def test_work_is_next_to_the_folder_and_the_last_stage_may_have_other_values(tmp_path: Path, model: Path) -> None:
    """Not next to a link to the folder."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "mrs")
    plan = plan_of(tmp_path, filled(tmp_path / "RC_2018-01"))
    with pytest.raises(InputError, match=r"no reply occurs 500 times in all splits together; lower --min-reply-count"):
        make(tmp_path, model, plan, make_settings("paper", **{**FEW, "min_reply_count": 500}))
    assert [path.name for path in (tmp_path / "disk").iterdir()] == [".mrs.build"]
    made = make(tmp_path, model, plan, make_settings("paper", **FEW, max_responses=2), resume=True)
    assert made["configs"]["en-responses"]["train"]["rows"] == 2
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["mrs"]
    assert (tmp_path / "out").is_symlink()


def test_no_language_with_all_splits_names_a_remedy(tmp_path: Path, model: Path) -> None:
    month = Month(tmp_path / "RC_2018-01")
    month.add("en one", "pair")
    work = re.escape(str(work_place(tmp_path / "out")))
    with pytest.raises(InputError, match=rf"raise --min-examples.* Finished work is kept in {work}; continue with --r"):
        make(tmp_path, model, plan_of(tmp_path, month), make_settings("paper", **FEW))
    with pytest.raises(InputError, match=r"en: none of its 1 pairs falls into .*--split-by example\. "):
        make(tmp_path, model, plan_of(tmp_path, month), make_settings("clean", **FEW), overwrite=True)


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_a_language_without_a_split_or_responses_is_left_out_and_counted(
    tmp_path: Path, model: Path, profile: str
) -> None:
    month = filled(tmp_path / "RC_2018-01")
    month.add("sv enda", "paret")
    for number in range(60):
        month.add(f"it numero {number}", f"risposta {number}")
    said: list[str] = []
    settings = make_settings(profile, **{**FEW, "min_reply_count": 2})
    report = build(plan_of(tmp_path, month), tmp_path / "out", settings, model, say=said.append)
    assert {config[:2] for config in report["configs"]} == {"en", "de"}
    languages, stage = report["pipeline"]["languages"], report["pipeline"]["stages"][-1]
    reason = "language without a split or a response set"
    lost = languages["it"][reason]
    assert languages["sv"] == {reason: 1}
    assert (stage["dropped"], stage["out"]) == ({reason: lost + 1}, stage["in"] - lost - 1)
    assert "kept" not in languages["it"]
    told = [line for line in said if line.startswith("warning")]
    assert [line.split(":")[1].split()[0] for line in told] == ["sv", "it"]
    assert "sv was left out: none of its 1 pairs falls into" in told[0]
    assert "it was left out: no reply occurs 2 times" in told[1]
    assert report["notes"] == report["pipeline"]["warnings"] == [line.removeprefix("warning: ") for line in told]


def threads(path: Path) -> Month:
    """Threads of one message with three answers, one of which is answered."""
    month = Month(path)
    for number in range(40):
        link, rows = f"t3_p{number}", []
        rows.append(("m", link, "en what is it"))
        rows += [(f"r{place}", f"t1_{number}m", f"en answer {number} {place}") for place in range(3)]
        rows.append(("s", f"t1_{number}r0", f"en again {number}"))
        month.lines += [
            json.dumps({"id": f"{number}{own}", "parent_id": parent, "link_id": link, "body": body, "score": 1,
                        "created_utc": JANUARY, "author": "a"})
            for own, parent, body in rows
        ]  # fmt: skip
    return month


def test_what_crosses_splits_is_counted_and_reported_by_check(tmp_path: Path, model: Path) -> None:
    plan = plan_of(tmp_path, threads(tmp_path / "RC_2018-01"), buckets=1)
    report = make(tmp_path, model, plan, make_settings("paper", **FEW))
    found = report["pipeline"]["leakage"]["en"]
    # by hand: from the texts, each of which names its comments
    split_of = {reply: split for _, split, _, reply in read_pairs(tmp_path / "out")}
    answers = {n: [split_of[f"en answer {n} {place}"] for place in range(3)] for n in range(40)}
    again = {n: split_of[f"en again {n}"] for n in range(40)}
    crossing = {
        "threads": sum(len({*answers[n], again[n]}) > 1 for n in range(40)),
        "messages": sum(len(set(answers[n])) > 1 for n in range(40)),
        "comments": sum((len(set(answers[n])) > 1) + (answers[n][0] != again[n]) for n in range(40)),
    }
    assert min(crossing.values()) > 5
    assert found == {
        "threads": 40, "messages": 80, "comments": 200,
        **{f"{what} in several splits": count for what, count in crossing.items()},
    }  # fmt: skip
    told = {(f.level, f.rule): f.count for f in check(open_prepared(str(tmp_path / "out"))) if "Reddit" in f.rule}
    assert told == {
        ("warning", f"the same {what} of Reddit in several splits"): count for what, count in crossing.items()
    }
    buckets = make(tmp_path, model, replace(plan, buckets=7), make_settings("paper", **FEW), overwrite=True)
    assert buckets["pipeline"]["leakage"]["en"] == found
    clean = make(tmp_path, model, plan, make_settings("paper", **FEW, split_by="thread"), overwrite=True)
    leakage = clean["pipeline"]["leakage"]["en"]
    assert [count for what, count in leakage.items() if "several" in what] == [0, 0, 0]
    assert [f for f in check(open_prepared(str(tmp_path / "out"))) if "Reddit" in f.rule] == []
    clean["pipeline"]["leakage"]["en"]["threads in several splits"] = 3
    (tmp_path / "out" / "report.json").write_text(json.dumps(clean))
    wrong = [f for f in check(open_prepared(str(tmp_path / "out"))) if "Reddit" in f.rule]
    assert [(f.level, f.count, f.examples) for f in wrong] == [("error", 3, ("3 of 40 (from report.json)",))]


@pytest.mark.parametrize(("profile", "counted"), [("paper", SPLITS), ("clean", SPLITS[:1])])
def test_replies_are_counted_in_the_whole_data_set_as_in_the_paper_or_in_training(
    tmp_path: Path, model: Path, profile: str, counted: tuple[str, ...]
) -> None:
    settings = make_settings(profile, **{**FEW, "min_reply_count": 2})
    make(tmp_path, model, plan_of(tmp_path, filled(tmp_path / "RC_2018-01")), settings)
    replies = Counter(
        reply for language, split, _, reply in read_pairs(tmp_path / "out") if language == "en" and split in counted
    )
    rows = open_prepared(str(tmp_path / "out")).load("en-responses", "train").to_list()
    assert {row["reply"]: row["count"] for row in rows} == {text: n for text, n in replies.items() if n >= 2}


def test_of_an_altered_frame_nothing_is_kept_and_of_those_behind_it_everything(tmp_path: Path, model: Path) -> None:
    """Frames may end within a line; the two halves must not become one."""
    month = filled(tmp_path / "plain", 100)
    lines = [line.encode() + b"\n" for line in month.lines]
    content, cut = b"".join(lines), [sum(map(len, lines[:100])) - 9, sum(map(len, lines[:200])) - 9]
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    frames = [content[: cut[0]], content[cut[0] : cut[1]], content[cut[1] :]]
    packed = [pack(frame) for frame in frames]
    packed[1] = packed[1][:-4] + bytes(4)
    dump = Month(tmp_path / "RC_2018-01")
    dump.path.write_bytes(b"".join(packed))
    plan = make_build_plan([dump.path], tmp_path / "out", 1, 8 * 10**9, 3)
    report = make(tmp_path, model, plan, make_settings("paper", **FEW))
    assert report["pipeline"]["warnings"] == [
        "RC_2018-01: frame 2 does not match its checksum; nothing of it was used."
    ]
    read = report["pipeline"]["stages"][0]
    assert (read["in"], read["dropped"]) == (99 + 1 + 1 + 200, {"broken JSON": 2})
    messages = {int(message.split()[-1]) for _, _, message, _ in read_pairs(tmp_path / "out")}
    assert messages == {*range(25), *range(50, 100)}
    dump.path.write_bytes(packed[1])
    plan = make_build_plan([dump.path], tmp_path / "out", 1, 8 * 10**9, 3)
    with pytest.raises(InputError, match=r"RC_2018-01: no complete line could .*checksums.*fetch it again[^-]*$"):
        make(tmp_path, model, plan, make_settings("paper", **FEW), overwrite=True)
    assert not work_place(tmp_path / "out").exists(), "nothing was finished"


class Backwards:
    """An engine: the last shard first, each twice, in this process."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def about(self) -> dict[str, str]:
        return {}

    def do(self, shards: Sequence[Shard], bar: Any) -> Iterator[tuple[Shard, dict[str, Any]]]:
        for shard in reversed(shards):
            self.stages.append(shard.output.parent.name)
            shard.work(lambda _: None)
            counts = shard.work(lambda _: None)
            bar.update(shard.size)
            yield shard, counts


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_a_language_in_parts_is_the_same_for_every_engine_and_after_a_crash(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    plan = plan_of(tmp_path, filled(tmp_path / "RC_2018-01", 200), buckets=7)
    settings = make_settings(profile, **{**FEW, "min_reply_count": 2}, split_by="example")
    whole = make(tmp_path, model, plan, settings)
    pairs, replies = read_pairs(tmp_path / "out"), open_prepared(str(tmp_path / "out")).load("en-responses", "train")
    assert [len(split["files"]) for split in whole["configs"]["en"].values()] == [1, 1, 1]
    monkeypatch.setattr(write_stage, "PART_PAIRS", 60)
    parts = make(tmp_path, model, plan, settings, overwrite=True)
    assert len(parts["configs"]["en"]["train"]["files"]) == 4
    assert read_pairs(tmp_path / "out") == pairs
    assert open_prepared(str(tmp_path / "out")).load("en-responses", "train").to_list() == replies.to_list()
    assert [finding for finding in check(open_prepared(str(tmp_path / "out"))) if finding.level == "error"] == []
    expected = parquet_bytes(tmp_path / "out")
    assert make(tmp_path, model, plan, settings, overwrite=True, engine=Backwards())["configs"] == parts["configs"]
    assert parquet_bytes(tmp_path / "out") == expected
    with monkeypatch.context() as patch:
        patch.setattr(pairs_stage, "LEAST_GROUPS", 2)
        make(tmp_path, model, plan, settings, overwrite=True)
        assert parquet_bytes(tmp_path / "out") == expected
    shutil.rmtree(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(write_stage, "frequent_replies", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(tmp_path, model, plan, settings)
    shutil.rmtree(work_place(tmp_path / "out") / "write" / "en.00001")  # lost with the disk's cache
    assert make(tmp_path, model, plan, settings, resume=True)["configs"] == parts["configs"]
    assert parquet_bytes(tmp_path / "out") == expected
