"""Training: the trainers of both families against the libraries' own and against bare loops.

Workload: English texts of the embedded sample, joined and cut so that their tokens are log-normal (sigma .8, mean 20),
at most 70 a message and 30 a reply (`mbert`: all as long as that, but for sorting). Seeded; weights are random. All of
a race train one model on the same batches with the same optimizer, in turns (ABAB): steps a second from the end of the
second step to the end of the last, the best round of each; the spread is how far the slowest lies below it.

retrieval   two encoders, eq. 4, batches in the trainer's default order. RetrievalTrainer with ReplyLoss against
            SentenceTransformerTrainer with its nearest loss (both directions, joint, scale 1, dot product): where one
            mini-batch holds the batch (uncached) MultipleNegativesRankingLoss, with four of them (cached)
            CachedMultipleNegativesRankingLoss. Bare: forward, backward and optimizer on batches tokenized before.
generation  GenerationTrainer against a bare Accelerate loop that clips and schedules, too, with torch's smoothed
            cross-entropy. Also messages answered a second by beam search: untrained weights hardly ever end a reply,
            so that each has the most tokens allowed.
sorting     both trainers with --length_window 50 against 0 on varied lengths, one window long.

Utilisation (on a GPU) is 6 x parameters of the matrix products x tokens without padding / (seconds x peak): linear
layers with the tokens that each reads; attention scores, embeddings and poolers are not counted.

Run: python benchmarks/bench_training.py [--only retrieval generation sorting]
     python benchmarks/bench_training.py --device cuda --model mbert [--workers 4] [--peak_tflops 989]
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from datasets.utils.logging import disable_progress_bar as no_data_bars
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import dot_score
from torch import nn
from torch.nn import functional
from training_race import (
    SKIPPED,
    TIMERS,
    Clock,
    add_race_options,
    bare_loop,
    check_race_options,
    machine,
    race,
    show,
    train_once,
)
from transformers import BartForConditionalGeneration, BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar as no_model_bars

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.models.generation.architectures.unicoder import unicoder_config
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.retrieval.routes import encoders
from mrs_suggest.models.retrieval.tiny import VOCABULARY, train_tokenizer
from mrs_suggest.training.generation.model import build_generator
from mrs_suggest.training.generation.options import GenerationArguments, GenerationTrainingArguments
from mrs_suggest.training.generation.run import make_trainer as make_generation_trainer
from mrs_suggest.training.reply.data import RunData
from mrs_suggest.training.reply.options import make_plan
from mrs_suggest.training.retrieval.model import build
from mrs_suggest.training.retrieval.model import make_trainer as make_retrieval_trainer
from mrs_suggest.training.retrieval.options import RetrievalArguments, RetrievalTrainingArguments, resolved
from mrs_suggest.training.sampling import WINDOW

RESULTS = Path(__file__).parent / "results"
SECTIONS = ("retrieval", "generation", "sorting")
TARGETS = {"library": 0.98, "bare": 0.85, "accelerate": 0.95, "unsorted": 1.4}
SHOWN = ("pairs_per_second", "tokens_per_second", "utilisation", "messages_answered_per_second", "padding")
SEED = 20210605
MOST = {"message": 70, "reply": 30}  # tokens of a text, those around it included
MEAN, SIGMA = 20.0, 0.8  # of the tokens before they are cut
SMOOTHING = 0.2
DIRECTIONS = ("query_to_doc", "doc_to_query")


@dataclass(frozen=True)
class Size:
    """A workload: encoders, pairs a step, steps of a run, and messages that beam search answers in one batch.

    The generator is the small twin, or has Unicoder's shape where `large`; the texts are as long as allowed then.
    """

    hidden: int
    layers: int
    heads: int
    batch: int
    steps: int
    answers: int
    vocabulary: int | None = None  # of the encoders; default: that of the tokenizer
    large: bool = False


SIZES = {
    "tiny": Size(hidden=128, layers=1, heads=2, batch=64, steps=50, answers=32),
    "small": Size(hidden=128, layers=4, heads=2, batch=64, steps=20, answers=32),
    "mbert": Size(768, layers=12, heads=12, batch=256, steps=30, answers=128, vocabulary=119_547, large=True),
}


@dataclass(frozen=True)
class Run:
    """What a trainer of ours is made of."""

    make_trainer: Callable[..., Any]
    parts: Any
    training: Any
    options: Any
    data: RunData

    @property
    def model(self) -> Any:
        return self.parts.model

    def trainer(self, **changes: Any) -> Any:
        """A new trainer of the same model; `changes` are options."""
        return self.make_trainer(self.parts, replace(self.options, **changes), self.training, self.data)


class Bench:
    """Pairs, models and trainers' arguments on a device."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.size, self.folder = options, SIZES[options.model], folder
        self.batch, self.steps = options.batch or self.size.batch, options.steps or self.size.steps
        self.cuda = options.device == "cuda"
        self.half = self.cuda  # bfloat16, as a GPU is trained with
        pairs = open_prepared("sample").load("en", "train")
        self.texts = [text for column in MOST for text in pairs[column][:]]

    def data(self, steps: int, full: bool) -> RunData:
        """Pairs for so many steps, of log-normal lengths, or all as long as allowed where `full`."""
        draw = np.random.default_rng(SEED)
        words = [word for text in self.texts for word in text.split()]
        last = len(words) - MOST["message"]  # so that no text runs into the end
        ids = train_tokenizer(self.texts, VOCABULARY)(words, add_special_tokens=False)["input_ids"]
        tokens = dict(zip(words, map(len, ids), strict=True))
        begins = itertools.cycle(draw.permutation(last).tolist())

        def text(most: int) -> str:
            wanted = most if full else draw.lognormal(math.log(MEAN) - SIGMA**2 / 2, SIGMA) - 2  # two stand around it
            begin = end = next(begins)
            count = 0
            while end == begin or count < min(wanted, most):
                count += tokens[words[end]]
                end += 1
            return " ".join(words[begin:end])

        rows = {column: [text(most) for _ in range(steps * self.batch)] for column, most in MOST.items()}
        return RunData(make_plan(["en"]), {"en": Dataset.from_dict(rows)}, [], [])

    def training(self, kind: type, **more: Any) -> Any:
        """A trainer's arguments: one pass over the pairs, no evaluation, no checkpoints, no logs."""
        return kind(
            output_dir=str(self.folder / "run"), per_device_train_batch_size=self.batch, num_train_epochs=1.0,
            learning_rate=1e-5, eval_strategy="no", save_strategy="no", logging_strategy="no",
            load_best_model_at_end=False, disable_tqdm=True, use_cpu=not self.cuda, bf16=self.half,
            dataloader_num_workers=self.options.workers, dataloader_pin_memory=self.cuda, **more,
        )  # fmt: skip

    def retriever(self, data: RunData) -> Run:
        """Two encoders of random weights; one mini-batch holds the batch."""
        path, size = self.folder / "encoder", self.size
        if not path.exists():
            tokenizer = train_tokenizer(self.texts, VOCABULARY)
            config = BertConfig(
                vocab_size=size.vocabulary or len(tokenizer), hidden_size=size.hidden, num_hidden_layers=size.layers,
                num_attention_heads=size.heads, intermediate_size=4 * size.hidden, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
            BertModel(config).save_pretrained(path)
            tokenizer.save_pretrained(path)
        training = self.training(RetrievalTrainingArguments)
        options = resolved(RetrievalArguments(model_name_or_path=str(path), mini_batch_size=self.batch))
        parts = build(options, training, data)
        parts.model.to(training.device)
        return Run(make_retrieval_trainer, parts, training, options, data)

    def generator(self, data: RunData) -> Run:
        """A generator of random weights."""
        path = self.folder / "generator"
        if not path.exists():
            build_tiny_generator(self.texts, ["en"], path, SEED)
            if self.size.large:
                tokenizer, config = PreTrainedTokenizerFast.from_pretrained(path), unicoder_config()
                config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
                config.bos_token_id = config.forced_eos_token_id = None
                BartForConditionalGeneration(config).save_pretrained(path)
        training = self.training(GenerationTrainingArguments, label_smoothing_factor=SMOOTHING)
        options = GenerationArguments(model_name_or_path=str(path), decoding_batch_size=self.size.answers)
        parts = build_generator(options, training, data.texts(), data.languages())
        parts.model.to(training.device)
        return Run(make_generation_trainer, parts, training, options, data)


def bench_retrieval(bench: Bench) -> dict[str, Any]:
    """RetrievalTrainer against the library's trainer and a bare loop, without and with GradCache."""
    ours = bench.retriever(bench.data(bench.steps, bench.size.large))
    model, cut = ours.model, max(1, bench.batch // 4)
    nearest: dict[str, Any] = {"scale": 1.0, "similarity_fct": dot_score, "directions": DIRECTIONS}

    def library(loss: nn.Module) -> Any:
        arguments = bench.training(RetrievalTrainingArguments, router_mapping=ours.training.router_mapping)
        arguments.batch_sampler = lambda dataset, **settings: ours.trainer().sampler
        rows = ours.data.sources["en"]
        return SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)

    first = ours.trainer()
    batches = [first.collect_features(first._prepare_inputs(batch))[0] for batch in first.get_train_dataloader()]

    def bare(clock: Clock) -> None:
        model.train()
        optimizer = ours.trainer().create_optimizer()
        for features in batches:
            with torch.autocast(model.device.type, torch.bfloat16, enabled=bench.half):
                messages, replies = (model(dict(side))["sentence_embedding"] for side in features)
                scores = messages @ replies.T
                own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
                both = torch.cat([scores, scores.T.masked_fill(own, -torch.inf)], 1)
                loss = (torch.logsumexp(both, 1) - scores.diagonal()).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            clock.step()

    cached = CachedMultipleNegativesRankingLoss(model, mini_batch_size=cut, **nearest)
    figures = {
        "uncached": race(bench.options, bench.steps, {
            "ours": lambda clock: train_once(ours.trainer(), clock),
            "library": lambda clock: train_once(library(MultipleNegativesRankingLoss(model, **nearest)), clock),
            "bare": bare,
        }, TARGETS),
        "cached": race(bench.options, bench.steps, {
            "ours": lambda clock: train_once(ours.trainer(mini_batch_size=cut), clock),
            "library": lambda clock: train_once(library(cached), clock),
        }, TARGETS),
    }  # fmt: skip
    messages, replies, _ = tokens_a_step(first)
    query, document = (linear_parameters(encoder.encoder) for encoder in encoders(model))
    for figure in figures.values():
        add_speed(bench, figure, query * messages + document * replies, messages + replies)
    return {"mini_batch_size": {"uncached": bench.batch, "cached": cut}, **figures}


def bench_generation(bench: Bench) -> dict[str, Any]:
    """GenerationTrainer against a bare Accelerate loop; and beam search."""
    ours = bench.generator(bench.data(bench.steps, bench.size.large))
    model = ours.model

    def loss(model: Any, batch: Any) -> torch.Tensor:
        labels = batch.pop("labels").flatten()
        logits = model(**batch).logits.float().flatten(0, 1)
        return functional.cross_entropy(logits, labels, ignore_index=IGNORED, label_smoothing=SMOOTHING)

    def bare(clock: Clock) -> None:
        bare_loop(ours.trainer(), bench.steps, loss, clock, bench.half)

    figure = race(
        bench.options,
        bench.steps,
        {"ours": lambda clock: train_once(ours.trainer(), clock), "accelerate": bare},
        TARGETS,
    )
    read, written, _ = tokens_a_step(ours.trainer())
    encoder, decoder = linear_parameters(model.model.encoder), linear_parameters(model.model.decoder)
    crossing = [layer.encoder_attn for layer in model.model.decoder.layers]  # its keys and values are of the message
    across = sum(linear_parameters(layer.k_proj) + linear_parameters(layer.v_proj) for layer in crossing)
    products = (encoder + across) * read + (decoder - across + linear_parameters(model.lm_head)) * written
    add_speed(bench, figure, products, read + written)
    figure["messages_answered_per_second"] = round(answers_per_second(bench, ours), 2)
    return figure


def answers_per_second(bench: Bench, ours: Run) -> float:
    """Messages a second through the generator's own search, as training validates: without autocast."""
    ours.model.eval()
    messages = ours.data.sources["en"]["message"][: bench.size.answers]
    speeds = []
    for _ in range(bench.options.rounds):
        start = TIMERS[bench.options.timer]()
        ours.parts.suggest(messages, "en", 3)
        speeds.append(len(messages) / (TIMERS[bench.options.timer]() - start))
    return max(speeds)


def bench_sorting(bench: Bench) -> dict[str, Any]:
    """Both trainers with and without sorting by length, over one window."""
    steps = bench.options.steps or WINDOW
    data = bench.data(steps, full=False)

    def sorting(ours: Run) -> dict[str, Any]:
        windows = {"ours": WINDOW, "unsorted": 0}

        def entry(window: int) -> Callable[[Clock], None]:
            return lambda clock: train_once(ours.trainer(length_window=window), clock)

        figure = race(bench.options, steps, {name: entry(window) for name, window in windows.items()}, TARGETS)
        shares = {name: tokens_a_step(ours.trainer(length_window=window))[2] for name, window in windows.items()}
        return {**figure, "padding": {name: round(share, 3) for name, share in shares.items()}}

    return {"retrieval": sorting(bench.retriever(data)), "generation": sorting(bench.generator(data))}


def tokens_a_step(trainer: Any) -> tuple[float, float, float]:
    """Tokens of messages and of replies in a step, and the share of its positions that hold none."""
    held, positions, steps = [0, 0], 0, 0
    for batch in trainer.get_train_dataloader():
        if "labels" in batch:
            marks = batch["attention_mask"], batch["labels"] != IGNORED
        else:
            marks = batch["message_attention_mask"], batch["reply_attention_mask"]
        held = [count + int(values.sum()) for count, values in zip(held, marks, strict=True)]
        positions += sum(values.numel() for values in marks)
        steps += 1
    return held[0] / steps, held[1] / steps, 1 - sum(held) / positions


def linear_parameters(module: Any) -> int:
    """Parameters of the linear layers' matrices."""
    return sum(part.weight.numel() for part in module.modules() if isinstance(part, nn.Linear))


def add_speed(bench: Bench, figure: dict[str, Any], products: float, tokens: float) -> None:
    """Add pairs and tokens a second and, on a GPU, utilisation; `products` are parameters x tokens of a step."""
    speeds = figure["steps_per_second"]
    figure["pairs_per_second"] = round(bench.batch * speeds["ours"], 1)
    figure["tokens_per_second"] = round(tokens * speeds["ours"])
    if bench.cuda:
        peak = bench.options.peak_tflops * 1e12
        figure["utilisation"] = {name: round(6 * products * speed / peak, 3) for name, speed in speeds.items()}


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="default: all")
    parser.add_argument("--model", choices=sorted(SIZES), default="small")
    parser.add_argument("--batch", type=int, help="pairs a step (default 64; mbert 256)")
    parser.add_argument("--steps", type=int, help=f"of a run, the first {SKIPPED} not timed (sorting: one window)")
    add_race_options(parser)
    parser.add_argument("--peak_tflops", type=float, default=989.0, help="of the GPU (default: H200, bf16, dense)")
    parser.add_argument("--out", type=Path, help="default: results/bench_training[_cuda].json where all sections run")
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
    record: dict[str, Any] = {"name": "bench_training", "workload": workload, "options": dict(vars(options))}
    del record["options"]["out"]
    functions = {"retrieval": bench_retrieval, "generation": bench_generation, "sorting": bench_sorting}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        record["batch"] = bench.batch
        for section in options.only:
            record[section] = functions[section](bench)
            show(section, record[section], SHOWN)
    record |= machine(options, ("torch", "transformers", "sentence-transformers", "accelerate"))
    out = options.out
    if out is None and set(options.only) == set(SECTIONS):
        out = RESULTS / f"bench_training{'_cuda' if bench.cuda else ''}.json"
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
