"""The smoothed loss, the encoded pairs, and the evaluation of a generator while it trains."""

import math
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mrs_datasets.prepared.prepared import PreparedData
from mrs_metrics.perplexity import aggregate, score_losses
from mrs_suggest.evaluation.comparison import ValidationLog
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.generation.training import (
    METRICS,
    GenerationTrainer,
    encode_sources,
    perplexities,
    smoothed_loss,
)
from mrs_suggest.training.reply.data import RunData, load_run_data
from mrs_suggest.training.reply.options import ReplyArguments

# --- the loss


def fairseq(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[float, int]:
    """`label_smoothed_nll_loss` and the number of tokens, one token after the other (fairseq 0.9, as of the script).

    (1 - e) * nll + e / V * sum over the vocabulary of -log p
    """
    total, count = 0.0, 0
    for row, targets in zip(logits.double(), labels, strict=True):
        for values, target in zip(row, targets.tolist(), strict=True):
            if target == IGNORED:
                continue
            logs = (values - values.exp().sum().log()).tolist()
            total += (1 - smoothing) * -logs[target] + smoothing / len(logs) * -sum(logs)
            count += 1
    return total, count


def batch(seed: int, rows: int = 6, length: int = 5, vocabulary: int = 11) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, length, vocabulary, generator=generator)
    labels = torch.randint(0, vocabulary, (rows, length), generator=generator)
    for row, end in enumerate(torch.randint(1, length + 1, (rows,), generator=generator)):
        labels[row, end:] = IGNORED
    return logits, labels


@given(seed=st.integers(0, 1000), smoothing=st.sampled_from([0.0, 0.1, 0.2, 0.9]))
def test_the_loss_is_fairseqs_and_the_librarys(seed: int, smoothing: float) -> None:
    from transformers.trainer_pt_utils import LabelSmoother

    logits, labels = batch(seed)
    total, count = fairseq(logits, labels, smoothing)
    loss = float(smoothed_loss({"logits": logits}, labels, smoothing=smoothing))
    assert loss == pytest.approx(total / count, rel=1e-5)
    library = LabelSmoother(epsilon=smoothing)({"logits": logits}, labels.clone())
    assert loss == pytest.approx(float(library), rel=1e-5)


@given(seed=st.integers(0, 1000), cuts=st.sets(st.integers(1, 5)))
def test_a_step_cut_into_batches_has_the_same_loss_and_gradient(seed: int, cuts: set[int]) -> None:
    """Batches with few tokens must not count as much as those with many."""
    logits, labels = batch(seed)
    whole = logits.clone().requires_grad_()
    loss = smoothed_loss({"logits": whole}, labels, smoothing=0.2)
    loss.backward()
    tokens = (labels != IGNORED).sum()
    parts = logits.clone().requires_grad_()
    ends = [0, *sorted(cuts), len(labels)]
    losses = [
        smoothed_loss({"logits": parts[begin:end]}, labels[begin:end], tokens, smoothing=0.2)
        for begin, end in pairwise(ends)
    ]
    torch.stack(losses).sum().backward()
    torch.testing.assert_close(torch.stack(losses).sum(), loss)
    torch.testing.assert_close(parts.grad, whole.grad)


# --- a run's data and model


def run_data(source: PreparedData, **options: Any) -> RunData:
    return load_run_data(source, ReplyArguments(**options), 1, need_responses=False)


@pytest.fixture(scope="module")
def data(prepared: PreparedData) -> RunData:
    return run_data(prepared, train=["en", "mt-ja"], max_test_examples=6)


@pytest.fixture(scope="module")
def generator(data: RunData, tmp_path_factory: pytest.TempPathFactory) -> Generator:
    torch.set_num_threads(1)
    folder = build_tiny_generator(data.texts(), ["en", "ja"], tmp_path_factory.mktemp("tiny"), 1, 150)
    built = Generator.build(str(folder), ["en", "ja"], 12, 9, Decoding(max_tokens=6))
    rows, _ = encode_sources(data, built.coder)
    collate, optimizer = PairCollator(built.pad), torch.optim.Adam(built.model.parameters(), lr=3e-3)
    for begin in range(0, len(rows), 4):  # enough to write something that a reference has, too
        built.model(**collate(rows.select(range(begin, min(begin + 4, len(rows)))).to_list())).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    built.model.eval()
    return built


def test_pairs_are_encoded_in_the_order_of_the_sources_in_the_language_they_train(
    data: RunData, generator: Generator
) -> None:
    rows, lengths = encode_sources(data, generator.coder)
    assert rows.column_names == ["input_ids", "labels", "prompt"]
    assert len(rows) == len(lengths) == sum(len(pairs) for pairs in data.sources.values())
    expected = []
    for config, pairs in data.sources.items():
        language = config.removeprefix("mt-")
        for message, reply in zip(pairs["message"][:], pairs["reply"][:], strict=True):
            (source,), (target,) = generator.coder.messages([message], language), generator.coder.replies([reply])
            expected.append((source, target, generator.coder.prompt(language)))
    assert list(zip(rows["input_ids"], rows["labels"], rows["prompt"], strict=True)) == expected
    assert lengths.tolist() == [[len(source), len(target)] for source, target, _ in expected]
    assert max(len(source) for source, _, _ in expected) <= 12
    assert max(len(target) for _, target, _ in expected) <= 9


def make_trainer(data: RunData, generator: Generator, folder: Path) -> GenerationTrainer:
    from transformers import Seq2SeqTrainingArguments

    arguments = Seq2SeqTrainingArguments(output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True)
    rows, _ = encode_sources(data, generator.coder)
    trainer = GenerationTrainer(
        model=generator.model, args=arguments, train_dataset=rows, data_collator=PairCollator(generator.pad),
        compute_loss_func=partial(smoothed_loss, smoothing=0.1),
    )  # fmt: skip
    trainer.generator, trainer.validation = generator, data.validation
    return trainer


def test_the_evaluation_has_the_figures_of_the_whole_validation_split(
    data: RunData, generator: Generator, tmp_path: Path
) -> None:
    trainer = make_trainer(data, generator, tmp_path)
    found = trainer.evaluate()
    languages = [part.language for part in data.validation]
    own = {f"{name}_{code}" for name in ("weighted_rouge", "perplexity") for code in languages}
    assert set(found) - {"epoch"} == {f"eval_{name}" for name in own | set(METRICS)}
    alone = aggregate(score_losses(*generator.losses(*data.validation[0].validation[:].values(), languages[0])))
    assert found[f"eval_perplexity_{languages[0]}"] == pytest.approx(alone["perplexity"])
    sums, counts = [], []
    for part in data.validation:
        losses, tokens = generator.losses(part.validation["message"][:], part.validation["reply"][:], part.language)
        sums.append(losses)
        counts.append(tokens)
    assert [len(losses) for losses in sums] == [len(part.validation) for part in data.validation]
    fit = aggregate(score_losses(np.concatenate(sums), np.concatenate(counts)))
    assert found["eval_loss"] == pytest.approx(fit["loss"])
    assert found["eval_perplexity"] == pytest.approx(math.exp(found["eval_loss"]))
    log = ValidationLog(data.validation, trainer.args.seed, ranking=False)
    figures, _ = log.evaluate(lambda part: Writer(generator))
    assert found["eval_weighted_rouge"] == figures["weighted"] > 0
    assert (found["eval_dist1"], found["eval_dist2"]) == (figures["dist1"], figures["dist2"])
    assert trainer.state.log_history[-1].items() >= found.items()


def test_perplexities_by_language_and_pooled_over_tokens(data: RunData, generator: Generator) -> None:
    found = perplexities(generator, data.test)
    assert list(found) == ["en", "ja", "pooled"]
    losses = {
        part.language: generator.losses(part.test["message"][:], part.test["reply"][:], part.language)
        for part in data.test
    }
    for code, (sums, tokens) in losses.items():
        assert len(sums) == 6
        assert found[code] == pytest.approx(math.exp(sums.sum() / tokens.sum()))
    total = sum(sums.sum() for sums, _ in losses.values()) / sum(tokens.sum() for _, tokens in losses.values())
    assert found["pooled"] == pytest.approx(math.exp(total))
    assert min(found.values()) <= found["pooled"] <= max(found.values())
