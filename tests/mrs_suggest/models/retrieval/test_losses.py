"""The three losses against the formula as it is printed, the library's own classes, and each other."""

import copy
import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from torch import Tensor

from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
from mrs_suggest.models.retrieval.losses import LOSSES, ReplyLoss, embed_by_length
from tests import warm_python

MESSAGES = ["how are you?", "a b c", "how", "thanks", "x y z d", "元気", "fine, thanks", "Как"]
REPLIES = ["fine", "thanks!", "b", "Thanks", "q", "はい", "no", "fine"]
SAME = torch.tensor([0, 1, 2, 1, 3, 4, 5, 0])


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> SentenceTransformer:
    return build_dual_encoder(str(checkpoint))


def vectors(seed: int, n: int = 7, dimension: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    pair = torch.randn(2, n, dimension, generator=generator, dtype=torch.float64)
    return pair[0].clone().requires_grad_(), pair[1].clone().requires_grad_()


def printed_formula(kind: str, messages: Tensor, replies: Tensor, labels: list[int] | None = None) -> Tensor:
    """Eq. 4 and the two losses of the official code, term by term; equal labels elsewhere are no negatives."""
    n = len(messages)
    total = torch.zeros((), dtype=messages.dtype)
    for i in range(n):
        others = [j for j in range(n) if j != i and not (labels and labels[j] == labels[i])]
        positive = torch.exp(messages[i] @ replies[i])
        row = positive + sum(torch.exp(messages[i] @ replies[j]) for j in others)
        column = positive + sum(torch.exp(messages[j] @ replies[i]) for j in others)
        below = {"sm": row, "symsm": row + column, "eq4": row + column - positive}[kind]
        total = total - torch.log(positive / below)
    return total / n


LETTERS = [" ".join("abcdefgh"[: 1 + place * 5 % 8]) for place in range(70)]  # one to eight pieces, in no order


def test_parts_of_similar_length_have_the_vectors_and_gradients_of_the_whole_batch(checkpoint: Path) -> None:
    found, computed = [], []
    for embed in (lambda model, feature: model(feature)["sentence_embedding"], embed_by_length):
        model, tokens = build_dual_encoder(str(checkpoint)).eval(), []
        model.register_forward_pre_hook(lambda _, given, tokens=tokens: tokens.append(given[0]["attention_mask"].shape))
        vectors = embed(model, model.preprocess(LETTERS, task="query"))
        (vectors * torch.arange(len(LETTERS))[:, None]).sum().backward()
        found.append((vectors.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
        computed.append(tokens)
    whole, parts = computed
    assert whole == [(70, 10)]  # with the two special pieces
    assert [rows for rows, _ in parts] == [35, 35]
    assert parts[0][1] < parts[1][1] == 10
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-5)
    assert found[1][1].keys() == found[0][1].keys() != set()
    for name, gradient in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], gradient, rtol=1e-3, atol=1e-3, msg=lambda m, n=name: n + m)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 6),
    size=st.sampled_from([1e-3, 1.0, 30.0, 1e3, 1e6]),
    kind=st.sampled_from(sorted(LOSSES)),
    labels=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    masked=st.booleans(),
)
def test_finite_whatever_the_scores(
    model: SentenceTransformer, seed: int, n: int, size: float, kind: str, labels: list[int], masked: bool
) -> None:
    messages, replies = ((v.detach().float() * size).requires_grad_() for v in vectors(seed, n))
    loss = ReplyLoss(model, kind, masked, mini_batch_size=2).calculate_loss(
        [[messages], [replies]], torch.tensor(labels[:n])
    )
    loss.backward()
    assert torch.isfinite(loss)
    assert loss >= -1e-4 * size**2
    assert torch.isfinite(messages.grad).all()
    assert torch.isfinite(replies.grad).all()


# Random batches, in float64, against the printed formula: first the vectors, then the weights behind them.


@st.composite
def batches(draw: st.DrawFn, least: int = 2) -> tuple[Tensor, Tensor, list[int]]:
    """Message and reply vectors (n, dimension) and the replies' ids, among which equal ones are frequent."""
    n, dimension = draw(st.integers(least, 9)), draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(0, n // 2), min_size=n, max_size=n))
    messages, replies = vectors(draw(st.integers(0, 2**31)), n, dimension)
    size = draw(st.sampled_from([0.1, 1.0, 2.5]))
    return (messages.detach() * size).requires_grad_(), (replies.detach() * size).requires_grad_(), labels


def chunks(vector: Tensor, size: int) -> list[Tensor]:
    """Mini-batches as GradCache holds them: leaves of their own."""
    return [part.clone().requires_grad_() for part in vector.detach().split(size)]


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("masked", [True, False], ids=["masked", "unmasked"])
@settings(max_examples=25)
@given(batch=batches(), mini_batch_size=st.integers(1, 10), temperature=st.sampled_from([1.0, 0.5, 2.0]))
def test_random_batches_have_loss_and_gradients_of_the_printed_formula(
    model: SentenceTransformer,
    kind: str,
    masked: bool,
    batch: tuple[Tensor, Tensor, list[int]],
    mini_batch_size: int,
    temperature: float,
) -> None:
    messages, replies, labels = batch
    expected = printed_formula(kind, messages / temperature, replies, labels if masked else None)
    expected.backward()
    loss = ReplyLoss(model, kind, masked, mini_batch_size, temperature=temperature)
    for with_backward in (False, True):  # as one graph, and chunk by chunk, as the cached path does it
        parts = [chunks(messages, mini_batch_size), chunks(replies, mini_batch_size)]
        got = loss.calculate_loss(parts, torch.tensor(labels), with_backward=with_backward)
        assert got.requires_grad != with_backward
        if not with_backward:
            got.backward()
        assert got.item() == pytest.approx(expected.item(), rel=1e-10, abs=1e-12)
        for mine, naive in zip(parts, (messages, replies), strict=True):
            gradient = torch.cat([part.grad for part in mine])
            torch.testing.assert_close(gradient, naive.grad, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def double_model(model: SentenceTransformer) -> SentenceTransformer:
    """The encoders in float64 and without dropout, so that two ways to one gradient agree to rounding."""
    return copy.deepcopy(model).double().eval()


def tokenized(model: SentenceTransformer, begin: int, end: int) -> list[dict[str, Tensor]]:
    return [model.preprocess(MESSAGES[begin:end], task="query"), model.preprocess(REPLIES[begin:end], task="document")]


def weight_gradients(model: SentenceTransformer, loss: Tensor) -> dict[str, Tensor]:
    """Back-propagate `loss`; the gradients that reach the weights, which are cleared."""
    loss.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad(set_to_none=True)
    return gradients


def naive_gradients(
    model: SentenceTransformer, kind: str, labels: list[int] | None, n: int
) -> tuple[float, dict[str, Tensor]]:
    """The reference: each text encoded on its own, then the printed formula."""
    columns = [tokenized(model, row, row + 1) for row in range(n)]
    messages, replies = (torch.cat([model(pair[side])["sentence_embedding"] for pair in columns]) for side in (0, 1))
    loss = printed_formula(kind, messages, replies, labels)
    return loss.item(), weight_gradients(model, loss)


def assert_same_gradients(mine: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert mine.keys() == expected.keys()
    assert {name.split(".")[2] for name in expected} == {"query", "document"}, "both encoders learn"
    for name, gradient in expected.items():
        torch.testing.assert_close(mine[name], gradient, rtol=1e-7, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kind", sorted(LOSSES))
@settings(max_examples=4)
@given(data=st.data())
def test_cached_weights_get_the_gradients_of_the_printed_formula(
    double_model: SentenceTransformer, kind: str, data: st.DataObject
) -> None:
    n = data.draw(st.integers(2, len(MESSAGES)), "pairs")
    labels = data.draw(st.lists(st.integers(0, n // 2), min_size=n, max_size=n), "labels")
    masked = data.draw(st.booleans(), "masked")
    mini_batch_size = data.draw(st.integers(1, n), "mini-batch")  # n: without a cache
    expected, gradients = naive_gradients(double_model, kind, labels if masked else None, n)
    loss = ReplyLoss(double_model, kind, masked, mini_batch_size)
    got = loss(tokenized(double_model, 0, n), torch.tensor(labels))
    assert got.item() == pytest.approx(expected, rel=1e-10)
    assert_same_gradients(weight_gradients(double_model, got), gradients)


RANKS = 2
FORKS = """
import os, sys
from tests.mrs_suggest.models.retrieval.test_losses import RANKS, one_rank
ranks = []
for rank in range(RANKS):
    ranks.append(os.fork())
    if not ranks[-1]:
        one_rank(rank, *sys.argv[1:])
        os._exit(0)
assert [os.waitpid(process, 0)[1] for process in ranks] == [0] * RANKS
"""
GATHERED = [(kind, masked, size) for kind in sorted(LOSSES) for masked in (True, False) for size in (3,)]


def one_rank(rank: int, checkpoint: str, folder: str) -> None:
    """What a rank computes over its half of the pairs: of vectors alone, and through the encoders."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS, timeout=timedelta(seconds=60)
    )
    model = build_dual_encoder(checkpoint).double().eval()
    half = len(MESSAGES) // RANKS
    begin, end = rank * half, (rank + 1) * half
    results = []
    for kind, masked, size in GATHERED:
        loss = ReplyLoss(model, kind, masked, size, gather_across_devices=True)
        parts = [chunks(whole[begin:end], size) for whole in vectors(3, len(MESSAGES))]
        of_vectors = loss.calculate_loss(parts, SAME[begin:end])
        of_vectors.backward()
        of_texts = loss(tokenized(model, begin, end), SAME[begin:end])
        results.append(
            {
                "of_vectors": of_vectors.item(),
                "of_texts": of_texts.item(),
                "vectors": [torch.cat([part.grad for part in side]) for side in parts],
                "weights": weight_gradients(model, of_texts),
            }
        )
    torch.save(results, f"{folder}/rank{rank}.pt")
    dist.destroy_process_group()


def test_two_ranks_that_gather_have_loss_and_gradients_of_the_whole_batch(
    checkpoint: Path, double_model: SentenceTransformer, repository: Path, tmp_path: Path
) -> None:
    """The mean of the ranks' losses and gradients, which is what data-parallel training uses, is the whole batch's.

    `SAME` has equal replies within a rank and across the two.
    """
    command = [sys.executable, "-c", FORKS, checkpoint, tmp_path]
    done = warm_python.run(command, cwd=repository, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})
    assert done.returncode == 0, done.stderr
    ranks = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(RANKS)]
    for number, (kind, masked, _) in enumerate(GATHERED):
        results = [rank[number] for rank in ranks]
        labels = SAME.tolist() if masked else None
        whole = vectors(3, len(MESSAGES))
        loss = printed_formula(kind, *whole, labels)
        loss.backward()
        assert sum(result["of_vectors"] for result in results) / RANKS == pytest.approx(loss.item(), rel=1e-10)
        for side in (0, 1):
            gathered = torch.cat([result["vectors"][side] for result in results]) / RANKS
            torch.testing.assert_close(gathered, whole[side].grad, rtol=1e-9, atol=1e-12)
        expected, gradients = naive_gradients(double_model, kind, labels, len(MESSAGES))
        assert sum(result["of_texts"] for result in results) / RANKS == pytest.approx(expected, rel=1e-10)
        assert max(gradient.abs().max().item() for gradient in gradients.values()) > 0.01, "there is much to compare"
        weights = {name: sum(result["weights"][name] for result in results) / RANKS for name in results[0]["weights"]}
        assert_same_gradients(weights, gradients)
