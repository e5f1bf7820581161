"""The head at the predicted positions alone, the loss against a float64 reference, and fresh heads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.masked_lm import (
    HeadAt,
    MaskingCollator,
    load_masked_lm,
    masked_loss,
    token_losses,
    vocabulary_of,
)
from mrs_suggest.models.retrieval.tiny import build_tiny
from tests.bert_reference import reference_losses

TEXTS = ["the water boils", "a man drank the cold water", "she closed the door"] * 3
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "bert": {}, "roberta": {}, "xlm-roberta": {}, "camembert": {}, "electra": {"embedding_size": 16},
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32},
    "albert": {"embedding_size": 16}, "mpnet": {}, "deberta-v2": {}, "modernbert": {"pad_token_id": 0},
}  # fmt: skip
SHAPE = {
    "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
    "sep_token_id": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny(TEXTS, tmp_path_factory.mktemp("tiny"), 0, 80, "[MASK]")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_head_reads_chosen_positions_as_in_the_whole_batch(name: str) -> None:
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.for_model(name, **{**SHAPE, **ARCHITECTURES[name]})
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(config).eval()
    ids = torch.randint(5, 40, (3, 7))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    chosen = torch.zeros(3, 7, dtype=torch.bool)
    chosen[0, 2] = chosen[0, 5] = chosen[1, 0] = chosen[2, 6] = True
    head_at = HeadAt(model)
    with torch.no_grad():
        whole = model(input_ids=ids, attention_mask=mask).logits
        with head_at(chosen):
            few = model(input_ids=ids, attention_mask=mask).logits
        again = model(input_ids=ids, attention_mask=mask).logits
    assert few.shape == (1, 4, 40)
    assert torch.allclose(few[0], whole[chosen], atol=1e-6)
    assert torch.equal(again, whole), "outside the block, all positions"


def test_loss_and_targets_of_a_batch_equal_a_float64_reference(tiny: Path) -> None:
    model, tokenizer = load_masked_lm(str(tiny), None, 3)[0].eval(), load_fast_tokenizer(str(tiny), None)
    texts = TEXTS[:3]
    rows = tokenizer(texts)["input_ids"]
    batch = MaskingCollator(tokenizer.pad_token_id, vocabulary_of(tokenizer, "tiny"), 0.4, seed=5)(
        [{"input_ids": row} for row in rows]
    )
    chosen = batch["labels"] != IGNORED
    original = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    assert torch.equal(batch["labels"][chosen], original[chosen]), "the targets are the text's own tokens"
    assert chosen.sum() > 3
    expected = reference_losses(model, batch)
    labels = batch.pop("labels")
    with HeadAt(model)(chosen):
        outputs = model(**batch)
    assert np.allclose(token_losses(outputs["logits"], labels).detach().numpy(), expected, atol=1e-5)
    assert masked_loss(outputs, labels).item() == pytest.approx(expected.mean(), abs=1e-5)
    assert masked_loss(outputs, labels, 100).item() == pytest.approx(expected.sum() / 100, abs=1e-6)


def test_a_lacking_head_is_fresh_tied_and_seeded(tiny: Path, tmp_path: Path) -> None:
    (one, fresh), (same, _), (other, _) = (load_masked_lm(str(tiny), None, seed) for seed in (1, 1, 2))
    assert fresh
    assert all(name.startswith("cls.") for name in fresh)
    assert one.get_output_embeddings().weight is one.get_input_embeddings().weight
    states = [model.state_dict() for model in (one, same, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    name = "cls.predictions.transform.dense.weight"
    assert not torch.equal(states[0][name], states[2][name])
    one.save_pretrained(tmp_path)
    again, fresh = load_masked_lm(str(tmp_path), None, 9)
    assert fresh == []
    assert torch.equal(again.state_dict()[name], states[0][name])


def test_what_is_no_encoder_is_refused(tiny: Path, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1, n_positions=8)).save_pretrained(tmp_path)
    for name, sentence in (
        (tmp_path, "cannot load an encoder with a language-model head"),
        (tmp_path / "absent", "no such folder"),
        ("everyday-retriever", "is a trained retriever; pass the folder of one of its encoders"),
    ):
        with pytest.raises(InputError, match=sentence):
            load_masked_lm(str(name), None, 0)
