"""The small generator from scratch: reproducible, with the tokens of its languages, and loadable as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.tiny_generator import POSITIONS, WIDTH, build_tiny_generator

TEXTS = ["How are you?", "I am fine, thanks!", "明日は元気ですか？", "はい、元気です。", "Как дела?", "Größe 👍"] * 2
LANGUAGES = ["en", "ja", "ru"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_generator(TEXTS, LANGUAGES, tmp_path_factory.mktemp("tiny"), 1, 200)


def test_equal_seeds_equal_files_other_seeds_other_weights(folder: Path, tmp_path: Path) -> None:
    same, other = (build_tiny_generator(TEXTS, LANGUAGES, tmp_path / str(seed), seed, 200) for seed in (1, 2))
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"):
        assert (folder / name).read_bytes() == (same / name).read_bytes()
    assert (folder / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()
    assert (folder / "tokenizer.json").read_bytes() == (other / "tokenizer.json").read_bytes()


def test_it_loads_without_a_missing_weight(folder: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model, report = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    shared = model.get_input_embeddings().weight
    assert tuple(shared.shape) == (len(tokenizer), WIDTH)
    for tied in (model.get_output_embeddings(), model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
        assert tied.weight is shared
    assert model.config.max_position_embeddings == POSITIONS
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert model.config.pad_token_id == tokenizer.pad_token_id
    assert model.config.decoder_start_token_id is None, "a call without the language's tag must fail"


def test_the_tags_are_tokens_that_no_text_writes(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tags = [f"[{code}]" for code in LANGUAGES]
    ids = tokenizer.convert_tokens_to_ids([*tags, "[EOS]", "</s>"])
    assert len(set(ids)) == len(ids)
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids, skip_special_tokens=True).strip() == ""
    assert (tokenizer.eos_token, tokenizer.sep_token) == ("[EOS]", "</s>")
    for text in TEXTS:
        plain = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.unk_token_id not in plain
        assert not set(ids) & set(plain)


def test_weights_start_as_fairseq_starts_them(folder: Path) -> None:
    """Xavier: uniform between -b and b, b = sqrt(6 / (in + out)); embeddings normal with 1 / sqrt(width)."""
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    bound = (6 / (WIDTH + 4 * WIDTH)) ** 0.5
    first = weights["model.encoder.layers.0.fc1.weight"]
    assert float(first.abs().max()) == pytest.approx(bound, rel=0.01)
    assert float(weights["model.shared.weight"].std()) == pytest.approx(WIDTH**-0.5, rel=0.1)
    assert not weights["model.encoder.layers.0.fc1.bias"].any()


@pytest.mark.parametrize("texts", [[], [""]])
def test_no_text_is_refused(texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training text"):
        build_tiny_generator(texts, ["en"], tmp_path, 1)
