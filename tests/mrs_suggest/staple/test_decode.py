"""`mrs staple decode`: what stands in the file of hypotheses, that a killed call goes on, and what is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.staple import decode as module
from mrs_suggest.staple import parts
from mrs_suggest.staple.decode import AGREEMENT
from mrs_suggest.staple.hypotheses import Hypotheses, read_hypotheses
from mrs_suggest.staple.members import open_run
from tests.cases import cases
from tests.command import Result, refused
from tests.word_generator import PROMPTS, make_run

Staple = Callable[..., Result]


def run(*arguments: object) -> int:
    return main(["staple", "decode", *map(str, arguments)])


@pytest.fixture(scope="module")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with another seed, trained without dropout, that also knows Spanish."""
    return make_run(tmp_path_factory.mktemp("runs") / "two", 2, ("pt", "es"), dropout=0.0)


@pytest.fixture(scope="module")
def decoded(staple_run: Path, staple_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Hypotheses:
    out = tmp_path_factory.mktemp("decoded") / "deep" / "validation.parquet"
    assert run(staple_run, "--data", staple_data, "--nbest", 8, "--out", out) == 0
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return read_hypotheses(out)


def test_the_file_tells_what_it_is(decoded: Hypotheses, staple_run: Path) -> None:
    assert list(decoded.prompts.values()) == PROMPTS
    assert decoded.language == "pt"
    assert decoded.data["split"] == "validation"
    assert len(decoded.data["content_hash"]) == 16
    facts = decoded.members["one"]
    assert {"search": "beam", "nbest": 8, "beams": 8, "run": str(staple_run)}.items() <= facts.items()
    assert len(facts["content_hash"]) == 16
    assert decoded.steps[0].startswith("staple_decode|search:beam|nbest:8|beams:8|version:")
    for _, rows in decoded.by_prompt():
        assert 4 < len(rows) <= 8
        assert rows["rank"].to_pylist() == list(range(1, len(rows) + 1))
        assert len(set(rows["text"].to_pylist())) == len(rows)
    require_forced(decoded, staple_run)


def require_forced(found: Hypotheses, run: Path) -> None:
    """Log-probabilities and lengths are those that the texts get by themselves."""
    table = found.table
    losses, tokens = Generator.load(run).losses(table["prompt"].to_pylist(), table["text"].to_pylist(), "pt")
    np.testing.assert_allclose(table["log_prob"].to_numpy(), -losses, atol=1e-4)
    assert table["length"].to_pylist() == tokens.tolist()


def only(found: Hypotheses, member: str) -> Hypotheses:
    mask = [name == member for name in found.table["member"].to_pylist()]
    return replace(found, table=found.table.filter(mask))


def test_several_members_draw_from_a_text(
    staple_run: Path, other_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("good  day\n\nno\ngood day\n")
    runs = (staple_run, f"again={staple_run}", other_run)
    options = ("--search", "sample", "--samples", 20, "--nbest", 10, "--temperature", 1.5, "--top_p", 0.9)
    sampled = (*runs, "--text", lines, "--language", "pt", *options)
    for name in ("a.pq", "b.pq"):
        assert run(*sampled, "--out", tmp_path / name) == 0
    assert "translations of 2 prompts" in capsys.readouterr().out
    assert (tmp_path / "a.pq").read_bytes() == (tmp_path / "b.pq").read_bytes()
    found = read_hypotheses(tmp_path / "a.pq")
    ids = [f"prompt_{hashlib.md5(line.encode()).hexdigest()}" for line in ("good day", "no")]
    assert found.prompts == dict(zip(ids, ("good day", "no"), strict=True))
    assert (found.data["id"], found.data["split"]) == ("lines.txt", None)
    assert list(found.members) == ["one", "again", "two"]
    assert (found.members["two"]["top_p"], found.members["two"]["seed"]) == (0.9, 42)
    one, again = (only(found, name).table["text"].to_pylist() for name in ("one", "again"))
    assert one != again, "one run under two names draws twice"
    require_forced(only(found, "again"), staple_run)
    assert run(*sampled, "--seed", 1, "--out", tmp_path / "c.pq") == 0
    assert only(read_hypotheses(tmp_path / "c.pq"), "one").table["text"].to_pylist() != one


def test_dropout_pools_passes_with_their_features(staple_run: Path, staple_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.pq"
    options = ("--nbest", 4, "--dropout_passes", 3, "--dropout_rate", 0.2)
    assert run(staple_run, "--data", staple_data, *options, "--batch_size", 3, "--out", out) == 0
    found = read_hypotheses(out)
    assert found.features == AGREEMENT
    assert set(found.table["dropout_share"].to_pylist()) <= {1 / 3, 2 / 3, 1.0}
    assert min(found.table["dropout_deviation"].to_pylist()) > 0
    assert max(rows.num_rows for _, rows in found.by_prompt()) > 4
    require_forced(found, staple_run)


def test_ctranslate2_finds_the_same(decoded: Hypotheses, staple_run: Path, staple_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    out = tmp_path / "a.pq"
    assert run(staple_run, "--data", staple_data, "--nbest", 8, "--ctranslate2", "--out", out) == 0
    found = read_hypotheses(out)
    require_forced(found, staple_run)
    tables = decoded.table, found.table
    one, other = (set(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True)) for table in tables)
    assert len(one & other) > 0.9 * len(one)
    assert found.members["one"]["export"] == "fp32, made for the call"
    assert not (staple_run / "ctranslate2").exists()


def test_a_killed_call_goes_on(
    staple_run: Path, other_run: Path, staple_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(parts, "PART", 3)
    options = (staple_run, other_run, "--data", staple_data, "--nbest", 4, "--search", "sample")
    assert run(*options, "--out", tmp_path / "whole.pq") == 0
    plain = module.translator
    asked: list[list[str]] = []

    def killed(after: int) -> Callable[..., object]:
        def translator(*given: object) -> object:
            translate = plain(*given)  # type: ignore[arg-type]

            def translate_some(texts: list[str]) -> object:
                if len(asked) == after:
                    raise KeyboardInterrupt
                asked.append(texts)
                return translate(texts)

            return translate_some

        return translator

    out = tmp_path / "cut.pq"
    monkeypatch.setattr(module, "translator", killed(4))
    assert run(*options, "--out", out) == 130
    assert not out.exists()
    folder = parts.folder_of(out)
    assert len(list(folder.glob("*.parquet"))) == 4
    capsys.readouterr()
    assert run(*options, "--seed", 5, "--out", out) == 2
    assert "with other search, members" in capsys.readouterr().err
    (folder / "0-00000.parquet").write_bytes(b"half")  # as a machine that stops can leave it
    asked.clear()
    monkeypatch.setattr(module, "translator", killed(9))
    assert run(*options, "--out", out) == 0
    assert [len(texts) for texts in asked] == [3, 3, 1]
    assert out.read_bytes() == (tmp_path / "whole.pq").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.pq", "whole.pq"]


def test_parts_of_another_call_are_dropped_with_overwrite(staple_run: Path, staple_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.pq"
    folder = parts.folder_of(out)
    folder.mkdir()
    (folder / "0-00000.parquet").write_bytes(b"x")
    options = (staple_run, "--data", staple_data, "--nbest", 2, "--out", out)
    assert run(*options) == 2
    assert run(*options, "--overwrite") == 0
    assert pq.read_metadata(out).num_rows == 2 * len(PROMPTS)
    assert not folder.exists()


REFUSED = cases(__file__, "REFUSED")


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_is_one_sentence(
    kind: str, staple_run: Path, staple_data: Path, tmp_path: Path, staple: Staple
) -> None:
    options, sentence = REFUSED[kind]
    words = (staple_run, "--data", staple_data, "--out", tmp_path / "a.pq", *options)
    assert sentence in refused(staple("decode", *words))
    assert not list(tmp_path.iterdir())


def test_wrong_runs_and_sources_are_one_sentence(
    staple_run: Path, other_run: Path, staple_data: Path, tmp_path: Path, staple: Staple
) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "lines.txt").write_text("no\n")
    damaged = shutil.copytree(staple_run, tmp_path / "damaged")
    (damaged / "generator.json").write_text("{")
    data, text = ("--data", staple_data), ("--text", tmp_path / "lines.txt")
    cases: list[tuple[list[object], str]] = [
        ([staple_data, *data], "is not the folder of a generator (no generator.json)"),
        ([tmp_path / "none", *data], "no such folder"),
        ([damaged, *data], "generator.json: damaged, not JSON"),
        ([staple_run, staple_run, *data], "one: two members have this name"),
        ([f"a b={staple_run}", *data], "is not a member name"),
        ([other_run, *data, "--dropout_passes", 2], "was trained without dropout; pass --dropout_rate"),
        ([other_run, *text], "--language: could be any of pt es"),
        ([staple_run, *text, "--split", "test"], "--split: applies to --data"),
        ([staple_run, "--text", tmp_path / "empty.txt"], "has no text"),
        ([staple_run, "--text", tmp_path / "none.txt"], "no such file"),
        ([staple_run, "--data", "sample"], "has the columns message, reply"),
    ]
    before = sorted(tmp_path.iterdir())
    for options, sentence in cases:
        assert sentence in refused(staple("decode", *options, "--out", tmp_path / "a.pq"))
    assert sorted(tmp_path.iterdir()) == before


def test_without_the_extra_it_is_named(
    staple_run: Path, staple_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, staple: Staple
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", None)
    words = (staple_run, "--data", staple_data, "--ctranslate2", "--out", tmp_path / "a.pq")
    assert "pip install '.[ctranslate2]'" in refused(staple("decode", *words))


def test_a_run_from_the_hubs_cache_tells_its_revision(staple_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(staple_run, tmp_path / "models--org--name" / "snapshots" / "0123abc")
    (folder / "run.json").write_text(json.dumps({"seed": 7}))
    found = open_run(f"x={folder}")
    assert (found.name, found.facts["revision"], found.facts["training_seed"]) == ("x", "0123abc", 7)
    assert found.facts["content_hash"] == open_run(str(staple_run)).facts["content_hash"]
