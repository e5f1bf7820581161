"""One encoder with a head for each of several tasks (XGLUE, Liang et al. 2020, section 6.3.3: multi-task fine-tuning).

The heads are those of XLM-R in transformers: a dense layer, tanh and a linear one on the first token for a label, a
linear one on each token for tags, and two scores of each token for an answer; so are those of microsoft/Unicoder.

After `import mrs_suggest.models.understanding.shared_body`, `AutoModel.from_pretrained` loads such a folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import QuestionAnsweringModelOutput, SequenceClassifierOutput, TokenClassifierOutput

from mrs_suggest.models.understanding.text_rows import ANSWER, TAGS

MODEL_TYPE = "mrs_understanding"
OF_TOKENS = (TAGS, ANSWER)  # kinds with scores of each token
SPREAD = 0.02  # standard deviation of fresh weights, as BERT's


@dataclass(frozen=True)
class Parts:
    model: PreTrainedModel
    tokenizer: Any

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configuration and tokenizer."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def config_of(encoder: PreTrainedConfig | dict[str, Any] | None) -> PreTrainedConfig:
    """An encoder's configuration from what `config.json` holds; None: BERT's."""
    if isinstance(encoder, dict):
        settings = dict(encoder)
        return AutoConfig.for_model(settings.pop("model_type"), **settings)
    return encoder if encoder is not None else AutoConfig.for_model("bert")


def without_pooler(encoder: PreTrainedModel | None, config: PreTrainedConfig) -> Any:
    """An encoder, by default a fresh one, without the pooler of BERT and XLM-R: nothing would train it, which several
    ranks refuse."""
    body: Any = AutoModel.from_config(config) if encoder is None else encoder
    if isinstance(getattr(body, "pooler", None), nn.Module):
        body.pooler = None
    return body


class SharedBodyConfig(PreTrainedConfig):
    """The shape of a `SharedBodyModel`.

    Args:
        understanding: task -> `kind` (of `mrs_suggest.models.understanding.text_rows.KINDS`) and `labels` in the order
            of the scores.
        dropout: before each layer of a head; None: the encoder's own, as in transformers' heads (section 6.1: .1).
        max_tokens: the most of a row.
    """

    model_type = MODEL_TYPE
    sub_configs = {"encoder": AutoConfig}  # noqa: RUF012  (as the library declares it)

    def __init__(
        self,
        encoder: PreTrainedConfig | dict[str, Any] | None = None,
        understanding: Mapping[str, Mapping[str, Any]] | None = None,
        dropout: float | None = None,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.encoder = config_of(encoder)
        self.understanding = {task: dict(one) for task, one in (understanding or {}).items()}
        self.dropout = getattr(self.encoder, "hidden_dropout_prob", 0.1) if dropout is None else dropout
        self.max_tokens = max_tokens
        super().__init__(**kwargs)


@torch.no_grad()
def draw(module: nn.Module) -> None:
    """Give a layer fresh weights, drawn as BERT's are; those of a normalization start at 1."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=SPREAD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        module.reset_parameters()


class SharedBodyModel(PreTrainedModel):
    """The encoder and its heads.

    Example:
        >>> shape = AutoConfig.for_model("bert", vocab_size=9, hidden_size=8, num_hidden_layers=1,
        ...                              num_attention_heads=2, intermediate_size=8)
        >>> heads = {"XNLI": {"kind": "label", "labels": ["a", "b", "c"]}, "POS": {"kind": "tags", "labels": ["X"]}}
        >>> model, row = SharedBodyModel(SharedBodyConfig(shape, heads)).eval(), torch.ones(2, 5, dtype=torch.int64)
        >>> model(row, task="XNLI").logits.shape, model(row, task="POS").logits.shape
        (torch.Size([2, 3]), torch.Size([2, 5, 1]))
    """

    config_class = SharedBodyConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    trained_in_full = ("heads",)  # together with adapters: see mrs_suggest.models.adapters
    _supports_sdpa = _supports_flash_attn = True  # where the encoder does

    def __init__(self, config: SharedBodyConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = without_pooler(encoder, config.encoder)
        width = config.encoder.hidden_size
        self.heads = nn.ModuleDict()
        for task, one in config.understanding.items():
            count = 2 if one["kind"] == ANSWER else len(one["labels"])
            dense = [] if one["kind"] in OF_TOKENS else [nn.Dropout(config.dropout), nn.Linear(width, width), nn.Tanh()]
            self.heads[task] = nn.Sequential(*dense, nn.Dropout(config.dropout), nn.Linear(width, count))
        if encoder is None:
            self.post_init()
        else:  # whose weights it would replace by fresh ones
            self.heads.apply(draw)

    def _init_weights(self, module: nn.Module) -> None:
        draw(module)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        task: str = "",
    ) -> SequenceClassifierOutput | TokenClassifierOutput | QuestionAnsweringModelOutput:
        """Scores for one task.

        Args:
            input_ids, attention_mask, token_type_ids: (rows, tokens).
            task: a key of the configuration's `understanding`.

        Returns:
            logits (rows, labels) or (rows, tokens, labels); of an answer `start_logits`, `end_logits` (rows, tokens).
        """
        given = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        given = {name: value for name, value in given.items() if value is not None}
        states = self.encoder(input_ids=input_ids, **given).last_hidden_state
        kind = cast(Any, self.config).understanding[task]["kind"]
        scores = self.heads[task](states if kind in OF_TOKENS else states[:, 0])
        if kind == ANSWER:
            return QuestionAnsweringModelOutput(start_logits=scores[..., 0], end_logits=scores[..., 1])
        return (TokenClassifierOutput if kind == TAGS else SequenceClassifierOutput)(logits=scores)


AutoConfig.register(MODEL_TYPE, SharedBodyConfig, exist_ok=True)
AutoModel.register(SharedBodyConfig, SharedBodyModel, exist_ok=True)
