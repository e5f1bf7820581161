"""`mrs data translate` in its own process, with real checkpoints, and training on what it writes."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from tests.cases import cases
from tests.command import refused
from tests.dumps import SMALL, read_report, write_months
from tests.translation_models import WORDS, cipher, marian, sentence

pytestmark = pytest.mark.integration

__all__ = ["marian"]  # fixture
SEARCH = ("--beams", 1, "--max-tokens", 16)


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder with English that the checkpoint knows, and a little German in the same words."""
    folder = tmp_path_factory.mktemp("english")
    (folder / "pairs").mkdir()
    draw = random.Random(3)
    lines = [f"{sentence(draw, 5)}\t{sentence(draw, 2)}\n" for _ in range(400)]
    lines += [f"{' '.join([*WORDS[number:], *WORDS])}\tyes\n" for number in range(12)]
    (folder / "pairs/en.tsv").write_text("".join(lines), encoding="utf-8")
    german = [f"{cipher(sentence(draw, 5))}\t{cipher(sentence(draw, 2))}\n" for _ in range(150)]
    (folder / "pairs/de.tsv").write_text("".join(german), encoding="utf-8")
    prepare_mrs(str(folder / "pairs"), folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def translated(mrs, english: Path, marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translated")
    done = mrs("data", "translate", english, "--to", "de", "--translator", marian, "--out", "out", *SEARCH, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote out: data/, README.md, report.json" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["out"]
    return folder / "out"


def train(folder: Path, config: str) -> list[dict[str, str]]:
    return [
        row for path in sorted((folder / "data" / config).glob("train-*")) for row in pq.read_table(path).to_pylist()
    ]


def test_the_pairs_and_the_facts_are_those_of_the_checkpoint(english: Path, translated: Path, marian: Path) -> None:
    came = train(english, "en")
    wanted = [{name: cipher(text) for name, text in row.items()} for row in came if len(row["message"].split()) <= 6]
    found = train(translated, "mt-de")
    equal = sum(row in found for row in wanted)
    assert equal >= 0.97 * len(wanted)
    counts = read_report(translated)["passes"][0]["about"]["counts"]
    long = sum(len(row["message"].split()) > 20 for row in came)
    assert counts["mt-de"]["in"] == len(came)
    assert counts["mt-de"]["too long for the model"] == long > 0
    assert counts["mt-de"]["kept"] == len(found)
    (model,) = read_report(translated)["passes"][0]["about"]["models"]
    assert (model["for"], model["kind"], model["name"]) == ("de", "marian", marian.name)
    assert model["settings"] == {"beams": 1, "max_tokens": 16, "runtime": "torch"}
    card = (translated / "README.md").read_text(encoding="utf-8")
    assert f"translated from en by {marian.name} (marian {model['version']})" in card


def test_the_setting_mt_trains_from_the_folder_as_it_stands(
    translated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mrs_trainers.retrieval import main

    monkeypatch.chdir(tmp_path)
    options = ["--max_steps", "4", "--per_device_train_batch_size", "8", "--model_name_or_path", "tiny"]
    limits = ["--max_validation_examples", "10", "--max_test_examples", "10"]
    assert main(["--data", str(translated), "--setting", "mt", "--output_dir", "run", *options, *limits]) == 0
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["plan"]["train"] == ["mt-de"] if "plan" in record else "mt-de" in json.dumps(record)


@pytest.mark.parametrize(("options", "words"), cases(__file__, "test_bad_input_is_one_sentence"))
def test_bad_input_is_one_sentence(
    english: Path, marian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    options: list[str], words: str,
) -> None:  # fmt: skip
    from mrs_suggest.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tsv").write_text("yes\tja\n", encoding="utf-8")
    given = [option.replace("MARIAN", str(marian)) for option in options]
    code = main(["data", "translate", str(english), "--out", "out", *given])
    out, err = capsys.readouterr()
    err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("note: no language model"))
    assert words in refused((code, out, err))
    assert not (tmp_path / "out").exists()


def test_a_build_translates_after_its_own_stages(mrs, lid_model: Path, repository: Path, tmp_path: Path) -> None:
    """And the language model finds what is still English."""
    dumps = write_months(tmp_path / "months", 5000)
    words = repository / "examples/words.en-es.tsv"
    done = mrs(
        "data", "build", "--dumps", dumps / "RC_*.zst", "--out", "out", "--language-model", lid_model, "--buckets", 4,
        *SMALL, "--translate-to", "es", "--translator", f"dictionary:{words}", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = read_report(tmp_path / "out")
    stage = report["pipeline"]["stages"][-1]
    assert (stage["stage"], stage["in"]) == ("translation", stage["out"] + sum(stage["dropped"].values()))
    assert stage["dropped"]["other language"] > 0
    assert len(train(tmp_path / "out", "mt-es")) == report["passes"][0]["about"]["counts"]["mt-es"]["kept"]
    assert report["passes"][0]["about"]["identity"]["language model"] == {
        "name": lid_model.name, "bytes": lid_model.stat().st_size,
    }  # fmt: skip
