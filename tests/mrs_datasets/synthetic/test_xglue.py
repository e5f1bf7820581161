"""The miniatures of XGLUE's tasks: known rules, the same rows in every language, learnable from words in English."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.synthetic.xglue import PAGES, RECORD, SIZES, draw_task, phrases

Row = dict[str, Any]
LANGUAGES = ("en", "de", "es", "fr")


@cache
def drawn(task: str) -> dict[str, dict[str, list[Row]]]:
    return draw_task(task, 7)


def shape(value: Any) -> Any:
    """The keys and the lengths of lists, all the way down."""
    if isinstance(value, dict):
        return {key: shape(held) for key, held in value.items()}
    return [shape(held) for held in value] if isinstance(value, list) else None


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_phrases(language: str) -> None:
    own = phrases(language)
    assert shape(own) == shape(phrases("en"))
    for name, words in [*own["words"].items(), *own["topics"].items()]:
        assert len(set(words)) == len(words), name
    topics = [word for words in own["topics"].values() for word in words]
    assert len(set(topics)) == len(topics), "a word of two categories"


@pytest.mark.parametrize("task", RECORD.kinds)
def test_rows_are_as_many_as_stated_different_and_parallel(task: str) -> None:
    kind = RECORD.kinds[task]
    answer = kind.hidden[0]
    seen: dict[str, set[str]] = defaultdict(set)
    for split, by_language in drawn(task).items():
        assert tuple(by_language) == kind.languages
        for language, rows in by_language.items():
            assert len(rows) == SIZES[split]
            for row in rows:
                text = repr({name: held for name, held in row.items() if name not in (answer, "id")})
                assert text not in seen[language], (language, split)
                seen[language].add(text)
            if answer == "label":
                assert [row["label"] for row in rows] == [row["label"] for row in by_language["en"]]
            if answer == "label" and task != "wpr":
                counts = Counter(row["label"] for row in rows)
                assert max(counts.values()) - min(counts.values()) <= 1, "labels are balanced"
            if task == "wpr":
                pages = [{row["query"] for row in rows[start : start + PAGES]} for start in range(0, len(rows), PAGES)]
                assert all(len(queries) == 1 for queries in pages), "a query has its pages together"


def found_in(text: str, words: list[str]) -> list[int]:
    """The numbers of the words that a text has, in the order of the text; the longest where several begin."""
    low, places = f" {text.lower()} ", {}
    for number, word in sorted(enumerate(words), key=lambda one: len(one[1])):
        place = low.find(word.lower())
        while place >= 0:
            if not low[place - 1].isalpha() and not low[place + len(word)].isalpha():
                places[place] = number
            place = low.find(word.lower(), place + 1)
    return [number for _, number in sorted(places.items())]


def says(text: str, templates: list[str]) -> bool:
    """Whether a text has the fixed words of one of the templates."""
    low = text.lower()
    parts = [[part.split("}")[-1].strip(" .").lower() for part in template.split("{")] for template in templates]
    return any(all(part in low for part in fixed if part) for fixed in parts)


def news(own: Any, row: Row) -> str:
    text = f"{row['news_title']} {row['news_body']}"
    counts = {topic: len(found_in(text, words)) for topic, words in own["topics"].items()}
    return max(counts, key=lambda topic: counts[topic])


def inference(own: Any, row: Row) -> str:
    if says(row["hypothesis"], own["xnli"]["neutral"]):
        return "neutral"
    if says(row["hypothesis"], own["xnli"]["contradiction"]):
        return "contradiction"
    places = [found_in(row[name], own["words"]["place"]) for name in ("premise", "hypothesis")]
    return "entailment" if places[0] == places[1] else "contradiction"


def paraphrase(own: Any, row: Row) -> str:
    cities = [found_in(row[name], own["words"]["city"]) for name in ("sentence1", "sentence2")]
    return str(int(cities[0] == cities[1] and not says(row["sentence2"], own["pawsx"]["never"])))


def advertisement(own: Any, row: Row) -> str:
    products = [found_in(row[name], own["words"]["product"]) for name in ("query", "ad_title", "ad_description")]
    return "Good" if products[0] == products[1] == products[2] else "Bad"


def page(own: Any, row: Row) -> str:
    names = [
        [found_in(row[column], own["words"][word]) for word in ("city", "shop")]
        for column in ("query", "web_page_title")
    ]
    quality = next(n for n, templates in enumerate(own["wpr"]["snippet"]) if says(row["web_page_snippet"], templates))
    return str(2 * (names[0] == names[1]) + quality)


def matching(own: Any, row: Row) -> str:
    asked = [name for name, (_, question) in own["facts"].items() if says(row["question"], [question])]
    told = [name for name, (sentence, _) in own["facts"].items() if says(row["answer"], [sentence])]
    return str(int(bool(set(asked) & set(told)) and not says(row["answer"], own["evasive"])))


RULES: dict[str, Callable[[Any, Row], str]] = {
    "nc": news, "xnli": inference, "pawsx": paraphrase, "qadsm": advertisement, "wpr": page, "qam": matching,
}  # fmt: skip


@pytest.mark.parametrize("task", RULES)
def test_the_stated_rules_give_every_label(task: str) -> None:
    for language, rows in drawn(task)["test"].items():
        for row in rows:
            assert RULES[task](phrases(language), row) == row["label"], (language, row)


def test_answers_and_tags_fit_their_texts() -> None:
    for split in drawn("mlqa").values():
        for rows in split.values():
            for row in rows:
                ((text, start),) = [(one["text"], one["start"]) for one in row["answers"]]
                assert row["context"][start : start + len(text)] == text
                assert row["context"].count(text) == 1
    for task in ("ner", "pos"):
        for rows in drawn(task)["test"].values():
            assert all(len(row["words"]) == len(row["tags"]) for row in rows)
    for rows in drawn("ner")["test"].values():
        for row in rows:
            previous = "O"
            for tag in row["tags"]:
                assert not tag.startswith("I-") or previous[2:] == tag[2:]
                previous = tag


def naive_bayes(rows: list[Row], test: list[Row]) -> float:
    """The accuracy of counted words with Laplace's rule, learned from `rows`: a model that knows no order."""

    def words(row: Row) -> list[str]:
        return [f"{name} {word}" for name, text in row.items() if name != "label" for word in text.lower().split()]

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["label"]].update(words(row))
    size = len({word for own in counts.values() for word in own})

    def score(label: str, row: Row) -> float:
        total = counts[label].total() + size
        return sum(math.log((counts[label][word] + 1) / total) for word in words(row))

    return sum(max(counts, key=lambda label: score(label, row)) == row["label"] for row in test) / len(test)


@pytest.mark.parametrize(
    ("task", "english", "lowest", "highest"),
    [
        ("nc", 1, 0.19, 0.52),
        ("xnli", 0.79, 0.2, 0.46),
        ("pawsx", 0.73, 0.54, 0.6),
        ("qadsm", 0.68, 0.51, 0.55),
        ("qam", 0.72, 0.5, 0.6),
    ],
)
def test_counted_words_reach_what_the_page_says(task: str, english: float, lowest: float, highest: float) -> None:
    """Of docs/xglue.md: far more than the majority class in English, little in the other languages."""
    made = draw_task(task, 42)
    scores = {code: naive_bayes(made["train"]["en"], rows) for code, rows in made["test"].items()}
    others = [score for code, score in scores.items() if code != "en"]
    assert [scores["en"], min(others), max(others)] == pytest.approx([english, lowest, highest], abs=0.006)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    out = tmp_path_factory.mktemp("synthetic") / "out"
    prepare("synthetic-xglue", ["synthetic:7"], out)
    return open_prepared(str(out))


def test_it_is_prepared_checked_and_loaded_like_xglue(folder: PreparedData) -> None:
    assert list(check(folder)) == []
    assert draw_task("qam", 8) != drawn("qam") == draw_task("qam", 7)
    assert folder.report()["settings"] == {"seed": 7}
    assert folder.splits("ner-en") == ["train", "validation", "test"]
    assert folder.splits("ner-de") == ["validation", "test"]
    assert folder.load("wpr-fr", "test").to_list() == drawn("wpr")["test"]["fr"]
    assert set(folder.configs()) == {config for config, _, _ in RECORD.configs()}
