"""Runs of the retrieval trainer from checkpoints as people have them: short, in this process."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages
from mrs_suggest.models.retrieval.message_encoder import MessageEncoder
from mrs_suggest.models.retrieval.routes import prompts_of
from tests.run_files import curve, record

pytestmark = pytest.mark.integration

TEXTS = ["en message 3", "ja message 11 ?", "translated reply"]
Train = Callable[..., Path]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformers encoder of three layers."""
    from transformers import BertConfig, BertModel

    from mrs_suggest.models.retrieval.tiny import train_tokenizer, write_checkpoint

    folder = tmp_path_factory.mktemp("encoder")
    words = [f"{kind} {what} {n}" for kind in ("en", "ja") for what in ("message", "reply") for n in range(80)]
    tokenizer = train_tokenizer([*words, "query: passage:"] * 2, 300)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return write_checkpoint(BertModel(config), tokenizer, folder)


def arguments(folder: Path) -> dict[str, Any]:
    """The options in the record of a run."""
    return dict(record(folder)["arguments"])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_dual_encoder(folder).state_dict())


def test_prompts_and_normalisation_in_a_run(base: Path, train: Train) -> None:
    options = ["--model_name_or_path", base, "--pooling", "mean", "--normalize", "true"]
    plain = train("plain", *options)
    run = train("prompted", *options, "--query_prompt", "query: ", "--reply_prompt", "passage: ")
    assert arguments(run)["query_prompt"] == "query: "
    assert arguments(run)["normalize"] is True
    card = (run / "README.md").read_text(encoding="utf-8")
    assert "| `query_prompt` | query:" in card
    assert "query_prompt" not in (plain / "README.md").read_text(encoding="utf-8")
    assert curve(plain, "loss", 2) != curve(run, "loss", 2)  # training read the prompts
    model = load_dual_encoder(run)
    assert prompts_of(model) == ("query: ", "passage: ")
    encoder = MessageEncoder.load(run)
    assert encoder is not None
    vectors = torch.from_numpy(encoder.encode(TEXTS))
    torch.testing.assert_close(vectors, encode_messages(model, TEXTS), rtol=0, atol=1e-5)
    resumed = json.loads((run / "resume.json").read_text(encoding="utf-8"))
    assert (resumed["query_prompt"], resumed["reply_prompt"], resumed["normalize"]) == ("query: ", "passage: ", True)


def test_a_run_starts_from_a_run(base: Path, train: Train, refused: Callable[..., str]) -> None:
    """Two towers: with a learning rate of 0, they and all that belongs to them come out as they went in."""
    shape = ["--pooling", "mean", "--normalize", "true", "--query_prompt", "query: ", "--message_tokens", 12]
    first = train("stage1", "--model_name_or_path", base, *shape)
    second = train("stage2", "--model_name_or_path", first, "--learning_rate", 0)
    before, after = weights(first), weights(second)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert any(
        not torch.equal(value, before[name.replace(".query.", ".document.")])
        for name, value in before.items()
        if ".query." in name
    )
    kept = {"encoders": "two", "pooling": "mean", "normalize": True, "query_prompt": "query: ", "message_tokens": 12}
    assert {key: arguments(second)[key] for key in kept} == kept
    assert arguments(second)["reply_tokens"] == 30
    assert record(second)["started_from"] == [f".../{base.name}"]
    assert record(second)["metrics"]["start"] == "retriever"
    assert f"(which started from `.../{base.name}`)" in (second / "README.md").read_text(encoding="utf-8")
    assert record(first)["started_from"] == []
    third = train("stage3", "--model_name_or_path", second, "--freeze_embeddings", "true", "--freeze_layers", 1)
    assert record(third)["started_from"] == [".../stage1", f".../{base.name}"]
    frozen = weights(third)
    changed = {name for name in before if not torch.equal(frozen[name], before[name])}
    assert changed
    assert not [name for name in changed if ".embeddings." in name or ".layer.0." in name]
    sentence = refused("--model_name_or_path", first, "--encoders", "one")
    assert sentence.startswith(f"--encoders one: {first} is a trained retriever with two encoders; ")


def test_adapters_on_a_trained_retriever(base: Path, train: Train) -> None:
    pytest.importorskip("peft")
    from mrs_suggest.models.adapters import load_adapter

    shape = ["--pooling", "mean", "--normalize", "true", "--query_prompt", "query: "]
    first = train("stage1", "--model_name_or_path", base, *shape)
    second = train("stage2", "--model_name_or_path", first, "--peft", "lora")
    loaded: Any = load_adapter(second / "adapter")
    expected = encode_messages(load_dual_encoder(second), TEXTS)
    torch.testing.assert_close(encode_messages(loaded, TEXTS), expected, rtol=0, atol=1e-5)
    assert prompts_of(loaded) == ("query: ", "")


def test_fewer_layers_with_falling_rates_and_a_resumed_run(
    base: Path, train: Train, refused: Callable[..., str], tmp_path: Path
) -> None:
    options = ["--model_name_or_path", base, "--pooling", "mean", "--layers", 2, "--layer_decay", 0.5]
    options += ["--optim", "sgd", "--lr_scheduler_type", "constant", "--warmup_steps", 0, "--max_grad_norm", 0]
    run = train("layers", *options)
    kept = {"layers": 2, "layer_decay": 0.5}
    assert {key: arguments(run)[key] for key in kept} == kept
    resume = json.loads((run / "resume.json").read_text(encoding="utf-8"))
    assert {key: resume[key] for key in kept} == kept
    assert not [name for name in weights(run) if ".layer.2." in name]
    state = torch.load(run / "checkpoint-2" / "optimizer.pt", weights_only=True)
    rates = [group["lr"] for group in state["param_groups"]]
    assert sorted(set(rates), reverse=True) == [1e-3, 5e-4, 2.5e-4]
    logged = json.loads((run / "checkpoint-2" / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    assert [entry["learning_rate"] for entry in logged if "learning_rate" in entry] == [1e-3, 1e-3]
    plain = train("one-rate", *options, "--layer_decay", 1)
    before = dict(build_dual_encoder(str(base), "mean", layers=2).state_dict())
    for part, share in (("embeddings.word", 0.25), ("layer.0.", 0.5), ("layer.1.", 1.0)):
        first = [weights(folder / "checkpoint-1") for folder in (run, plain)]
        moved = [
            sum(float((step[name] - before[name]).abs().sum()) for name in before if part in name) for step in first
        ]
        assert moved[0] == pytest.approx(share * moved[1], rel=2e-2), part
    resumed = tmp_path / "resumed"
    shutil.copytree(run, resumed)
    shutil.rmtree(resumed / "checkpoint-2")
    (resumed / "run.json").unlink()
    train("resumed", *options, "--resume_from_checkpoint", "last")
    assert all(torch.equal(value, weights(run)[name]) for name, value in weights(resumed).items())
    assert refused(*options, "--layer_decay", 2).startswith("--layer_decay: expected more than 0 and at most 1, found")
    assert refused(*options, "--layers", 9) == "--layers 9: expected at most 3, the encoder's number of layers."
    static = refused("--model_name_or_path", base, "--encoders", "static", "--layers", 1)
    assert static == "--layers: static vectors are one table without layers; leave it out."


def test_distillation_in_a_run(base: Path, train: Train) -> None:
    """The teacher is wider than its student, and runs before training, once."""
    student = ["--model_name_or_path", base, "--encoders", "static", "--dimension", 8]
    options = ["--model_name_or_path", base, "--pooling", "mean", "--layers", 1, "--normalize", "true"]
    plain = train("plain", *options)
    teaching = ["--teacher", base, "--teacher_prompt", "query: ", "--distill_weight", 2]
    run = train("student", *options, *teaching)
    small = train("small", *student, *teaching)
    kept = {"teacher": f".../{base.name}", "teacher_prompt": "query: ", "distill_weight": 2.0}
    for folder in (run, small):
        assert {key: arguments(folder)[key] for key in kept} == kept
    assert arguments(plain)["distill_weight"] is None
    assert all(mine > alone for mine, alone in zip(*(curve(folder, "loss", 2) for folder in (run, plain)), strict=True))
    assert f"| `teacher` | .../{base.name} |" in (run / "README.md").read_text(encoding="utf-8")


def test_sentences_without_a_reply_are_copied_from_a_teacher(base: Path, train: Train, tmp_path: Path) -> None:
    text = tmp_path / "texts.txt"
    text.write_text("a word that no message has\nanother\n", encoding="utf-8")
    options = ["--model_name_or_path", base, "--layers", 1, "--teacher", base, "--distill", "vectors", "--perturbed", 0]
    plain = train("copied", *options)
    more = train("copied_more", *options, "--distill_text", f"sv={text}")  # no language of the pairs
    assert record(more)["data"]["more_text"]["rows"] == {"sv": {"train": 2}}
    assert curve(more, "loss", 2) != curve(plain, "loss", 2)
    assert "| `distill_text` |" in (more / "README.md").read_text(encoding="utf-8")


def test_a_guard_learns_from_further_sentences(
    base: Path, train: Train, mrs_here: Callable[..., Any], tmp_path: Path
) -> None:
    run = train("guarded", "--model_name_or_path", base)
    plain = (run / "guard" / "space.safetensors").read_bytes()
    text = tmp_path / "everyday.txt"
    text.write_text("".join(f"the lorry number {n} brings bricks\n" for n in range(2000)), encoding="utf-8")
    assert mrs_here("models", "guard", run, "--text", f"en={text}")[0] == 0
    assert record(run)["guard_text"] == [["en", "everyday.txt", 1500]]
    assert "everyday sentences: 1,500 en (everyday.txt)." in (run / "README.md").read_text(encoding="utf-8")
    more = (run / "guard" / "space.safetensors").read_bytes()
    assert more != plain
    assert mrs_here("models", "guard", run, "--text", f"en={text}")[0] == 0
    assert (run / "guard" / "space.safetensors").read_bytes() == more, "the sample is seeded"
    code, _, said = mrs_here("models", "guard", run)
    assert (code, "note: the guard had learned from --text" in said) == (0, True)
    assert record(run)["guard_text"] == []
    assert "everyday sentences" not in (run / "README.md").read_text(encoding="utf-8")
    code, _, said = mrs_here("models", "guard", run, "--text", f"fi={text}")
    assert (code, "the model has no replies in fi" in said) == (2, True)
