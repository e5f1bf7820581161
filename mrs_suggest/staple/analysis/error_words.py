"""Lists of words that identify kinds of errors: one small YAML file per language in `error_words/`, ours.

Keys of a file; all but pronouns and numbers may be missing:

    segment: `script` where the language is written without spaces
    pronouns, numbers: words; of several words too
    verbs: `endings`; `words` that do an ending's work; `after`: words that a verb follows
    nouns: `endings`; `words` (particles); `after`: words that a noun follows; `forms`: lists of forms of one word;
        `attached`: the endings are particles, which pronouns take as well
    loanwords: `scripts` (katakana, latin) that loanwords alone are written in; `words`
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import yaml

from mrs_metrics.translations_f1 import read_paper

_FOLDER = "error_words"
_SCRIPTS = {"katakana": re.compile(r"[\u30a0-\u30ff]{2,}"), "latin": re.compile(r"[a-z]{2,}")}
_RUNS = re.compile(
    r"[\u3400-\u9fff々]+|[\u3040-\u309f]+|[\u30a0-\u30ffー]+|[0-9]+|[^\W0-9\u3040-\u30ff\u3400-\u9fff]+|\S"
)
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_INNER_PARTICLE = re.compile(r"(?<=.)(?:を|に(?=[しすな]))")  # inside a run: before する and なる, or anywhere
_KANJI_END = re.compile(r"[\u3400-\u9fff々]$")


@dataclass(frozen=True)
class Class:
    """Verbs or nouns.

    Attributes:
        after: words that one of this class follows.
        forms: sets of forms of one word.
        attached: the endings are particles, which pronouns take as well.
    """

    endings: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    forms: tuple[frozenset[str], ...] = ()
    attached: bool = False


@dataclass(frozen=True)
class ErrorWords:
    """The lists of a language; all texts as the paper's rules read them."""

    language: str
    pronouns: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    verbs: Class = Class()
    nouns: Class = Class()
    loanwords: frozenset[str] = frozenset()
    scripts: tuple[str, ...] = ()
    by_script: bool = False

    def cut(self, text: str) -> list[str]:
        """The words of a text that the rules have read; entries of several words are one.

        >>> error_words("vi").cut("chúng tôi có hai con mèo")
        ['chúng tôi', 'có', 'hai', 'con', 'mèo']
        >>> error_words("ja").cut("彼女は猫を六匹飼っています")
        ['彼女', 'は', '猫', 'を', '六', '匹飼っています']
        """
        return self._by_script(text) if self.by_script else self._joined(text.split())

    def is_number(self, word: str) -> bool:
        """Whether a word is digits, or made of number words.

        >>> error_words("hu").is_number("tizenhárom")
        True
        """
        if word.isdigit() or word in self.numbers:
            return True
        heads = (head for head in self.numbers if word.startswith(head))
        return any(self.is_number(word[len(head) :]) for head in heads if self.by_script or len(word) > len(head) + 1)

    def pronoun(self, word: str) -> str:
        """The pronoun that a word is, without an attached particle; "" if it is none.

        >>> error_words("ko").pronoun("저는"), error_words("pt").pronoun("tia")
        ('저', '')
        """
        stems = self._stems(word) if self.nouns.attached else [word]
        return next((stem for stem in stems if stem in self.pronouns), "")

    def is_loan(self, word: str) -> bool:
        """Whether a word is a known loanword, or in a script that loanwords alone are written in."""
        if any(_SCRIPTS[name].search(word) for name in self.scripts):
            return True
        return any(stem in self.loanwords for stem in self._stems(word))

    def _stems(self, word: str) -> Iterable[str]:
        """The word, then what is before each of a noun's endings that it has."""
        yield word
        for ending in self.nouns.endings:
            if len(ending) < len(word) and word.endswith(ending):
                yield word[: -len(ending)]

    @cached_property
    def _several(self) -> tuple[frozenset[str], int]:
        """The entries of several words, and how many words the longest has."""
        lists = (self.pronouns, self.numbers, self.verbs.words, self.nouns.words, self.loanwords)
        found = frozenset(entry for one in lists for entry in one if " " in entry)
        return found, max((entry.count(" ") + 1 for entry in found), default=1)

    def _joined(self, words: Sequence[str]) -> list[str]:
        entries, most = self._several
        found: list[str] = []
        place = 0
        while place < len(words):
            sizes = (size for size in range(most, 1, -1) if " ".join(words[place : place + size]) in entries)
            size = next(sizes, 1)
            found.append(" ".join(words[place : place + size]))
            place += size
        return found

    @cached_property
    def _listed(self) -> re.Pattern[str]:
        """Pronouns and runs of number words, the longest first."""
        words = sorted(self.pronouns, key=len, reverse=True)
        single = "".join(sorted(one for one in self.numbers if len(one) == 1))
        longer = sorted((one for one in self.numbers if len(one) > 1), key=len, reverse=True)
        parts = [*words, *longer]
        return re.compile("|".join([*map(re.escape, parts), f"[{single}]+"]) if single else "|".join(parts))

    def _by_script(self, text: str) -> list[str]:
        """Runs of one script; hiragana joins what it inflects, but for a leading particle."""
        found: list[str] = []
        place = 0
        while place < len(text):
            if listed := self._listed.match(text, place):
                found.append(listed[0])
                place = listed.end()
                continue
            run = _RUNS.match(text, place)
            if run is None:  # white space
                place += 1
                continue
            word = self._until_listed(run[0])
            place += len(word)
            if not _HIRAGANA.fullmatch(word):
                found.append(word)
                continue
            while particle := self._particle(word):
                found.append(particle)
                word = word[len(particle) :]
            if word and found and _KANJI_END.search(found[-1]) and found[-1] not in self.pronouns:
                found[-1] += word
            elif word:
                found.append(word)
        return found

    def _until_listed(self, run: str) -> str:
        """The part of a run before what begins inside it: a listed pronoun or number, or a particle."""
        kana = _HIRAGANA.fullmatch(run) is not None
        listed = (match for match in self._listed.finditer(run) if not kana or len(match[0]) > 1)
        cuts = [match.start() for match in listed if match.start() > 0]
        cuts += [match.start() for match in _INNER_PARTICLE.finditer(run)] if kana else []
        return run[: min(cuts)] if cuts else run

    def _particle(self, word: str) -> str:
        """The particle that a run of hiragana begins with."""
        ordered = sorted(self.nouns.words, key=len, reverse=True)
        return next((one for one in ordered if word.startswith(one)), "")


def error_words(language: str) -> ErrorWords | None:
    file = resources.files(__package__ or "mrs_suggest.staple.analysis").joinpath(_FOLDER, f"{language}.yaml")
    if not language.isalpha() or not file.is_file():
        return None
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    pronouns, numbers = _read(content["pronouns"]), _read(content["numbers"])
    verbs, nouns = (_class(content.get(name) or {}) for name in ("verbs", "nouns"))
    loans = content.get("loanwords") or {}
    loanwords, scripts = _read(loans.get("words", ())), tuple(loans.get("scripts", ()))
    by_script = content.get("segment") == "script"
    return ErrorWords(language, pronouns, numbers, verbs, nouns, loanwords, scripts, by_script)


def made_up_words(language: str, seed: int) -> ErrorWords | None:
    """The lists of a language of `synthetic-staple`, which its grammar knows; None for any other language."""
    from mrs_datasets.synthetic.grammar import paraphrases as grammar

    known = grammar.made_up_languages(seed)
    if language not in known:
        return None
    found = {phenomenon: frozenset(words) for phenomenon, words in known[language].vocabulary.items()}
    endings = (found[grammar.DECLENSION], found[grammar.VERB_SUFFIX])
    cases, suffixes = (tuple(sorted(some, key=lambda one: (-len(one), one))) for some in endings)
    nouns = Class(cases, frozenset(cases))  # qaa has endings, qab particles
    pronouns, numbers, loans = (found[name] for name in (grammar.PRONOUN, grammar.NUMBER, grammar.LOANWORD))
    return ErrorWords(language, pronouns, numbers, Class(suffixes), nouns, loans)


def letters(word: str) -> str:
    """A word letter by letter: Hangul syllables as jamo, everything else composed.

    >>> len(letters("예쁘")), len(letters("você"))
    (4, 4)
    """
    if any("\uac00" <= character <= "\ud7a3" for character in word):
        return unicodedata.normalize("NFD", word)
    return word


def _class(content: dict[str, Any]) -> Class:
    endings = sorted({read_paper(one) for one in content.get("endings", ())}, key=lambda one: (-len(one), one))
    forms = tuple(_read(one) for one in content.get("forms", ()))
    words, after = _read(content.get("words", ())), _read(content.get("after", ()))
    return Class(tuple(endings), words, after, forms, bool(content.get("attached")))


def _read(words: Iterable[str]) -> frozenset[str]:
    return frozenset(read_paper(word) for word in words)
