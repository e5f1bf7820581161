"""Translation language modelling (TLM): masked tokens of two translations in a row, their positions and languages.

The model may look at the other language to fill a gap (Conneau and Lample 2019, XLM, section 3.4). Masking works as in
masked language modelling, over both texts. XGLUE (Liang et al. 2020, sections 3.1 and 3.2) gives the model tokens and
positions alone. XLM also restarts the positions of the second text, and adds an embedding of its language to each
token: options here, where the architecture supports them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.padding import padded
from mrs_suggest.models.pretraining.masking import MaskingCollator

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Positions(NamedTuple):
    """The first position of a row, 0, or the one after the padding's in models like RoBERTa; and that of padding."""

    first: int = 0
    padding: int = 0


def position_table(model: nn.Module) -> nn.Embedding | None:
    """The table of absolute positions; None for an architecture without one."""
    named = ((name, part) for name, part in model.named_modules() if isinstance(part, nn.Embedding))
    return next((part for name, part in named if name.endswith("position_embeddings")), None)


def restartable_positions(model: PreTrainedModel, name: str) -> Positions:
    """The numbering of positions of a model that takes them as an argument."""
    table = position_table(model)
    if table is None or "position_ids" not in inspect.signature(model.forward).parameters:
        raise InputError(
            f"--restart_positions: {name} ({model.config.model_type}) has no table of absolute positions that could "
            "restart; leave it out, or choose an encoder such as FacebookAI/xlm-roberta-base."
        )
    return Positions() if table.padding_idx is None else Positions(table.padding_idx + 1, table.padding_idx)


def language_numbers(model: PreTrainedModel, name: str) -> dict[str, int]:
    """The numbers of the languages that the model has embeddings of, by code."""
    config = model.config
    takes = "langs" in inspect.signature(model.forward).parameters
    numbers = getattr(config, "lang2id", None) or {}
    if not (takes and getattr(config, "use_lang_emb", False) and getattr(config, "n_langs", 1) > 1 and numbers):
        raise InputError(
            f"--language_ids: {name} ({config.model_type}) has no embeddings of languages, as XLM has; leave it out."
        )
    return {str(code): int(number) for code, number in numbers.items()}


def restarted(length: int, second: int, positions: Positions) -> list[int]:
    """The positions of a row of two parts, which restart at the second.

    >>> restarted(5, 3, Positions()), restarted(5, 3, Positions(2, 1)), restarted(3, 3, Positions())
    ([0, 1, 2, 0, 1], [2, 3, 4, 2, 3], [0, 1, 2])
    """
    return [positions.first + (n if n < second else n - second) for n in range(length)]


@dataclass
class TranslationCollator(MaskingCollator):
    """A `MaskingCollator` with positions that restart and ids of languages.

    Args:
        positions: of the architecture, to restart in the second part of a row; None: the model's own.
    """

    positions: Positions | None = None

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch.

        Args:
            features: `input_ids`, the ids of a row with its special tokens; `second`, where its second part begins
                (rows of one part: none); `languages`, the numbers of the parts' languages, if the model reads them.

        Returns:
            As `MaskingCollator`, and of the same shape `position_ids`, where they restart, and `langs`.
        """
        batch = super().__call__(features)
        ends = [len(feature["input_ids"]) for feature in features]
        begins = [int(feature.get("second", end)) for feature, end in zip(features, ends, strict=True)]
        if self.positions is not None:
            rows = [restarted(end, second, self.positions) for end, second in zip(ends, begins, strict=True)]
            batch["position_ids"] = padded(rows, self.positions.padding)
        if features and "languages" in features[0]:
            langs = [
                [feature["languages"][0]] * second + [feature["languages"][-1]] * (end - second)
                for feature, end, second in zip(features, ends, begins, strict=True)
            ]
            batch["langs"] = padded(langs, 0)
        return batch
