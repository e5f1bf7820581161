"""Future n-gram prediction: a step of xFNP (two streams) against one of the same model with one stream.

Workload: English texts of the embedded sample, packed into rows of 64 tokens, 16 rows a batch; a small ProphetNet
(one layer of 128 and 512 each side, 4 heads, a vocabulary of 6,000 at most), random weights. Both models read the same
batches of masked spans, with the same optimizer, one thread, in turns; the best of three rounds of each counts. The
losses of the first stream must be equal before training, up to 1e-4. Seeded.

Run: python benchmarks/bench_xfnp.py [--steps N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import best_in_turns, write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.models.generation.architectures.prophetnet_start import build_tiny_prophetnet
from mrs_suggest.models.generation.generator import load_seq2seq
from mrs_suggest.models.generation.language_tokens import TokenFrame, row_of
from mrs_suggest.models.pretraining.future_ngrams import SpanMaskingCollator, future_ngram_loss
from mrs_suggest.models.pretraining.masked_lm import vocabulary_of
from mrs_suggest.models.pretraining.noising import next_token_losses
from mrs_suggest.training.pretraining.rows import encode

ROWS, TOKENS, BATCHES = 16, 64, 8


def batches_and_models(texts: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The same batches for both, and the models: the one with one stream has the weights of the other."""
    models = {}
    with tempfile.TemporaryDirectory() as name:
        for streams in (2, 1):
            folder = Path(name) / str(streams)
            folder.mkdir()
            build_tiny_prophetnet(texts, ("en",), folder, seed=0, streams=streams)
            models[f"{streams}"], tokenizer = load_seq2seq(str(folder), None)
    state = models["2"].state_dict()
    vectors = "prophetnet.decoder.ngram_embeddings.weight"
    state[vectors] = state[vectors][-1:]  # the library gives the first stream the last vector
    models["1"].load_state_dict(state)
    frame, own = TokenFrame.of(row_of(models["1"].config, tokenizer), "en", models["1"].config, tokenizer)
    found: Any = tokenizer
    rows = encode(texts, found, frame.room(TOKENS), True, "en", framed=False)
    collate = SpanMaskingCollator(int(found.pad_token_id), vocabulary_of(found, "tiny"), frame)
    features = [{**rows[number % len(rows)], "language": own} for number in range(ROWS * BATCHES)]
    return [collate(features[first : first + ROWS]) for first in range(0, len(features), ROWS)], models


def stepper(model: Any, batches: list[dict[str, Any]], steps: int) -> Callable[[], None]:
    """A function that trains so many steps."""
    loss, optimizer = future_ngram_loss, torch.optim.AdamW(model.parameters(), lr=1e-4)

    def train() -> None:
        for step in range(steps):
            batch = dict(batches[step % len(batches)])
            labels = batch.pop("labels")
            loss(model(**batch, use_cache=False), labels).backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


def main() -> None:
    """Race, print and write the ratio."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=24, help="of a round (default 24)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = open_prepared("sample").load("en", "train")
    batches, models = batches_and_models([*rows["message"][:], *rows["reply"][:]])
    firsts = []
    for model in models.values():
        batch = dict(batches[0])
        labels = batch.pop("labels")
        with torch.no_grad():
            firsts.append(next_token_losses(model(**batch, use_cache=False)["logits"], labels).sum().item())
    if abs(firsts[0] - firsts[1]) > 1e-4 * abs(firsts[0]):
        raise AssertionError(f"the losses of the first stream differ: {firsts}")
    best = best_in_turns(
        {name: stepper(model, batches, options.steps) for name, model in models.items()}, options.steps
    )
    ratio = best["2"] / best["1"]
    print(
        f"a step of two streams: {best['2'] * 1e3:.1f} ms; of one: {best['1'] * 1e3:.1f} ms; {ratio:.2f} times as long"
    )
    figures = {"ms_two_streams": best["2"] * 1e3, "ms_one_stream": best["1"] * 1e3, "ratio": round(ratio, 3)}
    write_result(__file__, __doc__, figures, ("torch", "transformers"))


if __name__ == "__main__":
    main()
