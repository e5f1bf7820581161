"""The five-column prediction file: a field that is empty stays where it is."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import Prediction, read_predictions, write_predictions
from tests.cases import cases

FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), max_size=12)
PREDICTIONS = st.builds(Prediction, FIELDS, FIELDS, st.lists(FIELDS, min_size=1, max_size=3).map(tuple))


@given(st.lists(PREDICTIONS, min_size=1, max_size=6))
@example([Prediction("", "", ("", "", ""))])
@example([Prediction("", "", ("",)), Prediction("", "", ("",))])
@example([Prediction("a\u2028b", "c\x85d", ("e\x0bf", "\x1c", "\u3000"))])
@example([Prediction("\ufeffa", "b", ("c",))])
@example([Prediction("\ufeff\ufeffa", "b", ("c",))])
def test_what_is_written_is_read_back(predictions: list[Prediction]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.tsv"
        write_predictions(path, predictions)
        assert read_predictions(path) == predictions


def test_a_byte_order_mark_tabs_and_line_ends_do_not_break_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(b"\xef\xbb\xbfHola\tref\ta\n\xef\xbb\xbfx\ty\tz\n")
    first, second = read_predictions(path)
    assert first == Prediction("Hola", "ref", ("a",))
    assert second.message == "\ufeffx", "elsewhere it is a character like any other"
    write_predictions(path, [Prediction("a\tb", "c\r\nd", ("e\rf", "g\nh", "i"))])
    assert path.read_bytes() == b"a b\tc d\te f\tg h\ti\n"


def test_an_example_without_suggestions_has_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "predictions.en.tsv"
    write_predictions(path, [Prediction("hello", "hi", ())])
    assert read_predictions(path) == [Prediction("hello", "hi", ("",))]


@pytest.mark.parametrize(("line", "expected"), cases(__file__, "test_an_empty_field_shifts_nothing"))
@pytest.mark.parametrize("end", ["", "\n"])
def test_an_empty_field_shifts_nothing(tmp_path: Path, line: str, expected: list[str], end: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(f"x\ty\tz\n{line}{end}".encode())
    message, reference, *suggestions = expected
    assert read_predictions(path)[1:] == [Prediction(message, reference, (*suggestions,))]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"m\tr\ta\nm\tr\n", r"p\.tsv, line 2: expected .* found 2 columns"),
        (b"m\tr\ta\n\nm\tr\ta\n", r"p\.tsv, line 2: expected .* found 1 column\."),
        (b"m\tr\ta\tb\tc\td\n", r"p\.tsv, line 1: expected .* found 6 columns"),
        (b"m\tr\ta\nm\tr\t\xff\n", r"p\.tsv, line 2: not UTF-8"),
        (b"", r"p\.tsv: the file is empty"),
        (b"\xef\xbb\xbf", r"p\.tsv: the file is empty"),
        (None, r"p\.tsv: cannot read the file"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, content: bytes | None, where: str) -> None:
    path = tmp_path / "p.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=where):
        read_predictions(path)


def test_the_number_of_suggestions_can_be_another(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(b"m\tr\ta\tb\n")
    assert read_predictions(path, nbest=2)[0].suggestions == ("a", "b")
    with pytest.raises(InputError, match="line 1: expected message, reference and 1 to 1 suggestions"):
        read_predictions(path, nbest=1)


@pytest.mark.parametrize(
    "header",
    [
        b"message\treference\tsuggestion1\tsuggestion2\tsuggestion3",
        b"\xef\xbb\xbfMessage\tReference\tSuggestions\r",
        b"prompt\treal reply\tPrediction 1\thypothesis_2",
    ],
)
def test_a_header_line_is_left_out_with_a_note(
    header: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(header + b"\nm\tr\ta\n")
    assert read_predictions(path) == [Prediction("m", "r", ("a",))]
    assert capsys.readouterr().err == "note: p.tsv: line 1 has the names of columns and is left out.\n"
    path.write_bytes(header)
    with pytest.raises(InputError, match="the file is empty"):
        read_predictions(path)


@pytest.mark.parametrize("row", ["message\treference\tI agree", "Question\twhy\treply", "a\treference\tsuggestion"])
def test_an_example_is_no_header(row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.tsv"
    for text in (f"{row}\n", "x\ty\tz\nmessage\treference\tsuggestion\n"):
        path.write_text(text, encoding="utf-8")
        assert len(read_predictions(path)) == len(text.splitlines())
    assert capsys.readouterr().err == ""
