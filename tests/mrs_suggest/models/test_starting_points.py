"""What a training cannot start from is named, with what it can."""

import json
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.models.adapters import add_lora, save_adapter, write_lora_state
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.pretraining.masked_lm import load_masked_lm
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
from mrs_suggest.models.starting_points import ADAPTERS, RETRIEVER, ROUTER, require_start, start_kind

TEXTS = ["how are you?", "fine, thanks!", "¿qué tal?"] * 20


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generator."""
    scratch, folder = (tmp_path_factory.mktemp(name) for name in ("scratch", "writer"))
    build_tiny_generator(TEXTS, ["en"], scratch, 0, 200)
    Generator.build(str(scratch), ["en"], 20, 20, Decoding(max_tokens=10)).save(folder)
    return folder


def retriever(checkpoint: Path, folder: Path, kind: str) -> Path:
    build_dual_encoder(str(checkpoint), "mean", encoders=kind).save_pretrained(str(folder), create_model_card=False)
    return folder


def refused(name: Path | str, family: str, kind: str = "two") -> str:
    """The sentence with which the model to train is refused, without its beginning."""
    with pytest.raises(InputError) as caught:
        if family == "retrieval":
            build_dual_encoder(str(name), "mean", encoders=kind)
        elif family == "pretraining":
            load_masked_lm(str(name), None, 0)
        else:
            Generator.build(str(name), ["en"], 20, 20, Decoding(max_tokens=10))
    sentence = str(caught.value)
    beginning = f"--model_name_or_path {name}: "
    assert sentence.startswith(beginning)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence.removeprefix(beginning)


@pytest.mark.parametrize("family", ["retrieval", "generation", "pretraining"])
def test_a_name_without_a_folder_or_a_model_is_named_before_the_hub_is_asked(family: str, tmp_path: Path) -> None:
    choice = "no such folder; pass a folder, or a hub id ORG/NAME."
    assert refused("tinny", family) == refused(tmp_path / "nowhere", family) == choice
    (tmp_path / "notes.json").write_text("{}")
    assert refused(tmp_path, family).startswith("no model in this folder (no config.json, ")


def test_no_start_from_a_model_of_the_other_family(checkpoint: Path, tmp_path: Path, writer: Path) -> None:
    assert refused(writer, "retrieval").startswith("is a trained generator; a retriever starts from an encoder, ")
    assert refused(writer, "pretraining").startswith("is a trained generator; masked language modelling starts from ")
    for kind in ("two", "static"):
        run = retriever(checkpoint, tmp_path / kind, kind)
        assert refused(run, "generation").startswith("is a trained retriever; a generator starts from a seq")
        with pytest.raises(InputError, match="is a trained retriever; a language model starts from a decoder-only"):
            require_start(str(run), "causal")


@pytest.mark.parametrize("family", ["retrieval", "generation", "pretraining"])
@pytest.mark.parametrize("what", ["adapter", "adapter/document", "checkpoint"])
def test_nor_from_adapters_without_their_base(checkpoint: Path, tmp_path: Path, family: str, what: str) -> None:
    pytest.importorskip("peft")
    model = build_dual_encoder(str(checkpoint), "mean")
    add_lora(model, rank=2)
    save_adapter(model, tmp_path / "adapter", "org/base", None)
    (tmp_path / "checkpoint").mkdir()
    write_lora_state(model, tmp_path / "checkpoint")
    sentence = refused(tmp_path / what, family)
    assert sentence.startswith("holds adapters (LoRA), which are not a model by themselves; pass the base ")
    assert ("trained on (org/base), or" in sentence) is (what != "checkpoint")


def test_a_model_of_the_hub_is_known_by_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    router = tmp_path / ROUTER
    router.write_text(json.dumps({"structure": {"query": ["query_0_Transformer", "query_1_Pooling"]}}))
    asked: list[tuple[str, str, str | None]] = []

    def cached_file(kind: str, repo_id: str, name: str, revision: str | None = None) -> Path | None:
        asked.append((repo_id, name, revision))
        return router if name == ROUTER else None

    monkeypatch.setattr(hub, "cached_file", cached_file)
    with pytest.raises(InputError, match=r"^--model_name_or_path org/run: is a trained retriever; a generator starts "):
        require_start("org/run", "generation", "v1")
    assert asked == [("org/run", name, "v1") for name in (*ADAPTERS, ROUTER)]
    require_start("org/run", "retrieval", "v1")
    assert start_kind("org/run", "v1") == RETRIEVER
