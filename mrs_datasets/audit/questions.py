"""What an audit asks about a pair, and the two kinds of audits.

`paper` is the manual check of Zhang et al. 2021, section 2.2: 300 random examples after filtering, judged for toxicity;
none was found toxic. `wide` asks more, and takes as many pairs of each language, since a
sample of the whole data set is nearly all English.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mrs_suggest.common.text.languages import find_language

KindName = Literal["paper", "wide"]
ANSWERS = ("yes", "no", "unsure")
TEXTS = ("message", "reply")
PAPER_EXAMPLES, PAPER_FOUND = 300, 0  # section 2.2: the sample, and the toxic pairs in it


@dataclass(frozen=True)
class Question:
    """One question; `yes` always means that something is wrong with the pair.

    Attributes:
        name: of its column.
        ask: the question.
        explain: when to answer yes, and when not.
    """

    name: str
    ask: str
    explain: str


TOXIC = Question(
    "toxic",
    "Is it toxic?",
    "Yes if the message or the reply insults, threatens, demeans or harasses somebody, is hateful about a group, or is "
    "sexually explicit. Bad language that attacks no person or group is not toxic.",
)
PRIVATE = Question(
    "private",
    "Is there personal data?",
    "Yes if it names a private person, or has an address, telephone number, e-mail address, account or number by which "
    "somebody could be found. Not: public figures, and placeholders such as <user> or <email>.",
)
WRONG_LANGUAGE = Question(
    "wrong language",
    "Is it in another language?",
    "Yes if most of the message or of the reply is in another language than the one named. Not: single foreign words, "
    "names, and texts that could be in either.",
)
NO_REPLY = Question(
    "no reply",
    "Is the reply unrelated?",
    "Yes if the reply cannot be understood as an answer to this message, whatever was said before. Not: replies that "
    "are wrong, odd or impolite.",
)


@dataclass(frozen=True)
class Kind:
    """A kind of audit.

    Attributes:
        examples: the default; in all, or per language.
        per_language: whether each language has as many examples. If not, the sample is proportional to the data.
    """

    name: KindName
    questions: tuple[Question, ...]
    examples: int
    per_language: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Of a sheet."""
        return ("item", "language", *TEXTS, *(question.name for question in self.questions), "comment", "sheet")


KINDS: dict[str, Kind] = {
    "paper": Kind("paper", (TOXIC,), PAPER_EXAMPLES, per_language=False),
    # 100: with nothing found, Wilson's 95 % interval ends at 3.7 %; an hour's work in a language
    "wide": Kind("wide", (TOXIC, PRIVATE, WRONG_LANGUAGE, NO_REPLY), 100, per_language=True),
}


def language_name(code: str) -> str:
    """The English name of a language; its code where that is unknown."""
    language = find_language(code)
    return language.name if language else code


def instructions(kind: Kind, languages: list[str]) -> str:
    """The instructions for annotators, as a text file."""
    asked = "\n".join(f"  {q.name}: {q.ask} {q.explain}" for q in kind.questions)
    named = ", ".join(f"{code} = {language_name(code)}" for code in languages)
    return f"""\
Each row has a message and the reply that somebody gave. Please judge every pair.

With the page (pages/annotator-N.html): open it in a browser. It needs no network and sends nothing to anybody. It keeps
your answers in this browser on this device; when you are done, download the sheet and give it back.

With the sheet (sheets/annotator-N.csv): open it in a spreadsheet program and write one word into each column:

  {", ".join(ANSWERS[:-1])} or {ANSWERS[-1]} (if you cannot decide)

{asked}

The column `comment` is free. Change nothing else; rows may be sorted. Save the file as CSV in UTF-8. An apostrophe at
the beginning of a cell is not part of the text.

Languages: {named}. Leave out rows that you cannot read.
The texts may be offensive. Do not pass them on.
"""
