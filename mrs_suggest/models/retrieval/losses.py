"""Losses of the dual encoder over in-batch negatives, with GradCache underneath.

Notation: S is the score matrix of a batch of n pairs, `S[i, j] = message_i . reply_j / temperature`, unscaled where the
temperature is 1 (Zhang et al. 2021, eq. 3); R_i and C_i are the sums of exp(S) over row i and column i.
"""

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from sentence_transformers.util import all_gather, all_gather_with_grad, dot_score, get_rank
from sentence_transformers.util.distributed import is_dist_initialized
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError

LOSSES = {
    "eq4": "-log(exp(S_ii) / (R_i + C_i - exp(S_ii))): eq. 4 of the paper, with the logarithm",
    "symsm": "-log(exp(S_ii) / (R_i + C_i)): SymSMLoss of the official code, which counts the positive twice",
    "sm": "-log(exp(S_ii) / R_i): SMLoss of the official code, one-sided; its train.sh uses it",
}

_MOST_PARTS = 4  # of a batch, by length: eight are no faster
_LEAST_IN_PART = 32  # texts: with fewer, the cost of a call outweighs the padding


def embed_by_length(model: nn.Module, feature: dict[str, Any]) -> Tensor:
    """The vectors (n, dimension) of a batch; on a CPU in parts of similar length, each padded to its own longest text.

    In a batch of 128 chat messages more than half of the tokens are padding, since its longest text decides. Padding is
    masked, so that vectors and gradients are the same, but for rounding and for the draws of dropout.

    Args:
        feature: `input_ids` and `attention_mask`, (n, length) each, and other inputs of the model. Static embeddings'
            inputs, which have no mask, cannot be cut.
    """
    mask = feature.get("attention_mask")
    # Texts that are padded on the left cannot be cut either.
    if mask is None or mask.device.type != "cpu" or len(mask) < 2 * _LEAST_IN_PART or not mask[:, 0].all():
        return model(feature)["sentence_embedding"]
    lengths = mask.sum(dim=1)
    order = lengths.argsort(stable=True)
    vectors = []
    for rows in order.chunk(min(len(mask) // _LEAST_IN_PART, _MOST_PARTS)):
        longest = int(lengths[rows[-1]])
        cut = {
            name: value[rows, :longest] if isinstance(value, Tensor) and value.shape == mask.shape else value
            for name, value in feature.items()
        }
        vectors.append(model(cut)["sentence_embedding"])
    return torch.cat(vectors)[order.argsort()]


class ReplyLoss(CachedMultipleNegativesRankingLoss):
    """The three losses of MRS by name (`LOSSES`), exact and in bounded memory.

    The library has `symsm` and `sm` (as directions of its multiple-negatives loss with scale 1 and dot product) but
    not `eq4`, and none of them leaves out equal replies. All three are one formula here: the log-sum-exp over the
    row and, for the symmetric two, the column, in which `eq4` leaves out the diagonal.

    Args:
        kind: a key of `LOSSES`.
        mask_duplicates: a reply equal to the example's own (the same integer in the `label` column) elsewhere in the
            batch is not a negative. Replies follow Zipf's law, so that a batch of 256 holds "thanks" several times.
        mini_batch_size: pairs that are embedded with gradients at a time (GradCache, Gao et al. 2021); it bounds the
            memory and does not change the loss.
        temperature: scores are divided by it; 1 is the paper's. Cosines, which lie between -1 and 1, need a low one:
            .05 is the library's default scale of 20.
        gather_across_devices: the replies of all ranks are negatives.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        kind: str = "eq4",
        mask_duplicates: bool = True,
        mini_batch_size: int = 32,
        temperature: float = 1.0,
        gather_across_devices: bool = False,
    ) -> None:
        if kind not in LOSSES:
            raise InputError(f"--loss: expected one of {', '.join(LOSSES)}, found {kind!r}.")
        require_temperature(temperature)
        super().__init__(
            nn.Sequential(nn.Identity()),  # type: ignore[arg-type]  # it refuses static embeddings, never cached here
            scale=1 / temperature,
            similarity_fct=dot_score,
            mini_batch_size=mini_batch_size,
            gather_across_devices=gather_across_devices,
        )
        self.model = model
        self.kind = kind
        self.mask_duplicates = mask_duplicates

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """The mean loss of a batch: `sentence_features` are the tokenized messages and replies.

        If one mini-batch holds the whole batch, caching gradients would only embed everything twice (a quarter of the
        step), so it is skipped; not under DDP, where a routed model needs it. Static embeddings have no activations
        worth saving, and their inputs cannot be cut.
        """
        features = list(sentence_features)
        static = "offsets" in features[0]
        if not static and (is_dist_initialized() or len(features[0]["input_ids"]) > self.mini_batch_size):
            return self.forward_cached(features, labels)
        return self.calculate_loss([[embed_by_length(self.model, feature)] for feature in features], labels)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """The mean loss of this rank's pairs.

        Args:
            reps: message and reply vectors as lists of mini-batches, each (mini-batch, dimension).
            labels: (n,) integer id of each reply; needed for `mask_duplicates`.
            with_backward: back-propagate chunk by chunk up to `reps`.
        """
        messages, replies = torch.cat(reps[0]), torch.cat(reps[1])
        local = len(messages)
        offset = 0
        if self.mask_duplicates and labels is None:
            raise InputError(
                "mask_duplicates needs a `label` column with an integer id per reply; add it or turn it off."
            )
        if self.gather_across_devices:
            messages, replies = all_gather_with_grad(messages), all_gather_with_grad(replies)
            labels = all_gather(labels) if labels is not None else None
            offset = get_rank() * local
        total = messages.new_zeros(())
        for begin in range(0, local, self.mini_batch_size):
            end = min(begin + self.mini_batch_size, local)
            own = torch.arange(offset + begin, offset + end, device=messages.device)
            loss = self._rows(messages, replies, labels, own).sum() / local
            if with_backward:
                loss.backward()
                loss = loss.detach()
            total = total + loss
        return total

    def _rows(self, messages: Tensor, replies: Tensor, labels: Tensor | None, own: Tensor) -> Tensor:
        """Losses of the pairs `own` (m,) against all: (m,)."""
        row = torch.arange(len(own), device=own.device)
        scores = messages[own] @ replies.T * self.scale
        positive = scores[row, own]
        parts = [scores]
        diagonal = torch.zeros_like(scores, dtype=torch.bool)
        diagonal[row, own] = True
        if self.kind != "sm":
            columns = replies[own] @ messages.T * self.scale
            parts.append(columns.masked_fill(diagonal, -torch.inf) if self.kind == "eq4" else columns)
        if self.mask_duplicates and labels is not None:
            equal = (labels[own, None] == labels[None, :]) & ~diagonal
            parts = [part.masked_fill(equal, -torch.inf) for part in parts]
        return torch.logsumexp(torch.cat(parts, dim=1), dim=1) - positive


def require_temperature(temperature: float, option: str = "temperature") -> None:
    """Refuse a temperature that scores cannot be divided by."""
    if not 0 < temperature < float("inf"):  # refuses NaN too
        raise InputError(f"--{option}: expected a number above 0, found {temperature:g}.")
