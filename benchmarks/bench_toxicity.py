"""`mrs data toxicity`: the pass over a prepared folder against the bare model on the same distinct texts.

Workload: 3,000 pairs in English and Japanese (one config each, three splits), made from the phrases and words of `mrs
data synth`, seeded; half of the messages and replies have a tail of 14 words on average, and short replies repeat, as
in real data. The checkpoint is a BERT of 6 layers, 256 wide, which the script builds (`--encoder
FOLDER`: a fresh head on an encoder of transformers). One thread; the runs take turns, and the best of each counts.
The machine is shared: CPU-seconds are compared, and wall time is printed beside them.

pass       `run_passes` with one rule: texts from Parquet, distinct ones, the cache in SQLite, scores in shards, the
           new folder written, with card and report; the model is loaded outside of the time.
bare       the tokenizer and the model in batches of 32 over all distinct texts of a config, sorted by length in tokens,
           in float32, a plain loop with transformers alone; softmax.
again      the pass with another threshold and a warm cache: nothing is scored.

Run: python benchmarks/bench_toxicity.py [--pairs N] [--encoder FOLDER] [--rounds N]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from timing import write_result
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertForSequenceClassification
from transformers.utils.logging import disable_progress_bar

from mrs_datasets.builders.passes import run_passes
from mrs_datasets.builders.toxicity import Rule, ToxicityPass
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.synthetic.speech import speeches
from mrs_suggest.models.retrieval.tiny import POSITIONS, train_tokenizer, write_checkpoint
from mrs_suggest.services.scorers.classifier import BATCH, ClassifierScorer

SEED = 20210605
LANGUAGES = ("en", "ja")
TAIL = 14  # words, on average
TARGET = 0.9
LABELS = {0: "neutral", 1: "toxic"}


def write_data(folder: Path, pairs: int) -> Path:
    """A prepared folder with so many pairs."""
    rng = random.Random(SEED)

    def text(phrase: str) -> str:
        tail = speech.space.join(rng.choices(speech.words, k=1 + int(rng.expovariate(1 / TAIL))))
        return f"{phrase} {tail}." if rng.random() < 0.5 else phrase

    chunks = []
    for speech in speeches(ascii_only=False):
        if speech.language in LANGUAGES:
            for split, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
                rows = []
                for _ in range(int(pairs / len(LANGUAGES) * share)):
                    message, exchange = rng.choice(speech.openings)
                    rows.append({"message": text(message), "reply": text(rng.choice(speech.replies[exchange]))})
                chunks.append((speech.language, split, pa.Table.from_pylist(rows, PAIR_SCHEMA)))
    write_prepared(folder, chunks, Report("pairs", partial=True), MRS, "the benchmark")
    return folder


def texts_of(folder: Path) -> dict[str, list[str]]:
    """The distinct texts of each config."""
    data = open_prepared(str(folder))
    found = {}
    for config in data.configs():
        tables = [pq.read_table(file) for split in data.splits(config) for file in data.files(config, split)]
        columns = [table[name].to_pylist() for table in tables for name in ("message", "reply")]
        found[config] = list(dict.fromkeys(text for column in columns for text in column))
    return found


def write_model(folder: Path, texts: list[str], encoder: Path | None) -> Path:
    """A checkpoint for text classification, untrained but for the encoder."""
    torch.manual_seed(SEED)
    if encoder is not None:
        model = AutoModelForSequenceClassification.from_pretrained(encoder, id2label=LABELS, dtype=torch.float32)
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
        return folder
    tokenizer = train_tokenizer(texts, 6000)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024,
        max_position_embeddings=POSITIONS, pad_token_id=tokenizer.pad_token_id, id2label=LABELS,
    )  # fmt: skip
    return write_checkpoint(BertForSequenceClassification(config), tokenizer, folder)


def bare(folder: Path) -> Callable[[dict[str, list[str]]], float]:
    """A function that scores the texts of each config, and returns the largest score."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def run(texts: dict[str, list[str]]) -> float:
        highest = 0.0
        for some in texts.values():
            ids = sorted(tokenizer(some, truncation=True, max_length=min(512, POSITIONS))["input_ids"], key=len)
            for first in range(0, len(ids), BATCH):
                batch = tokenizer.pad({"input_ids": ids[first : first + BATCH]}, return_tensors="pt")
                highest = max(highest, float(model(**batch).logits.softmax(-1)[:, 1].max()))
        return highest

    return run


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds and CPU-seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def rounds(
    folder: Path, scorer: ClassifierScorer, plain: Callable[..., float], number: int
) -> Iterator[dict[str, Any]]:
    """(wall, CPU) of each run, round by round."""
    texts = texts_of(folder / "data")
    for turn in range(number):
        cache = folder / f"cache{turn}.sqlite"

        def run(name: str, threshold: float, cache: Path = cache) -> None:
            done = ToxicityPass((Rule(scorer, threshold),))
            run_passes(str(folder / "data"), [done], folder / f"{name}{cache.stem}", cache=cache)

        yield {
            "pass": timed(lambda run=run: run("first", 1.0)),  # type: ignore[misc]
            "bare": timed(lambda: plain(texts)),
            "again": timed(lambda run=run: run("second", 0.999)),  # type: ignore[misc]
        }


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = write_data(folder / "data", options.pairs)
        texts = texts_of(data)
        model = write_model(folder / "model", [text for some in texts.values() for text in some], options.encoder)
        scorer = ClassifierScorer(str(model))
        found = list(rounds(folder, scorer, bare(model), options.rounds))
    pairs = options.pairs
    best = {run: [min(turn[run][kind] for turn in found) for kind in (0, 1)] for run in found[0]}
    rates = {run: {"wall": round(pairs / wall, 1), "cpu": round(pairs / cpu, 1)} for run, (wall, cpu) in best.items()}
    ratios = {kind: round(rates["pass"][kind] / rates["bare"][kind], 3) for kind in ("wall", "cpu")}
    figures = {
        "encoder": "built here" if options.encoder is None else options.encoder.name,
        "pairs": pairs,
        "distinct texts": sum(map(len, texts.values())),
        "pairs a second": rates,
        "rounds": [{run: [round(value, 2) for value in values] for run, values in turn.items()} for turn in found],
        "ratio of pass to bare": ratios,
        "target": TARGET,
    }
    print(f"{pairs:,} pairs, {figures['distinct texts']:,} distinct texts")
    for run, rate in rates.items():
        print(f"{run:6} {rate['wall']:10,.1f} pairs/s, {rate['cpu']:10,.1f} pairs per CPU-second")
    print(f"pass / bare: {ratios['wall']:.3f} (CPU {ratios['cpu']:.3f}), at least {TARGET}")
    if options.encoder is None:
        write_result(__file__, __doc__, figures, ["torch", "transformers", "pyarrow"])


if __name__ == "__main__":
    main()
