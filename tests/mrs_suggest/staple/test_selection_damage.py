"""`mrs staple combine`, `tune` and `filter`: what is damaged or does not fit is one sentence, and leaves nothing."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.staple.filters.features import add_features
from mrs_suggest.staple.filters.filter import ARRAYS, SETTINGS, Filter, _digest, load_filter, save_filter
from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses
from mrs_suggest.staple.pooling import pool
from mrs_suggest.staple.rules.simple import Threshold
from mrs_suggest.staple.rules.trees import Classifier
from tests.cases import cases
from tests.command import Result, refused
from tests.mrs_suggest.staple.hypotheses_files import PROMPTS, ROWS, hypotheses
from tests.mrs_suggest.staple.simulated import write_data

ACCEPTED = {"prompt_a": {"sim, claro": 0.7, "claro": 0.3}, "prompt_b": {"não": 1.0}, "prompt_c": {"talvez": 1.0}}
Files = dict[str, Path]
STUMP = {
    "feature": np.array([0, -1, -1], np.int32), "threshold": np.array([1.5, 0, 0]),
    "left": np.array([1, 0, 0], np.int32),
    "right": np.array([2, 0, 0], np.int32), "missing_left": np.array([1, 0, 0], np.uint8),
    "value": np.array([0.0, -2.0, 2.0]), "roots": np.array([0], np.int32), "base": np.array([0.1]),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    raw = hypotheses(ROWS, data={"id": "data", "split": "validation"}, prompts={key: f"say {key}" for key in PROMPTS})
    write_hypotheses(raw, folder / "raw.parquet")
    pooled = add_features(pool([(folder, raw)]))
    write_hypotheses(pooled, folder / "pooled.parquet")
    write_data(ACCEPTED, folder / "data", language="pt")
    facts = {"language": "pt", "data": {"id": "other", "split": "validation"}, "members": ("one", "two")}
    save_filter(Filter(Threshold(-0.4), **facts), folder / "threshold")
    save_filter(Filter(Classifier(("votes",), STUMP, 0.5), **facts), folder / "trees")
    return folder


@pytest.fixture
def files(original: Path, tmp_path: Path) -> Files:
    folder = shutil.copytree(original, tmp_path / "files")
    return {path.stem: path for path in folder.iterdir()} | {"out": folder / "new"}


def _edit(folder: Path, **changes: object) -> None:
    path = folder / SETTINGS
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _signed(folder: Path, **changes: object) -> None:
    """As a program that knows the checksum would write it."""
    facts = {**json.loads((folder / SETTINGS).read_text()), **changes}
    facts.pop("sha256")
    content = (folder / ARRAYS).read_bytes() if (folder / ARRAYS).is_file() else None
    (folder / SETTINGS).write_text(json.dumps({**facts, "sha256": _digest(facts, content)}))


def _pooled(files: Files, **changes: object) -> None:
    found = replace(read_hypotheses(files["pooled"]), **changes)
    write_hypotheses(found, files["pooled"], overwrite=True)


def _nothing(files: Files) -> None:
    pass


TUNE = "tune {pooled} --data {data} --out {out} --folds 3 --rule "
FILTER = "filter {pooled} --out {out} --with "
Damage = Callable[[Files], object]
CASES: dict[str, tuple[str, Damage, str]] = {
    **{name: (command, _nothing, said) for name, (command, said) in cases(__file__, "CASES").items()},
    "tune: votes": (TUNE + "votes", lambda files: _without(files, "votes"), "lacks the column votes"),
    "tune: empty column": (TUNE + "threshold", lambda files: _empty(files), "has no values"),
    "tune: no data": (TUNE + "top", lambda files: shutil.rmtree(files["data"]), "no such folder"),
    "tune: other data": (
        TUNE + "top",
        lambda files: _pooled(files, data={"id": "x", "content_hash": "0", "split": "validation"}),
        "come from other data",
    ),
    "tune: no split": (TUNE + "top", lambda files: _pooled(files, data={"id": "x"}), "does not name its split"),
    "tune: other split": (
        TUNE + "top", lambda files: _pooled(files, data={"id": "x", "split": "test"}), "no test split"
    ),
    "tune: other prompts": (
        TUNE + "top",
        lambda files: write_data({key + "x": value for key, value in ACCEPTED.items()}, files["data"], language="pt"),
        "is not in",
    ),
    "tune: no gold": (
        TUNE + "top",
        lambda files: write_data({key: {"x": 1.0} for key in ACCEPTED}, files["data"], language="pt"),
        "none of its translations is accepted",
    ),
    "filter: not JSON": (FILTER + "{trees}", lambda files: (files["trees"] / SETTINGS).write_text("{"), "as JSON"),
    "filter: foreign": (FILTER + "{trees}", lambda files: _edit(files["trees"], kind="x"), "filter of hypotheses"),
    "filter: version": (FILTER + "{trees}", lambda files: _edit(files["trees"], version=9), "version 9, expected 1"),
    "filter: cut arrays": (
        FILTER + "{trees}",
        lambda files: (files["trees"] / ARRAYS).write_bytes((files["trees"] / ARRAYS).read_bytes()[:-1]),
        "checksum",
    ),
    "filter: rule": (FILTER + "{trees}", lambda files: _signed(files["trees"], rule="magic"), "unknown rule 'magic'"),
    "filter: setting": (
        FILTER + "{threshold}", lambda files: _signed(files["threshold"], settings={}), "damaged filter"
    ),
    "filter: language": (FILTER + "{trees}", lambda files: _pooled(files, language="hu"), "pass --any-language"),
    "filter: feature": (FILTER + "{trees}", lambda files: _without(files, "votes"), "lacks the column votes"),
}  # fmt: skip


def _without(files: Files, name: str) -> None:
    found = read_hypotheses(files["pooled"])
    left = {key: meaning for key, meaning in found.features.items() if key != name}
    _pooled(files, table=found.table.drop_columns([name]), features=left)


def _empty(files: Files) -> None:
    raw = hypotheses([(*row[:4], None) for row in ROWS], prompts={key: f"say {key}" for key in PROMPTS},
                     data={"id": "data", "split": "validation"})  # fmt: skip
    write_hypotheses(pool([(files["pooled"], raw)]), files["pooled"], overwrite=True)


@pytest.mark.parametrize("case", CASES)
def test_damage_is_one_sentence(case: str, files: Files, staple: Callable[..., Result]) -> None:
    command, damage, sentence = CASES[case]
    damage(files)
    before = sorted(path.name for path in files["out"].parent.iterdir())
    assert sentence in refused(staple(*(part.format(**files) for part in command.split())))
    assert sorted(path.name for path in files["out"].parent.iterdir()) == before


@pytest.mark.parametrize("options", cases(__file__, "test_what_is_whole_filters"))
def test_what_is_whole_filters(options: str, files: Files, staple: Callable[..., Result]) -> None:
    words = [part.format(**files) for part in options.split()]
    code, out, _ = staple("filter", files["pooled"], "--out", files["out"], *words)
    assert (code, "of 3 translations of 3 prompts" in out) == (0, True)
    again = files["out"].with_name("again")
    assert staple("filter", files["out"], "--top", 1, "--out", again)[0] == 0, "steps compose"


def test_a_filter_tells_what_makes_its_use_doubtful(files: Files, staple: Callable[..., Result]) -> None:
    made = load_filter(files["threshold"])
    own = {"id": "data", "split": "validation"}
    save_filter(replace(made, data=own, members=("one",)), files["threshold"], overwrite=True)
    code, _, error = staple("filter", files["pooled"], "--with", files["threshold"], "--out", files["out"])
    assert code == 0
    assert "tuned on these prompts" in error
    assert "a pool of 1 members, this one has 2" in error


def test_a_part_of_the_split_is_told(files: Files, staple: Callable[..., Result]) -> None:
    write_data({**ACCEPTED, "prompt_d": {"x": 1.0}}, files["data"], language="pt")
    options = ["--data", files["data"], "--rule", "top", "--folds", 3, "--out", files["out"]]
    code, out, error = staple("tune", files["pooled"], *options)
    assert code == 0
    assert "3 of the 4 prompts" in error
    assert "out of fold" in out
    assert "raw n-best 10" in out
