"""How often one of three suggestions is good by the judgements of readers, and whether other weights would do better.

Workload: the 200 messages of the second panel round and `panel/round_2/judged.tsv`, in which a reader graded about 40
replies to each: those that several encoders and mixtures rank highest. A message counts as answered well if one of the
three suggestions is `good`; a reply that nobody graded counts as bad, and the share of these is stated. The rivals are
the same model with other weights of its ranker's parts. These judgements may choose weights, so they do not tell how
good the chosen ones are: a later panel round does. Diversity: the share of messages with a question mark whose three
suggestions answer in at least two ways (yes, no, a question back, ...; the tags of mrs-everyday).

Run: python benchmarks/bench_judged.py [MODEL]  (another retriever; its figures are printed, and not written)
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge_panel import MESSAGES, rows
from timing import write_result

from mrs_metrics.accuracy import wilson_interval
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker, RankerSettings
from mrs_suggest.suggest.ranking.mixture import Mixture
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester

ROUND = Path(__file__).resolve().parent / "panel" / "round_2"
WIDTH = 100  # candidates, as in training
RIVALS = [{"votes": 1 - share, "direct": share} for share in (0.0, 0.1, 0.3, 0.5, 1.0)]


def judged() -> dict[int, dict[str, str]]:
    """Number of a message -> normalised reply -> grade."""
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for row in rows(ROUND / "judged.tsv"):
        found[int(row["number"])][normalise_reply(row["reply"])] = row["grade"]
    return found


def measure(model: RetrievalSuggester, rankers: Mapping[str, LanguageRanker]) -> dict[str, Any]:
    """Messages with a good suggestion, and the share of suggestions that nobody graded."""
    grades, good, ungraded, ways = judged(), 0, 0, []
    panel = rows(ROUND / MESSAGES)
    for number, row in enumerate(panel, start=1):
        vector = model.message_vectors([row["message"]])[0]
        three = rankers[row["language"]].suggest(row["message"], vector, 3)
        given = [grades[number].get(normalise_reply(one.reply)) for one in three]
        good += "good" in given
        ungraded += given.count(None)
        ranker = rankers[row["language"]]
        if ranker.kinds is not None and {"?", "？"} & set(row["message"]):
            ways.append(len({int(ranker.kinds[ranker.index.replies.index(one.reply)]) for one in three} - {-1}))
    low, high = wilson_interval(good, len(panel))
    return {
        "good": good,
        "low": low,
        "high": high,
        "messages": len(panel),
        "ungraded": ungraded / (3 * len(panel)),
        "questions": len(ways),
        "several ways": sum(number > 1 for number in ways) / max(len(ways), 1),
    }


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "everyday-retriever"
    model = RetrievalSuggester.load_from(resolve_model(name), name)
    systems = {"own weights": measure(model, model.rankers)}
    for weights in RIVALS:
        settings = RankerSettings(tuple(weights), width=WIDTH)
        rankers = {
            code: replace(ranker, settings=settings, mixture=Mixture(weights)) for code, ranker in model.rankers.items()
        }
        systems[", ".join(f"{part} {weight:.1f}" for part, weight in weights.items())] = measure(model, rankers)
    for weighted, one in systems.items():
        print(
            f"{weighted:<24} good {one['good']} of {one['messages']} [{one['low']:.3f}, {one['high']:.3f}], "
            f"{one['ungraded']:.1%} of the suggestions not graded; "
            f"{one['several ways']:.0%} of {one['questions']} questions answered in several ways"
        )
    if len(sys.argv) == 1:
        write_result(__file__, __doc__, {"systems": systems}, ("numpy",), resolve_model(name))


if __name__ == "__main__":
    main()
