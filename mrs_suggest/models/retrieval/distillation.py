"""Distillation of a retriever: the student learns which texts of a batch its teacher finds similar.

The teacher's vectors of all training texts are computed once, before training; a step looks them up by row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor
from tqdm import tqdm

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import OPTION
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.losses import ReplyLoss, require_temperature
from mrs_suggest.models.retrieval.routes import build_settings
from mrs_suggest.models.starting_points import RETRIEVER, is_transformers, start_kind

ENCODER_TOKENS = 128  # ours: replies, and STAPLE's prompts and translations, are single sentences
AT_A_TIME = 4096  # texts between two steps of the progress bar
COSINE_TEMPERATURE = 0.05  # the default scale of sentence-transformers' losses, 20


def load_teacher(
    name: str, message_tokens: int, reply_tokens: int, prompt: str | None = None, revision: str | None = None
) -> SentenceTransformer:
    """A teacher for `encode_query` and `encode_document`, of any kind that training can start from.

    A trained retriever is used as it is, with its own lengths. Of other models the vectors have length 1, and a
    transformers encoder has mean pooling.

    Args:
        prompt: text put before messages and replies; None: its own prompts.
    """
    retriever = start_kind(name, revision) == RETRIEVER
    plain = not retriever and is_transformers(name, revision)
    try:
        return build_dual_encoder(
            name,
            "mean" if plain else None,
            None if retriever else message_tokens,
            None if retriever else reply_tokens,
            revision,
            query_prompt=prompt,
            reply_prompt=prompt,
            normalize=None if retriever else True,
        ).eval()
    except InputError as error:
        sentence = str(error).replace(OPTION, "--teacher").replace("--query_prompt", "--teacher_prompt")
        raise InputError(sentence) from None


def load_encoder(name: str) -> tuple[Callable[[list[str]], NDArray[np.floating]], str]:
    """A function that encodes texts with a multilingual sentence encoder, and eight digits of the weights' hash.

    All texts take the same route, with the checkpoint's own text before queries (E5's `query: `), as its authors advise
    if no text is a passage.

    Args:
        name: a folder, or `ORG/NAME[@REVISION]`: any checkpoint that a retriever can start from.
    """
    from mrs_suggest.common.hub.hub import split_revision

    checkpoint, revision = split_revision(name, None)
    try:
        model = load_teacher(checkpoint, ENCODER_TOKENS, ENCODER_TOKENS, None, revision)
    except InputError as error:
        raise InputError(str(error).replace("--teacher", "--encoder")) from None
    digest = hashlib.sha256(b"".join(tensor.float().numpy().tobytes() for tensor in model.state_dict().values()))
    return lambda texts: np.asarray(encode_messages(model, texts).numpy()), digest.hexdigest()[:8]


@dataclass(frozen=True)
class TeacherVectors:
    """A teacher's vectors of training pairs: each different text once, on the CPU.

    Attributes:
        messages, replies: (different texts, dimension) float32.
        message_rows, reply_rows: (pairs,) the text of each pair.
        temperature: that the teacher's similarities are divided by.
    """

    messages: Tensor
    replies: Tensor
    message_rows: Tensor
    reply_rows: Tensor
    temperature: float

    @classmethod
    def compute(
        cls, teacher: SentenceTransformer, messages: Sequence[str], replies: Sequence[str],
        temperature: float | None = None,
    ) -> TeacherVectors:  # fmt: skip
        """The vectors of pairs, by a teacher of `load_teacher`.

        Args:
            temperature: above 0; None: .05 for vectors of length 1, else 1.
        """
        if temperature is None:
            temperature = COSINE_TEMPERATURE if build_settings(teacher)["normalize"] else 1.0
        require_temperature(temperature, "teacher_temperature")
        (message_texts, message_rows), (reply_texts, reply_rows) = _different(messages), _different(replies)
        with tqdm(total=len(message_texts) + len(reply_texts), desc="teacher", unit=" texts") as bar:
            of_messages = _encoded(lambda texts: encode_messages(teacher, texts), message_texts, bar)
            of_replies = _encoded(lambda texts: encode_replies(teacher, texts), reply_texts, bar)
        return cls(of_messages, of_replies, message_rows, reply_rows, temperature)

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the messages and replies of some pairs, each (n, dimension), on the device of `rows`."""
        place = rows.cpu()
        messages, replies = self.messages[self.message_rows[place]], self.replies[self.reply_rows[place]]
        return messages.to(rows.device), replies.to(rows.device)


class DistilledReplyLoss(ReplyLoss):
    """A `ReplyLoss`, and the divergence of the student's similarities from a teacher's.

    For n pairs with the student's vectors m_i and r_i of message and reply, its temperature t, and the teacher's
    vectors M_i and R_i and temperature T::

        q_i(j) = softmax over j of m_i . r_j / t        Q_i(j) = softmax over j of M_i . R_j / T
        p_i(j) = softmax over j != i of m_i . m_j / t   P_i(j) = softmax over j != i of M_i . M_j / T
        distillation = 1/n sum_i (KL(Q_i || q_i) + KL(P_i || p_i)) / 2
        loss = reply loss + weight * distillation

    The first divergence is that of in-batch scores of queries and documents (Lin et al. 2021, "In-Batch Negatives for
    Knowledge Distillation with Tightly-Coupled Teachers for Dense Retrieval"), the second that of similarities among
    examples (Fang et al. 2021, "SEED: Self-supervised Distillation for Visual Representation"), here among those of a
    batch. Similarities are compared and not vectors, so the dimensions may differ. Rows are independent, so that
    mini-batches (GradCache) give the whole batch's loss and gradients.

    The other arguments are those of `ReplyLoss`, without `gather_across_devices`. The `label` column has two integers:
    the reply's id, and the row of the pair in `teacher`.
    """

    def __init__(self, *args: Any, teacher: TeacherVectors, weight: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.teacher, self.weight = teacher, weight

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """The mean loss of the pairs; `labels` is (n, 2), otherwise as for `ReplyLoss`."""
        labels = _pair_labels(labels)
        total = super().calculate_loss(reps, labels[:, 0], with_backward=with_backward)
        messages, replies = torch.cat(reps[0]), torch.cat(reps[1])
        count = len(messages)
        own_messages, own_replies = self.teacher.of(labels[:, 1])
        for begin in range(0, count, self.mini_batch_size):
            rows = torch.arange(begin, min(begin + self.mini_batch_size, count), device=messages.device)
            mine = messages[rows]
            theirs = own_messages[rows] / self.teacher.temperature
            among_replies = divergence(mine @ replies.T * self.scale, theirs @ own_replies.T)
            itself = torch.zeros(len(rows), count, dtype=torch.bool, device=rows.device)
            itself[torch.arange(len(rows)), rows] = True
            among_messages = divergence(mine @ messages.T * self.scale, theirs @ own_messages.T, itself)
            loss = self.weight * (among_replies + among_messages).sum() / (2 * count)
            if with_backward:
                loss.backward()
                loss = loss.detach()
            total = total + loss
        return total


class VectorLoss(ReplyLoss):
    """The distance of the student's vectors from a teacher's, without a reply loss.

    With the student's vectors m and r of a pair and the teacher's M and R: `(1 - cos(m, M) + 1 - cos(r, R)) / 2`, the
    mean over the batch (Reimers and Gurevych 2020, "Making Monolingual Sentence Embeddings Multilingual", section 3,
    has the squared distance in its place). Vectors are compared, so the dimensions are equal. The `label` column is
    that of `DistilledReplyLoss`.
    """

    def __init__(self, model: SentenceTransformer, mini_batch_size: int = 32, *, teacher: TeacherVectors) -> None:
        super().__init__(model, mini_batch_size=mini_batch_size)
        own, of_teacher = model.get_embedding_dimension(), teacher.messages.shape[1]
        if own is not None and own != of_teacher:
            raise InputError(
                f"--distill vectors: the teacher's vectors have {of_teacher} dimensions and the student's {own}; "
                "choose a student with as many, or --distill similarities."
            )
        self.teacher = teacher

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """The mean loss of the pairs; `labels` is (n, 2), otherwise as for `ReplyLoss`."""
        labels = _pair_labels(labels)
        sides = zip(reps, self.teacher.of(labels[:, 1]), strict=True)
        cosines = [torch.cosine_similarity(torch.cat(own).float(), teacher) for own, teacher in sides]
        loss = 1 - torch.stack(cosines).mean()
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss


def divergence(student: Tensor, teacher: Tensor, without: Tensor | None = None) -> Tensor:
    """KL divergence of the student's distribution of a row from the teacher's.

    Args:
        student, teacher: (m, n) scores, divided by their temperatures; the teacher's get no gradient.
        without: (m, n) true where a score does not count.

    Returns:
        (m,) divergences in nats, 0 where the distributions are equal.

    >>> divergence(torch.zeros(1, 2), torch.tensor([[100.0, 0.0]]))  # ln 2
    tensor([0.6931])
    """
    student, teacher = student.float(), teacher.detach().float()
    if without is None:
        without = torch.zeros_like(student, dtype=torch.bool)
    if bool(without.all(dim=1).any()):
        return student.sum(dim=1) * 0
    logs = (torch.log_softmax(scores.masked_fill(without, -torch.inf), dim=1) for scores in (teacher, student))
    expected, found = (log.masked_fill(without, 0.0) for log in logs)
    shares = expected.exp().masked_fill(without, 0.0)
    return (shares * (expected - found)).sum(dim=1)


def _pair_labels(labels: Tensor | None) -> Tensor:
    if labels is None or labels.ndim != 2:
        raise ValueError("A distilled loss needs the reply's id and the pair's row in the `label` column.")
    return labels


def _encoded(encode: Callable[[list[str]], Tensor], texts: list[str], bar: tqdm[NoReturn]) -> Tensor:
    parts = []
    for first in range(0, len(texts), AT_A_TIME):
        parts.append(encode(texts[first : first + AT_A_TIME]))
        bar.update(len(parts[-1]))
    return torch.cat(parts)


def _different(texts: Sequence[str]) -> tuple[list[str], Tensor]:
    """Each different text once, and the number of that of each row."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), torch.tensor([numbers[text] for text in texts], dtype=torch.long)
