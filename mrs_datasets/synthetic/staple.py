"""The data set `synthetic-staple`: prompts with weighted translations to two invented languages, with STAPLE's columns.

The grammar (`grammar.paraphrases`) knows all translations of a prompt and the share of learners who give each; those
with a share of at least `LEAST_SHARE` are accepted. As in the task (Mayhew et al. 2020, section 2.1), learners are
counted, and weights are the smoothed square roots of their counts. Language qaa has verbs that agree with the subject,
dropped pronouns and vowel harmony; qab has the verb last, particles, politeness and classifiers; both have the same
prompts. Another seed gives other words, other shares and other prompts: the data of three seeds are three samples.

No verb occurs with the same noun in two splits, so that test prompts are new combinations of words known from
training. `parallel-LANG` stands for general text such as Tatoeba's: other sentences, more words, and one translation
of each, as one learner gave it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from mrs_datasets.describe.paper_tables import lrf_weights
from mrs_datasets.readers.staple.staple_files import prompt_id
from mrs_datasets.synthetic import Tables
from mrs_datasets.synthetic.grammar.english import Meaning, draw_meaning, frequencies, pairs
from mrs_datasets.synthetic.grammar.paraphrases import PHENOMENA, InventedLanguage, Translation, made_up_languages

SIZES = {"train": 1600, "validation": 200, "test": 200}
PARALLEL = 4000
FEWEST, MOST = 6, 300  # accepted translations of a prompt: no outliers, as in the task (section 2.1)
LEARNERS = (300, 6000)  # fewest and most per prompt (our choice)
# The automatic translation is the most usual one, another accepted one, or one with an error of a phenomenon.
REFERENCE = {"usual": 0.35, "accepted": 0.4, "wrong": 0.25}


class Drawn(NamedTuple):
    """The languages of a seed, the prompts of each split, and the sentences of the parallel text."""

    languages: dict[str, InventedLanguage]
    splits: dict[str, list[Meaning]]
    parallel: list[Meaning]


def tables(seed: int) -> Tables:
    drawn = draw_prompts(seed)
    for code, language in drawn.languages.items():
        for split, meanings in drawn.splits.items():
            yield code, split, [row(language, meaning, seed) for meaning in meanings]
    for code, language in drawn.languages.items():
        yield f"parallel-{code}", "train", list(_parallel(language, drawn.parallel, seed))


def draw_prompts(seed: int) -> Drawn:
    """The languages and prompts of a seed; all prompts differ, and no pair of verb and noun is in two splits."""
    languages = made_up_languages(seed)
    random = Random(f"{seed}/prompts")
    seen: set[str] = set()

    def drawn(known: list[tuple[str, str]], size: int, usable: bool) -> Iterator[Meaning]:
        shares, count = frequencies(known), 0
        while count < size:
            meaning = draw_meaning(random.choices(known, shares)[0], random)
            if meaning.english() in seen:
                continue
            if not usable or all(FEWEST <= one.count(meaning) <= MOST for one in languages.values()):
                seen.add(meaning.english())
                count += 1
                yield meaning

    splits = {split: list(drawn(known, SIZES[split], True)) for split, known in _split_pairs(random).items()}
    return Drawn(languages, splits, list(drawn(pairs(wider=True), PARALLEL, False)))


def counted(language: InventedLanguage, meaning: Meaning, seed: int) -> tuple[list[Translation], list[int]]:
    """The accepted translations of a prompt, and how many learners gave each."""
    accepted = language.accepted(meaning)
    random = Random(f"{seed}/learners/{language.code}/{meaning.english()}")
    shares = np.array([one.share for one in accepted])
    learners = int(LEARNERS[0] * (LEARNERS[1] / LEARNERS[0]) ** random.random())
    counts = np.random.default_rng(random.getrandbits(64)).multinomial(learners, shares / shares.sum())
    return accepted, counts.tolist()


def row(language: InventedLanguage, meaning: Meaning, seed: int) -> dict[str, Any]:
    """A row of the data: translations by weight, the most usual one first."""
    accepted, counts = counted(language, meaning, seed)
    weights = lrf_weights(counts)
    entries = sorted(zip(weights, (one.text for one in accepted), strict=True), key=lambda entry: (-entry[0], entry[1]))
    return {
        "id": prompt_id(meaning.english()),
        "prompt": meaning.english(),
        "reference": _reference(language, meaning, accepted, seed),
        "translations": [{"text": text, "weight": weight} for weight, text in entries],
    }


def _split_pairs(random: Random) -> dict[str, list[tuple[str, str]]]:
    """The pairs of verb and noun of each split; training has every verb and every noun, in each of its senses."""
    known = pairs(wider=False)
    random.shuffle(known)
    most = {split: len(known) * SIZES[split] / sum(SIZES.values()) for split in ("validation", "test")}
    found: dict[str, list[tuple[str, str]]] = {split: [] for split in SIZES}
    left = Counter(word for verb, noun in known for word in _senses(verb, noun))
    for verb, noun in known:
        own = _senses(verb, noun)
        split = next((name for name in most if len(found[name]) < most[name]), "")
        if split and all(left[word] > 1 for word in own):
            for word in own:
                left[word] -= 1
            found[split].append((verb, noun))
        else:
            found["train"].append((verb, noun))
    return found


def _senses(verb: str, noun: str) -> list[str]:
    """The senses that training must have: the verb with the class of the noun, and the noun in its class."""
    classes = Meaning(verb, noun).classes
    return [text for name in classes for text in (f"{verb} {name}", f"{noun}/{name}")]


def _reference(language: InventedLanguage, meaning: Meaning, accepted: Sequence[Translation], seed: int) -> str:
    random = Random(f"{seed}/reference/{language.code}/{meaning.english()}")
    kind = random.choices(list(REFERENCE), list(REFERENCE.values()))[0]
    if kind == "wrong":
        wrong = language.wrong_translations(meaning, accepted, random)
        return wrong[random.choice([name for name in PHENOMENA if name in wrong])]
    return accepted[0 if kind == "usual" else random.randrange(len(accepted))].text


def _parallel(language: InventedLanguage, meanings: Sequence[Meaning], seed: int) -> Iterator[dict[str, str]]:
    random = Random(f"{seed}/parallel/{language.code}")
    for meaning in meanings:
        accepted = language.accepted(meaning)
        drawn = random.choices(accepted, [one.share for one in accepted])[0]
        yield {"prompt": meaning.english(), "translation": drawn.text}
