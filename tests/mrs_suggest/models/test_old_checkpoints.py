"""Folders with pytorch_model.bin: Unicoder for understanding tasks, as transformers 2 saved XLM-R, and others."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaTokenizer

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.old_checkpoints import convert_transformers
from mrs_suggest.models.understanding.understanding_start import LABEL, Head, build_understanding
from tests.cases import cases
from tests.mrs_suggest.models.generation.architectures.test_unicoder import Payload

Old = tuple[Path, XLMRobertaForMaskedLM]
# config.json of transformers 2: without model_type until 2.6.
CONFIG: dict[str, Any] = cases(__file__, "CONFIG")


@pytest.fixture
def old(tmp_path: Path) -> Old:
    """The folder of an encoder, and the model whose weights it has."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = XLMRobertaForMaskedLM(XLMRobertaConfig(**CONFIG)).eval()
    folder = tmp_path / "old"
    letters = [(f"▁{chr(97 + number)}", -2.0) for number in range(24)]
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    XLMRobertaTokenizer(vocab=[*special, *letters, ("▁", -3.0), ("<mask>", 0.0)]).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    state = dict(model.state_dict())  # with the tied decoder
    state["roberta.pooler.dense.weight"] = torch.eye(16)
    state["roberta.embeddings.position_ids"] = torch.arange(40)[None]
    torch.save(state, folder / "pytorch_model.bin")
    torch.save({"learning_rate": 1e-5}, folder / "training_args.bin")
    return folder, model


def test_unicoder_s_encoder_computes_the_same_and_starts_an_understanding_model(old: Old, tmp_path: Path) -> None:
    folder, model = old
    out = convert_transformers(str(folder), tmp_path / "new")
    loaded = AutoModelForMaskedLM.from_pretrained(out).eval()
    ids = torch.tensor([[0, 5, 9, 12, 2], [0, 7, 2, 1, 1]])
    read = {"input_ids": ids, "attention_mask": ids.ne(1).long()}
    with torch.no_grad():
        torch.testing.assert_close(loaded(**read).logits, model(**read).logits)
    weights = load_file(out / "model.safetensors")
    assert "roberta.pooler.dense.weight" in weights, "nothing is lost"
    assert "lm_head.decoder.weight" not in weights, "written once"
    assert not any(out.glob("*.bin"))
    parts = build_understanding(str(out), heads={"xnli": Head(LABEL, ("a", "b", "c"))})
    assert parts.tokenizer("a b")["input_ids"] == [0, 4, 5, 2]
    state = parts.model.state_dict()
    name = "roberta.encoder.layer.1.output.dense.weight"
    assert torch.equal(state[name], model.state_dict()[name])


def test_shards_are_joined(old: Old, tmp_path: Path) -> None:
    folder, model = old
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    (folder / "pytorch_model.bin").unlink()
    for number in (0, 1):
        part = {key: state[key] for key in list(state)[number::2]}
        torch.save(part, folder / f"pytorch_model-0000{number + 1}-of-00002.bin")
    (folder / "pytorch_model.bin.index.json").write_text("{}")
    out = convert_transformers(str(folder), tmp_path / "new")
    assert not (out / "pytorch_model.bin.index.json").exists()
    loaded, own = AutoModelForMaskedLM.from_pretrained(out).state_dict(), model.state_dict()
    assert all(torch.equal(loaded[key], own[key]) for key in own)


def test_views_of_other_tensors_are_copied(old: Old, tmp_path: Path) -> None:
    folder, _ = old
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    name, whole = "roberta.embeddings.position_embeddings.weight", torch.arange(3 * 40 * 16.0).view(3, 40, 16)
    views = {"roberta.part": whole[1][:7], "roberta.flat": whole[1].reshape(-1), "roberta.turned": whole[1].T}
    state |= {name: whole[1], **views}
    torch.save(state, folder / "pytorch_model.bin")
    weights = load_file(convert_transformers(str(folder), tmp_path / "new") / "model.safetensors")
    for key in (name, *views):
        assert torch.equal(weights[key], state[key]), key


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "pytorch_model.bin").unlink(), "expected pytorch_model.bin there"),
        (lambda f: (f / "pytorch_model.bin").write_bytes(b"PK\x03\x04 no"), "cut short or damaged"),
        (lambda f: torch.save([1], f / "pytorch_model.bin"), "expected a dictionary of weights"),
        (lambda f: torch.save({"a": Payload(f / "ran")}, f / "pytorch_model.bin"), "could run code"),
        (lambda f: (f / "config.json").unlink(), "expected a JSON object with model_type"),
        (lambda f: (f / "config.json").write_text('{"architectures": ["Strange"]}'), "or add model_type"),
        (lambda f: (f / "config.json").write_text('{"architectures": []}'), "or add model_type"),
    ],
)
def test_other_folders_are_refused_in_one_sentence(old: Old, tmp_path: Path, change: Any, words: str) -> None:
    folder, _ = old
    change(folder)
    with pytest.raises(InputError) as caught:
        convert_transformers(str(folder), tmp_path / "new")
    assert words in str(caught.value)
    assert str(folder) in str(caught.value)
    assert not (tmp_path / "new").exists()
    assert not (folder / "ran").exists()


def test_a_folder_is_not_written_over_itself(old: Old, tmp_path: Path) -> None:
    folder, _ = old
    with pytest.raises(InputError, match="would be replaced"):
        convert_transformers(str(folder), folder, overwrite=True)
    with pytest.raises(InputError, match="no such folder"):
        convert_transformers(str(tmp_path / "missing"), tmp_path / "new")
