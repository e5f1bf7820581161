"""Functions on columns give what they give text by text: their patterns find every text that is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.cleaning import columns
from mrs_datasets.builders.reddit.cleaning.clean import (
    MAY_BE_MOJIBAKE,
    MAY_BE_TAGGED,
    CleanRules,
    _reason,
    _reasons,
    clean_column,
    clean_text,
    without_mojibake,
    without_tags,
)
from mrs_datasets.builders.reddit.cleaning.columns import Step, change_in_turn
from mrs_datasets.builders.reddit.cleaning.markup import MAY_BE_MARKED, plain_text, without_quotes
from mrs_datasets.builders.reddit.cleaning.masks import MASKS, mask

# Parts of what is masked or cleaned, also with letters that are only equal to theirs up to case: ſ, İ, ı, K.
PARTS = r"""
a b z A 0 1 9 . .. : :: / // \ \/ & &amp; &#47; &#x2F; &#x002f; &sol; &SOL; &ſol; &amp;sol; &#0047; ; # -
+ = * ** _ ~~ ` > < | ^ ( ) [ ] { } @ ! ? , ' " % ://  http:// HTTPS:// ftp:// mailto: example.com EXAMPLE.İE
a.io/ a.ıo/x b.de:80/ рф .рф/a xn--p1ai x.xn--p1ai/ r/ R/ r/a/ r/aſ/ /comments/ commentſ/ comments/abcd/ /s/ /ſ/
u/ U/ /u/ u/bob /user/ uſer/ /uſer/bob r/u_ R/U\_ r/u_bob t1_ t3\_ t1_abcde t6_abcdefg www. WWW. wwW2. ww Ww
message/compose message/compoſe ?to= to=bob @b.co a@b.co at AT At (at) [at] (arroba) [ARROBA] {ät} (СОБАКА) <@>
dot punkt (dot) [.] gmail GMAİL gmaıl googlemail yahoo hotmail outlook İcloud iCloud aol gmx proton ymail mſn yandex
mail maIl com 555 123-4567 +49 170 1234567 (212) 0170 12345 8(912) tel: phone: fax 1.2 192.168. 10.0.0.1 127.0.0.1:80
fe80:: 2001:db8: ::1 abcd:ef01:2345 v1 2018-01-02 <br> </p> <ſpan> <K> <İ> <ı> <!-- --> <script> </script> </ſcript>
<a href="x"> <url> <user> <email> Ã© Ã¨ â€™ â€œ Â Ã à € Œ œ ï ¿ ½ вЂ Р’ Гў ÂÂ Ø§Ù Ð” ’ “ ” « » é è É Ü 日 本 カ я Я ё 😀
ß --- ``` 1. - > &gt; &gt;! >! !< [a](b) ![a](http://b.c) [a]: |-| |:-|:-| &nbsp; &#39; &lt;b&gt; ^(a) ^a \* \_
"""
_BETWEEN = ["", "", " ", "  ", *"\n\t\u00a0\u2028\u3000\x1c\x85\0\u200b\ufeff\xad"]
TEXTS = st.lists(st.sampled_from(PARTS.split()) | st.sampled_from(_BETWEEN) | st.text(max_size=2), max_size=14).map(
    "".join
)
SPACED = st.lists(st.sampled_from(PARTS.split()), max_size=9).map(" ".join)
COLUMNS = st.lists(TEXTS | SPACED, max_size=9)

FUNCTIONS: dict[str, tuple[Callable[[str], str], str]] = {
    "mask": (mask, "|".join(step.may_change for step in MASKS)),
    **{step.change.__name__: tuple(step) for step in MASKS},
    "plain_text": (plain_text, MAY_BE_MARKED),
    "plain_text with quotes": (partial(plain_text, quotes=False), MAY_BE_MARKED),
    "without_quotes": (without_quotes, MAY_BE_MARKED),
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


def test_the_pattern_of_wrong_characters_finds_all_short_texts_that_are_repaired() -> None:
    letters = ["", "a", "A", " ", *map(chr, (*range(0x80, 0x180), 0x192, 0x2C6, 0x2D8, 0x386, 0x401, 0x402, 0x432))]
    symbols = [*map(chr, (*range(0x2013, 0x2050), 0x20AC, 0x2116, 0x2122, 0x221A, 0x2248, 0x2502, 0x25CA, 0xFFFD))]
    texts = pa.array(
        [before + one + two for before in ("", "a ") for one, two in product([*letters, *symbols], repeat=2)]
    )
    unseen = texts.filter(pc.invert(pc.match_substring_regex(texts, MAY_BE_MOJIBAKE))).to_pylist()
    assert len(unseen) > 10_000
    assert [text for text in unseen if without_mojibake(text) != text] == []


@given(COLUMNS, st.builds(CleanRules, *[st.booleans()] * 5))
@example(["&amp;" * 30 + "amp;lt;b", "\\" * 5000 + "*a*"], CleanRules())
def test_a_column_is_cleaned_as_its_texts_are(texts: list[str], rules: CleanRules) -> None:
    one_by_one: Counter[str] = Counter()
    together: Counter[str] = Counter()
    expected = [clean_text(text, rules, one_by_one) for text in texts]
    cleaned = clean_column(pa.array(texts, pa.string()), rules, together)
    assert (cleaned.to_pylist(), together) == (expected, one_by_one)
    replies = cleaned[::-1]
    assert _reasons(cleaned, replies).to_pylist() == [*map(_reason, expected, expected[::-1])]


@given(st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=20), st.integers(1, 3), st.integers(0, 3))
def test_rows_stay_in_their_places(texts: list[str], batch: int, start: int) -> None:
    column = pa.array(texts, pa.string())[start:]  # also one that does not begin at the start of its memory
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BATCH_ROWS", batch)
        changed, rows = change_in_turn(column, [Step(lambda text: text.replace("a", "xyz"), "[ab]")])
    assert changed.to_pylist() == [text.replace("a", "xyz") for text in texts[start:]]
    assert rows.tolist() == np.flatnonzero([text == "a" for text in texts[start:]]).tolist()
