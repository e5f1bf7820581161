"""`mrs data toxicity`, and the stage in `mrs data build`, through the command."""

import html
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.schema import SPLITS
from mrs_datasets.synthetic.dumps import write_toxic_words
from mrs_datasets.synthetic.speech import TOXIC_WORDS
from tests.cases import cases
from tests.classifiers import write_classifier
from tests.command import refused
from tests.dumps import SMALL, leftovers, parquet_bytes, read_pairs, read_report, write_months
from tests.scoring_server import Failure, scoring_server

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classifier(tmp_path_factory.mktemp("models") / "tiny", [f"some text {number}" for number in range(99)])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "mrs"
    prepare_mrs("sample", folder)
    return folder


def test_a_prepared_folder_with_two_scorers_and_a_cache(mrs, data: Path, model: Path, tmp_path: Path) -> None:
    command = ["data", "toxicity", data, "--toxicity", "words", "--toxicity-english", model, "--cache", "c.sqlite"]
    done = mrs(*command, "--toxicity-english-threshold", 0.8, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote out" in done.stdout
    assert leftovers(tmp_path) == ["c.sqlite", "out"]
    entry = read_report(tmp_path / "out")["passes"][0]
    assert 0 < entry["dropped"]["toxic"] < 100
    assert entry["dropped"]["toxic (English scorer)"] > 0
    assert entry["out"] == read_pairs(tmp_path / "out").total()
    assert {model["kind"] for model in entry["about"]["models"]} == {"words", "classifier"}
    assert mrs("data", "check", "out", cwd=tmp_path).returncode == 0
    size = (tmp_path / "c.sqlite").stat().st_size
    again = mrs(*command, "--toxicity-english-threshold", 0.8, "--out", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert parquet_bytes(tmp_path / "again") == parquet_bytes(tmp_path / "out")
    assert (tmp_path / "c.sqlite").stat().st_size == size


def test_the_stage_of_a_build(mrs, lid_model: Path, tmp_path: Path) -> None:
    dumps = write_months(tmp_path / "dumps", 5000)
    start = ["data", "build", "--dumps", dumps / "RC_*.zst", "--language-model", lid_model, "--buckets", 4, *SMALL]
    write_toxic_words(tmp_path / "toxic_words")
    words = ["--toxicity", f"words:{tmp_path / 'toxic_words'}"]
    done = mrs(*start, "--workers", 1, *words, "--keep-rejects", 1, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = read_report(tmp_path / "out")
    stages = report["pipeline"]["stages"]
    assert stages[-1]["stage"] == "toxicity"
    assert stages[-1]["dropped"]["toxic"] > 20
    for before, after in pairwise(stages):
        assert before["out"] == after["in"]
        assert after["out"] == after["in"] - sum(after["dropped"].values())
    kept = {language: row["kept"] for language, row in report["pipeline"]["languages"].items() if row.get("kept")}
    rows = {language: sum(report["configs"][language][split]["rows"] for split in SPLITS) for language in kept}
    assert rows == kept
    for path in (tmp_path / "out" / "data").glob("*/*.parquet"):
        table = pq.read_table(path)
        texts = [
            text for name in ("message", "reply") if name in table.column_names for text in table[name].to_pylist()
        ]
        assert not [text for text in texts if any(word in text.lower() for word in TOXIC_WORDS.values())]
    examples = report["passes"][0]["about"]["rejects"]["toxic"]
    assert mrs("data", "view", "out", "--out", "view.html", cwd=tmp_path).returncode == 0
    view = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert f"toxic ({len(examples)} examples)" in view
    assert html.escape(" · ".join(map(str, examples[0].values()))) in view
    assert view.count("<td>toxicity") == 1
    assert f"toxic {stages[-1]['dropped']['toxic']:,}" in view
    page = (tmp_path / "out" / "report.html").read_text()
    assert ">Toxicity</h2>" in page
    assert "toxic_words" in page
    assert report["passes"][0]["about"]["rejects"]["toxic"]
    assert TOXIC_WORDS["en"] not in page
    done = mrs("data", "publish", "out", "--repo", "me/mrs", "--dry-run", cwd=tmp_path)
    assert "contains texts that were dropped" in done.stderr
    # A build without the stage has the same rows, but for the toxic ones.
    assert mrs(*start, "--workers", 1, "--out", "all", cwd=tmp_path).returncode == 0
    more = read_pairs(tmp_path / "all") - read_pairs(tmp_path / "out")
    assert more.total() == stages[-1]["dropped"]["toxic"]
    assert all(any(word in (message + reply).lower() for word in TOXIC_WORDS.values()) for _, _, message, reply in more)


WRONG = cases(__file__, "WRONG")


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_one_sentence(
    data: Path, model: Path, tmp_path: Path, mrs_here, monkeypatch, options, words
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [model if option == "TINY" else option for option in options]
    line = refused(mrs_here("data", "toxicity", data, "--out", "out", *options))
    assert [word for word in words if word not in line] == [], line
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_answers_rubbish_or_refuses_the_key(
    data: Path, tmp_path: Path, mrs_here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRS_TOXICITY_KEY", "secret")
    with scoring_server() as server:
        for failure, words in (
            (Failure(200, b"<html>"), "not the answer of a scorer: it is not JSON"),
            (Failure(401), "refuses the key in MRS_TOXICITY_KEY (expired?); renew it (HTTP 401)."),
            (Failure(404), "refuses the request (HTTP 404); check the address."),
        ):
            server.planned = [failure]
            line = refused(mrs_here("data", "toxicity", data, "--out", "out", "--toxicity", server.url))
            assert words in line
            assert "secret" not in line
    assert list(tmp_path.iterdir()) == []
