"""Masked translations from the options to the loss, with positions that begin anew and with languages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.training.pretraining.mixture import OBJECTIVES, NumberedRows, Part, mixture
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.texts import Splits, TextData

PAIRS = [("aa bb cc", "xx yy zz"), ("bb cc", "yy zz"), ("aa", "xx")]
DATA = TextData({"ht": ["xx yy zz", "zz zz"]}, pairs=Splits({"en-ht": PAIRS}))
TRAINING: Any = SimpleNamespace(seed=0, process_index=0)


def xlm(folder: Path) -> str:
    """A small XLM with embeddings of two languages, and a fast tokenizer."""
    from transformers import XLMConfig, XLMWithLMHeadModel

    tokenizer = train_tokenizer(DATA.texts() * 3, 60)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    config = XLMConfig(
        vocab_size=len(tokenizer), emb_dim=16, n_layers=1, n_heads=2, n_langs=2, use_lang_emb=True, dropout=0.0,
        attention_dropout=0.0, lang2id={"en": 0, "ht": 1}, max_position_embeddings=32,
        pad_index=tokenizer.pad_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    XLMWithLMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def built(**options: Any) -> tuple[tuple[Part, ...], PretrainingArguments]:
    arguments = PretrainingArguments(objective=["mlm", "tlm"], max_tokens=20, packing=False, **options)
    parts = OBJECTIVES["mlm"].build(arguments, TRAINING, DATA)
    return mixture(arguments, parts), arguments


def batch_of(part: Part, options: PretrainingArguments) -> dict[str, Any]:
    language, texts = next(iter(part.texts(DATA).train.items()))
    rows = part.objective.encode(texts, part.parts, options, options.packing, "--text").rows
    rows.shared = part.objective.shared(language, part.parts, "--text")
    numbered = NumberedRows([[rows]])
    return part.objective.collator(part.parts, options, 0)([numbered[n][1] for n in range(len(numbered))])


def loss_of(part: Part, batch: dict[str, Any]) -> float:
    labels = batch["labels"]
    with part.objective.forward(part.parts, labels), torch.no_grad():
        outputs = part.parts.model(**{name: value for name, value in batch.items() if name != "labels"})
    return float(part.objective.loss()(outputs, labels))


def test_xlm_is_told_languages_and_positions_of_both_objectives(tmp_path: Path) -> None:
    (mlm, tlm), options = built(model_name_or_path=xlm(tmp_path), language_ids=True, restart_positions=True)
    assert mlm.parts.model is tlm.parts.model
    mlm.parts.model.eval()
    alone, both = batch_of(mlm, options), batch_of(tlm, options)
    assert set(alone["langs"][0].tolist()) == {1}
    assert both["langs"][0].tolist() == [0] * 5 + [1] * 4
    assert both["position_ids"][0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert (both["labels"] != IGNORED).any(1).all()
    for part, batch in ((mlm, alone), (tlm, both)):
        loss = loss_of(part, batch)
        assert loss > 0
        assert loss != loss_of(part, {name: value for name, value in batch.items() if name != "langs"})
    signature = tlm.objective.signature(tlm.parts)
    assert "|rows:pairs|positions:restarted|languages:yes|tok:xlm-" in signature
    assert "|languages:yes|tok:xlm-" in mlm.objective.signature(mlm.parts)
    with pytest.raises(
        InputError, match="--language_ids: --parallel en-fr: the model has no embedding of fr; it has en ht"
    ):
        tlm.objective.shared("en-fr", tlm.parts, "--parallel en-fr")


def test_a_tiny_encoder_gets_tokens_and_positions_alone() -> None:
    (mlm, tlm), options = built()
    for part in (mlm, tlm):
        batch = batch_of(part, options)
        assert batch.keys() == {"input_ids", "attention_mask", "labels"}
        assert loss_of(part, batch) > 0
    assert tlm.parts.tokenizer.convert_tokens_to_ids("▁xx") != tlm.parts.tokenizer.unk_token_id, "of the pairs, too"
    with pytest.raises(InputError, match=r"^--language_ids: tiny \(bert\) has no embeddings of languages, as XLM has"):
        built(language_ids=True)
