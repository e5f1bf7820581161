"""`mrs staple rescore` and `mrs staple pairs`: another run's log-probabilities, forwards and back, and pairs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.staple import parts, rescore
from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses
from tests.command import Result, refused, shown
from tests.mrs_suggest.staple.hypotheses_files import PROMPTS, ROWS, hypotheses
from tests.word_generator import make_run


def run(verb: str, *arguments: object) -> int:
    return main(["staple", verb, *map(str, arguments)])


@pytest.fixture
def found(tmp_path: Path) -> Path:
    write_hypotheses(hypotheses([*ROWS[:3], ("prompt_a", "two", 2, "sim, claro", -2.0), ROWS[3]]), tmp_path / "a.pq")
    return tmp_path / "a.pq"


def test_scores_are_the_runs_own_in_both_directions(
    found: Path, staple_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("rescore", found, "--with", staple_run, "--out", tmp_path / "b.pq") == 0
    back = ("--with", f"back={staple_run}", "--reverse", "--batch_size", 1)
    assert run("rescore", tmp_path / "b.pq", *back, "--out", tmp_path / "c.pq") == 0
    made, generator = read_hypotheses(tmp_path / "c.pq"), Generator.load(staple_run)
    prompts, texts = made.table["prompt"].to_pylist(), made.table["text"].to_pylist()
    for name, sides in (("one", (prompts, texts)), ("back", (texts, prompts))):
        scores = made.table[f"log_prob_{name}"].to_numpy()
        np.testing.assert_allclose(scores, -generator.losses(*sides, "pt")[0], atol=1e-4)
    assert "prompt given the translation" in made.features["log_prob_back"]
    assert [step.split("|")[0] for step in made.steps] == ["decode", "staple_rescore", "staple_rescore"]
    assert made.table.drop_columns(["log_prob_one", "log_prob_back"]) == read_hypotheses(found).table
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pq", "b.pq", "c.pq"]
    # A run that writes the prompts' language is reversed.
    monkeypatch.setattr(rescore.Run, "target", "en")
    assert run("rescore", found, "--with", staple_run, "--out", tmp_path / "d.pq") == 0
    assert "prompt given the translation" in read_hypotheses(tmp_path / "d.pq").features["log_prob_one"]


def test_a_killed_call_goes_on(found: Path, staple_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 1)
    assert run("rescore", found, "--with", staple_run, "--out", tmp_path / "whole.pq") == 0
    plain = Generator.losses
    calls: list[object] = []

    def losses(self: Generator, *given: object) -> object:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Generator, "losses", losses)
    assert run("rescore", found, "--with", staple_run, "--out", tmp_path / "b.pq") == 130
    assert run("rescore", found, "--with", staple_run, "--out", tmp_path / "b.pq") == 0
    assert len(calls) == 3, "the first of two prompts is scored once"
    assert (tmp_path / "b.pq").read_bytes() == (tmp_path / "whole.pq").read_bytes()
    assert not parts.folder_of(tmp_path / "b.pq").exists()


def test_what_cannot_be_is_one_sentence(
    found: Path, staple_run: Path, tmp_path: Path, staple: Callable[..., Result]
) -> None:
    spanish = make_run(tmp_path / "spanish", 1, ("es",))
    shown(staple("rescore", found, "--with", staple_run, "--out", tmp_path / "b.pq"))
    cases: list[tuple[str, tuple[object, ...], str]] = [
        ("rescore", (tmp_path / "b.pq", "--with", staple_run), "the hypotheses have log_prob_one already"),
        ("rescore", (found, "--with", spanish), "knows es, and the hypotheses are in pt"),
        ("rescore", (found, "--with", staple_run, "--batch_size", 0), "--batch_size: expected 1 or more, found 0."),
        ("pairs", (found, "--top", 0), "--top 0"),
        ("pairs", (tmp_path / "none.pq",), "no such file"),
    ]
    for verb, options, sentence in cases:
        assert sentence in refused(staple(verb, *options, "--out", tmp_path / "c.pq"))
    refused(staple("pairs", found, "--out", tmp_path / "b.pq"))
    assert not (tmp_path / "c.pq").exists()
    assert not parts.folder_of(tmp_path / "c.pq").exists()


def test_pairs_to_train_on(found: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pairs", found, "--top", 2, "--out", tmp_path / "a.tsv") == 0
    first, last = PROMPTS["prompt_a"], PROMPTS["prompt_c"]
    lines = [f"{first}\tsim, claro", f"{first}\tclaro que sim", f"{last}\ttalvez"]
    assert (tmp_path / "a.tsv").read_text() == "".join(f"{line}\n" for line in lines)
    assert "3 pairs" in capsys.readouterr().out
    assert run("pairs", found, "--swap", "--out", tmp_path / "b.tsv") == 0
    assert (tmp_path / "b.tsv").read_text() == f"sim, claro\t{first}\ntalvez\t{last}\n"
