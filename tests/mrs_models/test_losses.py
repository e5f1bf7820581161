"""The three losses against the formula as it is printed, the library's own classes, and each other."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import dot_score
from torch import Tensor

from mrs_core.errors import InputError
from mrs_models.dual_encoder import build_dual_encoder
from mrs_models.losses import LOSSES, ReplyLoss

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


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("labels", [None, [0, 1, 0, 2, 3, 1, 0]], ids=["unmasked", "masked"])
@pytest.mark.parametrize("mini_batch_size", [2, 7, 64])
def test_loss_and_gradients_are_those_of_the_printed_formula(
    model: SentenceTransformer, kind: str, labels: list[int] | None, mini_batch_size: int
) -> None:
    mine, naive = vectors(1), vectors(1)
    loss = ReplyLoss(model, kind, mask_duplicates=labels is not None, mini_batch_size=mini_batch_size)
    got = loss.calculate_loss([[mine[0]], [mine[1]]], torch.tensor(labels) if labels else None)
    expected = printed_formula(kind, *naive, labels)
    got.backward()
    expected.backward()
    assert got.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b in zip(mine, naive, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-12)


def test_masking_changes_the_loss(model: SentenceTransformer) -> None:
    labels = [0, 1, 0, 2, 3, 1, 0]
    assert printed_formula("eq4", *vectors(1), labels) < printed_formula("eq4", *vectors(1)) - 0.01


@pytest.mark.parametrize(
    ("kind", "directions"), [("sm", ["query_to_doc"]), ("symsm", ["query_to_doc", "doc_to_query"])]
)
def test_the_official_two_are_the_librarys(model: SentenceTransformer, kind: str, directions: list[str]) -> None:
    library = MultipleNegativesRankingLoss(
        model, scale=1.0, similarity_fct=dot_score, directions=tuple(directions), partition_mode="joint"
    )
    mine, theirs = vectors(2), vectors(2)
    got = ReplyLoss(model, kind, mask_duplicates=False).calculate_loss([[mine[0]], [mine[1]]])
    expected = library.compute_loss_from_embeddings(list(theirs), None)
    got.backward()
    expected.backward()
    assert got.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_symsm_has_the_positive_twice(model: SentenceTransformer) -> None:
    """With a circulant score matrix all rows have one loss, so that exp(loss) is the ratio of denominator and positive;
    the two ratios differ by exactly one positive."""
    first = torch.tensor([0.3, -1.0, 0.8, 0.1], dtype=torch.float64)
    scores = torch.stack([first.roll(i) for i in range(4)])
    reps = [[torch.eye(4, dtype=torch.float64)], [scores.T.contiguous()]]
    symsm, eq4 = (ReplyLoss(model, kind, False).calculate_loss(reps).item() for kind in ("symsm", "eq4"))
    assert math.exp(symsm) == pytest.approx(math.exp(eq4) + 1, rel=1e-12)


@pytest.mark.parametrize(("kind", "masked"), [("eq4", True), ("eq4", False), ("symsm", True), ("sm", False)])
def test_grad_cache_equals_the_direct_path(checkpoint: Path, kind: str, masked: bool) -> None:
    results = []
    for mini_batch_size in (3, 8, 100):
        model = build_dual_encoder(str(checkpoint)).eval()  # eval: no dropout; gradients still flow
        features = [
            model.preprocess(MESSAGES, task="query"),
            model.preprocess(REPLIES, task="document"),
        ]
        loss = ReplyLoss(model, kind, masked, mini_batch_size)(features, SAME)
        loss.backward()
        gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        results.append((loss.item(), gradients))
    (cached, cached_gradients), (direct, direct_gradients), (roomy, _) = results
    assert cached == pytest.approx(direct, rel=1e-5)
    assert direct == roomy
    assert cached_gradients.keys() == direct_gradients.keys()
    assert {name.split(".")[2] for name in direct_gradients} == {"query", "document"}
    for name, gradient in direct_gradients.items():
        torch.testing.assert_close(cached_gradients[name], gradient, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: n + m)


def test_unknown_loss_is_refused(model: SentenceTransformer) -> None:
    with pytest.raises(InputError, match=r"--loss: expected one of eq4, symsm, sm, found 'cosine'\."):
        ReplyLoss(model, "cosine")


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_masking_without_reply_ids_is_refused(model: SentenceTransformer, kind: str) -> None:
    with pytest.raises(InputError, match="`label` column"):
        ReplyLoss(model, kind, mask_duplicates=True).calculate_loss([[torch.eye(3)], [torch.eye(3)]])


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


def test_the_loss_pushes_the_own_reply_up(model: SentenceTransformer) -> None:
    messages, replies = vectors(5)
    loss = ReplyLoss(model, "eq4", False).calculate_loss([[messages], [replies]])
    loss.backward()
    before = torch.softmax(messages @ replies.T, 1).diagonal().mean()
    moved = (messages - 0.2 * messages.grad) @ (replies - 0.2 * replies.grad).T
    assert torch.softmax(moved, 1).diagonal().mean() > before


def test_one_pair_alone_has_nothing_to_learn(model: SentenceTransformer) -> None:
    loss = ReplyLoss(model, "eq4", False).calculate_loss([[torch.ones(1, 3)], [torch.ones(1, 3)]])
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
