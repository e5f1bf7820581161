"""`mrs score --metric semantic`, with a tiny encoder and with a real one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.command import Result, refused

pytestmark = pytest.mark.integration

ROWS = (
    ("Are you coming?", "Yes, I am on my way.", "Yes, I am on my way.", "The train is blue."),
    ("How was it?", "It was great fun!", "We had a very good time!", "Turn left at the bank."),
    ("See you?", "No, sorry, I cannot.", "The cat sleeps.", "Two pounds of apples."),
)


@pytest.fixture
def score(mrs_here: Callable[..., Result]) -> Callable[..., Any]:
    """A function that runs `mrs score --json`."""
    return lambda *arguments: json.loads(command.shown(mrs_here("score", *arguments, "--language", "en", "--json")))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS))
    return path


def test_meaning_and_coverage_by_an_encoder(
    file: Path, tmp_path: Path, score: Callable[..., Any], mrs_here: Callable[..., Result]
) -> None:
    from mrs_suggest.models.retrieval.tiny import build_tiny

    texts = [text for row in ROWS for text in row]
    encoder = build_tiny(texts, tmp_path / "bert", seed=2, vocabulary=300)
    found = score(file, "--metric", "semantic", "--encoder", encoder)
    assert 0 < found["semantic"] <= 1 + 1e-6
    assert "semantic|encoder:bert-" in found["signature"]
    copied = file.with_name("copied.tsv")
    copied.write_text("".join(f"{row[0]}\t{row[1]}\t{row[1]}\n" for row in ROWS))
    assert score(copied, "--metric", "semantic", "--encoder", encoder)["semantic"] == pytest.approx(1, abs=1e-5)
    replies = tmp_path / "replies.txt"
    replies.write_text("Yes, I am on my way.\nIt was great fun!\n")
    options = ("--metric", "semantic", "--encoder", encoder, "--responses", replies, "--near", ".99999")
    covered = score(file, *options)
    assert covered["semantic"] == found["semantic"]
    assert covered["coverage"] == pytest.approx(2 / 3)
    assert covered["coverage_interval"] == pytest.approx([0.0943, 0.9916], abs=1e-4), "exact"
    assert "|near:0.99999|responses:2-" in covered["signature"]
    other = build_tiny(texts, tmp_path / "other" / "bert", seed=3, vocabulary=300)
    again = score(file, "--metric", "semantic", "--encoder", other)
    assert again["signature"] != found["signature"], "the hash of the weights"
    assert "semantic needs the multilingual sentence encoder" in refused(
        mrs_here("score", file, "--language", "en", "--metric", "semantic")
    )


def test_a_real_encoder_knows_what_is_meant(file: Path, shared_models: Path, score: Callable[..., Any]) -> None:
    files = [file.with_name(f"{number}.tsv") for number in range(len(ROWS))]
    for path, line in zip(files, file.read_text().splitlines(keepends=True), strict=True):
        path.write_text(line)
    found = score(*reversed(files), "--metric", "semantic", "--encoder", shared_models / "e5-small")
    unrelated, paraphrase, same = (one["semantic"] for one in found)
    assert same == pytest.approx(1, abs=1e-3)
    assert same > paraphrase > unrelated
