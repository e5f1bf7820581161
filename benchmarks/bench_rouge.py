"""Weighted ROUGE: `mrs_metrics.rouge.score_examples` against the libraries of MRS's official evaluation.

Workload: 10,000 examples, each with one reference and 3 suggestions. Suggestions come from a response set of 5,000
replies drawn Zipf-like, as a retrieval system or a dull generator gives them; references are 40 % from that set and
60 % new. A text has 2 to 16 words from a list of 800, drawn Zipf-like, with punctuation and contractions. Seeded. The
second workload, all distinct, ends each text with a number of its own, so that no text ever repeats. The third takes
real English pairs (from the folder in MRS_SHARED_DATA, else the embedded sample) and repeats them to size: references
in order, suggestions drawn evenly from all replies.

The rival does per example what the official script does: NLTK 3.8.1's `word_tokenize` on every text, `rouge` 1.0.1 with
its default metrics and ROUGE-3 on every suggestion, and once more on the chosen ones for the average. Both run in one
process on one core, tokenization included, ours without words remembered from before; the best of several runs of each
counts, taken in turns. The scores must agree to 1e-9 before a time is reported.

That is the inner loop. A user waits for the whole process: CPU time (user and system) of a fresh interpreter from its
start to the printed figures, imports and reading of the file included, on the first two workloads as files.
The rival's process reads the file, tokenizes, scores and counts as above; ours is `mrs score FILE --lang en --json`,
which also computes intervals, ceilings, precision and recall. Where Punkt's parameters are found (--punkt, the folder
of MRS_SHARED_DATA, an installed NLTK resource), both split sentences, as the script really does; otherwise neither.

Run: python benchmarks/bench_rouge.py [--examples N] [--punkt FOLDER]; needs nltk 3.8.1 and rouge 1.0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from importlib import metadata
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_rouge.json"
SAMPLE = ROOT / "mrs_datasets" / "sample" / "data" / "en" / "train-00000-of-00001.parquet"
SEED = 20210605
N_SUGGESTIONS = 3
FULL_SIZE = 10_000
OUR_RUNS, RIVAL_RUNS = 5, 2
PROCESS_RUNS = 2


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


def make_real(n_examples: int, seed: int = SEED) -> tuple[list[list[str]], list[str], str]:
    """Return the third workload, and where its replies are from."""
    folder = os.environ.get("MRS_SHARED_DATA")
    if folder:
        lines = (Path(folder) / "replies" / "en.tsv").read_text(encoding="utf-8").strip("\n").split("\n")
        replies, source = [line.split("\t")[1] for line in lines], "real replies of MRS_SHARED_DATA"
    else:
        import pyarrow.parquet as parquet

        replies, source = parquet.read_table(SAMPLE)["reply"].to_pylist(), "the embedded sample"
    draw = random.Random(seed)
    predictions = [draw.choices(replies, k=N_SUGGESTIONS) for _ in range(n_examples)]
    return predictions, list(islice(cycle(replies), n_examples)), source


def official_scores(predictions: list[list[str]], references: list[str], punkt: str | None = None) -> dict[str, float]:
    """Score with NLTK and `rouge`, combined as in MRS's official script; `punkt` asks for sentences."""
    from nltk.tokenize import word_tokenize
    from rouge import Rouge
    from rouge.rouge_score import rouge_n

    Rouge.AVAILABLE_METRICS["rouge-3"] = lambda hyp, ref, **options: rouge_n(hyp, ref, 3, **options)
    evaluator = Rouge(metrics=["rouge-1", "rouge-2", "rouge-l", "rouge-3"])

    splitter = nltk_splitter(punkt) if punkt else None

    def tokenized(text: str) -> str:
        sentences = splitter.tokenize(text.lower()) if splitter else [text.lower()]
        return " ".join([token for part in sentences for token in word_tokenize(part, preserve_line=True)])

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


def nltk_splitter(folder: str) -> Any:
    """NLTK 3.8.1's sentence splitter with the parameters of a folder (that release reads them from a pickle only)."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    def rows(name: str) -> list[list[str]]:
        text = (Path(folder) / name).read_text(encoding="utf-8")
        return [line.split("\t") for line in text.removesuffix("\n").split("\n")]

    parameters = PunktParameters()
    parameters.abbrev_types = {kind for (kind,) in rows("abbrev_types.txt")}
    parameters.sent_starters = {kind for (kind,) in rows("sent_starters.txt")}
    parameters.collocations = {(first, second) for first, second in rows("collocations.tab")}
    parameters.ortho_context = defaultdict(int, {kind: int(flags) for kind, flags in rows("ortho_context.tab")})
    return PunktSentenceTokenizer(parameters)


def official_process(path: Path, punkt: str | None) -> None:
    """The whole of the rival: from the prediction file to printed figures."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]
    print(json.dumps(official_scores([row[2:] for row in rows], [row[1] for row in rows], punkt)))


def race_whole_processes(predictions: list[list[str]], references: list[str], punkt: str | None) -> dict[str, Any]:
    """CPU time of complete runs in fresh processes; AssertionError where their scores disagree."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "predictions.tsv")
        lines = ["\t".join(["", reference, *texts]) for texts, reference in zip(predictions, references, strict=True)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sentences = ["--sentences", "punkt", "--punkt", punkt] if punkt else []
        commands = {
            "ours": [
                sys.executable,
                "-m",
                "mrs_suggest.cli.main",
                "score",
                str(path),
                "--language",
                "en",
                "--json",
                *sentences,
            ],
            "rival": [sys.executable, __file__, "--rival", str(path), *(["--punkt", punkt] if punkt else [])],
        }
        seconds = dict.fromkeys(commands, float("inf"))
        figures: dict[str, Any] = {}
        for _ in range(PROCESS_RUNS):
            for name, command in commands.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8")
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                seconds[name], figures[name] = min(seconds[name], used), json.loads(done.stdout)
    for key in ("n", "rouge1", "rouge2", "rouge3", "weighted"):
        if abs(figures["ours"][key] - figures["rival"][key]) > 1e-9:
            raise AssertionError(f"The processes disagree on {key}: {figures['ours'][key]}, {figures['rival'][key]}.")
    return {
        "sentences": "punkt" if punkt else "no",
        "cpu_seconds": {name: round(value, 2) for name, value in seconds.items()},
        "ratio": round(seconds["rival"] / seconds["ours"], 1),
        "runs": PROCESS_RUNS,
    }


def our_scores(predictions: list[list[str]], references: list[str]) -> dict[str, float]:
    """Score with this project, from cold caches."""
    from mrs_metrics.distinct import distinct_counts
    from mrs_metrics.rouge import aggregate, score_examples
    from mrs_metrics.tokenize import forget_words

    forget_words()
    scores = score_examples(predictions, references, language="en")
    return {**aggregate(scores), "distinct1": distinct_counts(scores.chosen_tokens, 1).distinct}


def best_of(runs: dict[str, int], functions: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Run the functions in turns; return the shortest time of each and its last result."""
    seconds: dict[str, float] = {}
    results = {}
    for run in range(max(runs.values())):
        for name, function in functions.items():
            if run < runs[name]:
                start = time.perf_counter()
                results[name] = function()
                seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - start)
    return {name: round(value, 3) for name, value in seconds.items()}, results


def race(predictions: list[list[str]], references: list[str]) -> dict[str, Any]:
    """Time both on one workload; AssertionError where their scores disagree."""
    seconds, results = best_of(
        {"ours": OUR_RUNS, "rival": RIVAL_RUNS},
        {
            "ours": lambda: our_scores(predictions, references),
            "rival": lambda: official_scores(predictions, references),
        },
    )
    for key, value in results["rival"].items():
        if abs(results["ours"][key] - value) > 1e-9:
            raise AssertionError(f"The scores disagree on {key}: {results['ours'][key]} against {value}.")
    scores = {key: results["ours"][key] for key in results["rival"]}
    return {"seconds": seconds, "ratio": round(seconds["rival"] / seconds["ours"], 1), "scores": scores}


def find_punkt() -> str | None:
    """The folder of Punkt's parameters that this machine has, or None."""
    from mrs_metrics.punkt import find_parameters

    shared = os.environ.get("MRS_SHARED_DATA")
    folder = Path(shared, "punkt", "english") if shared else find_parameters()
    return str(folder) if folder and folder.is_dir() else None


def main() -> None:
    """Race on the workloads; print and write the ratios."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=FULL_SIZE, help="examples of a workload (default 10,000)")
    parser.add_argument("--punkt", help="folder of Punkt's parameters, for the whole processes")
    parser.add_argument("--rival", type=Path, help=argparse.SUPPRESS)  # in the rival's own process
    options = parser.parse_args()
    if options.rival:
        official_process(options.rival, options.punkt)
        return
    punkt = options.punkt or find_punkt()
    repeating = make_workload(options.examples)
    distinct = make_distinct(*repeating)
    *_, source = real = make_real(options.examples)
    our_scores(repeating[0][:10], repeating[1][:10])  # imports stay out of both times
    official_scores(repeating[0][:10], repeating[1][:10])

    record = {
        "name": "bench_rouge",
        "workload": " ".join(__doc__.split("Workload: ")[1].split("\n\n")[0].split()),
        "examples": options.examples,
        "runs": {"ours": OUR_RUNS, "rival": RIVAL_RUNS},
        **race(*repeating),
        "all_distinct": race(*distinct),
        "real": {"source": source, **race(*real[:2])},
        "whole_process": {
            "replies repeat": race_whole_processes(*repeating, punkt),
            "all distinct": race_whole_processes(*distinct, punkt),
        },
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
        "versions": {
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in ("numpy", "nltk", "rouge")},
        },
    }
    show(record)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def show(record: dict[str, Any]) -> None:
    """Print the record's times and ratios."""
    print(record["workload"])
    for name, result in (
        ("replies repeat", record),
        ("all distinct", record["all_distinct"]),
        ("real", record["real"]),
    ):
        ours, rival = result["seconds"]["ours"], result["seconds"]["rival"]
        print(f"{name}: ours {ours:.2f} s, rival {rival:.2f} s, {result['ratio']} times as fast, equal scores")
    for name, result in record["whole_process"].items():
        ours, rival = result["cpu_seconds"]["ours"], result["cpu_seconds"]["rival"]
        print(
            f"{name}, whole process (sentences: {result['sentences']}): CPU time ours {ours:.1f} s, "
            f"rival {rival:.1f} s, {result['ratio']} times"
        )


if __name__ == "__main__":
    main()
