"""Tiny text classifiers, as transformers saves them: for tests of what scores with one."""

from collections.abc import Sequence
from pathlib import Path


def write_classifier(
    folder: Path, texts: Sequence[str], labels: Sequence[str] = ("neutral", "toxic"),
    problem_type: str | None = "single_label_classification", seed: int = 2, spread: float = 2.0,
) -> Path:  # fmt: skip
    """An untrained BERT with a head for these labels, and a tokenizer of the texts.

    Args:
        spread: of the random weights: large ones, so that scores are all over [0, 1].
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from mrs_suggest.models.retrieval.tiny import train_tokenizer, write_checkpoint

    tokenizer = train_tokenizer([*texts, *texts], 300)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=spread,
        pad_token_id=tokenizer.pad_token_id,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        problem_type=problem_type,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    return write_checkpoint(model, tokenizer, folder)
