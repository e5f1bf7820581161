"""Treebank tokens: `mrs_metrics.tokenize.treebank_tokens` against NLTK 3.8.1's `word_tokenize`.

Workload: the texts of 10,000 real message-reply pairs in the nine languages of MRS that are tokenized so (from the
folder in MRS_SHARED_DATA, repeated to size; else the embedded sample's). Ours once cold, with no word remembered, and
once warm, with the words of the first pass remembered, as NLTK's compiled patterns are too. One process, one core; the
best of several runs of each counts, taken in turns.

Before a time is reported the tokens must be equal: on these texts, on the golden texts (`golden/tokenize.jsonl` of that
folder, if given) and on 200,000 generated ones, which mix scripts, punctuation, quotes, contractions, dots, dollars,
combining marks and kinds of white space. Seeded.

Run: python benchmarks/bench_tokenize.py [--generated N]; needs `pip install nltk==3.8.1`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from nltk.tokenize import word_tokenize

from mrs_metrics.tokenize import forget_words, treebank_tokens

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "bench_tokenize.json"
SAMPLE = ROOT / "mrs_datasets" / "sample" / "data"
LANGUAGES = ("en", "es", "de", "pt", "fr", "sv", "it", "nl", "ru")
SEED = 20210605
SIZE = 20_000
GENERATED = 200_000
OUR_RUNS, RIVAL_RUNS = 7, 3

# What the rules look at, what nearly looks the same, and what they must leave alone.
WORDS = (
    "I you the cannot CANNOT d'ye D'YE gimme gonna gotta lemme more'n wanna 'tis 'TWAS 'twas it's don't we'll they've "
    "John's O'Brien l'ami qu'est-ce dell'arte e.g. U.S. 3.50 1,000 1:30 $5 100% #tag @me R&D https://example.org/a?b=c "
    "naïve cafe\u0301 e\u0301 straße ſ ı Привет спасибо, 日本語 ありがとう 감사합니다 ขอบคุณ شكرا धन्यवाद a\u0300\u0301 "
    "👍 👨\u200d👩\u200d👧 x² ٣"
)
MARKS = (
    ". .. ... .... , : ,, :: ; ' '' ''' \" \"\" ` `` ``` « » “ ” ‘ ’ „ ( ) [ ] { } < > - -- --- — – ? ! ?! * @ # $ $$ "
    "% & _ / \\ | ~ ^ + = 's 'S 't 'm 'd 'll 're 've n't N'T 'x \u0301 \u200b"
)
SPACES = (" ", " ", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "\x1c", "\u2028", "\r\n")


def generated_texts(n: int, seed: int = SEED) -> Iterator[str]:
    """Yield texts of up to 14 pieces, with white space between some of them."""
    draw = random.Random(seed)
    words, marks = WORDS.split(), MARKS.split()
    for _ in range(n):
        pieces = []
        for _ in range(draw.randrange(15)):
            pieces.append(draw.choice(words if draw.random() < 0.5 else marks))
            if draw.random() < 0.6:
                pieces.append(draw.choice(SPACES) if draw.random() < 0.2 else " ")
        yield "".join(pieces)


def real_texts() -> tuple[list[str], str]:
    """Return the workload's texts and where they are from."""
    folder = os.environ.get("MRS_SHARED_DATA")
    texts: list[str] = []
    for language in LANGUAGES:
        if folder:
            lines = (Path(folder) / "replies" / f"{language}.tsv").read_text(encoding="utf-8").strip("\n").split("\n")
            texts += [text for line in lines for text in line.split("\t")[:2]]
        else:
            import pyarrow.parquet as parquet

            for file in sorted((SAMPLE / language).glob("*.parquet")):
                table = parquet.read_table(file)
                texts += [*table["message"].to_pylist(), *table["reply"].to_pylist()]
    return list(islice(cycle(texts), SIZE)), "MRS_SHARED_DATA" if folder else "the embedded sample"


def golden_differences() -> tuple[int, int]:
    """Return how many golden texts there are, and how many of them get other tokens."""
    file = Path(os.environ.get("MRS_SHARED_DATA", "")) / "golden" / "tokenize.jsonl"
    if "MRS_SHARED_DATA" not in os.environ or not file.is_file():
        return 0, 0
    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return len(cases), sum(treebank_tokens(case["text"]) != case["tokens"] for case in cases)


def rival(text: str) -> list[str]:
    """Tokenize as MRS's official script does, each text as one sentence."""
    return list(word_tokenize(text, preserve_line=True))


def timed(tokenize: Callable[[str], list[str]], texts: list[str]) -> float:
    """Return the seconds that the texts take."""
    start = time.perf_counter()
    for text in texts:
        tokenize(text)
    return time.perf_counter() - start


def race(texts: list[str]) -> dict[str, Any]:
    """Time NLTK, ours cold and ours warm on the texts."""
    best = dict.fromkeys(("rival", "cold", "warm"), float("inf"))
    for run in range(OUR_RUNS):
        forget_words()
        best["cold"] = min(best["cold"], timed(treebank_tokens, texts))
        best["warm"] = min(best["warm"], timed(treebank_tokens, texts))
        if run < RIVAL_RUNS:
            best["rival"] = min(best["rival"], timed(rival, texts))
    return {
        "seconds": {name: round(seconds, 3) for name, seconds in best.items()},
        "ratio": round(best["rival"] / best["warm"], 1),
        "ratio_cold": round(best["rival"] / best["cold"], 1),
    }


def main() -> None:
    """Check that the tokens are equal, then race; print and write the ratios."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--generated", type=int, default=GENERATED, help="generated texts to compare (default 200,000)")
    options = parser.parse_args()
    if metadata.version("nltk") != "3.8.1":
        raise SystemExit(f"The rival is nltk 3.8.1, not {metadata.version('nltk')}: run pip install nltk==3.8.1.")
    texts, source = real_texts()
    golden, different = golden_differences()
    for text in (*dict.fromkeys(texts), *generated_texts(options.generated)):
        different += treebank_tokens(text) != rival(text)
    if different:
        raise AssertionError(f"{different} texts get other tokens than from NLTK.")
    record = {
        "name": "bench_tokenize",
        "workload": " ".join(__doc__.split("Workload: ")[1].split("\n\n")[0].split()),
        "texts": len(texts),
        "source": source,
        "equal": {"golden": golden, "generated": options.generated, "real": len(set(texts))},
        **race(texts),
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
        "versions": {"python": platform.python_version(), "nltk": metadata.version("nltk")},
    }
    print(record["workload"])
    seconds = record["seconds"]
    print(
        f"{len(texts):,} texts: NLTK {seconds['rival']:.2f} s; "
        f"ours warm {seconds['warm']:.3f} s, {record['ratio']} times as fast; "
        f"cold {seconds['cold']:.3f} s, {record['ratio_cold']} times; "
        f"equal on {record['equal']}"
    )
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
