"""`mrs convert`: from a fairseq checkpoint to a folder that transformers loads, or to one sentence and no folder."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

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
    again = mrs("convert", "unicoder", "checkpoint.pt", "--out", "out", cwd=tmp_path)
    assert again.returncode == 2
    assert "Traceback" not in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt", "out"]
