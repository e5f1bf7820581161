"""Which scorer looks at which rows, and from which score on a row is dropped."""

from __future__ import annotations

from dataclasses import dataclass

from mrs_datasets.prepared.schema import SPLITS, responses_config
from mrs_suggest.common.text.text_services import Scorer

THRESHOLD, ENGLISH_THRESHOLD = 0.9, 0.5  # Zhang et al. 2021, section 2.2
TOXIC, TOXIC_ENGLISH = "toxic", "toxic (English scorer)"
ENGLISH = "en"


@dataclass(frozen=True)
class Rule:
    """Rows with a score above a threshold are dropped; a pair's score is the larger of message and reply.

    Attributes:
        name: in the report, as the reason.
        threshold: in [0, 1], compared in single precision.
        options: of the command line, which sentences name: that of the scorer, and that of the threshold.
        english: whether it looks only at English validation, test and response set, else at all rows.
    """

    name: str
    scorer: Scorer
    threshold: float
    options: tuple[str, str]
    english: bool = False

    def covers(self, config: str, split: str, language: str) -> bool:
        """Whether it looks at a split of a config, which is in this language."""
        if not self.english:
            return True
        return language == ENGLISH and (split in SPLITS[1:] or config == responses_config(ENGLISH))

    def knows(self, language: str) -> bool:
        """Whether its scorer knows a language."""
        known = self.scorer.languages()
        return known is None or language in known

    def about(self) -> dict[str, object]:
        """For the report."""
        looks_at = "English validation, test, responses" if self.english else "all"
        return {
            "rule": self.name,
            **self.scorer.facts.as_dict(),
            "dropped above": self.threshold,
            "looks at": looks_at,
        }


def multilingual_rule(scorer: Scorer, threshold: float = THRESHOLD) -> Rule:
    """The first rule of the paper: pairs and replies of all languages."""
    return Rule(TOXIC, scorer, threshold, ("--toxicity", "--toxicity-threshold"))


def english_rule(scorer: Scorer, threshold: float = ENGLISH_THRESHOLD) -> Rule:
    """Its second rule: English validation, test and response set alone, since the paper's second scorer was slow."""
    options = ("--toxicity-english", "--toxicity-english-threshold")
    return Rule(TOXIC_ENGLISH, scorer, threshold, options, english=True)
