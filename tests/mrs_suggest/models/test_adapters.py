"""LoRA: what trains, merging, checkpoints, adapter folders, refusals. What makes adapters needs peft."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.models.adapters import (
    add_lora,
    has_adapter,
    has_lora,
    load_adapter,
    load_lora_state,
    lora_state,
    merge_lora,
    read_lora_state,
    save_adapter,
    write_lora_state,
)
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.routes import build_settings, encoders

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TEXTS = ["how are you?", "元気ですか", "a b c d", "Спасибо"]
RECORD = {
    "version": 2,
    "family": "retrieval", "base": "org/base", "revision": None, "fingerprint": "0" * 16,
    "pooling": "mean", "message_tokens": 70, "reply_tokens": 30, "encoders": "two", "query_prompt": "",
    "reply_prompt": "", "normalize": None, "layers": None, "seed": 0,
}  # fmt: skip
SMALL = (2, 8.0, 0.1)  # rank, alpha, dropout


@pytest.fixture
def _peft() -> None:
    pytest.importorskip("peft")


needs_peft = pytest.mark.usefixtures("_peft")


def dual(checkpoint: Path, shape: str) -> SentenceTransformer:
    return build_dual_encoder(str(checkpoint), "mean", message_tokens=12, reply_tokens=7, encoders=shape)


def vectors(model: SentenceTransformer) -> Tensor:
    return torch.cat([encode_messages(model, TEXTS), encode_replies(model, TEXTS)])


def shake(model: nn.Module) -> None:
    """Adapters as after training: another value each, so that nothing stays zero and no two encoders are alike."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)


def one_sentence(error: BaseException) -> bool:
    return "\n" not in str(error) and str(error).endswith(".")


def of_base(folder: Path, base: Path) -> Path:
    """The folder of adapters, now those of a base in another place."""
    record = json.loads((folder / "adapter.json").read_text())
    (folder / "adapter.json").write_text(json.dumps({**record, "base": str(base), "revision": None}))
    return folder


@needs_peft
@pytest.mark.parametrize("shape", ["two", "one"])
def test_only_the_adapters_train(checkpoint: Path, shape: str) -> None:
    model = dual(checkpoint, shape)
    before, plain = vectors(model), {name: value.clone() for name, value in model.state_dict().items()}
    add_lora(model, *SMALL)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    # Query and value of three layers: two matrices of 2 x 16 each.
    assert sum(p.numel() for p in trained.values()) == len(encoders(model)) * 3 * 2 * 2 * (2 * 16)
    assert all(".lora_" in name for name in trained)
    assert has_lora(model)
    torch.testing.assert_close(vectors(model), before, rtol=0, atol=1e-6)  # nothing learnt yet
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=10.0)
    for _ in range(2):  # the first step moves only the second matrix, the first being multiplied by zero
        for task in ("query", "document"):
            features = model.preprocess(TEXTS, task=task)
            (model(features, task=task)["sentence_embedding"] ** 3).sum().backward()
        optimizer.step()
    moved = vectors(model)
    assert not torch.allclose(moved[:4], before[:4], atol=1e-3)
    assert not torch.allclose(moved[4:], before[4:], atol=1e-3)
    for name, value in model.state_dict().items():
        if ".lora_" not in name:
            assert torch.equal(value, plain[name.replace(".base_layer.", ".")]), name


@needs_peft
@pytest.mark.parametrize("shape", ["two", "one"])
def test_an_adapter_folder_and_a_merged_model_give_one_vector(checkpoint: Path, tmp_path: Path, shape: str) -> None:
    model = dual(checkpoint, shape)
    own, before = list(model.state_dict()), vectors(model)
    add_lora(model, *SMALL)
    shake(model)
    adapted = vectors(model.eval())
    assert not torch.allclose(adapted, before, atol=1e-2)
    folder = tmp_path / "adapter"
    assert not has_adapter(folder)
    save_adapter(model, folder, "org/base", "0123abc")
    assert has_adapter(folder)
    names = {"two": ["document"], "one": []}[shape]
    names += ["adapter.json", "adapter_config.json", "adapter_model.safetensors"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    base = sum(p.numel() * 4 for name, p in model.named_parameters() if ".lora_" not in name)
    assert sum(path.stat().st_size for path in folder.rglob("*.safetensors")) < base / 3
    record = json.loads((folder / "adapter.json").read_text())
    assert record["base"] == "org/base" and record["revision"] == "0123abc"  # noqa: PT018
    assert {key: record[key] for key in build_settings(model)} == build_settings(model)
    written = "".join(path.read_text() for path in folder.rglob("*.json"))
    assert str(checkpoint) not in written  # it is published, and a path names people and machines
    loaded = load_adapter(of_base(folder, checkpoint))
    assert not has_lora(loaded)
    torch.testing.assert_close(vectors(loaded), adapted, rtol=0, atol=1e-5)  # type: ignore[arg-type]
    loaded.save_pretrained(str(tmp_path / "merged"))
    torch.testing.assert_close(vectors(load_dual_encoder(tmp_path / "merged")), adapted, rtol=0, atol=1e-5)
    merge_lora(model)
    assert not has_lora(model)
    assert list(model.state_dict()) == own
    torch.testing.assert_close(vectors(model), adapted, rtol=0, atol=1e-5)
    model.save_pretrained(str(tmp_path / "own"), create_model_card=False)
    torch.testing.assert_close(vectors(load_dual_encoder(tmp_path / "own")), adapted, rtol=0, atol=1e-5)
    merge_lora(model)  # there is nothing left to do
    torch.testing.assert_close(vectors(model), adapted, rtol=0, atol=1e-5)
    add_lora(model, *SMALL)  # and it can take others
    assert has_lora(model)


@needs_peft
def test_adapters_are_what_peft_writes_and_are_all_in_a_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModel

    model = dual(checkpoint, "two")
    add_lora(model, *SMALL)
    shake(model)
    save_adapter(model, tmp_path / "adapter", "org/base", None)
    batch = model.preprocess(TEXTS, task="query")
    inputs = {key: batch[key] for key in ("input_ids", "attention_mask")}
    theirs = PeftModel.from_pretrained(AutoModel.from_pretrained(checkpoint), str(tmp_path / "adapter"))
    theirs.load_adapter(str(tmp_path / "adapter"), "document", subfolder="document")
    for ours, name in zip(encoders(model.eval()), ("default", "document"), strict=True):
        theirs.set_adapter(name)
        with torch.no_grad():
            expected = ours(**inputs).last_hidden_state
            torch.testing.assert_close(theirs.eval()(**inputs).last_hidden_state, expected, rtol=0, atol=1e-5)
    state, adapted = lora_state(model), vectors(model.eval())
    write_lora_state(model, tmp_path)
    shake(model)
    assert not torch.allclose(vectors(model), adapted, atol=1e-3)
    read = read_lora_state(tmp_path)
    assert read.keys() == state.keys()
    assert all(torch.equal(read[name], value) for name, value in state.items())  # a copy, not the weights themselves
    load_lora_state(model, read)
    assert torch.equal(vectors(model), adapted)
    fresh = dual(checkpoint, "two")  # a resumed run
    add_lora(fresh, *SMALL, seed=9)
    load_lora_state(fresh, read)
    assert torch.equal(vectors(fresh.eval()), adapted)


@needs_peft
def test_another_base_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    model = dual(checkpoint, "two")
    add_lora(model, *SMALL)
    save_adapter(model, tmp_path / "adapter", str(checkpoint), None)
    other = encoders(dual(checkpoint, "one"))[0]
    weight: Any = other.get_submodule("encoder.layer.2.output.dense").weight
    with torch.no_grad():
        weight.view(-1)[weight.numel() // 2 + 1] += 1e-4
    other.save_pretrained(tmp_path / "other")  # type: ignore[operator]
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "other" / file).write_bytes((checkpoint / file).read_bytes())
    with pytest.raises(InputError, match="has other weights than the base that the adapters were trained on") as caught:
        load_adapter(of_base(tmp_path / "adapter", tmp_path / "other"))
    assert one_sentence(caught.value)
    with pytest.raises(InputError, match=r"adapter\.json: its base .* cannot be loaded: ") as caught:
        load_adapter(of_base(tmp_path / "adapter", tmp_path / "nowhere"))
    assert one_sentence(caught.value)


@needs_peft
def test_weights_that_the_base_lacks_come_from_the_seed_again(checkpoint: Path, tmp_path: Path) -> None:
    """Many encoders are published without a pooler."""
    shutil.copytree(checkpoint, tmp_path / "base")
    tensors = load_file(tmp_path / "base" / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if "pooler" not in name}
    assert len(kept) < len(tensors)
    save_file(kept, tmp_path / "base" / "model.safetensors", metadata={"format": "pt"})
    model = build_dual_encoder(str(tmp_path / "base"), "pooler", seed=7)
    add_lora(model, *SMALL)
    shake(model)
    save_adapter(model, tmp_path / "adapter", str(tmp_path / "base"), None, seed=7)
    merge_lora(model)
    loaded: Any = load_adapter(tmp_path / "adapter")
    assert torch.equal(vectors(loaded), vectors(model.eval()))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def of_another_rank(path: Path) -> None:
    save_file({name: value[:1].contiguous() for name, value in load_file(path).items()}, path)


@needs_peft
@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("adapter_model.safetensors", cut, "damaged"),
        ("adapter_model.safetensors", Path.unlink, "no adapter_model.safetensors"),
        ("adapter_model.safetensors", of_another_rank, r"damaged \(adapters: expected query\."),
        ("document/adapter_config.json", cut, "damaged"),
        ("document/adapter_config.json", Path.unlink, "no adapter_config.json"),
    ],
)
def test_damaged_adapters_are_refused(
    checkpoint: Path, tmp_path: Path, name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    model = dual(checkpoint, "two")
    add_lora(model, *SMALL)
    save_adapter(model, tmp_path / "adapter", str(checkpoint), None)
    damage(tmp_path / "adapter" / name)
    with pytest.raises(InputError, match=sentence) as caught:
        load_adapter(tmp_path / "adapter")
    assert "\n" not in str(caught.value)


@needs_peft
def test_a_state_of_other_adapters_is_refused(checkpoint: Path) -> None:
    model, other = dual(checkpoint, "two"), dual(checkpoint, "two")
    add_lora(model, *SMALL)
    add_lora(other, rank=3)
    before = lora_state(model)
    with pytest.raises(InputError, match=r"^adapters: expected document\..* to be \(2, 16\), found \(3, 16\); "):
        load_lora_state(model, lora_state(other))
    assert all(torch.equal(before[name], value) for name, value in lora_state(model).items())
    with pytest.raises(ValueError, match="has adapters already"):
        add_lora(model, *SMALL)


FAMILIES = "retrieval, generation, causal_lm, multiple_choice, understanding, masked_lm"
DAMAGED_RECORDS: list[tuple[str, str]] = [
    *(
        (json.dumps(RECORD | change), sentence)
        for change, sentence in (
            ({"family": "poetry"}, rf"expected family to be one of {FAMILIES}, found 'poetry'"),
            ({"version": 3}, r"expected version to be 2, found 3; another version of this package wrote it"),
            ({"version": "2"}, r'expected version to be 2, found "2"'),
            ({"version": True}, r"expected version to be 2, found true"),
            ({"base": None}, r"expected base to be str, found null"),
            ({"message_tokens": "70"}, r'expected message_tokens to be int, found "70"'),
            ({"pooling": 3}, r"expected pooling to be str or null, found 3"),
            ({"encoders": "three"}, r"--encoders: expected one of two, one, static, found 'three'"),
        )
    ),
    *(
        (json.dumps({name: RECORD[name] for name in RECORD if name != key}), rf"expected {key} to be ")
        for key in RECORD
    ),
    *((text, "damaged, expected a JSON object; ") for text in ("", "[]", '{"family": "retr', "\x00")),
]


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    for text, sentence in DAMAGED_RECORDS:
        (tmp_path / "adapter.json").write_text(text)
        with pytest.raises(InputError, match=sentence) as caught:
            load_adapter(tmp_path)
        assert str(tmp_path / "adapter.json") in str(caught.value)
        assert one_sentence(caught.value)


def test_without_peft_the_sentence_says_what_to_install(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(
        MissingExtraError,
        match=r"^--peft lora needs .*'peft', .* `pip install '\.\[torch\]'` in a clone \(docs/install\.md\)\.$",
    ):
        add_lora(dual(checkpoint, "two"), *SMALL)
