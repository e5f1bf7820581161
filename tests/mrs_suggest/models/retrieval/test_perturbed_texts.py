"""Perturbed texts: as many as asked for, made of the language's own words, equal for equal seeds."""

from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.models.retrieval.perturbed_texts import perturbed

TEXTS = ["are you coming tonight ?", "here is your book", "thanks", "see you at the station tomorrow"]
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1)


def test_copies_follow_their_text_and_consist_of_words_of_the_language() -> None:
    found = perturbed(TEXTS, "en", 30, seed=1)
    assert len(found) == 120
    assert {word for text in found for word in text.split()} <= {word for text in TEXTS for word in text.split()}
    assert len(set(found[:30])) > 10
    own = [sum(word in TEXTS[0].split() for word in text.split()) / len(text.split()) for text in found[:30]]
    assert sum(own) / 30 > 0.5  # near the text that they come from
    found = perturbed(["今晩来ますか", "ありがとう"], "ja", 40, seed=1)
    assert set("".join(found)) <= set("今晩来ますかありがとう")
    assert any(text not in ("今晩来ますか", "ありがとう") for text in found)


@given(texts, st.integers(0, 99))
def test_any_texts_give_equal_and_never_blank_copies_for_a_seed(some: list[str], seed: int) -> None:
    found = perturbed(some, "en", 3, seed)
    assert found == perturbed(some, "en", 3, seed)
    assert len(found) == 3 * len(some)
    assert all(text.strip() for text in found)
