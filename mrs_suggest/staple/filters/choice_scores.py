"""Weighted F1 of choices among hypotheses, and the exact best cut of ranked lists, without going back to texts.

The scores are those of `mrs_metrics.translations_f1` by the paper's rules (Mayhew et al. 2020, section 2.3), up to
rounding; the mean over prompts is the macro weighted F1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.lists import Labels, Lists
from mrs_suggest.staple.pooling import Floats, Ints


@dataclass(frozen=True, eq=False)
class ChoiceScores:
    """Scores of the prompts, (prompts,) each.

    Attributes:
        precision, weighted_recall, weighted_f1: 0 to 1; 0 where nothing is chosen.
    """

    precision: Floats
    weighted_recall: Floats
    weighted_f1: Floats
    chosen: Ints


def score_choice(lists: Lists, gold: Labels, kept: NDArray[np.bool_]) -> ChoiceScores:
    """Score the rows that are kept, (n,)."""
    prompt = lists.prompt
    chosen = np.bincount(prompt[kept], minlength=lists.prompts)
    right = np.bincount(prompt[kept], gold.accepted[kept], minlength=lists.prompts)
    recall = np.minimum(np.bincount(prompt[kept], gold.share[kept], minlength=lists.prompts), 1.0)
    precision = right / np.maximum(chosen, 1)
    return ChoiceScores(precision, recall, harmonic(precision, recall), chosen)


def harmonic(precision: Floats, recall: Floats) -> Floats:
    """The harmonic mean; 0 where both are 0."""
    total = precision + recall
    return np.asarray(2 * precision * recall / np.where(total > 0, total, 1.0))


def by_score(lists: Lists, score: Floats) -> Ints:
    """(n,) the rows, prompt by prompt, from the highest score; equal ones in the order of the list, NaN last."""
    return np.lexsort((np.arange(lists.size), -np.nan_to_num(score, nan=-np.inf), lists.prompt))


def prefix_scores(lists: Lists, gold: Labels, order: Ints) -> Floats:
    """(n,) weighted F1 of the prompt if the rows up to this place of `by_score`'s order are chosen."""
    before = np.repeat(lists.starts[:-1], np.diff(lists.starts))
    chosen = np.arange(lists.size) - before + 1

    def within(values: Floats) -> Floats:
        total = np.concatenate([[0.0], np.cumsum(values)])
        return np.asarray(total[1:] - total[before])

    precision = within(gold.accepted[order].astype(np.float64)) / chosen
    return harmonic(precision, np.clip(within(gold.share[order]), 0.0, 1.0))


def best_threshold(lists: Lists, gold: Labels, score: Floats) -> tuple[float, float]:
    """The threshold with the highest macro weighted F1, of all that there are: the search is exact.

    The first translation of a prompt by score is always chosen, others if their score reaches the threshold. Every
    score in the data is tried as the last one that is chosen; the threshold lies half way to the next lower one.

    Args:
        score: (n,) NaN where not known, which no threshold takes.

    Returns:
        The threshold, the highest among equally good ones (inf: the first alone), and the macro weighted F1.
    """
    order = by_score(lists, score)
    f1 = prefix_scores(lists, gold, order)
    first = np.isin(np.arange(lists.size), lists.starts[:-1][np.diff(lists.starts) > 0])
    gain = np.where(first, f1, f1 - np.concatenate([[0.0], f1[:-1]]))
    base = float(gain[first].sum())
    level = np.nan_to_num(score, nan=-np.inf)[order]
    usable = ~first & (level > -np.inf)
    gain, level = gain[usable], level[usable]
    down = np.argsort(-level, kind="stable")
    gain, level = gain[down], level[down]
    last = np.flatnonzero(np.append(level[1:] < level[:-1], True)) if len(level) else np.empty(0, np.int64)
    totals = np.concatenate([[base], base + np.cumsum(gain)[last]])
    best = int(np.argmax(totals > totals.max() - 1e-12))
    macro = float(totals[best]) / max(1, lists.prompts)
    if best == 0:
        return np.inf, macro
    at = level[last[best - 1]]
    below = level[last[best]] if best < len(last) else at
    middle = (at + below) / 2
    return float(middle if below < middle <= at else at), macro


def best_count(lists: Lists, gold: Labels, order: Ints) -> tuple[int, float]:
    """How many of the first rows to choose per prompt for the highest macro weighted F1; the fewest of equally good."""
    sizes = np.diff(lists.starts)
    longest = int(sizes.max(initial=0))
    if not longest:
        return 1, 0.0
    f1 = prefix_scores(lists, gold, order)
    column = lists.place
    gain = f1 - np.where(column > 0, np.concatenate([[0.0], f1[:-1]]), 0.0)
    totals = np.cumsum(np.bincount(column, gain, minlength=longest))
    best = int(np.argmax(totals > totals.max() - 1e-12))
    return best + 1, float(totals[best]) / lists.prompts


def reaching(lists: Lists, score: Floats, threshold: float) -> NDArray[np.bool_]:
    """(n,) what `best_threshold`'s rule chooses."""
    kept = score >= threshold  # never true of NaN
    kept[firsts(lists, score)] = True
    return kept


def firsts(lists: Lists, score: Floats) -> Ints:
    """The first row by score of each prompt that has any."""
    return by_score(lists, score)[lists.starts[:-1][np.diff(lists.starts) > 0]]


def relative(lists: Lists, score: Floats) -> Floats:
    """(n,) each score minus the highest of its prompt."""
    top = np.full(lists.prompts, np.nan)
    rows = firsts(lists, score)
    top[lists.prompt[rows]] = score[rows]
    return np.asarray(score - top[lists.prompt])
