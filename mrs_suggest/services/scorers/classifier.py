"""A transformers checkpoint for text classification as a scorer: only safetensors are loaded, never its own code."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from mrs_suggest.common.batches import by_length
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text_services import ServiceFacts
from mrs_suggest.models.checkpoint_loading import from_pretrained, input_positions, without_report
from mrs_suggest.services.checkpoints import located

BATCH = 32  # ours: near the best rate on a CPU; a GPU takes more
TOKENS = 32  # of a text on average, which limits the tokens of a batch; ours: padding is about a twentieth
BATCHES_AT_ONCE = 32  # ours: 1,024 texts, the most whose scores are lost if the process is killed
# Names of the label that means toxic, folded, most preferred first: those of widely used checkpoints.
TOXIC_LABELS = ("toxic", "toxicity", "hate", "hateful", "hate speech", "offensive", "abusive")
SOFTMAX, SIGMOID = "single_label_classification", "multi_label_classification"
WEIGHTS = "*.safetensors"
TOKENIZER = ("tokenizer*", "vocab*", "merges.txt", "*.model", "special_tokens_map.json", "added_tokens.json")


class ClassifierScorer:
    """The probability of one label of a classifier, for texts of any language.

    A model with `problem_type` single_label_classification gives softmax, with multi_label_classification the sigmoid
    of the label's own logit; without it, as in transformers' pipeline, softmax if it has several labels. Texts are cut
    at the model's longest input. In float32, on a GPU if available; a score may vary by 1e-6 with the batch.

    Args:
        name, batch_size, option: as for `open_scorer`.
        label: to score; default: the first of `TOXIC_LABELS` that the model has.

    Raises:
        InputError: it cannot be loaded, or lacks a classification head or the label.
    """

    def __init__(
        self, name: str, label: str | None = None, batch_size: int | None = None, option: str = "--toxicity"
    ) -> None:
        checkpoint = located(name, (WEIGHTS, "config.json", *TOKENIZER), "*.json")
        folder = checkpoint.folder
        if not any(folder.glob(WEIGHTS)):
            raise InputError(
                f"{option} {name}: has no {WEIGHTS}; only safetensors are loaded, so convert the checkpoint, or pass "
                "another one."
            )
        config = from_pretrained("AutoConfig", folder, option=option)
        self._index, self._softmax = _label_of(config, label, f"{option} {name}", f"{option}-label")
        self._tokenizer = from_pretrained("AutoTokenizer", folder, option=option)
        if self._tokenizer.pad_token is None:
            raise InputError(f"{option} {name}: its tokenizer has no padding token; pass another checkpoint.")
        with without_report():
            kind = "AutoModelForSequenceClassification"
            model, found = from_pretrained(kind, folder, option=option, output_loading_info=True)
        if missing := sorted(found["missing_keys"]):
            raise InputError(
                f"{option} {name}: lacks the weights {missing[0]}, so it is not a trained classifier; pass a "
                "checkpoint for text classification."
            )
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model = model.to(self._device).eval()
        self._longest = min(int(self._tokenizer.model_max_length), input_positions(config) or 512)
        self._batch = batch_size or BATCH
        self.at_once = self._batch * BATCHES_AT_ONCE
        shown = _names(config)[self._index]
        version = f"{checkpoint.version}, label {shown}"
        self.facts = ServiceFacts("classifier", checkpoint.name, version, checkpoint.licence)

    def languages(self) -> None:
        """None: checkpoints do not state their languages reliably."""

    @torch.inference_mode()
    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n probabilities of the label, whatever the language."""
        if not texts:
            return []
        ids = self._tokenizer(list(texts), truncation=True, max_length=self._longest)["input_ids"]
        scores = torch.empty(len(ids))
        for some in by_length(ids, self._batch, TOKENS * self._batch):
            batch = self._tokenizer.pad({"input_ids": [ids[number] for number in some]}, return_tensors="pt")
            logits = self._model(**batch.to(self._device)).logits
            shares = logits.softmax(-1) if self._softmax else logits.sigmoid()
            scores[some] = shares[:, self._index].float().cpu()
        return [float(score) for score in scores.tolist()]


def _label_of(config: Any, label: str | None, what: str, option: str) -> tuple[int, bool]:
    """The index of the label to score, and whether scores are softmax; InputError without such a label."""
    names = _names(config)
    kind = config.problem_type or (SOFTMAX if len(names) > 1 else SIGMOID)
    have = f"its labels are {', '.join(map(repr, names.values()))}"
    if kind not in (SOFTMAX, SIGMOID):
        raise InputError(f"{what}: its problem_type is {kind!r}, not that of a classifier; pass another scorer.")
    folded = {_folded(name): index for index, name in names.items()}
    if label is not None:
        if _folded(label) not in folded:
            raise InputError(f"{what}: has no label {label!r}; {have}.")
        return folded[_folded(label)], kind == SOFTMAX
    found = [name for name in TOXIC_LABELS if name in folded]
    if not found:
        raise InputError(f"{what}: none of its labels is known to mean toxic; {have}: name one with {option}.")
    if kind == SOFTMAX and len(found) > 1:
        raise InputError(f"{what}: several labels mean toxic, each with a share of 1; {have}: choose with {option}.")
    return folded[found[0]], kind == SOFTMAX


def _names(config: Any) -> Mapping[int, str]:
    return {int(index): str(name) for index, name in config.id2label.items()}


def _folded(label: str) -> str:
    """
    >>> _folded("Hate_Speech") == _folded("hate-speech")
    True
    """
    return " ".join(label.casefold().replace("_", " ").replace("-", " ").split())
