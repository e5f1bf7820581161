"""The form in which two replies count as one, and the one in which a text is printed."""

import io
import json
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.common.report.tables import make_console
from mrs_suggest.common.text.text import is_blank, normalise_reply, visible, visible_json
from tests.cases import cases

# What folding, composing and dropping can do to each other: marks of several classes, ligatures, letters whose
# lower case is longer or whose capital has no composed form, spaces and stops.
DELICATE = "aTtJjwyαιυωΑßẞſĳŉǰẖẗΐᾳᾴῷᾼÅÅﬁ…？！ ￣¨´½㍿ヷハ゛゙ｶﾞ가ᄀ\u1161\u11a8क़\u0300\u0301\u0308\u0323\u0345\u0130ı"
DELICATE += "\u00ad\u034f\u115f\u180e\u200d\u2028\u3000\u3164\ufe0f\ufdfa\ufffe\ud800 \t.?!-👍"


def plain_normalise_reply(text: str) -> str:
    """The definition as it reads, character by character."""
    form = unicodedata.normalize("NFKC", text)
    while True:
        folded = unicodedata.normalize("NFKC", form.casefold())
        kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC") or "".join(folded.split())
        if kept == form:
            return form
        form = kept


@given(st.text(st.characters() | st.sampled_from(DELICATE)) | st.text(DELICATE))
@settings(max_examples=1000)
@example("ᾳ?\u0301")
@example("qͅ\u0323?")
def test_the_form_is_that_of_the_plain_definition(text: str) -> None:
    assert normalise_reply(text) == plain_normalise_reply(text)


def test_the_form_of_every_character_is_that_of_the_plain_definition() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    assert [c for c in characters if normalise_reply(c) != plain_normalise_reply(c)] == []


def test_the_form_of_real_texts_is_that_of_the_plain_definition(shared_data: Path) -> None:
    files = sorted((shared_data / "replies").glob("*.tsv"))
    texts = {text for file in files for line in file.open(encoding="utf-8") for text in line.split("\t")}
    assert len(texts) > 5000
    assert [text for text in texts if normalise_reply(text) != plain_normalise_reply(text)] == []


def test_replies_that_are_one_and_replies_that_stay_two() -> None:
    one = [("Thanks!", "thanks"), ("Ｏ Ｋ", "ok"), ("はい。", "はい"), ("¡Claro!", "claro"), ("Straße", "STRASSE")]
    two = [("?", "!"), ("?!", ""), ("👍", "👎"), ("si", "sí"), ("мой", "мои"), ("はい", "ばい"), ("1", "2")]
    assert [pair for pair in one + two if len(set(map(normalise_reply, pair))) == 1] == one


def test_a_text_that_shows_nothing_is_blank() -> None:
    nothing = ["", " \t\u3000", "\x00", "\u200b\ufeff", "\u2060\u200d", "\u202e", "\u3164\u2800", "\u034f", "\xad"]
    nothing.append("\ue000")  # of private use
    something = ["?", "ok", " \u200bé", "\x00a", "日", "👍", "🤷\u200d♂\ufe0f", "़", "…"]
    assert [text for text in nothing + something if is_blank(text)] == nothing


# --- what is printed

SPOOFS = cases(__file__, "SPOOFS")


@pytest.mark.parametrize("kind", SPOOFS)
def test_control_characters_are_shown(kind: str) -> None:
    text, shown = SPOOFS[kind]
    assert visible(text) == shown
    assert visible(Path("folder") / f"x{text}") == f"folder/x{shown}"


def test_other_text_stays_and_so_may_line_ends_of_a_page() -> None:
    for text in ("Sí, claro.", "明日の会議", "👩\u200d💻", "שלום\u200f!", "\u0e01\u0e33", "a\u00a0b", "\\x1b"):
        assert visible(text) == text
    assert visible("# Card\n\tx\r\n\x1b", "\n\t") == "# Card\n\tx\\r\n\\x1b"


@given(st.text())
def test_json_is_exact_and_has_no_control_character(text: str) -> None:
    line = visible_json({"reply": text})
    assert json.loads(line) == {"reply": text}
    assert visible(line) == line


def test_a_table_shows_what_its_cells_hold() -> None:
    from rich.table import Table

    out = io.StringIO()
    console = make_console(file=out, force_terminal=True, width=80, color_system="standard")
    table = Table("Name\x1b[2J", title="\x9b1m")
    table.add_row("[bold]reply[/bold]\x1b]0;t\x07", "two\nlines")
    console.print(table)
    console.print("note\u202e")
    text = out.getvalue()
    for shown in ("Name\\x1b[2J", "\\x9b1m", "reply", "\\x1b]0;t\\x07", "note\\u202e"):
        assert shown in text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x1b[1m" in text, "rich's own colours stay"
    for sent in ("\x1b[2J", "\x9b", "\x07", "\u202e"):
        assert sent not in text


def test_an_error_shows_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(error: Exception) -> int:
        raise error

    assert run_with_sentence("mrs", lambda: fail(InputError("a\x1b[2J: no such folder."))) == 2
    assert run_with_sentence("mrs", lambda: fail(FileNotFoundError(2, "No such file", "b\x9b\n"))) == 2
    assert capsys.readouterr().err == (
        "mrs: a\\x1b[2J: no such folder.\nmrs: b\\x9b\\n: No such file; check the path and its rights.\n"
    )
