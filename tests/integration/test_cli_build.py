"""`mrs data build` in its own process: synthetic months in, the data set out, every comment accounted for."""

import json
import re
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.builders.reddit.months import BOT
from mrs_datasets.builders.reddit.read import BOT_NAMES
from mrs_datasets.prepared.schema import SPLITS
from mrs_datasets.synthetic.threads import BOT_BODY, NAMES
from tests.cases import cases
from tests.dumps import SMALL, leftovers, parquet_bytes, read_pairs, read_report, write_months

pytestmark = pytest.mark.integration

COMMENTS = 5000
BUCKETS = 4
ENOUGH = {"paper": 300, "clean": 1000}  # few of the synthetic threads are long: by thread, only English has all splits
Done = subprocess.CompletedProcess


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)


@pytest.fixture(scope="module")
def build(mrs, lid_model: Path, dumps: Path):
    """Return a function that builds the months in a folder."""

    def run(cwd: Path, *options: object) -> Done[str]:
        start = ("data", "build", "--dumps", dumps / "RC_*.zst", "--out", "out", "--language-model", lid_model)
        return mrs(*start, "--buckets", BUCKETS, *SMALL, *options, cwd=cwd)

    return run


@pytest.fixture(scope="module")
def built(build, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the data set of each profile, built by one worker."""
    folders = {}
    for profile in ("paper", "clean"):
        folders[profile] = tmp_path_factory.mktemp(profile)
        done = build(folders[profile], "--profile", profile, "--min-examples", ENOUGH[profile], "--workers", 1)
        assert done.returncode == 0, done.stderr
        assert "wrote out: data/, README.md, report.json, report.html" in done.stdout
        assert leftovers(folders[profile]) == ["out"]
    return {profile: folder / "out" for profile, folder in folders.items()}


def manifest_of(dumps: Path) -> dict:
    return json.loads((dumps / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_the_counts_are_those_of_the_generator(built, dumps: Path, profile: str) -> None:
    manifest = manifest_of(dumps)
    expected = manifest["profiles"][profile]
    pipeline = read_report(built[profile])["pipeline"]
    read, kept, joined, told = pipeline["stages"][:4]
    rejected: Counter[str] = Counter()
    for facts in manifest["files"].values():
        rejected.update(facts["rejected"])
    assert (read["in"], read["dropped"]) == (2 * COMMENTS, rejected)
    assert (kept["dropped"], kept["out"]) == (expected["dropped"], expected["kept"])
    assert (BOT in kept["dropped"]) == (profile == "clean")
    unmatched = expected["unmatched"]
    assert joined["out"] == expected["pairs"]
    assert joined["dropped"] == {
        "comment twice": unmatched["comment twice"],
        "parent is a post": unmatched["parent is a post"],
        "parent not in the data": sum(
            unmatched.get(reason, 0)
            for reason in ("parent dropped", "parent not in the data", "parent under another post")
        ),
    }
    # The model knows the phrases of which the months are made: few of those that it is sure of are another language's.
    for language, pairs in expected["pairs_by_language"].items():
        row = pipeline["languages"][language]
        assert sum(row.values()) - row.get("language uncertain", 0) <= 1.1 * pairs + 5, language
        assert sum(row.values()) >= 0.8 * pairs - 5, language
    assert told["in"] == sum(expected["pairs_by_language"].values())


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_stages_languages_and_rows_add_up(built, profile: str) -> None:
    report = read_report(built[profile])
    pipeline = report["pipeline"]
    stages = pipeline["stages"]
    assert [stage["stage"] for stage in stages] == (
        ["read", "filter", "join", "language", "enough pairs"]
        if profile == "paper"
        else ["read", "filter", "join", "language and cleaning", "duplicates", "enough pairs"]
    )
    for before, after in pairwise(stages):
        assert before["out"] == after["in"]
    for stage in stages:
        assert stage["out"] == stage["in"] - sum(stage["dropped"].values())
    kept = {language: row["kept"] for language, row in pipeline["languages"].items() if row.get("kept")}
    assert sum(kept.values()) == stages[-1]["out"]
    assert sum(sum(row.values()) for row in pipeline["languages"].values()) == stages[3]["in"]
    rows = {language: sum(report["configs"][language][split]["rows"] for split in SPLITS) for language in kept}
    assert rows == kept
    assert set(report["configs"]) == set(kept) | {f"{language}-responses" for language in kept}
    assert read_pairs(built[profile]).total() == sum(kept.values())
    departures = {"min_examples": ENOUGH[profile], "min_reply_count": SMALL[3], "buckets": BUCKETS}
    assert (pipeline["profile"], pipeline["departures"]) == (profile, departures)


def test_workers_change_nothing_and_buckets_only_files(build, built, tmp_path: Path) -> None:
    """In `paper`; `clean` looks for near duplicates within a bucket."""
    done = build(tmp_path, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert "2 workers" in done.stderr
    assert parquet_bytes(tmp_path / "out") == parquet_bytes(built["paper"])
    assert (tmp_path / "out" / "report.json").read_bytes() == (built["paper"] / "report.json").read_bytes()
    done = build(tmp_path, "--workers", 1, "--buckets", 7, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert read_pairs(tmp_path / "out") == read_pairs(built["paper"])
    for path in built["paper"].glob("data/*-responses/*.parquet"):
        assert pq.read_table(tmp_path / "out" / path.relative_to(built["paper"])).equals(pq.read_table(path))


PATTERNS = {
    "an address": r"https?://|www\.\w",
    "a name": r"(?<![\w/])/?u/\w",
    "a mail address": r"[\w.+-]+@[\w-]+\.\w",
    "a quote": r"(?m)^\s*(?:>|&gt;)\s",
}


def test_clean_has_no_bot_no_address_and_no_name(built) -> None:
    texts = {text for _, _, *pair in read_pairs(built["clean"]) for text in pair}
    for what, pattern in PATTERNS.items():
        found = [text for text in texts if re.search(pattern, text)]
        assert not found, f"{what}: {found[:3]}"
    assert not [text for text in texts if BOT_BODY in text]
    for mark in ("<url>", "<user>", "<email>"):
        assert any(mark in text for text in texts), f"nothing to mask is no test: {mark}"
    assert any(BOT_BODY in message or BOT_BODY in reply for _, _, message, reply in read_pairs(built["paper"]))
    assert not [pair for pair, count in read_pairs(built["clean"]).items() if count > 1]


@pytest.mark.parametrize("profile", ["paper", "clean"])
def test_no_name_and_no_id_is_anywhere_in_the_output(built, dumps: Path, profile: str) -> None:
    assert manifest_of(dumps)["names"] == NAMES
    forbidden = [*NAMES.values(), "t1_", "t3_", "/comments/", *(bot for bot in BOT_NAMES if len(bot) > 8)]
    looked_at = 0
    for path in built[profile].rglob("*"):
        if path.is_dir():
            continue
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            columns = [table[name].to_pylist() for name in table.column_names if table[name].type == pa.string()]
            assert not {"thread", "order", "id"} & set(table.column_names)
            text = "\n".join(str(value) for column in columns for value in column)
        else:
            text = path.read_text(encoding="utf-8")
        assert [word for word in forbidden if word.lower() in text.lower()] == [], path
        looked_at += len(text)
    assert looked_at > 100_000
    assert {path.name for path in built[profile].iterdir()} == {"data", "README.md", "report.json", "report.html"}


WRONG = cases(__file__, "WRONG")


@pytest.fixture
def build_here(mrs_here, dumps: Path, lid_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs the command in this process, which takes less time; it works in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    start = ("data", "build", "--dumps", dumps / "RC_*.zst", "--out", "out", "--language-model", lid_model)
    return lambda *options: mrs_here(*start, *options)


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_one_sentence(build_here, tmp_path: Path, options, words) -> None:
    code, out, err = build_here(*options)
    assert (code, out) == (2, "")
    assert [word for word in words if word not in err.splitlines()[-1]] == [], err
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_in_the_place_is_kept(build_here, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for options, words in (([], "exists already"), (["--overwrite"], "(no report.json)")):
        code, _, err = build_here(*options, "--workers", 1)
        assert (code, words in err.splitlines()[-1]) == (2, True), err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_the_plan_alone_writes_nothing(build_here, tmp_path: Path) -> None:
    code, _, err = build_here("--plan")
    assert code == 0
    assert "RC_2018-01.zst, RC_2018-02.zst" in err
    assert list(tmp_path.iterdir()) == []
