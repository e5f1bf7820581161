"""Cleaning: golden texts, masked personal data, pairs; a pattern finds every text that its function changes."""

import re
import time
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import clean as clean_module
from mrs_datasets.builders.reddit.clean import (
    EMPTY_MESSAGE,
    EMPTY_REPLY,
    MAX_PASSES,
    MAY_BE_MARKED,
    MAY_BE_MOJIBAKE,
    MAY_BE_TAGGED,
    ONLY_MASKS,
    CleanRules,
    _reason,
    _reasons,
    _steps,
    clean_column,
    clean_pairs,
    plain_text,
    without_mojibake,
    without_tags,
)
from mrs_datasets.builders.reddit.plan import KEPT
from mrs_suggest.common.text.masks import MASKS, mask
from tests.cases import cases

VISIBLE = cases(__file__, "VISIBLE")
PIECES = [*VISIBLE.split(), " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u2028", "\u3000", "\u200b", "\0"]
MARKED = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)
PLAIN = st.lists(st.text("abzéßñжя日本語ひカ。、！ABC012", min_size=1, max_size=6), min_size=1, max_size=9).map(
    " ".join
)
RULES = st.builds(CleanRules, markdown=st.booleans(), masks=st.just(True))
NAME = st.from_regex(r"[A-Za-z0-9_-]{3,20}", fullmatch=True)
LETTERS = st.text("abcXYZ019", min_size=1, max_size=8)
BETWEEN = st.sampled_from(
    ["", " ", ", ", "\n", "(", "**", "_", "日本", "/", "\n> x\n\n", "~~", "&gt;", "[x](", '"', "é"]
)
SECRET = (
    NAME.map("u/{}".format)
    | NAME.map("/user/{}".format)
    | NAME.map("r/u_{}".format)
    | NAME.map("u&#47;{}".format)
    | NAME.map(r"\/r\/u_{}".format)
    | NAME.map("/message/compose/?to={}".format)
    | st.tuples(LETTERS, LETTERS).map("{0[0]}.x@{0[1]}.org".format)
    | st.tuples(LETTERS, LETTERS).map("https://{0[0]}.org/{0[1]}?x={0[1]}".format)
    | st.emails()
)

# What no cleaned text may hold; slashes in any of their forms.
SLASH = re.compile(r"\\?(?:/|&#47;|&#x2F;)", re.IGNORECASE)
HELD_BACK = re.compile(
    r"https?://|(?<![a-z0-9])u/[a-z0-9_-]|/u/[a-z0-9_-]|/user/[a-z0-9_-]|(?<![a-z0-9])r/u_[a-z0-9_-]"
    r"|(?<![a-z0-9])message/compose/?\?to=",
    re.IGNORECASE,
)
MAIL = re.compile(r"[A-Za-z0-9]@[A-Za-z0-9-]+\.[A-Za-z]{2}")


def clean_text(text: str, rules: CleanRules = CleanRules(), repairs: Counter[str] | None = None) -> str:  # noqa: B008
    """The definition of cleaning, for one text."""
    repaired = set()
    for _ in range(MAX_PASSES):
        before = text
        for steps, kind in _steps(rules):
            after = text
            for step in steps:
                after = step.change(after)
            if kind and after != text:
                repaired.add(kind)
            text = after
        if text == before:
            break
    else:
        text = ""
    if repairs is not None:
        repairs.update(repaired)
    return text


@pytest.mark.parametrize(("body", "text"), cases(__file__, "test_golden_texts"))
def test_golden_texts(body: str, text: str) -> None:
    assert clean_text(body) == text
    assert clean_text(text) == text


@settings(max_examples=400)
@given(MARKED, RULES)
@example("\\\\" * 3000 + "u/bob_b", CleanRules())
@example("&amp;" + "amp;" * 40 + "gt; u/bob", CleanRules())
def test_what_is_clean_stays_and_nothing_personal_is_left(body: str, rules: CleanRules) -> None:
    text = clean_text(body, rules)
    assert clean_text(text, rules) == text
    assert not HELD_BACK.search(SLASH.sub("/", text))
    assert not MAIL.search(text)
    if rules.markdown:
        assert text == " ".join(text.split())
        assert "\0" not in text


@settings(max_examples=300)
@given(BETWEEN, SECRET, BETWEEN, RULES)
def test_names_addresses_and_links_are_masked_wherever_they_stand(
    before: str, secret: str, after: str, rules: CleanRules
) -> None:
    text = clean_text(f"Hi {before}{secret}{after} there", rules)
    assert secret not in text
    assert text.startswith("Hi")


def test_masks_alone_leave_the_rest_of_the_text() -> None:
    body = "&gt; *Hi*  u/some\\_one\n\n* see http://a.org/b\\_c &amp; [a@b.de](mailto:a@b.de)\r\n"
    masked = "&gt; *Hi*  <user>\n\n* see <url> &amp; [<email>](mailto:<email>)\r\n"
    assert clean_text(body, CleanRules(markdown=False)) == masked
    assert clean_text(body, CleanRules(markdown=False, masks=False)) == body
    assert clean_text("> *Hi*\nu/bob", CleanRules(masks=False)) == "u/bob"


@pytest.mark.parametrize(("body", "text"), cases(__file__, "test_what_every_profile_masks"))
def test_what_every_profile_masks(body: str, text: str) -> None:
    assert mask(body) == text
    assert mask(text) == text
    assert not HELD_BACK.search(SLASH.sub("/", clean_text(body)))


@pytest.mark.parametrize("number", cases(__file__, "test_telephone_numbers_are_masked"))
def test_telephone_numbers_are_masked(number: str) -> None:
    assert mask(f"Ring {number}, ok? ({number})") == "Ring <phone>, ok? (<phone>)"


@pytest.mark.parametrize("text", cases(__file__, "test_dates_versions_prices_and_scores_stay"))
def test_dates_versions_prices_and_scores_stay(text: str) -> None:
    for whole in (text, f"It was {text}.", f"({text}), {text}!"):
        assert mask(whole) == whole


@pytest.mark.parametrize(
    ("body", "text"), cases(__file__, "test_ip_and_spelled_addresses_and_numbers_that_are_named_are_masked")
)
def test_ip_and_spelled_addresses_and_numbers_that_are_named_are_masked(body: str, text: str) -> None:
    assert mask(body) == text
    assert mask(text) == text
    assert clean_text(text) == text


REPEATED = cases(__file__, "REPEATED")


@pytest.mark.parametrize("piece", [*REPEATED.split(), "- a\n", "a\n>"])
def test_no_text_takes_long(piece: str) -> None:
    body = piece * (40_000 // len(piece))  # four times the longest comment
    begun = time.process_time()
    clean_text(body)
    assert time.process_time() - begun < 2


def table(*rows: tuple[str, str, str]) -> pa.Table:
    columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate("lmr")}
    return pa.table(
        {
            "message": columns["m"],
            "reply": columns["r"],
            "order": pa.array(range(len(rows)), pa.uint64()),
            "language": columns["l"],
        }
    )


LONG = "I have been looking for a good recipe for lentil soup since last winter, does anybody here know one?"


def test_each_pair_has_one_outcome() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("en", "Where **are** you?", "At [home](http://a.org)", KEPT),
        ("en", "> quote", "Yes", EMPTY_MESSAGE),
        ("en", "> quote", "", EMPTY_MESSAGE),
        ("en", "Hello", "***", EMPTY_REPLY),
        ("en", "What?", "http://a.org!", ONLY_MASKS),
        ("en", "/u/bob - u/alice", "Yes", ONLY_MASKS),
        ("en", "what? http://a.org", "yes", KEPT),
        ("sv", LONG, "Ask my mother, she has one that everybody likes.", KEPT),
        ("en", LONG + " Please", "Ask my mother, she has one that everybody likes", KEPT),
        ("en", LONG, "I do!", KEPT),
        ("en", LONG, "Sorry, no.", KEPT),
        ("en", "&lt;3", "<3", KEPT),
    ]  # fmt: skip
    pairs = table(*(row[:3] for row in rows))
    found, outcomes = clean_pairs(pairs)
    assert outcomes == Counter((language, outcome) for language, _, _, outcome in rows)
    assert found["order"].to_pylist() == [place for place, row in enumerate(rows) if row[3] == KEPT]
    assert found.schema.equals(pairs.schema)
    assert found["message"][:2].to_pylist() == ["Where are you?", "what? <url>"]
    assert found["reply"][0].as_py() == "At home"
    again, outcomes = clean_pairs(found)
    assert again.equals(found)
    assert {outcome for _, outcome in outcomes} == {KEPT}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["en", "ja"]), MARKED, MARKED | PLAIN), max_size=12), st.integers(1, 5))
def test_the_counts_add_up_whatever_the_batches(rows: list[tuple[str, str, str]], batch: int) -> None:
    pairs = table(*rows)
    found, outcomes = clean_pairs(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_module, "BATCH_ROWS", batch)
        in_batches, same = clean_pairs(pairs)
    assert (in_batches.equals(found), same) == (True, outcomes)
    assert outcomes.total() == len(rows)
    assert {language: outcomes[language, KEPT] for language in ("en", "ja")} == {
        language: found["language"].to_pylist().count(language) for language in ("en", "ja")
    }
    kept = list(zip(found["message"].to_pylist(), found["reply"].to_pylist(), strict=True))
    assert all(message and reply for message, reply in kept)


def test_texts_that_were_repaired_are_counted() -> None:
    rows = [
        ("de", "schÃ¶n <b>ja</b>", "&lt;i&gt;nein&lt;/i&gt; und <u>so</u>"),
        ("de", "schön", "Ã¶de"),
        ("de", "a", "b"),
    ]
    repairs: Counter[str] = Counter()
    found, _ = clean_pairs(table(*rows), repairs=repairs)
    assert repairs == {"mojibake repaired": 2, "HTML tags stripped": 2}
    assert found["message"].to_pylist() == ["schön ja", "schön", "a"]


# --- Columns ----------------------------------------------------------------------------------------------------------

# Parts of what is masked or cleaned, also with letters that are only equal to theirs up to case: ſ, İ, ı, K.
PARTS = cases(__file__, "PARTS")
_BETWEEN = ["", "", " ", "  ", *"\n\t\u00a0\u2028\u3000\x1c\x85\0\u200b\ufeff\xad"]
TEXTS = st.lists(st.sampled_from(PARTS.split()) | st.sampled_from(_BETWEEN) | st.text(max_size=2), max_size=14).map(
    "".join
)
SPACED = st.lists(st.sampled_from(PARTS.split()), max_size=9).map(" ".join)
COLUMNS = st.lists(TEXTS | SPACED, max_size=9)

FUNCTIONS: dict[str, tuple[Callable[[str], str], str]] = {
    "mask": (mask, "|".join(step.may_change for step in MASKS)),
    **{f"mask {number}": tuple(step) for number, step in enumerate(MASKS)},
    "plain_text": (plain_text, MAY_BE_MARKED),
    "without_tags": (without_tags, MAY_BE_TAGGED),
    "without_mojibake": (without_mojibake, MAY_BE_MOJIBAKE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(COLUMNS)
@example(["a\u3000b", " a", "a ", "-a", "+a", "=a"])
@example(["jane at gmaıl dot com", "jane AT İcloud.dot.com", "x\u00a0at\u2003mſn dot com", "a.b (СОБАКА) c.d"])
@example(["a@1.2.3.4ё", "a@b.co", "a@b.c.de"])
@example(["&amp;amp;amp;#x00002f;u", "u&ſol;bob", "/r/a/ſ/x", "a.xn--p1ai:8080/x", "(u/b", "://", "commentſ/abcd/"])
def test_a_pattern_finds_every_text_that_its_function_changes(name: str, texts: list[str]) -> None:
    change, may_change = FUNCTIONS[name]
    found = pc.match_substring_regex(pa.array(texts, pa.string()), may_change).to_pylist()
    assert [text for text, there in zip(texts, found, strict=True) if not there and change(text) != text] == []


@given(COLUMNS, st.builds(CleanRules, *[st.booleans()] * 3))
@example(["&amp;" * 30 + "amp;lt;b", "\\" * 5000 + "*a*"], CleanRules())
def test_a_column_is_cleaned_as_its_texts_are(texts: list[str], rules: CleanRules) -> None:
    one_by_one: Counter[str] = Counter()
    together: Counter[str] = Counter()
    expected = [clean_text(text, rules, one_by_one) for text in texts]
    cleaned = clean_column(pa.array(texts, pa.string()), rules, together)
    assert (cleaned.to_pylist(), together) == (expected, one_by_one)
    replies = cleaned[::-1]
    assert _reasons(cleaned, replies).to_pylist() == [*map(_reason, expected, expected[::-1])]
