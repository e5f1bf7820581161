"""Analysis of the answers of multiple-choice runs: accuracies, averages over languages, and differences of two runs.

Ponti et al. 2020 (XCOPA), section 4.2, averages over three sets of languages and tests no difference; the split by
`changed` (section 2, note 5), the tests and the intervals are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.accuracy import MacroAverage, chance_test, macro_average, macro_difference_test, wilson_interval
from mrs_metrics.significance import holm, paired_bootstrap_interval, permutation_test
from mrs_suggest.evaluation.choice.answers import Answers

XCOPA = ("et", "ht", "id", "it", "qu", "sw", "ta", "th", "tr", "vi", "zh")
# The averages of Table 5: over all languages, over those that MBERT and XLM-R were trained on, and over those of USE.
AVERAGES: Mapping[str, tuple[str, ...]] = {
    "all": XCOPA,
    "mbert": tuple(code for code in XCOPA if code not in ("ht", "qu")),
    "use": ("it", "th", "tr", "zh"),
}


@dataclass(frozen=True)
class Accuracy:
    """An accuracy with its 95 % Wilson interval.

    Attributes:
        chance: p-value of the exact two-sided binomial test against a guess.
    """

    correct: int
    n: int
    value: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True)
class Difference:
    """First run minus second, over the same questions.

    Attributes:
        low, high: 95 % interval of the difference (studentised bootstrap over questions).
        p: of the paired permutation test, exact where few answers differ (see `permutation_test`).
    """

    value: float
    low: float
    high: float
    p: float


def accuracy(answers: Answers) -> Accuracy:
    """The accuracy on all questions; ValueError without questions."""
    return _counted(int(answers.correct.sum()), len(answers.correct), answers.choices)


def by_changed(answers: Mapping[str, Answers]) -> dict[str, Accuracy]:
    """`changed` and `unchanged` -> accuracy over the questions of all languages; only for those with questions.

    A changed question is one whose translator chose the other answer. All languages of a question count, so that the
    intervals, which take answers as independent, are somewhat too narrow for `unchanged`.
    """
    known = [(one, one.changed) for one in answers.values() if one.changed is not None]
    found = {}
    for name, wanted in (("changed", True), ("unchanged", False)):
        right = [one.correct[changed == wanted] for one, changed in known]
        if n := sum(map(len, right)):
            found[name] = _counted(int(sum(map(np.sum, right))), n, known[0][0].choices)
    return found


def average(answers: Mapping[str, Answers], languages: Sequence[str]) -> MacroAverage | None:
    """The mean over languages with its interval, or None if a language is missing or has other questions."""
    chosen = {code: answers[code] for code in languages if code in answers}
    if not chosen or len(chosen) < len(languages) or not _parallel(list(chosen.values())):
        return None
    return macro_average({code: one.correct for code, one in chosen.items()})


def differences(first: Mapping[str, Answers], second: Mapping[str, Answers]) -> dict[str, Difference]:
    """Language -> difference, over the languages and questions that both have; p-values are Holm's over these."""
    pairs = {code: _common(code, first[code], second[code]) for code in first if code in second}
    pairs = {code: pair for code, pair in pairs.items() if len(pair[0])}
    if not pairs:
        raise ValueError("The two runs have no test question in common.")
    corrected = holm([permutation_test(mine, other) for mine, other in pairs.values()])
    return {
        code: Difference(float(np.mean(mine - other)), *paired_bootstrap_interval(mine, other), p)
        for (code, (mine, other)), p in zip(pairs.items(), corrected, strict=True)
    }


def average_difference(first: Mapping[str, Answers], second: Mapping[str, Answers]) -> Difference | None:
    """The difference of the averages over the languages that both have, swapped and resampled by question.

    None where the languages do not have the same questions.
    """
    codes = [code for code in first if code in second]
    if not codes or not _parallel([run[code] for run in (first, second) for code in codes]):
        return None
    mine, other = ({code: run[code].correct for code in codes} for run in (first, second))
    means = [np.mean(list(run.values()), axis=0) for run in (mine, other)]
    value, p = float(np.mean(means[0] - means[1])), macro_difference_test(mine, other)
    return Difference(value, *paired_bootstrap_interval(*means), p)


def _counted(correct: int, n: int, choices: int) -> Accuracy:
    return Accuracy(correct, n, correct / n, *wilson_interval(correct, n), chance_test(correct, n, choices))


def _parallel(answers: Sequence[Answers]) -> bool:
    return all(np.array_equal(one.idx, answers[0].idx) for one in answers)


def _common(code: str, first: Answers, second: Answers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The right (1) and wrong (0) answers to the questions that both have."""
    _, mine, other = np.intersect1d(first.idx, second.idx, assume_unique=True, return_indices=True)
    if not np.array_equal(first.gold[mine], second.gold[other]):
        raise ValueError(f"{code}: the two runs have different right answers; they were tested on different data.")
    return first.correct[mine].astype(float), second.correct[other].astype(float)
