"""Distillation: the formula, its gradients in mini-batches, the teacher's vectors."""

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.distillation import DistilledReplyLoss, TeacherVectors, VectorLoss, load_teacher
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages
from mrs_suggest.models.retrieval.losses import ReplyLoss
from mrs_suggest.models.retrieval.routes import prompts_of

MESSAGES = ["how are you?", "a b c", "how", "thanks", "x y z d", "元気", "a b c", "Как"]
REPLIES = ["fine", "thanks!", "b", "Thanks", "q", "はい", "no", "fine"]
IDS = torch.tensor([0, 1, 2, 1, 3, 4, 5, 0])


def teacher_of(pairs: int, dimension: int = 5, temperature: float = 0.7) -> TeacherVectors:
    generator = torch.Generator().manual_seed(9)
    messages, replies = torch.randn(2, pairs, dimension, generator=generator, dtype=torch.float64)
    return TeacherVectors(messages, replies, torch.arange(pairs), torch.arange(pairs), temperature)


def student_of(pairs: int, dimension: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    both = torch.randn(2, pairs, dimension, generator=generator, dtype=torch.float64)
    return both[0].clone().requires_grad_(), both[1].clone().requires_grad_()


def printed_formula(
    messages: Tensor, replies: Tensor, temperature: float, theirs: TeacherVectors, rows: list[int]
) -> Tensor:
    """The docstring's formula, term by term."""
    total, pairs = torch.zeros((), dtype=torch.float64), range(len(messages))
    for i in pairs:
        for others, mine, own in (
            (list(pairs), replies, theirs.replies),
            ([j for j in pairs if j != i], messages, theirs.messages),
        ):
            q = torch.softmax(torch.stack([messages[i] @ mine[j] for j in others]) / temperature, 0)
            scores = torch.stack([theirs.messages[rows[i]] @ own[rows[j]] for j in others])
            p = torch.softmax(scores / theirs.temperature, 0)
            total = total + (p * (p.log() - q.log())).sum() / 2
    return total / len(messages)


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> SentenceTransformer:
    return build_dual_encoder(str(checkpoint), "mean")


@pytest.mark.parametrize("mini_batch_size", [1, 3, 64])
def test_loss_and_gradients_are_those_of_the_printed_formula(model: SentenceTransformer, mini_batch_size: int) -> None:
    """Float32 inside, since the library may compute in 16 bits."""
    theirs, rows = teacher_of(9), [4, 0, 8, 2, 7, 1]
    mine, naive = student_of(6), student_of(6)
    labels = torch.stack([IDS[:6], torch.tensor(rows)], dim=1)
    loss = DistilledReplyLoss(model, "eq4", True, mini_batch_size, 0.5, teacher=theirs, weight=3.0)
    got = loss.calculate_loss([[mine[0]], [mine[1]]], labels)
    reply_loss = ReplyLoss(model, "eq4", True, mini_batch_size, temperature=0.5)
    expected = reply_loss.calculate_loss([[naive[0]], [naive[1]]], IDS[:6])
    distilled = printed_formula(*naive, 0.5, theirs, rows)
    assert distilled > 0.1
    (expected + 3.0 * distilled).backward()
    got.backward()
    assert got.item() == pytest.approx((expected + 3.0 * distilled).item(), rel=1e-5)
    for a, b in zip(mine, naive, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["two", "static"])
def test_grad_cache_equals_the_direct_path(checkpoint: Path, kind: str) -> None:
    labels = torch.stack([IDS, torch.arange(8)], dim=1)
    teacher = load_teacher(str(checkpoint), 20, 20)
    vectors = TeacherVectors.compute(teacher, MESSAGES, REPLIES)
    results = []
    for size in (3, 100):
        student = build_dual_encoder(str(checkpoint), "mean" if kind == "two" else None, encoders=kind).eval()
        features = [student.preprocess(MESSAGES, task="query"), student.preprocess(REPLIES, task="document")]
        loss = DistilledReplyLoss(student, mini_batch_size=size, teacher=vectors, weight=2.0)(features, labels)
        loss.backward()
        gradients = {name: p.grad for name, p in student.named_parameters() if p.grad is not None}
        results.append((loss.item(), gradients))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    assert results[0][1].keys() == results[1][1].keys()
    for name, gradient in results[1][1].items():
        torch.testing.assert_close(results[0][1][name], gradient, rtol=1e-3, atol=1e-5)


def test_teachers_of_every_kind(checkpoint: Path, tmp_path: Path) -> None:
    plain = load_teacher(str(checkpoint), 20, 20, "z ")
    assert prompts_of(plain) == ("z ", "z ")
    expected = torch.nn.functional.normalize(
        encode_messages(build_dual_encoder(str(checkpoint), "mean"), ["z how are you?"]), dim=1
    )
    torch.testing.assert_close(encode_messages(plain, ["how are you?"]), expected, rtol=0, atol=1e-5)

    modules = [Transformer(str(checkpoint)), Pooling(16, "cls")]
    library = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "q "})
    library.save_pretrained(str(tmp_path / "library"), create_model_card=False)
    teacher = load_teacher(str(tmp_path / "library"), 20, 20)
    theirs = library.encode_query(["how are you?"], normalize_embeddings=True, convert_to_tensor=True)
    torch.testing.assert_close(encode_messages(teacher, ["how are you?"]), theirs, rtol=0, atol=1e-5)

    ours = build_dual_encoder(str(checkpoint), "mean", 7, 5, encoders="one")
    ours.save_pretrained(str(tmp_path / "ours"), create_model_card=False)
    teacher = load_teacher(str(tmp_path / "ours"), 20, 20)
    long = ["a b c d e f g h i j k l m"]
    torch.testing.assert_close(encode_messages(teacher, long), encode_messages(ours, long), rtol=0, atol=1e-6)
    assert TeacherVectors.compute(teacher, long, long).temperature == 1.0  # its scores are plain dot products


def test_what_is_no_teacher_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="^--teacher .*: no model in this folder") as caught:
        load_teacher(str(tmp_path), 20, 20)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("with_backward", [False, True])
def test_vectors_are_copied_by_cosine(model: SentenceTransformer, with_backward: bool) -> None:
    dimension = model.get_sentence_embedding_dimension()
    assert dimension is not None
    theirs, rows = teacher_of(9, dimension), torch.tensor([4, 0, 8])
    mine = student_of(3, dimension)
    labels = torch.stack([IDS[:3], rows], dim=1)
    parts = [[mine[0][:2], mine[0][2:]], [mine[1][:1], mine[1][1:]]]  # mini-batches of any size
    got = VectorLoss(model, 2, teacher=theirs).calculate_loss(parts, labels, with_backward=with_backward)
    cosines = [
        float(torch.nn.functional.cosine_similarity(own[i].detach(), of[rows[i]], dim=0))
        for own, of in zip(mine, (theirs.messages, theirs.replies), strict=True)
        for i in range(3)
    ]
    assert float(got.detach()) == pytest.approx(1 - sum(cosines) / 6, abs=1e-6)
    assert (mine[0].grad is not None) == with_backward
