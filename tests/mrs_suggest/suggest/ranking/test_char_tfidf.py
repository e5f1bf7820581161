"""Character TF-IDF by an inverted index: equal to scikit-learn's vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf

TEXTS = ["Are you coming tonight?", "¿Vienes esta noche?", "今晩来ますか？", "are you  COMING?", "👍", "a"]
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def by_scikit(stored: list[str], text: str) -> np.ndarray:
    fold = [f" {' '.join(one.lower().split())} " for one in [*stored, text]]
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 4), sublinear_tf=True, lowercase=False)
    matrix = vectorizer.fit_transform(fold[:-1])
    return (vectorizer.transform(fold[-1:]) @ matrix.T).toarray()[0]


@given(st.lists(words, min_size=1, max_size=6), words)
def test_cosines_are_those_of_scikit_learn_for_any_text(stored: list[str], text: str) -> None:
    # lower() may give scikit-learn's analyser white space that it folds; ours folds first
    np.testing.assert_allclose(CharTfidf.build(stored).cosines(text), by_scikit(stored, text), atol=1e-5)


def test_a_stored_text_is_nearest_to_itself() -> None:
    index = CharTfidf.build(TEXTS)
    for number, text in enumerate(TEXTS):
        assert index.cosines(text)[number] == pytest.approx(1, abs=1e-5)
    again = CharTfidf.from_arrays(index.arrays())
    np.testing.assert_allclose(again.cosines("coming tonight"), index.cosines("coming tonight"), atol=1e-3)


def test_no_text_and_arrays_that_do_not_fit_are_refused() -> None:
    arrays = CharTfidf.build(TEXTS).arrays()
    with pytest.raises(ValueError, match="do not match"):
        CharTfidf.from_arrays({**arrays, "idf": arrays["idf"][:-1]})
    with pytest.raises(ValueError, match="do not match"):
        CharTfidf.from_arrays({**arrays, "size": np.array([1])})
    with pytest.raises(ValueError, match="at least one text"):
        CharTfidf.build([])
