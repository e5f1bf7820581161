"""What the guides to training show works: their commands run.

The commands run as they stand there, in a folder that has small stand-ins under the names of data and checkpoints, with
options around theirs that make them short. Those of one process run in this one, which saves imports.
"""

import argparse
import contextlib
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # the site's own scripts; no name of theirs is a library's

import blocks  # noqa: E402

BIN = Path(sys.executable).parent
GUIDES = ("train_on_mrs", "pretrained_encoder", "train_generator", "memory_and_gpus", "search_options")
PAGES = [ROOT / "docs" / "how_to" / f"{name}.md" for name in GUIDES]
LANGUAGES = ("en", "es", "de", "pt", "fr", "ja")
ENCODER, TOKENIZER = "google-bert/bert-base-multilingual-cased", "FacebookAI/xlm-roberta-base"
SMALL = shlex.split(
    "--per_device_train_batch_size 4 --max_validation_examples 5 --max_test_examples 6 --vocabulary 300 "
    "--disable_tqdm true"
)
SMALL_FAMILY = {
    "retrieval": ["--mini_batch_size", "4"],
    "generation": ["--message_tokens", "70", "--reply_tokens", "30", "--max_tokens", "5"],
}
STEPS = 2
PREPARED = ["mrs", "data", "prepare", "mrs", "--source", "pairs", "--out", "build/mrs"]
CONVERTING = ["mrs", "convert"]
# Page -> its commands in the blocks whose mark says `tested`.
TESTED = {
    page.stem: [one.words() for one in blocks.commands(page.read_text(encoding="utf-8")) if one.mark == "tested"]
    for page in PAGES
}


def write_pairs(folder: Path) -> None:
    """Small texts in six languages, and translated ones of two."""
    folder.mkdir()
    for code in (*LANGUAGES, "mt-es", "mt-ja"):
        count = 15 if code.startswith("mt-") else 30
        lines = [
            f"{code} question {n} about {w}?\t{code} reply {n % 7} {w}\n" for n in range(count) for w in ("tea", "rain")
        ]
        (folder / f"{code}.tsv").write_text("".join(lines), encoding="utf-8")


def write_encoder(folder: Path, texts: list[str]) -> None:
    """A BERT of three layers, so that two can be frozen."""
    from transformers import BertConfig, BertModel

    from mrs_suggest.models.retrieval.tiny import train_tokenizer

    tokenizer = train_tokenizer(texts, 300)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_unicoder(checkpoint: Path, tokenizer: Path) -> None:
    """A fairseq checkpoint in Unicoder's layout, and the tokenizer that its vocabulary begins with."""
    from transformers import BartForConditionalGeneration, XLMRobertaTokenizer

    from mrs_suggest.models.generation.architectures.unicoder import unicoder_config

    letters = [(chr(number), -3.0) for number in range(ord("a"), ord("z") + 1)]
    pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")] + [("▁", -3.0), *letters]
    XLMRobertaTokenizer(vocab=[*pieces, ("<mask>", 0.0)]).save_pretrained(tokenizer)
    size = len(pieces) + 1 + 1 + len(LANGUAGES) + 4
    state: dict[str, Any] = BartForConditionalGeneration(unicoder_config(size, 16, 2, 2, 24, 80)).model.state_dict()
    del state["shared.weight"]
    arguments = argparse.Namespace(
        encoder_attention_heads=2, decoder_attention_heads=2, common_eos="EOS", langs=",".join(LANGUAGES), placeholder=4
    )
    torch.save({"args": arguments, "model": state}, checkpoint)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder where the commands find what they name; the guide's own command made Unicoder."""
    from accelerate.state import AcceleratorState

    folder = tmp_path_factory.mktemp("training_guides")
    (folder / "trainers").symlink_to(ROOT / "trainers")
    write_pairs(folder / "pairs")
    texts = [line for path in (folder / "pairs").iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        write_encoder(folder / ENCODER, texts)
        write_unicoder(folder / "checkpoint.pt", folder / TOKENIZER)
    with contextlib.chdir(folder):
        for command in (PREPARED, *(one for commands in TESTED.values() for one in commands if one[:2] == CONVERTING)):
            run(command)
    yield folder
    AcceleratorState._reset_state(reset_partial_state=True)


def run(command: list[str]) -> None:
    """Run one command of a guide in the working folder: `accelerate launch` of several ranks in its own processes."""
    family, own = trained_by(command)
    if family is None:
        assert command[0] == "mrs", command
        assert importlib.import_module("mrs_suggest.cli.main").main(command[1:]) == 0, command
        return
    short = ["--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--fp16", "false"]
    short += ["--eval_steps", STEPS, "--save_steps", STEPS, "--use_cpu", "true"]
    short += ["--global_batch_size", "4"] if "--config" in own else []
    words = [str(word) for word in (*SMALL, *SMALL_FAMILY[family], *own, *short)]
    if not any("ranks" in word for word in command if word.endswith(".yaml")):
        assert importlib.import_module(f"mrs_trainers.{family}").main(words) == 0, command
        return
    launcher = command[: len(command) - len(own)]
    launcher[2:2] = ["--main_process_port", "0"]  # any free one: other tests launch, too
    done = subprocess.run(
        [str(BIN / launcher[0]), *launcher[1:], *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, encoding="utf-8", timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]


def trained_by(command: list[str]) -> tuple[str | None, list[str]]:
    """The family that a command trains, and the trainer's own options; None for other commands."""
    if command[:2] == ["mrs", "train"]:
        return command[2], command[3:]
    for number, word in enumerate(command):
        if word.startswith("trainers/") and word.endswith(".py"):
            return Path(word).stem, command[number + 1 :]
    return None, []


def folder_of(own: list[str]) -> Path:
    if "--output_dir" in own:
        return Path(own[own.index("--output_dir") + 1])
    config = Path(own[own.index("--config") + 1])
    return Path("build", f"{config.parent.name}_{config.stem}")


@pytest.mark.parametrize("page", [page for page, commands in TESTED.items() if commands])
def test_a_guide_does_what_it_shows(page: str, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace)
    for command in (one for one in TESTED[page] if one[:2] != CONVERTING):
        family, own = trained_by(command)
        run(command)
        if family:
            record = json.loads((folder_of(own) / "run.json").read_text(encoding="utf-8"))
            assert (record["trainer"], record["steps"]) == (family, STEPS)


def test_the_sweep_is_one(tmp_path: Path) -> None:
    from mrs_suggest.training.sweep import read_sweep

    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGES[-1].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "sweep.yaml").write_text(text, encoding="utf-8")
    assert set(read_sweep(tmp_path / "sweep.yaml").options) == {"learning_rate", "freeze_layers", "pooling"}
