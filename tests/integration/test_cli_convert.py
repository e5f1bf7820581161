"""`mrs convert`: from a published layout to a folder that transformers loads, or to one sentence and no folder."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.mrs_suggest.models.generation.architectures.test_xprophetnet import (
    ARGUMENTS,
    fairseq_state,
    old_folder,
    train_pieces,
)

pytestmark = pytest.mark.integration

WIDTH, FFN, VOCAB, POSITIONS, BASE = 16, 24, 40, 20, 33
LANGS = ("en", "es")
Command = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(mrs_here: Command) -> Command:
    """A function that runs `mrs convert unicoder`."""
    return lambda *arguments: mrs_here("convert", "unicoder", *arguments)


def save_checkpoint(path: Path, **changes: object) -> Path:
    """A small checkpoint in fairseq's layout: BART's own weights under fairseq's names."""
    from transformers import BartForConditionalGeneration

    from mrs_suggest.models.generation.architectures.unicoder import unicoder_config

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BartForConditionalGeneration(unicoder_config(VOCAB, WIDTH, 2, 2, FFN, POSITIONS)).model
    state: dict[str, object] = dict(model.state_dict())
    del state["shared.weight"]
    arguments = argparse.Namespace(
        encoder_attention_heads=2, decoder_attention_heads=2, common_eos="EOS", langs=",".join(LANGS), placeholder=4
    )
    content: dict[str, Any] = {"args": arguments, "model": {**state, "encoder.version": torch.tensor([3.0]), **changes}}
    torch.save(content, path)
    return path


@pytest.fixture(scope="module")
def xlmr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import XLMRobertaTokenizer

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(chr(number), -3.0) for number in range(ord("a"), ord("a") + BASE - 6)] + [("<mask>", 0.0)]
    folder = tmp_path_factory.mktemp("xlmr")
    XLMRobertaTokenizer(vocab=pieces).save_pretrained(folder)
    return folder


def test_a_checkpoint_becomes_a_model_that_writes(run: Command, tmp_path: Path, xlmr: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    checkpoint, out = save_checkpoint(tmp_path / "checkpoint.pt"), tmp_path / "unicoder"
    code, printed, errors = run(checkpoint, "--out", out, "--tokenizer", xlmr)
    assert (code, errors) == (0, "")
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert printed.splitlines() == [
        f"2 + 2 layers, 16 wide, {parameters:,} parameters",
        "vocabulary of 40, texts of up to 20 tokens",
        f"wrote {out}",
        f"next: mrs train generation --model_name_or_path {out}",
    ]
    start = tokenizer.convert_tokens_to_ids("[es]")
    reply = model.generate(**tokenizer("hola", return_tensors="pt"), decoder_start_token_id=start, max_new_tokens=5)
    assert reply[0, 0] == start
    assert len(tokenizer) == model.config.vocab_size == VOCAB


def test_through_the_installed_command(mrs: Callable[..., Any], tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoint.pt")
    done = mrs("convert", "unicoder", "checkpoint.pt", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--tokenizer" in done.stdout.splitlines()[-1]
    (tmp_path / "out" / "config.json").write_text("{}", encoding="utf-8")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = mrs("convert", "unicoder", "checkpoint.pt", "--out", "out", cwd=tmp_path)
    assert again.returncode == 2
    assert "Traceback" not in again.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt", "out"]


def test_xprophetnet_s_layouts_become_models_that_write(mrs_here: Command, tmp_path: Path) -> None:
    """The same weights, as fairseq and as transformers 4 saved them; then the command with a missing file."""
    from mrs_suggest.models.generation.decoding.settings import Decoding
    from mrs_suggest.models.generation.generator import Generator

    pieces, fixed, converted = train_pieces(tmp_path), tmp_path / "fixed", tmp_path / "converted"
    content = {"args": argparse.Namespace(**ARGUMENTS), "model": fairseq_state()}
    torch.save(content, tmp_path / "checkpoint.pt")
    code, printed, errors = mrs_here(
        "convert", "xprophetnet", tmp_path / "checkpoint.pt", "--tokenizer", pieces, "--out", converted
    )
    assert (code, errors) == (0, "")
    assert printed.splitlines()[1:] == [
        f"wrote {converted}", f"next: mrs train generation --model_name_or_path {converted}",
    ]  # fmt: skip
    old = old_folder(tmp_path / "old", pieces, "bin")
    code, printed, errors = mrs_here("convert", "transformers", old, "--out", fixed)
    assert (code, errors, printed.splitlines()[1:]) == (0, "", [f"wrote {fixed}"])
    one, other = load_file(fixed / "model.safetensors"), load_file(converted / "model.safetensors")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    generators = [Generator.build(str(folder), ["en"], 20, 12, Decoding(max_tokens=8)) for folder in (fixed, converted)]
    first, second = (generator.suggest(["hola"], "en", 3) for generator in generators)
    assert first == second
    assert first[0]
    code, _, errors = mrs_here("convert", "transformers", tmp_path / "missing", "--out", tmp_path / "out")
    assert (code, errors.count("\n")) == (2, 1)
    assert "no such folder" in errors


def test_a_published_layout_is_decoded_and_scored_without_training(mrs: Callable[..., Any], tmp_path: Path) -> None:
    """What XGLUE's page says of a checkpoint that was fine-tuned on news titles."""
    from mrs_datasets.prepared.prepare import prepare

    prepare("synthetic-xglue", ["synthetic"], tmp_path / "data")
    old_folder(tmp_path / "old", train_pieces(tmp_path))
    words = (
        "train generation --task ntg --data data --model_name_or_path old --max_steps 0 --beams 2 --message_tokens 20 "
        "--reply_tokens 12 --max_tokens 8 --max_test_examples 3 --max_validation_examples 3 --use_cpu true "
        "--disable_tqdm true --output_dir run"
    )
    done = mrs(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    scored = facts["metrics"]["systems"]["NTG"]
    assert {code: found["n"] for code, found in scored.items() if code != "average"} == dict.fromkeys(
        ("en", "de", "es", "fr"), 3
    )
    assert (tmp_path / "run" / "predictions" / "NTG" / "fr.prediction").is_file()
    original, saved = (load_file(tmp_path / name / "model.safetensors") for name in ("old", "run"))
    assert all(torch.equal(saved[key], original[key]) for key in original), "nothing was trained"
