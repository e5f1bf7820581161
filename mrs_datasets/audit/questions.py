"""The questions of an audit about a pair, and the two kinds of audits.

`paper` is the manual check of Zhang et al. 2021, section 2.2: 300 random examples after filtering, judged for toxicity;
none was found toxic. `wide` asks more, and takes as many pairs of each language, since a
sample of the whole data set is nearly all English.
"""

from dataclasses import dataclass
from typing import Any, Literal

from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import language_name

KindName = Literal["paper", "wide", "review"]
ANSWERS = ("yes", "no", "unsure")
EXPECTED = f"{', '.join(ANSWERS[:-1])} or {ANSWERS[-1]}"
TEXTS = ("message", "reply")
PAPER_EXAMPLES, PAPER_FOUND = 300, 0  # section 2.2: the sample, and the toxic pairs in it


@dataclass(frozen=True)
class Question:
    """One question; `yes` always means that something is wrong with the pair.

    Attributes:
        explain: when to answer yes, and when not.
    """

    name: str
    ask: str
    explain: str


_CONTENT: dict[str, Any] = read_packaged("mrs_datasets.audit", "questions.yaml")
QUESTIONS = tuple(Question(**entry) for entry in _CONTENT["questions"])
TOXIC = QUESTIONS[0]


@dataclass(frozen=True)
class Kind:
    """A kind of audit.

    Attributes:
        examples: the default; in all, or per language.
        per_language: whether each language has as many examples. If not, the sample is proportional to the data.
        answers: with different initials, which are their keys.
    """

    name: KindName
    questions: tuple[Question, ...]
    examples: int
    per_language: bool
    answers: tuple[str, ...] = ANSWERS

    @property
    def columns(self) -> tuple[str, ...]:
        """Of a sheet."""
        return ("item", "language", *TEXTS, *(question.name for question in self.questions), "comment", "sheet")


KINDS: dict[str, Kind] = {
    "paper": Kind("paper", (TOXIC,), PAPER_EXAMPLES, per_language=False),
    # 100: with nothing found, Wilson's 95 % interval ends at 3.7 %; an hour's work in a language
    "wide": Kind("wide", QUESTIONS, 100, per_language=True),
}
# The kind of `mrs data review`, which no audit has.
DECISIONS = _, EDIT, DROP = "accept", "edit", "drop"
REVIEWED = Kind("review", (Question(**_CONTENT["review"]),), 0, per_language=False, answers=DECISIONS)


def instructions(kind: Kind, languages: list[str]) -> str:
    """The instructions for annotators, as a text file."""
    asked = "\n".join(f"  {q.name}: {q.ask} {q.explain}" for q in kind.questions)
    named = ", ".join(f"{code} = {language_name(code)}" for code in languages)
    return str(_CONTENT["instructions"].format(answers=EXPECTED, questions=asked, languages=named))
