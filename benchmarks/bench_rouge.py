"""Weighted ROUGE: `mrs_metrics.rouge.score_examples` against the libraries of MRS's official evaluation.

Workload: 10,000 examples, each with one reference and 3 suggestions. Suggestions come from a response set of 5,000
replies drawn Zipf-like, as a retrieval system or a dull generator gives them; references are 40 % from that set and
60 % new. A text has 2 to 16 words from a list of 800, drawn Zipf-like, with punctuation and contractions. Seeded. The
second workload, all distinct, ends each text with a number of its own, so that no text ever repeats.

The rival does per example what the official script does: NLTK 3.8.1's `word_tokenize` on every text, `rouge` 1.0.1 with
its default metrics and ROUGE-3 on every suggestion, and once more on the chosen ones for the average. Both run in one
process on one core; the scores must agree to 1e-9 before a time is reported.

Run: python benchmarks/bench_rouge.py [--examples N]; needs `pip install nltk==3.8.1 rouge==1.0.1`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "bench_rouge.json"
SEED = 20210605
N_SUGGESTIONS = 3
FULL_SIZE = 10_000


def make_workload(n_examples: int, seed: int = SEED) -> tuple[list[list[str]], list[str]]:
    """Return the suggestions and references of the workload that the module's docstring describes."""
    draw = random.Random(seed)
    syllables = ["ba", "do", "ki", "lu", "me", "no", "ra", "si", "te", "vo"]
    common = ["i", "you", "don't", "it's", "thanks", "no", "yes", "we'll", "so", "cannot", "gonna", "that's"]
    words = common + ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(788)]
    word_weights = [1 / rank for rank in range(1, len(words) + 1)]

    def text() -> str:
        chosen = draw.choices(words, word_weights, k=draw.randint(2, 16))
        for position in range(1, len(chosen) - 1):
            if draw.random() < 0.1:
                chosen[position] += draw.choice([",", ".", ";", " -", "..."])
        return " ".join(chosen).capitalize() + draw.choice([".", "!", "?", "", "..", '"'])

    replies = [text() for _ in range(5_000)]
    reply_weights = [1 / rank for rank in range(1, len(replies) + 1)]
    predictions = [draw.choices(replies, reply_weights, k=N_SUGGESTIONS) for _ in range(n_examples)]
    references = [draw.choices(replies, reply_weights)[0] if draw.random() < 0.4 else text() for _ in range(n_examples)]
    return predictions, references


def make_distinct(predictions: list[list[str]], references: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return the same workload with a running number at the end of each text."""
    numbers = count(1)
    distinct = [[f"{text} {next(numbers)}" for text in suggestions] for suggestions in predictions]
    return distinct, [f"{text} {next(numbers)}" for text in references]


def official_scores(predictions: list[list[str]], references: list[str]) -> dict[str, float]:
    """Score with NLTK and `rouge`, combined as in MRS's official script."""
    from nltk.tokenize import word_tokenize
    from rouge import Rouge
    from rouge.rouge_score import rouge_n

    Rouge.AVAILABLE_METRICS["rouge-3"] = lambda hyp, ref, **options: rouge_n(hyp, ref, 3, **options)
    evaluator = Rouge(metrics=["rouge-1", "rouge-2", "rouge-l", "rouge-3"])

    def tokenized(text: str) -> str:
        return " ".join(word_tokenize(text.lower(), preserve_line=True))

    def only_dots(text: str) -> bool:
        return not any(text.split("."))

    def weighted(scores: dict[str, dict[str, float]]) -> float:
        return scores["rouge-1"]["f"] / 6 + scores["rouge-2"]["f"] / 3 + scores["rouge-3"]["f"] / 2

    best, kept = [], []
    for suggestions, text in zip(predictions, references, strict=True):
        reference, hypotheses = tokenized(text), [tokenized(suggestion) for suggestion in suggestions]
        if len(reference.split()) > 100 or only_dots(reference):
            continue
        hypotheses = ["<empty>" if only_dots(hypothesis) else hypothesis for hypothesis in hypotheses]
        hypotheses = [" ".join(hypothesis.split()[:100]) for hypothesis in hypotheses]
        scores = [weighted(evaluator.get_scores(hypothesis, reference)[0]) for hypothesis in hypotheses]
        best.append(hypotheses[scores.index(max(scores))])
        kept.append(reference)
    means = evaluator.get_scores(best, kept, avg=True)
    orders = {f"rouge{order}": means[f"rouge-{order}"]["f"] for order in (1, 2, 3)}
    distinct = {token for hypothesis in best for token in hypothesis.split()}
    return {"n": len(kept), **orders, "weighted": weighted(means), "distinct1": len(distinct)}


def our_scores(predictions: list[list[str]], references: list[str]) -> dict[str, float]:
    """Score with this project, from cold caches."""
    from mrs_metrics.distinct import distinct_counts
    from mrs_metrics.rouge import aggregate, score_examples

    scores = score_examples(predictions, references, language="en")
    return {**aggregate(scores), "distinct1": distinct_counts(scores.chosen_tokens, 1).distinct}


def race(predictions: list[list[str]], references: list[str]) -> dict[str, Any]:
    """Time both on one workload; AssertionError where their scores disagree."""
    seconds, results = {}, {}
    for name, score in (("ours", our_scores), ("rival", official_scores)):
        start = time.perf_counter()
        results[name] = score(predictions, references)
        seconds[name] = round(time.perf_counter() - start, 3)
    for key, value in results["rival"].items():
        if abs(results["ours"][key] - value) > 1e-9:
            raise AssertionError(f"The scores disagree on {key}: {results['ours'][key]} against {value}.")
    return {"seconds": seconds, "ratio": round(seconds["rival"] / seconds["ours"], 1), "scores": results["ours"]}


def main() -> None:
    """Race both on the two workloads; print and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=FULL_SIZE, help="examples of the workload (default 10,000)")
    n_examples = parser.parse_args().examples
    predictions, references = make_workload(n_examples)
    our_scores(predictions[:10], references[:10])  # imports stay out of both times
    official_scores(predictions[:10], references[:10])

    record = {
        "name": "bench_rouge",
        "workload": " ".join(__doc__.split("Workload: ")[1].split("\n\n")[0].split()),
        "examples": n_examples,
        **race(predictions, references),
        "all_distinct": race(*make_distinct(predictions, references)),
        "versions": {
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in ("numpy", "nltk", "rouge")},
        },
    }
    print(record["workload"])
    for name, result in (("replies repeat", record), ("all distinct", record["all_distinct"])):
        ours, rival = result["seconds"]["ours"], result["seconds"]["rival"]
        print(f"{name}: ours {ours:.2f} s, rival {rival:.2f} s, {result['ratio']} times as fast, equal scores")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
