"""The data set `synthetic-xglue`: miniatures of XGLUE's eleven tasks in English, German, Spanish and French.

Each task has its languages of XGLUE, among these four; training data are in English only. Words and templates are in
`mrs_datasets/mini_tasks/LANG.yaml`; row n of a split says the same in every language. Every right answer follows from
the rules below, so the best possible score is 1 (for BLEU: with respect to the one reference):

- ner, pos: the word and its neighbours determine the tag.
- nc: the noun of the title belongs to the category, and five of the body's six; one is of another category.
- mlqa: four sentences about one person, in any order; the question asks for a city, a year, a job or a number.
- xnli: a third of each. Neutral hypotheses begin with *perhaps*. Half of the contradictions have a negation
  (*nobody* or *not*); the other half would be entailed if the premise named another place. Without the premise, 5/6
  can be right.
- pawsx, qadsm, qam: half of the rows are negative (0, Bad). Half of these show it by special words (*never*, an ad that
  has ended, an answer that evades); the other half have the words of positive rows and do not match: cities are swapped
  or different, another product, an answer to another question. Without the first text, 3/4 can be right.
- wpr: five pages to a query. A page has 2 for the city and the thing of the query, and 0, 1 or 2 for a snippet that
  says what is missing, old or official.
- qg: the question that the first sentence answers. ntg: the title of one of three kinds of news.

Words alone therefore teach a model more than the majority class, comparing the texts teaches it the rest, and its
knowledge of the four languages decides how well it transfers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from random import Random
from typing import Any

import yaml

from mrs_datasets.catalogue import read_record
from mrs_datasets.synthetic import Tables

RECORD = read_record("synthetic-xglue")
PIVOT = "en"
SIZES = {"train": 600, "validation": 100, "test": 200}
PAGES = 5  # of a query of wpr
# Names are the same in all languages; of men, since French participles agree.
FIRST = (
    "Adam Bruno Carlos Daniel Emil Felix Hugo Ivan Jonas Karl Leo Marco Nils Oscar Pablo Robert Simon Thomas Viktor "
    "Walter"
)
LAST = "Weber García Martin Novak Rossi Silva Jansen Keller Moreno Dubois Larsen Popov Schmidt Torres Fischer"
ORGANISATIONS = (
    "Siemens", "Airbus", "Nokia", "Telefónica", "Banco Santander", "Volkswagen", "Renault", "Real Madrid",
    "Deutsche Bank", "Credit Suisse", "Philips", "Lufthansa",
)  # fmt: skip
Row = dict[str, Any]
Phrases = dict[str, Any]


def tables(seed: int) -> Tables:
    for task, kind in RECORD.kinds.items():
        splits = draw_task(task, seed)
        for language in kind.languages:
            for split in kind.splits:
                if split != "train" or language == PIVOT:
                    yield kind.config.format(language=language), split, splits[split][language]


def draw_task(task: str, seed: int) -> dict[str, dict[str, list[Row]]]:
    """Split -> language -> rows of a task, in all its languages; all rows of a language have different texts."""
    kind = RECORD.kinds[task]
    labels = kind.values.get("label", ()) if task != "wpr" else ()
    hidden = {*kind.hidden, "id"}
    seen: dict[str, set[str]] = {language: set() for language in kind.languages}
    splits: dict[str, dict[str, list[Row]]] = {}
    for split, size in SIZES.items():
        order = Random(f"{seed}/{task}/{split}/labels")
        wanted = [labels[number % len(labels)] for number in range(size)] if labels else [""] * size
        order.shuffle(wanted)
        rows: dict[str, list[Row]] = {language: [] for language in kind.languages}
        attempt = 0
        while len(rows[PIVOT]) < size:
            label, key = wanted[len(rows[PIVOT])], f"{seed}/{task}/{split}/{attempt}"
            drawn = {language: list(DRAW[task](phrases(language), Random(key), label)) for language in rows}
            attempt += 1
            texts = {
                language: found[0]["query"]
                if task == "wpr"
                else repr({name: value for name, value in found[0].items() if name not in hidden})
                for language, found in drawn.items()
            }
            if any(texts[language] in seen[language] for language in rows):
                continue
            for language, found in drawn.items():
                seen[language].add(texts[language])
                rows[language] += found
        splits[split] = rows
        for found in rows.values() if task == "mlqa" else ():
            for number, row in enumerate(found):
                row["id"] = f"{split}-{number}"
    return splits


@cache
def phrases(language: str) -> Phrases:
    """The words and templates of a language."""
    path = resources.files("mrs_datasets").joinpath("mini_tasks").joinpath(f"{language}.yaml")
    found: Phrases = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["words"] |= {"first": FIRST.split(), "last": LAST.split(), "organisation": list(ORGANISATIONS)}
    return found


def _word(own: Phrases, random: Random, name: str) -> str:
    return str(random.choice(own["words"][name]))


def _words(own: Phrases, random: Random, name: str, count: int) -> list[str]:
    return random.sample(own["words"][name], count)


def _year(random: Random) -> str:
    return str(random.randint(1950, 2009))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _tagged(own: Phrases, pairs: list[tuple[str, str]]) -> Iterator[Row]:
    words = [word for word, _ in pairs]
    yield {"words": [_sentence(words[0]), *words[1:]], "tags": [tag for _, tag in pairs]}


def _ner(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    pairs = []
    for part in random.choice(own["ner"]).split():
        kind = part.strip("{}")
        if kind == part:
            pairs.append((part, "O"))
            continue
        text = _word(own, random, {"LOC": "city", "ORG": "organisation", "MISC": "misc", "PER": "first"}[kind])
        if kind == "PER" and random.random() < 0.5:
            text += f" {_word(own, random, 'last')}"
        pairs += [(word, f"{'I' if place else 'B'}-{kind}") for place, word in enumerate(text.split())]
    return _tagged(own, pairs)


def _pos(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    pairs: list[tuple[str, str]] = []
    for part in random.choice(own["pos"]).split():
        text, _, tag = part.partition("/")
        if text.startswith("{"):
            text = _word(own, random, text.strip("{}"))
        words = text.split()
        pairs += zip(words, [tag] * len(words) if tag else ["DET", "NOUN"], strict=True)
    return _tagged(own, pairs)


def _nc(own: Phrases, random: Random, label: str) -> Iterator[Row]:
    topics = own["topics"]
    title, a, b, c = random.sample(topics[label], 4)
    other = random.choice(topics[random.choice([name for name in topics if name != label])])
    places = random.sample((0, 1, 2), 3)  # of the words of the body
    body = random.choice(own["nc"]["body"]), random.choice(own["nc"]["body"])
    first = dict(zip("abc", ([a, b, other][place] for place in places), strict=True))
    second = dict(zip("abc", random.sample((title, b, c), 3), strict=True))
    yield {
        "news_title": _sentence(random.choice(own["nc"]["title"]).format(a=title)),
        "news_body": f"{_sentence(body[0].format(**first))} {_sentence(body[1].format(**second))}",
        "label": label,
    }


def _facts(own: Phrases, random: Random) -> dict[str, str]:
    """A value for each of the four facts about a person."""
    return {name: _year(random) if name == "year" else _word(own, random, name) for name in own["facts"]}


def _fact(own: Phrases, name: str, first: str, value: str) -> tuple[str, str]:
    """A sentence, and the question that it answers."""
    sentence, question = (text.format(first=first, value=value) for text in own["facts"][name])
    return sentence, question


def _mlqa(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    first, facts = _word(own, random, "first"), _facts(own, random)
    names = random.sample(sorted(facts), len(facts))
    asked = random.choice(names)
    context, start = "", 0
    for name in names:
        context += " " if context else ""
        if name == asked:
            start = len(context) + len(own["facts"][name][0].partition("{value}")[0].format(first=first))
        context += _fact(own, name, first, facts[name])[0]
    question = _fact(own, asked, first, facts[asked])[1]
    yield {"id": "", "context": context, "question": question, "answers": [{"text": facts[asked], "start": start}]}


def _xnli(own: Phrases, random: Random, label: str) -> Iterator[Row]:
    forms = own["xnli"]
    place, other = _words(own, random, "place", 2)
    said = {name: _word(own, random, name) for name in ("subject", "activity")} | {"place": place}
    premise = forms["premise"].format(**said)
    elsewhere = label == "contradiction" and random.random() < 0.5
    hypothesis = random.choice(forms["entailment" if elsewhere else label])
    hypothesis = hypothesis.format(**{**said, "place": other if elsewhere else place})
    yield {"premise": _sentence(premise), "hypothesis": _sentence(hypothesis), "label": label}


def _pawsx(own: Phrases, random: Random, label: str) -> Iterator[Row]:
    forms, number = own["pawsx"], random.randrange(2)
    one, two, third = _words(own, random, "city", 3)
    said = {"first": _word(own, random, "first"), "year": _year(random), "day": _word(own, random, "day")}
    sentence = forms["sentence"][number].format(**said, one=one, two=two)
    kind = "same" if label == "1" else random.choice(("never", "never", "swapped", "elsewhere"))
    cities = {"swapped": (two, one), "elsewhere": (one, third)}.get(kind, (one, two))
    form = forms["never" if kind == "never" else "other"][number]
    other = form.format(**said, one=cities[0], two=cities[1])
    pair = [_sentence(sentence), _sentence(other)]
    yield {"sentence1": pair[0], "sentence2": pair[1], "label": label}


def _qadsm(own: Phrases, random: Random, label: str) -> Iterator[Row]:
    forms = own["qadsm"]
    wanted, other = _words(own, random, "product", 2)
    kind = "fits" if label == "Good" else random.choice(("dead", "other"))
    offered = other if kind == "other" else wanted
    title, description, query = (random.choice(forms[name]) for name in ("title", "description", "query"))
    dead, price = random.choice(forms["dead"]), str(random.randint(2, 99) * 5)
    yield {
        "query": query.format(product=wanted),
        "ad_title": dead if kind == "dead" else _sentence(title.format(product=offered)),
        "ad_description": _sentence(description.format(product=offered, n=price)),
        "label": label,
    }


def _wpr(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    forms = own["wpr"]
    place = {name: _words(own, random, name, PAGES + 1) for name in ("city", "shop")}
    query = random.choice(forms["query"]).format(city=place["city"][0], shop=place["shop"][0])
    seen: set[tuple[object, ...]] = set()
    while len(seen) < PAGES:
        fits, quality, differing = random.random() < 0.5, random.randrange(3), random.choice(("city", "shop"))
        title, snippet, year = random.randrange(2), random.randrange(2), _year(random)
        page = 0 if fits else len(seen) + 1
        if (page, title, quality, snippet) in seen:
            continue
        seen.add((page, title, quality, snippet))
        about = {name: own[page if name == differing else 0] for name, own in place.items()}
        yield {
            "query": query,
            "web_page_title": _sentence(forms["title"][title].format(**about)),
            "web_page_snippet": forms["snippet"][quality][snippet].format(year=year),
            "label": str(2 * fits + quality),
        }


def _qam(own: Phrases, random: Random, label: str) -> Iterator[Row]:
    first, facts = _word(own, random, "first"), _facts(own, random)
    asked, other = random.sample(sorted(facts), 2)
    kind = "answers" if label == "1" else random.choice(("evades", "other"))
    evasive = random.choice(own["evasive"]).format(first=first)
    told = other if kind == "other" else asked
    answer = evasive if kind == "evades" else _fact(own, told, first, facts[told])[0]
    question = _fact(own, asked, first, facts[asked])[1]
    yield {"question": question, "answer": f"{answer} {random.choice(own['other'])}", "label": label}


def _qg(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    first, facts = _word(own, random, "first"), _facts(own, random)
    name = random.choice(sorted(facts))
    sentence, question = _fact(own, name, first, facts[name])
    yield {"answer_passage": f"{sentence} {random.choice(own['other'])}", "question": question}


def _ntg(own: Phrases, random: Random, _: str) -> Iterator[Row]:
    body, title = random.choice(own["ntg"])
    city, city2 = _words(own, random, "city", 2)
    said = {name: _word(own, random, name) for name in ("day", "first", "last", "shop")}
    said |= {"city": city, "city2": city2, "n": str(random.randint(3, 6)), "m": str(random.randint(0, 2))}
    body = body.format(**said, other=random.choice(own["other"]))
    yield {"news_body": _sentence(body), "news_title": _sentence(title.format(**said))}


DRAW: dict[str, Callable[[Phrases, Random, str], Iterator[Row]]] = {
    "ner": _ner, "pos": _pos, "nc": _nc, "mlqa": _mlqa, "xnli": _xnli, "pawsx": _pawsx, "qadsm": _qadsm, "wpr": _wpr,
    "qam": _qam, "qg": _qg, "ntg": _ntg,
}  # fmt: skip
