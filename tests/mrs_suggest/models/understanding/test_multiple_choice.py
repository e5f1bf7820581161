"""The multiple-choice model: a reference forward in float64, what must not change the scores, starts and refusals."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.adapters import add_lora, load_adapter, lora_state, save_adapter
from mrs_suggest.models.understanding.choice_inputs import ChoiceCoder, Question, choice_scores
from mrs_suggest.models.understanding.choice_start import ChoiceParts, build_choice_model, load_choice_model
from mrs_suggest.models.understanding.multiple_choice import POOLINGS
from tests.bert_reference import Weights, bert_states
from tests.cases import cases

TWO = [Question("a b c", "d ?", ("e f", "g"), 0), Question("h i j k l m n", "o ?", ("p", "q r s t u v w"), 1)]
THREE = [Question("a b", "c d ?", ("e", "f g", "h i j k"), 2), Question("l", "m ?", ("n o p", "q", "r s"), 0)]
WORDS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=9).map(" ".join)
QUESTIONS = st.builds(Question, WORDS, WORDS, st.tuples(WORDS, WORDS, WORDS), st.integers(0, 2))


@pytest.fixture(scope="module", params=POOLINGS)
def parts(request: pytest.FixtureRequest, checkpoint: Path) -> ChoiceParts:
    built = build_choice_model(str(checkpoint), pooling=request.param)
    for parameter in (built.model.hidden.weight, built.model.score.weight):  # type: ignore[union-attr]
        parameter.data *= 10  # type: ignore[operator]  # so that the scores differ
    built.model.eval()
    return built


def batch(parts: ChoiceParts, questions: list[Question]) -> dict[str, Tensor]:
    return parts.collator(parts.coder.encode(questions))


def scores(parts: ChoiceParts, questions: list[Question], batch_size: int = 32) -> list[list[float]]:
    return choice_scores(parts.model, parts.collator, parts.coder.encode(questions), batch_size)


# --- the reference: BERT and the head of Ponti et al. 2020, section 4.1, in float64


@pytest.mark.parametrize("questions", [TWO, THREE], ids=["two choices", "three choices"])
def test_the_scores_are_those_of_the_reference(parts: ChoiceParts, questions: list[Question]) -> None:
    config: Any = parts.model.config
    weights = Weights(parts.model, config.encoder.layer_norm_eps)
    inputs = batch(parts, questions)
    with torch.no_grad():
        found = parts.model(**inputs).logits
    ids, mask = (inputs[name].flatten(0, 1).numpy() for name in ("input_ids", "attention_mask"))
    types = inputs["token_type_ids"].flatten(0, 1).numpy() if "token_type_ids" in inputs else np.zeros_like(ids)
    states = bert_states(weights, "encoder.", config.encoder, ids, mask, types)
    means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    hidden = np.tanh(weights.linear(states[:, 0] if config.pooling == "cls" else means, "hidden"))
    expected = (hidden @ weights.of["score.weight"][0]).reshape(found.shape)
    assert np.ptp(expected) > 1e-2
    assert np.abs(found.numpy() - expected).max() < 1e-5


def test_long_texts_are_cut_and_the_choice_stays(parts: ChoiceParts) -> None:
    long = Question("a " * 90, "b ?", ("x y", "z"), 0)
    row = ChoiceCoder(parts.tokenizer, "pair", 16).encode([long])[0]["input_ids"]
    assert [len(one) for one in row] == [16, 16]
    assert parts.tokenizer.decode(row[0]).replace(" ", "").endswith("[SEP]xy[SEP]")


# --- what must not change the scores


@settings(max_examples=15)
@given(st.lists(QUESTIONS, min_size=1, max_size=6), st.integers(1, 4), st.permutations(range(3)))
def test_neither_padding_nor_the_order_of_choices_nor_the_label_changes_a_score(
    parts: ChoiceParts, questions: list[Question], batch_size: int, order: list[int]
) -> None:
    """Alone and in batches, a text has one score, wherever it stands among the choices and whatever is right."""
    expected = [scores(parts, [question])[0] for question in questions]
    together = scores(parts, questions, batch_size)
    assert np.abs(np.array(together) - np.array(expected)).max() < 1e-5
    shuffled = [
        Question(one.premise, one.prompt, tuple(one.choices[i] for i in order), (one.label + 1) % 3)
        for one in questions
    ]
    found = np.array(scores(parts, shuffled, batch_size))
    assert np.abs(found - np.array(expected)[:, order]).max() < 1e-5


# --- saving, and what a model starts from


def test_a_saved_model_is_the_start_of_the_next_stage(parts: ChoiceParts, tmp_path: Path, checkpoint: Path) -> None:
    parts.save(tmp_path / "first")
    assert not [path.name for path in (tmp_path / "first").iterdir() if path.suffix in (".bin", ".pt")]
    again = load_choice_model(tmp_path / "first")
    assert scores(again, THREE) == scores(parts, THREE)
    start = build_choice_model(str(tmp_path / "first"), dropout=0.0, seed=7)
    start.model.eval()
    assert scores(start, TWO) == scores(parts, TWO), "the head is kept"
    with pytest.raises(InputError, match=r"--pooling .*: does not fit .*, which has"):
        build_choice_model(
            str(tmp_path / "first"), pooling=next(one for one in POOLINGS if one != again.model.config.pooling)
        )
    with pytest.raises(InputError, match=r"--head library: does not fit .*first, which has paper"):
        build_choice_model(str(tmp_path / "first"), head="library")
    written = (tmp_path / "first" / "config.json").read_text(encoding="utf-8")
    assert str(checkpoint) not in written, "the saved model does not tell where its encoder was"


def test_a_frozen_encoder_stays_as_it_is(checkpoint: Path) -> None:
    parts = build_choice_model(str(checkpoint), pooling="mean", input="single", dropout=0.0)
    parts.model.freeze_encoder()  # type: ignore[operator]
    parts.model.train()
    inputs = batch(parts, TWO)
    once, twice = (parts.model(**inputs).logits for _ in range(2))
    assert torch.equal(once, twice), "no dropout in the encoder"
    once.sum().backward()
    trained = {name for name, value in parts.model.named_parameters() if value.grad is not None}
    assert trained == {"hidden.weight", "hidden.bias", "score.weight"}


@pytest.mark.parametrize(("marker", "content", "told"), cases(__file__, "test_what_is_no_encoder_is_refused"))
def test_what_is_no_encoder_is_refused(checkpoint: Path, tmp_path: Path, marker: str, content: str, told: str) -> None:
    folder = tmp_path / "start"
    shutil.copytree(checkpoint, folder)
    (folder / marker).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        build_choice_model(str(folder))
    with pytest.raises(InputError, match="not a multiple-choice model"):
        load_choice_model(checkpoint)


# --- adapters


@pytest.mark.parametrize("head", ["paper", "library"])
def test_adapters_train_with_the_head_and_load_with_it(checkpoint: Path, tmp_path: Path, head: str) -> None:
    pytest.importorskip("peft")
    parts = build_choice_model(str(checkpoint), head=head, encoder_dropout=0.0, seed=3)
    add_lora(parts.model, rank=2, alpha=8, seed=3)
    before = {name: value.clone() for name, value in parts.model.state_dict().items()}
    optimizer = torch.optim.SGD([one for one in parts.model.parameters() if one.requires_grad], lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        parts.model(**batch(parts, TWO), labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
    changed = {name for name, value in parts.model.state_dict().items() if not torch.equal(value, before[name])}
    kept = {name.removeprefix("seq2seq.") for name in lora_state(parts.model)}
    assert changed
    assert changed <= kept, "what training changes is in the checkpoint"
    assert any("lora" in name for name in changed)
    assert any("lora" not in name for name in changed), "the head trains"
    parts.model.eval()
    save_adapter(parts.model, tmp_path / "adapter", str(checkpoint), None, seed=3)
    loaded = ChoiceParts(load_adapter(tmp_path / "adapter"), parts.tokenizer)  # type: ignore[arg-type]
    assert np.allclose(scores(loaded, THREE), scores(parts, THREE), atol=1e-5)
