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

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from mrs_datasets.catalogue import read_record
from mrs_datasets.synthetic import Tables
from mrs_suggest.common.io.packaged import read_packaged

RECORD = read_record("synthetic-xglue")
PIVOT = "en"
SIZES = {"train": 600, "validation": 100, "test": 200}
PAGES = 5  # of a query of wpr
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
            drawn = {language: list(getattr(_Writer(language, key), task)(label)) for language in rows}
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
    found: Phrases = read_packaged("mrs_datasets", "mini_tasks", f"{language}.yaml")
    found["words"] |= read_packaged("mrs_datasets", "mini_tasks", "names.yaml")
    return found


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


class _Writer:
    """Draws one row of each task in a language (of wpr: the pages of a query); the label is given, if there is one."""

    def __init__(self, language: str, key: str) -> None:
        self.own, self.random = phrases(language), Random(key)
        self.pick = self.random.choice

    def word(self, name: str) -> str:
        return str(self.pick(self.own["words"][name]))

    def words(self, name: str, count: int) -> list[str]:
        return self.random.sample(self.own["words"][name], count)

    def year(self) -> str:
        return str(self.random.randint(1950, 2009))

    def facts(self) -> dict[str, str]:
        """A value for each of the four facts about a person."""
        return {name: self.year() if name == "year" else self.word(name) for name in self.own["facts"]}

    def fact(self, name: str, first: str, value: str) -> list[str]:
        """A sentence, and the question that it answers."""
        return [text.format(first=first, value=value) for text in self.own["facts"][name]]

    def _tagged(self, pairs: list[tuple[str, str]]) -> Iterator[Row]:
        words = [word for word, _ in pairs]
        yield {"words": [_sentence(words[0]), *words[1:]], "tags": [tag for _, tag in pairs]}

    def ner(self, _: str) -> Iterator[Row]:
        pairs = []
        for part in self.pick(self.own["ner"]).split():
            kind = part.strip("{}")
            if kind == part:
                pairs.append((part, "O"))
                continue
            text = self.word({"LOC": "city", "ORG": "organisation", "MISC": "misc", "PER": "first"}[kind])
            if kind == "PER" and self.random.random() < 0.5:
                text += f" {self.word('last')}"
            pairs += [(word, f"{'I' if place else 'B'}-{kind}") for place, word in enumerate(text.split())]
        return self._tagged(pairs)

    def pos(self, _: str) -> Iterator[Row]:
        pairs: list[tuple[str, str]] = []
        for part in self.pick(self.own["pos"]).split():
            text, _, tag = part.partition("/")
            words = (self.word(text.strip("{}")) if text.startswith("{") else text).split()
            pairs += zip(words, [tag] * len(words) if tag else ["DET", "NOUN"], strict=True)
        return self._tagged(pairs)

    def nc(self, label: str) -> Iterator[Row]:
        topics, forms = self.own["topics"], self.own["nc"]
        title, a, b, c = self.random.sample(topics[label], 4)
        other = self.pick(topics[self.pick([name for name in topics if name != label])])
        places = self.random.sample((0, 1, 2), 3)  # of the words of the body
        body = self.pick(forms["body"]), self.pick(forms["body"])
        first = dict(zip("abc", ([a, b, other][place] for place in places), strict=True))
        second = dict(zip("abc", self.random.sample((title, b, c), 3), strict=True))
        yield {
            "news_title": _sentence(self.pick(forms["title"]).format(a=title)),
            "news_body": f"{_sentence(body[0].format(**first))} {_sentence(body[1].format(**second))}",
            "label": label,
        }

    def mlqa(self, _: str) -> Iterator[Row]:
        first, facts = self.word("first"), self.facts()
        names = self.random.sample(sorted(facts), len(facts))
        asked = self.pick(names)
        context, start = "", 0
        for name in names:
            context += " " if context else ""
            if name == asked:
                start = len(context) + len(self.own["facts"][name][0].partition("{value}")[0].format(first=first))
            context += self.fact(name, first, facts[name])[0]
        question = self.fact(asked, first, facts[asked])[1]
        yield {"id": "", "context": context, "question": question, "answers": [{"text": facts[asked], "start": start}]}

    def xnli(self, label: str) -> Iterator[Row]:
        forms = self.own["xnli"]
        place, other = self.words("place", 2)
        said = {name: self.word(name) for name in ("subject", "activity")} | {"place": place}
        premise = forms["premise"].format(**said)
        elsewhere = label == "contradiction" and self.random.random() < 0.5
        hypothesis = self.pick(forms["entailment" if elsewhere else label])
        hypothesis = hypothesis.format(**{**said, "place": other if elsewhere else place})
        yield {"premise": _sentence(premise), "hypothesis": _sentence(hypothesis), "label": label}

    def pawsx(self, label: str) -> Iterator[Row]:
        forms, number = self.own["pawsx"], self.random.randrange(2)
        one, two, third = self.words("city", 3)
        said = {"first": self.word("first"), "year": self.year(), "day": self.word("day")}
        sentence = forms["sentence"][number].format(**said, one=one, two=two)
        kind = "same" if label == "1" else self.pick(("never", "never", "swapped", "elsewhere"))
        cities = {"swapped": (two, one), "elsewhere": (one, third)}.get(kind, (one, two))
        other = forms["never" if kind == "never" else "other"][number].format(**said, one=cities[0], two=cities[1])
        yield {"sentence1": _sentence(sentence), "sentence2": _sentence(other), "label": label}

    def qadsm(self, label: str) -> Iterator[Row]:
        forms = self.own["qadsm"]
        wanted, other = self.words("product", 2)
        kind = "fits" if label == "Good" else self.pick(("dead", "other"))
        offered = other if kind == "other" else wanted
        title, description, query = (self.pick(forms[name]) for name in ("title", "description", "query"))
        dead, price = self.pick(forms["dead"]), str(self.random.randint(2, 99) * 5)
        yield {
            "query": query.format(product=wanted),
            "ad_title": dead if kind == "dead" else _sentence(title.format(product=offered)),
            "ad_description": _sentence(description.format(product=offered, n=price)),
            "label": label,
        }

    def wpr(self, _: str) -> Iterator[Row]:
        forms = self.own["wpr"]
        place = {name: self.words(name, PAGES + 1) for name in ("city", "shop")}
        query = self.pick(forms["query"]).format(city=place["city"][0], shop=place["shop"][0])
        seen: set[tuple[object, ...]] = set()
        while len(seen) < PAGES:
            fits, quality = self.random.random() < 0.5, self.random.randrange(3)
            differing = self.pick(("city", "shop"))
            title, snippet, year = self.random.randrange(2), self.random.randrange(2), self.year()
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

    def qam(self, label: str) -> Iterator[Row]:
        first, facts = self.word("first"), self.facts()
        asked, other = self.random.sample(sorted(facts), 2)
        kind = "answers" if label == "1" else self.pick(("evades", "other"))
        evasive = self.pick(self.own["evasive"]).format(first=first)
        told = other if kind == "other" else asked
        answer = evasive if kind == "evades" else self.fact(told, first, facts[told])[0]
        question = self.fact(asked, first, facts[asked])[1]
        yield {"question": question, "answer": f"{answer} {self.pick(self.own['other'])}", "label": label}

    def qg(self, _: str) -> Iterator[Row]:
        first, facts = self.word("first"), self.facts()
        name = self.pick(sorted(facts))
        sentence, question = self.fact(name, first, facts[name])
        yield {"answer_passage": f"{sentence} {self.pick(self.own['other'])}", "question": question}

    def ntg(self, _: str) -> Iterator[Row]:
        body, title = self.pick(self.own["ntg"])
        city, city2 = self.words("city", 2)
        said = {name: self.word(name) for name in ("day", "first", "last", "shop")}
        said |= {"city": city, "city2": city2}
        said |= {"n": str(self.random.randint(3, 6)), "m": str(self.random.randint(0, 2))}
        body = body.format(**said, other=self.pick(self.own["other"]))
        yield {"news_body": _sentence(body), "news_title": _sentence(title.format(**said))}
