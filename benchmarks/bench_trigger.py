"""Whether `--precision P` keeps its promise on conversations that the shipped model never saw.

Workload: up to 600 real pairs in each language of each corpus in `../shared/data`, drawn with a seed, each message
once. The model answers all of them with the probability that one of its suggestions is used (weighted ROUGE of .3 or
more against the real reply); for each P, the messages whose probability promises it: how many are answered, and of how
many of these a suggestion is used, with a 95 % interval (Wilson).

Run: python benchmarks/bench_trigger.py [MODEL]  (another model; its figures are printed, and not written)
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
from bench_guard import corpora
from timing import write_result

from mrs_metrics.accuracy import wilson_interval
from mrs_metrics.rouge import score_examples
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.suggest.ranking.trigger import USED
from mrs_suggest.suggest.suggester import Suggester

PAIRS = 600  # of a language of a corpus
PRECISIONS = (0.25, 0.3, 0.35)  # the most that validation reaches is .38


def probabilities(suggester: Suggester, language: str, pairs: list[tuple[str, str]]) -> tuple[list[float], list[bool]]:
    """The probability of each answer, and whether one of its suggestions is used."""
    messages = [message for message, _ in pairs]
    chances = suggester.model.used(messages, language)
    assert chances is not None, "the model was not calibrated"
    suggestions = [answer.replies for answer in suggester.suggest(messages, language)]
    scores = score_examples(suggestions, [reply for _, reply in pairs], language)
    kept = np.zeros(len(pairs))
    kept[scores.kept] = scores.weighted
    return chances, [bool(score >= USED) for score in kept]


def main() -> None:
    folder = resolve_model(sys.argv[1] if len(sys.argv) > 1 else "everyday-retriever")
    suggester = Suggester.from_pretrained(folder, guard=False)
    trigger = suggester.model.trigger
    assert trigger is not None, "the model was not calibrated"
    figures: dict[str, Any] = {"corpora": {}}
    for corpus, language, path in corpora():
        if language not in suggester.languages:
            continue
        lines = [line.partition("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
        pairs = list({message: reply for message, _, reply in lines}.items())
        pairs = random.Random(1).sample(pairs, min(PAIRS, len(pairs)))
        chances, used = probabilities(suggester, language, pairs)
        of: dict[str, Any] = {}
        figures["corpora"].setdefault(corpus, {})[language] = {"pairs": len(pairs), "promises": of}
        for precision in PRECISIONS:
            threshold = trigger.threshold(precision)
            least = 2.0 if threshold is None else threshold  # no threshold keeps the promise: nothing is answered
            answered = [hit for chance, hit in zip(chances, used, strict=True) if chance >= least]
            low, high = wilson_interval(sum(answered), len(answered)) if answered else (None, None)
            of[str(precision)] = {"answered": len(answered), "used": sum(answered), "low": low, "high": high}
            print(corpus, language, precision, of[str(precision)], flush=True)
    if len(sys.argv) == 1:
        write_result(__file__, __doc__, figures, ("numpy",), folder)


if __name__ == "__main__":
    main()
