"""Pretraining: the trainer against a bare loop, and packed rows against padded ones.

Workload: sentences made of the embedded sample's English words, log-normal in length (mean 20 tokens, sigma .8),
seeded; a BERT of random weights, rows of 128 tokens. All of a race train one model with the same optimizer, in turns
(ABAB): steps a second from the end of the second step to the end of the last, the best round of each; the spread is how
far the slowest lies below it.

trainer     PretrainingTrainer on packed rows against a loop with Accelerate alone, on the same batches with the same
            loss, that clips and schedules, too.
mixture     the same with two objectives, mlm and tlm, half of the steps each.
packing     packed rows against one sentence a row: tokens a second that are no padding, of steps with as many such
            tokens on the average. `padded` are batches in random order, `sorted` those of the trainer without packing.

Run: python benchmarks/bench_pretraining.py [--only trainer mixture packing] [--model tiny|small|base] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets.utils.logging import disable_progress_bar as no_data_bars
from torch import Tensor
from torch.nn import functional
from training_race import (
    SKIPPED,
    Clock,
    add_race_options,
    bare_loop,
    check_race_options,
    machine,
    race,
    show,
    train_once,
)
from transformers import BertConfig, BertForMaskedLM
from transformers.utils.logging import disable_progress_bar as no_model_bars

from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.texts.text_sources import PairSource, Reading, TextSource
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.retrieval.tiny import VOCABULARY, train_tokenizer
from mrs_suggest.training.pretraining.mixture import OBJECTIVES, WHICH, mixture
from mrs_suggest.training.pretraining.options import PretrainingArguments, PretrainingTrainingArguments
from mrs_suggest.training.pretraining.texts import TextData, read_texts
from mrs_suggest.training.pretraining.training import make_trainer

RESULTS = Path(__file__).parent / "results"
TARGETS = {"accelerate": 0.95, "padded": 1.4}
SEED = 20200403
MEAN, SIGMA = 20.0, 0.8  # tokens of a sentence, before it is cut
TOKENS = 128  # of a row
LANGUAGE, PAIR = "en", "en-en"  # its translations are other sentences: the speed is the same


@dataclass(frozen=True)
class Size:
    """A workload: an encoder, packed rows a step, and steps of a run."""

    hidden: int
    layers: int
    heads: int
    batch: int
    steps: int
    vocabulary: int | None = None  # default: that of the tokenizer


SIZES = {
    "tiny": Size(hidden=128, layers=1, heads=2, batch=16, steps=40),
    "small": Size(hidden=256, layers=4, heads=4, batch=16, steps=20),
    "base": Size(768, layers=12, heads=12, batch=64, steps=30, vocabulary=250_002),
}


@dataclass(frozen=True)
class Run:
    """What a trainer is made of."""

    parts: Any
    training: Any
    options: PretrainingArguments
    data: TextData

    def trainer(self, batch: int | None = None, **changes: Any) -> Any:
        """A new trainer of the same model; `changes` are options, `batch` the rows of a step."""
        training = replace(self.training, per_device_train_batch_size=batch) if batch else self.training
        options = replace(self.options, **changes)
        return make_trainer(mixture(options, self.parts), options, training, self.data)


class Bench:
    """Texts, a model and the trainer's arguments on a device."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.size, self.folder = options, SIZES[options.model], folder
        self.batch, self.steps = options.batch or self.size.batch, options.steps or self.size.steps
        self.cuda = options.device == "cuda"
        self.half = self.cuda  # bfloat16, as a GPU is trained with
        pairs = open_prepared("sample").load(LANGUAGE, "train")
        self.texts = [text for column in ("message", "reply") for text in pairs[column][:]]
        self.tokenizer = train_tokenizer(self.texts, VOCABULARY)
        self.tokenizer.add_special_tokens({"mask_token": "[MASK]"})

    def data(self) -> TextData:
        """Sentences for all steps of a packed run, and as many pairs of them."""
        draw = np.random.default_rng(SEED)
        words = [word for text in self.texts for word in text.split()]
        count = math.ceil(1.2 * self.steps * self.batch * TOKENS / MEAN)
        lengths = np.clip(draw.lognormal(math.log(MEAN) - SIGMA**2 / 2, SIGMA, 3 * count).astype(int), 3, TOKENS - 4)
        ids = iter(self.tokenizer(" ".join(words), add_special_tokens=False, verbose=False)["input_ids"] * 1000)
        sentences = [self.tokenizer.decode([next(ids) for _ in range(length)]) for length in lengths.tolist()]
        pairs = zip(sentences[count : 2 * count], sentences[2 * count :], strict=True)
        text, parallel = self.folder / "text.txt", self.folder / "pairs.tsv"
        text.write_text("".join(f"{line}\n" for line in sentences[:count]))
        parallel.write_text("".join("\t".join(pair) + "\n" for pair in pairs))
        sources: list[Any] = [
            TextSource.parse(f"{LANGUAGE}={text}", "--text"),
            PairSource.parse(f"{PAIR}={parallel}", "--parallel"),
        ]
        return read_texts([sources, [], []], Reading(), 0)

    def run(self, **changes: Any) -> Run:
        """A trainer's parts; one pass at most, no evaluation, no checkpoints, no logs."""
        path = self.folder / "encoder"
        if not path.exists():
            size = self.size
            config = BertConfig(
                vocab_size=size.vocabulary or len(self.tokenizer), hidden_size=size.hidden,
                num_hidden_layers=size.layers, num_attention_heads=size.heads, intermediate_size=4 * size.hidden,
                max_position_embeddings=TOKENS, pad_token_id=self.tokenizer.pad_token_id,
            )  # fmt: skip
            BertForMaskedLM(config).save_pretrained(path)
            self.tokenizer.save_pretrained(path)
        training = PretrainingTrainingArguments(
            output_dir=str(self.folder / "run"), per_device_train_batch_size=self.batch, max_steps=self.steps,
            learning_rate=1e-5, eval_strategy="no", save_strategy="no", logging_strategy="no",
            load_best_model_at_end=False, disable_tqdm=True, use_cpu=not self.cuda, bf16=self.half, seed=SEED,
            dataloader_num_workers=self.options.workers, dataloader_pin_memory=self.cuda,
        )  # fmt: skip
        options = PretrainingArguments(model_name_or_path=str(path), max_tokens=TOKENS, **changes)
        data = self.data()
        parts = OBJECTIVES[options.objective[0]].build(options, training, data)
        parts.model.to(training.device)
        return Run(parts, training, options, data)


def masked_loss(ours: Run) -> Callable[[Any, Any], Tensor]:
    """The loss of a bare loop: cross-entropy of the predicted tokens, the head at these alone."""

    def loss(model: Any, batch: Any) -> Tensor:
        batch.pop(WHICH)
        labels = batch.pop("labels")
        with ours.parts.state.head_at(labels != IGNORED):
            logits = model(**batch).logits[0]
        return functional.cross_entropy(logits.float(), labels[labels != IGNORED])

    return loss


def against_bare(bench: Bench, ours: Run) -> dict[str, Any]:
    """The trainer's steps against those of a bare loop."""
    loss = masked_loss(ours)
    entries: dict[str, Callable[[Clock], None]] = {
        "ours": lambda clock: train_once(ours.trainer(), clock),
        "accelerate": lambda clock: bare_loop(ours.trainer(), bench.steps, loss, clock, bench.half),
    }
    figure = race(bench.options, bench.steps, entries, TARGETS)
    tokens, share = tokens_a_step(ours.trainer(), bench.steps)
    return {**figure, "tokens_per_second": round(tokens * figure["steps_per_second"]["ours"]), "padding": share}


def bench_trainer(bench: Bench) -> dict[str, Any]:
    """One objective."""
    return against_bare(bench, bench.run())


def bench_mixture(bench: Bench) -> dict[str, Any]:
    """Two objectives in one run."""
    return against_bare(bench, bench.run(objective=["mlm", "tlm"], parallel=[PAIR]))


def bench_packing(bench: Bench) -> dict[str, Any]:
    """Packed rows against a sentence in each."""
    ours = bench.run()
    full, _ = tokens_a_step(ours.trainer(), bench.steps)
    (sentences,) = ours.trainer(packing=False).texts
    rows = max(1, round(full * sentences.size / (sentences.notes["tokens"] + 2 * sentences.size)))  # and special ones
    makers: dict[str, Callable[[], Any]] = {
        "ours": ours.trainer,
        "padded": lambda: ours.trainer(rows, packing=False, length_window=0),
        "sorted": lambda: ours.trainer(rows, packing=False),
    }

    def entry(make: Callable[[], Any]) -> Callable[[Clock], None]:
        return lambda clock: train_once(make(), clock)

    figure = race(bench.options, bench.steps, {name: entry(make) for name, make in makers.items()}, TARGETS)
    counted = {name: tokens_a_step(make(), bench.steps) for name, make in makers.items()}
    speeds = {name: tokens * figure["steps_per_second"][name] for name, (tokens, _) in counted.items()}
    more = {name: counted["ours"][0] / tokens for name, (tokens, _) in counted.items()}
    return {
        **figure,
        "ratio_by_round": {
            name: [round(more[name] * ratio, 3) for ratio in ratios]
            for name, ratios in figure["ratio_by_round"].items()
        },
        "rows_a_step": {"ours": bench.batch, "others": rows},
        "tokens_per_second": {name: round(speed) for name, speed in speeds.items()},
        "padding": {name: share for name, (_, share) in counted.items()},
        "ratio_of_steps": figure["ratio"],
        "ratio": {name: round(speeds["ours"] / speed, 3) for name, speed in speeds.items() if name != "ours"},
    }


def tokens_a_step(trainer: Any, steps: int) -> tuple[float, float]:
    """Tokens of the timed steps that are no padding, a step, and the share of positions that are."""
    held = positions = 0
    for number, batch in enumerate(trainer.get_train_dataloader()):
        if SKIPPED <= number < steps:
            held += int(batch["attention_mask"].sum())
            positions += batch["attention_mask"].numel()
    return held / (steps - SKIPPED), round(1 - held / positions, 3)


# A race is a function of the bench that returns figures of `race`; `ours` comes first.
SECTIONS: Mapping[str, Callable[[Bench], dict[str, Any]]] = {
    "trainer": bench_trainer,
    "mixture": bench_mixture,
    "packing": bench_packing,
}


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="default: all")
    parser.add_argument("--model", choices=sorted(SIZES), default="small")
    parser.add_argument("--batch", type=int, help="packed rows a step")
    parser.add_argument("--steps", type=int, help=f"of a run, the first {SKIPPED} not timed")
    add_race_options(parser)
    parser.add_argument(
        "--out", type=Path, help="default: results/bench_pretraining[_cuda].json where all sections run"
    )
    return parser


def main() -> None:
    """Race; print the ratios, and write them where all sections ran or --out is given."""
    parser = make_parser()
    options = parser.parse_args()
    check_race_options(parser, options)
    no_data_bars()
    no_model_bars()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    workload = (__doc__ or "").split("\n\n", 1)[1].split("\n\nRun: ")[0]
    print(workload)
    record: dict[str, Any] = {"name": "bench_pretraining", "workload": workload, "options": dict(vars(options))}
    del record["options"]["out"]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        record["batch"] = bench.batch
        for section in options.only:
            record[section] = SECTIONS[section](bench)
            show(section, record[section], ("tokens_per_second", "padding"))
    record |= machine(options, ("torch", "transformers", "accelerate"))
    out = options.out
    if out is None and set(options.only) == set(SECTIONS):
        out = RESULTS / f"bench_pretraining{'_cuda' if bench.cuda else ''}.json"
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
