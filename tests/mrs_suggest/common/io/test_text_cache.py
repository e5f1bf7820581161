"""Cached answers: found again, kept apart, and safe against a damaged file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.text_services import ServiceFacts

FACTS = ServiceFacts("words", "lists", "1")


@given(answers=st.dictionaries(st.text(), st.floats(0, 1), max_size=1200))
def test_answers_are_found_again_exactly(answers: dict[str, float], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cache") / "answers.sqlite"
    with TextCache[float](path, FACTS, "es") as cache:
        cache.add(answers)
    with TextCache[float](path, FACTS, "es") as cache:
        assert cache.known([*answers, "\ud800 never asked"]) == answers


def test_services_versions_and_languages_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with TextCache[float](path, FACTS, "es") as cache:
        cache.add({"hola": 0.25})
    for facts, about in [
        (FACTS, "pt"),
        (ServiceFacts("words", "lists", "2"), "es"),
        (ServiceFacts("http", "lists", "1"), "es"),
    ]:
        with TextCache[float](path, facts, about) as cache:
            assert cache.known(["hola"]) == {}


def test_a_file_that_is_no_cache_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"answers\.sqlite: the cache .* cannot be used"):
        TextCache[float](path, FACTS, "es")
