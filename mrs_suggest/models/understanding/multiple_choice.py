"""An encoder that scores the choices of a multiple-choice question (Ponti et al. 2020, section 4.1; Sap et al. 2019).

Each choice is read with its premise and prompt; `x` is the encoder's vector of that text, and its score is
`W_o tanh(W_h x + b_h)`. A softmax over the scores of all choices gives their probabilities, so that one head serves
questions with two choices and with three.

After `import mrs_suggest.models.understanding.multiple_choice`, `AutoModelForMultipleChoice.from_pretrained` loads such
a folder, too.
"""

from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModelForMultipleChoice, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MultipleChoiceModelOutput

from mrs_suggest.models.understanding.shared_body import config_of, draw, without_pooler

MODEL_TYPE = "mrs_multiple_choice"
POOLINGS = ("cls", "mean")  # the first token, for MBERT and XLM-R; the mean of all tokens, for USE (note 10)
INPUTS = ("pair", "single")  # premise and choice as a sentence pair, or as one text, for USE (section 4.1)


class ChoiceConfig(PreTrainedConfig):
    """The shape of a `ChoiceModel`.

    Args:
        dropout: on the encoder's vector and on the head's hidden layer (appendix C: 0 or .1).
    """

    model_type = MODEL_TYPE
    sub_configs = {"encoder": AutoConfig}  # noqa: RUF012  (as the library declares it)

    def __init__(
        self,
        encoder: PreTrainedConfig | dict[str, Any] | None = None,
        pooling: str = POOLINGS[0],
        input: str = INPUTS[0],
        dropout: float = 0.1,
        max_tokens: int = 128,
        **kwargs: Any,
    ) -> None:
        self.encoder = config_of(encoder)
        self.pooling, self.input, self.dropout, self.max_tokens = pooling, input, dropout, max_tokens
        super().__init__(**kwargs)


class ChoiceModel(PreTrainedModel):
    """The encoder with the paper's head.

    Example:
        >>> shape = AutoConfig.for_model("bert", vocab_size=9, hidden_size=8, num_hidden_layers=1,
        ...                              num_attention_heads=2, intermediate_size=8)
        >>> model = ChoiceModel(ChoiceConfig(shape)).eval()
        >>> two_questions = torch.ones(2, 3, 5, dtype=torch.int64)  # with three choices of five tokens
        >>> model(two_questions).logits.shape
        torch.Size([2, 3])
    """

    config_class = ChoiceConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    trained_in_full = ("hidden", "score")  # together with adapters: see mrs_suggest.models.adapters
    _supports_sdpa = _supports_flash_attn = True  # where the encoder does

    def __init__(self, config: ChoiceConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = without_pooler(encoder, config.encoder)
        width = config.encoder.hidden_size
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)  # softmax would cancel a bias
        self.drop = nn.Dropout(config.dropout)
        self.encoder_frozen = False
        if encoder is None:
            self.post_init()
        else:  # whose weights it would replace by fresh ones
            draw(self.hidden)
            draw(self.score)

    def _init_weights(self, module: nn.Module) -> None:
        draw(module)

    def freeze_encoder(self) -> None:
        """Train the head alone, on the encoder's vectors without dropout (section 4.1: the feature-based regime)."""
        self.encoder_frozen = True
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> Self:
        """As usual; a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.encoder_frozen:
            self.encoder.eval()
        return self

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> MultipleChoiceModelOutput:
        """Scores of the choices.

        Args:
            input_ids, attention_mask, token_type_ids: (questions, choices, tokens).
            labels: (questions) numbers of the right choices.

        Returns:
            logits (questions, choices), and with labels the mean cross-entropy in nats.
        """
        questions, choices, tokens = input_ids.shape
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        given = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": token_type_ids}
        flat = {name: value.view(-1, tokens) for name, value in given.items() if value is not None}
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.encoder_frozen):
            states = self.encoder(**flat).last_hidden_state
        vectors = self.drop(self._pooled(states, flat["attention_mask"]))
        hidden = self.drop(torch.tanh(self.hidden(vectors)))
        logits = self.score(hidden).view(questions, choices)
        loss = functional.cross_entropy(logits.float(), labels) if labels is not None else None
        return MultipleChoiceModelOutput(loss=cast(Any, loss), logits=logits)

    def _pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """(texts, tokens, width) -> (texts, width)"""
        if self.config.pooling == "cls":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


AutoConfig.register(MODEL_TYPE, ChoiceConfig, exist_ok=True)
AutoModelForMultipleChoice.register(ChoiceConfig, ChoiceModel, exist_ok=True)
