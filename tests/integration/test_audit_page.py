"""The page of an audit in a browser: what is clicked and typed is what `mrs data audit read` reads."""

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.audit.files import make_audit, read_key
from mrs_datasets.audit.questions import KINDS
from mrs_datasets.audit.reading import read_judgements
from mrs_suggest.cli.main import main
from mrs_suggest.common.io.sheets import escaped, read_sheet, restored, sheet_bytes
from tests.audit_sheets import change, in_memory, judge, load, numbered, page_of, sheet_of
from tests.browser import Browser, open_browser

pytestmark = pytest.mark.integration

WIDE, PAPER = KINDS["wide"], KINDS["paper"]
QUESTIONS = [question.name for question in WIDE.questions]
ODD = [
    ('=HYPERLINK("x")', 'tab\there,\nline "two"'),
    ("'tis </script><b>bold</b> & so", "\r\nedges \u2028 "),
    ("\x00 nul \ufeff\u202etfel", "مرحبا بالعالم"),
]
TEXTS = st.text(max_size=30) | st.text("=+-@'\t\r\n\",;<>& 1a\x00\u2028", max_size=10)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("browser") / "profile", 1000, 860) as opened:
        yield opened


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A wide audit: three odd pairs in English, two pairs in Japanese; two annotators."""
    data = in_memory({("en", "train"): ODD, ("ja", "test"): numbered("ja", 2)}, name="Pairs <of> mine")
    make_audit(data, tmp_path / "out", WIDE, annotators=2)
    return tmp_path / "out"


def show(browser: Browser, path: Path) -> None:
    """Open a page without the answers that the browser has from other tests of the same sheet."""
    browser.open(path.as_uri())
    browser.script("localStorage.clear()")
    browser.reload()


def downloaded(browser: Browser, out: Path, annotator: int = 1) -> Path:
    """Download the sheet over the one that was made."""
    target = sheet_of(out, annotator)
    target.unlink(missing_ok=True)
    browser.download_to(target.parent)
    browser.script("document.getElementById('download').scrollIntoView()")
    browser.click("#download")
    deadline = time.monotonic() + 30
    while not target.exists() or list(target.parent.glob("*.crdownload")):
        assert time.monotonic() < deadline, "nothing was downloaded"
        time.sleep(0.02)
    return target


def pressed(browser: Browser) -> dict[str, str]:
    """Question -> answer of the pair that is shown."""
    found = browser.script("return [...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.id)")
    return {QUESTIONS[int(name[1])]: name.partition("-")[2] for name in found}


def given_answers(out: Path, partial: bool = False) -> dict[int, dict[str, str]]:
    (judged,) = read_judgements(out, read_key(out), partial)
    return {item: dict(answers) for item, answers in judged.answers.items()}


def test_what_is_clicked_is_what_is_read(browser: Browser, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "sheets" / "annotator-2.csv").unlink()
    items = [int(row["item"]) for row in load(sheet_of(out))]
    show(browser, page_of(out))
    assert browser.text("#where") == "English, pair 1 of 5"
    assert browser.text("#about") == "Pairs <of> mine, annotator 1"
    expected: dict[int, dict[str, str]] = {}
    # by buttons, in any order; the page goes on when all four are answered
    for number, answer in ((2, "unsure"), (0, "no"), (3, "yes"), (1, "no")):
        assert browser.text("#where") == "English, pair 1 of 5"
        browser.click(f"#q{number}-{answer}")
    expected[items[0]] = dict(zip(QUESTIONS, ("no", "no", "unsure", "yes"), strict=True))
    assert browser.text("#where") == "English, pair 2 of 5"
    # by keys: answers of the current question, a question by its number, back, an answer withdrawn
    browser.press("y4u")
    assert pressed(browser) == {"toxic": "yes", "no reply": "unsure"}
    browser.press("k")
    assert pressed(browser) == expected[items[0]]
    browser.press("j1yn")  # withdrawn, and another
    assert pressed(browser) == {"toxic": "no", "no reply": "unsure"}
    browser.press("a")
    expected[items[1]] = {**dict.fromkeys(QUESTIONS, "no"), "no reply": "unsure"}
    assert browser.text("#where") == "English, pair 3 of 5"
    browser.press("c")
    browser.type("#comment", '=odd, "very"\nno yes')
    browser.press("\ue00c")  # Escape: letters are answers again
    browser.press("nnu")
    # reload: answers and comment are kept, and nothing was sent anywhere
    browser.reload()
    assert browser.text("#where") == "English, pair 3 of 5"
    assert pressed(browser) == {"toxic": "no", "private": "no", "wrong language": "unsure"}
    assert browser.script("return document.getElementById('comment').value") == '=odd, "very"\nno yes'
    browser.press("n")
    expected[items[2]] = dict(zip(QUESTIONS, ("no", "no", "unsure", "no"), strict=True))
    assert browser.text("#where") == "Japanese, pair 4 of 5"
    downloaded(browser, out)
    assert given_answers(out, partial=True) == expected
    assert main(["data", "audit", "read", str(out)]) == 2
    assert "annotator-1.csv, row 5: no answer in the column 'toxic' (and 7 more)" in capsys.readouterr().err
    browser.reload()
    for item in items[3:]:
        browser.click("#rest")
        expected[item] = dict.fromkeys(QUESTIONS, "no")
    assert "All pairs are judged" in browser.text("#notice")
    assert browser.text("#done") == "5 of 5 judged"
    downloaded(browser, out)
    assert given_answers(out, partial=True) == expected
    assert main(["data", "audit", "read", str(out), "--partial", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["comments"] == [{"item": items[2], "annotator": 1, "comment": '=odd, "very"\nno yes'}]
    counts = {(row["question"], row["language"]): (row["yes"], row["undecided"]) for row in got["shares"]}
    assert counts["no reply", "en"] == (1, 1)
    assert counts["wrong language", "all"] == (0, 2)
    assert browser.called() == [], "the page called somebody"


def test_texts_are_shown_as_texts(browser: Browser, out: Path) -> None:
    show(browser, page_of(out))
    shown = set()
    for _ in ODD:
        shown.add(tuple(browser.script("return ['message', 'reply'].map((id) => window[id].textContent)")))
        browser.press("j")
    marked = {(m.replace("\x00", "[U+0000]").replace("\u202e", "[U+202E]"), r.replace("\r\n", "\n")) for m, r in ODD}
    assert shown == marked
    assert browser.script("return document.querySelectorAll('#message *, #reply *').length") == 0
    assert browser.script("return document.getElementById('message').lang") == "ja"
    browser.press("kkk")
    while "مرحبا" not in browser.text("#reply"):
        browser.press("j")
    assert browser.script("return getComputedStyle(document.getElementById('reply')).direction") == "rtl"


def test_a_sheet_that_was_begun_is_opened(browser: Browser, out: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun.csv"
    begun.write_bytes(sheet_of(out).read_bytes())
    judge(begun, lambda row, question: "unsure" if row["language"] == "ja" else "", QUESTIONS)
    change(begun, 0, toxic="YES ", comment="'=why")
    show(browser, page_of(out))
    browser.press("n")
    browser.script("document.getElementById('file').hidden = false")
    browser.type("#file", str(begun))
    assert "differ from the sheet" in browser.answer_prompt(accept=False)
    assert pressed(browser) == {"toxic": "no"}
    browser.type("#file", str(begun))
    browser.answer_prompt(accept=True)
    assert "3 judged pairs were read from begun.csv" in browser.wait_for_text("#notice", "were read")
    assert pressed(browser) == {"toxic": "yes"}
    assert browser.text("#done") == "2 of 5 judged"
    downloaded(browser, out)
    first, *others = (row for _, row in read_sheet(sheet_of(out), WIDE.columns))
    assert (first["toxic"], first["private"], restored(first["comment"])) == ("yes", "", "=why")
    assert [row["private"] for row in others if row["language"] == "ja"] == ["unsure", "unsure"]
    for path, expected in ((sheet_of(out, 2), "another one"), (page_of(out), "not a sheet of this audit")):
        browser.type("#file", str(path))
        assert expected in browser.wait_for_text("#notice", expected)
    change(begun, 1, private="maybe")
    browser.type("#file", str(begun))
    assert "“maybe”" in browser.wait_for_text("#notice", "expected yes, no, unsure")
    assert browser.text("#done") == "2 of 5 judged", "a sheet that is refused changes nothing"


def test_the_language_is_chosen_and_the_keys_work_on_other_keyboards(browser: Browser, out: Path) -> None:
    show(browser, page_of(out))
    browser.script("const s = document.getElementById('filter'); s.value = 'ja'; s.dispatchEvent(new Event('change'))")
    assert browser.text("#where") == "Japanese, pair 1 of 2"
    assert browser.text("#done") == "0 of 2 judged"
    key = "document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], code: arguments[1], bubbles: true}))"
    send = key.replace("document.", "document.body.", 1)
    browser.script(send, "н", "KeyY")  # the key of Y on a Russian keyboard
    browser.script(send, "y", "KeyZ")  # that of a German one
    assert pressed(browser) == {"toxic": "yes", "private": "yes"}
    browser.press("?")
    assert browser.script("return document.getElementById('help').open") is True
    browser.press("n\ue00c")
    assert pressed(browser) == {"toxic": "yes", "private": "yes"}, "keys do nothing while the help is open"
    assert browser.script("return document.getElementById('help').open") is False
    leaving = "return !window.dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert browser.script(leaving) is True
    downloaded(browser, out)
    assert browser.script(leaving) is False


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, out: Path) -> None:
    broken = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })"
    script = browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=broken)["identifier"]
    try:
        browser.reload()
        assert "does not keep answers" in browser.text("#notice")
        browser.press("aaaay")
        assert "does not keep answers" in browser.text("#notice")
        browser.press("a")
        assert "All pairs are judged" in browser.text("#notice")
        downloaded(browser, out)
    finally:
        browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    sheet_of(out, 2).unlink()
    assert [list(answers.values()).count("yes") for answers in given_answers(out, partial=True).values()].count(1) == 1


def test_every_control_has_a_name_and_nothing_is_wider_than_a_phone(browser: Browser, out: Path) -> None:
    show(browser, page_of(out))
    nameless = """
        return [...document.querySelectorAll("button, select, textarea, input, progress")].filter((one) => !(
            one.textContent.trim() && one.matches("button") || one.labels && one.labels.length ||
            one.getAttribute("aria-label") || one.getAttribute("aria-labelledby"))).map((one) => one.outerHTML)"""
    assert browser.script(nameless) == []
    browser.resize(360, 740, mobile=True)
    try:
        wide = "const d = document.documentElement; return [d.scrollWidth, d.clientWidth]"
        assert browser.script(wide) == [360, 360]
        small = """
            return [...document.querySelectorAll("button, select")].map((one) => one.getBoundingClientRect())
                .filter((box) => box.width && (box.height < 38 || box.left < 0 || box.right > 360)).length"""
        assert browser.script(small) == 0
    finally:
        browser.resize(1000, 860)


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_the_page_writes_and_reads_csv_as_the_project_does(
    any_page: Browser, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    columns = ("a", "b")
    ours = sheet_bytes(columns, rows).decode("utf-8-sig")
    script = """
        const [rows, text] = arguments, audit = window.mrsAudit;
        return [audit.csv(rows), audit.parse(text, ","), rows.slice(1).flat().map(audit.escaped)];"""
    theirs, parsed, cells = any_page.script(script, [columns, *rows], ours)
    assert theirs == ours
    assert [tuple(row) for row in parsed] == [columns, *rows]
    for cell, text in zip(cells, (text for row in rows for text in row), strict=True):
        assert restored(cell) == text
        assert cell[:1] not in tuple("=+-@＝＋－＠")
        assert cell == escaped(text) or not text.isascii()
    assert list(csv.reader(io.StringIO(theirs, newline=""))) == [list(columns), *map(list, rows)]


@pytest.fixture(scope="module")
def any_page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    folder = tmp_path_factory.mktemp("page") / "out"
    make_audit(in_memory({("en", "train"): numbered("en", 1)}), folder, PAPER)
    show(browser, page_of(folder))
    return browser
