"""Files with response sets, and what is told of their replies."""

import gzip
import math
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.own_replies.checks import (
    CONTROL,
    DUPLICATE,
    EMPTY,
    LANGUAGE,
    LINK,
    PRIVATE,
    TOXIC,
    UNKNOWN,
    check_removed,
    check_replies,
)
from mrs_suggest.suggest.own_replies.file import ResponseRow, read_response_file
from mrs_suggest.suggest.own_replies.sets import log_probs
from tests.cases import cases


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_lines_and_tables_are_read_with_their_line_numbers(tmp_path: Path) -> None:
    assert read_response_file(written(tmp_path, "a.txt", "Yes, please!\n\n No \r\n")) == [
        ResponseRow(1, "Yes, please!"), ResponseRow(2, ""), ResponseRow(3, "No"),
    ]  # fmt: skip
    table = '\ufeffReply,weight,tags\r\n"Yes, ""sure""!",3.5,"polite; formal"\r\n"two\nlines",1,\r\nNo,0,x\r\n'
    assert read_response_file(written(tmp_path, "a.csv", table)) == [
        ResponseRow(2, 'Yes, "sure"!', 3.5, ("polite", "formal")),
        ResponseRow(3, "two\nlines", 1.0),
        ResponseRow(5, "No", 0.0, ("x",)),
    ]
    assert read_response_file(written(tmp_path, "a.tsv", 'tags\treply\nx y\t"Oui", dit-il\n')) == [
        ResponseRow(2, '"Oui", dit-il', None, ("x", "y"))
    ]
    lines = '{"reply": " Yes, please! ", "weight": 3, "tags": ["yes", "polite"]}\n{"reply": "", "weight": 0.5}\n'
    assert read_response_file(written(tmp_path, "a.jsonl", lines)) == [
        ResponseRow(1, "Yes, please!", 3.0, ("yes", "polite")), ResponseRow(2, "", 0.5),
    ]  # fmt: skip
    table = 'reply,examples\n"Yes, please.","Coffee?| Tea? |"\nNo,"One\ntwo"\n'
    assert [row.examples for row in read_response_file(written(tmp_path, "c.csv", table))] == [
        ("Coffee?", "Tea?"), ("One", "two"),
    ]  # fmt: skip
    lines = '{"reply": "Yes", "examples": ["Tea | milk?"]}\n{"reply": "No", "examples": "One|two"}\n'
    assert [row.examples for row in read_response_file(written(tmp_path, "c.jsonl", lines))] == [
        ("Tea | milk?",), ("One", "two"),
    ]  # fmt: skip
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(b"reply\nYes\n"))
    assert read_response_file(packed) == [ResponseRow(2, "Yes")]


@pytest.mark.parametrize(("name", "text", "sentence"), cases(__file__, "test_a_broken_file_is_refused_by_its_line"))
def test_a_broken_file_is_refused_by_its_line(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=f"{name}.*{sentence}"):
        read_response_file(written(tmp_path, name, text))


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    en = ["see you tomorrow", "thank you very much", "I will be there soon", "what do you think", "not at all"] * 2
    es = ["nos vemos manana", "muchas gracias a todos", "estoy en camino", "que te parece", "para nada amigo"] * 2
    texts = {"en": [f"{text} {n}" for n, text in enumerate(en)], "es": [f"{text} {n}" for n, text in enumerate(es)]}
    return LanguageDetector.train(texts)


def kinds(rows: list[str], language: str = "en", detector: LanguageDetector | None = None) -> list[tuple[int, str]]:
    numbered = [ResponseRow(number, text) for number, text in enumerate(rows, start=1)]
    return [(finding.row, finding.kind) for finding in check_replies(numbered, language, detector)]


def test_each_kind_of_finding_is_told_with_its_row(detector: LanguageDetector) -> None:
    rows = [
        "Thank you!", "", "thank you", "\u200b", "See https://example.com/a?b", "Write to jane.doe@example.com.",
        "Call +49 170 1234567!", "muchas gracias a todos", "Доброе утро", "one\ntwo", "OK", "At 10:30, 12.5 %?",
    ]  # fmt: skip
    assert kinds(rows, "en", detector) == [
        (2, EMPTY), (3, DUPLICATE), (4, EMPTY), (5, LINK), (6, PRIVATE), (7, PRIVATE), (8, LANGUAGE), (9, LANGUAGE),
        (10, CONTROL),
    ]  # fmt: skip
    assert kinds(["muchas gracias a todos"], "es", detector) == []
    assert kinds(["muchas gracias a todos", "Доброе утро"], "pl", detector) == [
        (2, LANGUAGE)
    ]  # unknown to the detector
    assert kinds(["muchas gracias a todos"], "en") == []


def test_what_is_in_the_index_or_toxic_is_told() -> None:
    rows = [ResponseRow(1, "Yes!"), ResponseRow(2, "You fool")]
    found = list(check_replies(rows, "en", known={"yes"}, toxic=lambda text: "slur: fool" if "fool" in text else None))
    assert [(f.row, f.kind, f.told) for f in found] == [
        (1, DUPLICATE, "in the index already"),
        (2, TOXIC, "slur: fool"),
    ]
    gone = list(check_removed([ResponseRow(1, "YES"), ResponseRow(2, "Nope"), ResponseRow(3, "")], {"yes"}))
    assert [(f.row, f.kind) for f in gone] == [(2, UNKNOWN)]


@pytest.mark.parametrize("language", ["en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru"])
def test_the_model_that_ships_has_hardly_a_finding(language: str) -> None:
    """Its replies were written by hand: what is told of them is a false alarm."""
    from mrs_suggest.common.hub.baselines import read_baselines
    from mrs_suggest.models.starting_points import DETECTOR
    from mrs_suggest.suggest.index.response_index import ResponseIndexes

    folder = read_baselines()["everyday-retriever"].folder
    replies = ResponseIndexes(folder)[language].replies
    assert len({normalise_reply(reply) for reply in replies}) == len(replies)
    assert len(kinds(replies, language, LanguageDetector.load(folder / DETECTOR))) <= 0.02 * len(replies)


def test_new_and_stored_replies_share_the_probability() -> None:
    assert log_probs([], [None, None]) is None
    assert log_probs([-1.0, -3.0], [None]) == [-1.0, -3.0, -3.0]
    mixed = log_probs([0.0, 0.0, 0.0], [3.0])
    assert mixed is not None
    assert [math.exp(value) for value in mixed] == pytest.approx([0.25] * 4)
    counted = log_probs([], [9.0, 0.0])
    assert counted is not None
    assert [math.exp(value) for value in counted] == pytest.approx([10 / 11, 1 / 11])
    assert log_probs([-1.0, -3.0], []) == [-1.0, -3.0]
