"""Errors by kind: the paper's examples, known errors of the made-up languages, and what is counted."""

from collections import Counter
from importlib import resources
from random import Random

import pytest
import yaml

from mrs_datasets.catalogue import read_record
from mrs_datasets.synthetic.grammar.english import Meaning
from mrs_datasets.synthetic.grammar.paraphrases import PHENOMENA, made_up_languages
from mrs_metrics.translations_f1 import read_paper
from mrs_suggest.staple.analysis.error_kinds import (
    KNOWN,
    NOT_FOUND,
    OVER_GENERATED,
    PRONOUN,
    VERB_SUFFIX,
    WORD_ORDER,
    kind_of,
)
from mrs_suggest.staple.analysis.error_words import error_words, made_up_words
from mrs_suggest.staple.analysis.errors import ErrorAnalysis, Neighbours, lists_of
from mrs_suggest.staple.analysis.scored_systems import score
from mrs_suggest.staple.gold import Gold
from tests.cases import cases

TRACKS = read_record("staple").languages

# Section 4.5 of the paper, the accepted translations completed where it names none; then ours.
PAIRS = cases(__file__, "PAIRS")


@pytest.mark.parametrize(("language", "predicted", "accepted", "kind"), PAIRS)
def test_kinds_of_the_paper_s_examples(language: str, predicted: str, accepted: str, kind: str) -> None:
    lists = error_words(language)
    assert lists is not None
    left, right = lists.cut(read_paper(predicted)), lists.cut(read_paper(accepted))
    assert kind_of(left, right, lists) == kind
    assert kind_of(right, left, lists) == kind, "a missing translation has the same kind as a wrong one"


@pytest.mark.parametrize("code", ["qaa", "qab"])
def test_known_errors_are_told(code: str) -> None:
    """Of errors that a grammar made on purpose, nearly all get their kind; the lists are the grammar's own."""
    language, lists = made_up_languages(7)[code], made_up_words(code, 7)
    assert lists is not None
    told: Counter[bool] = Counter()
    for verb, noun in [("read", "letter"), ("feed", "dog"), ("buy", "apple"), ("go", "park"), ("learn", "piano")]:
        for subject, number, time in [("i", 1, ""), ("she", 3, "today"), ("they", 16, "now"), ("the boy", 1, "often")]:
            meaning = Meaning(verb, noun, subject, 1 if verb == "go" else number, time)
            accepted = language.accepted(meaning)
            neighbours = Neighbours([one.text for one in accepted], lists)
            for kind, text in language.wrong_translations(meaning, accepted, Random(0)).items():
                words = lists.cut(text)
                _, near = neighbours.nearest(words)
                told[kind_of(words, near, lists) == kind] += 1
    assert sum(told.values()) > 80
    assert told[True] / sum(told.values()) > 0.95
    assert set(PHENOMENA) == set(KNOWN)


def gold(**accepted: dict[str, float]) -> Gold:
    rows = [
        {"id": key, "prompt": key, "reference": None,
         "translations": [{"text": text, "weight": weight} for text, weight in texts.items()]}
        for key, texts in accepted.items()
    ]  # fmt: skip
    return Gold("toy", rows, "pt", "test", "paper")


def test_errors_are_counted_and_weighed() -> None:
    data = gold(
        a={"Eu gosto disso.": 0.6, "gosto disso": 0.3, "disso eu gosto": 0.1}, b={"não": 1.0}, c={"a casa azul": 1.0}
    )
    predictions = {"a": ["eu gosto disso", "Eu gostava disso!", "o carro quebrou ontem"], "c": ["azul a casa"]}
    system = score(data, "mine", predictions)
    lists, note = lists_of(data)
    assert note == ""
    errors = ErrorAnalysis(data, lists).of(system)
    counts = {kind: found.count for kind, found in errors.precision.items() if found.count}
    assert counts == {VERB_SUFFIX: 1, OVER_GENERATED: 1, WORD_ORDER: 1}
    assert errors.precision[VERB_SUFFIX].examples == [(0.6, "a", "Eu gostava disso!", "Eu gosto disso.")]
    lost = {kind: found.lost for kind, found in errors.recall.items() if found.count}
    assert lost == pytest.approx({PRONOUN: 0.1, WORD_ORDER: (0.1 + 1) / 3, NOT_FOUND: 1 / 3})
    assert errors.recall[NOT_FOUND].examples == [(1.0, "b", "", "não")]
    assert errors.missed == pytest.approx(2.4 / 3) == sum(lost.values()) + errors.unseen


@pytest.mark.parametrize("language", TRACKS)
def test_lists_hold_words(language: str) -> None:
    """A bare `no` or `on` would be a truth value in YAML; a misspelt key would be ignored."""
    text = (resources.files("mrs_suggest.staple.analysis") / "error_words" / f"{language}.yaml").read_text(
        encoding="utf-8"
    )
    content = yaml.safe_load(text)
    assert set(content) <= {"segment", "pronouns", "numbers", "verbs", "nouns", "loanwords"}
    assert set(content.get("verbs", {})) <= {"endings", "words", "after"}
    assert set(content.get("nouns", {})) <= {"endings", "words", "after", "forms", "attached"}
    lists = [content["pronouns"], content["numbers"]]
    for part in (content.get("verbs", {}), content.get("nouns", {}), content["loanwords"]):
        lists += [value for key, value in part.items() if key not in ("forms", "attached")]
    lists += content.get("nouns", {}).get("forms", [])
    for words in lists:
        assert all(isinstance(word, str) and word == read_paper(word) for word in words), words
