"""`trainers/pretraining.py` from text files to an encoder: one launch of each kind, shared among the tests."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import curve, record

pytestmark = pytest.mark.integration

STEPS = 40
CUT = 30  # in the second epoch, whose masks are others than those of the first
OPTIONS: list[object] = [
    "--held_out", 30,
    "--model_name_or_path", "base", "--max_steps", STEPS, "--eval_steps", STEPS // 4, "--save_steps", STEPS // 4,
    "--max_tokens", 20, "--learning_rate", 0.003, "--use_cpu", "true", "--disable_tqdm", "true", "--sampling_alpha",
    0.3, "--logging_steps", 1,
]  # fmt: skip
TEXT: list[object] = ["--text", "ht=ht.txt", "en=en.txt", "--test_text", "ht=test.txt"]
PAIRS: list[object] = ["--parallel", "en-ht=pairs.tsv"]
MIXED: list[object] = [*TEXT, *PAIRS, "--objective", "mlm", "tlm", "--shares", 3, 1]


def sentence(draw: random.Random, letters: str) -> str:
    """Every word stands twice, so that a hidden one can be told from its neighbour, which a head alone cannot see."""
    return " ".join(f"{letter * 2} {letter * 2}" for letter in draw.choices(letters, k=4))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts in two languages, translations word by word, and a small BERT without a head, of random weights and without
    dropout."""
    from mrs_suggest.models.retrieval.tiny import build_tiny

    folder, draw = tmp_path_factory.mktemp("pretraining"), random.Random(0)
    for name, words, count in (("ht", "abcdefgh", 400), ("en", "stuvwxyz", 100), ("test", "abcdefgh", 60)):
        lines = [sentence(draw, words) for _ in range(count)]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    pairs = [draw.choices(range(8), k=4) for _ in range(130)]
    sides = [
        [" ".join(f"{words[n] * 2} {words[n] * 2}" for n in pair) for words in ("stuvwxyz", "abcdefgh")]
        for pair in pairs
    ]
    for name, lines in (("pairs", sides[:-10]), ("test", sides[-10:])):
        (folder / f"{name}.tsv").write_text("".join("\t".join(pair) + "\n" for pair in lines), encoding="utf-8")
    texts = [line for name in ("ht", "en") for line in (folder / f"{name}.txt").read_text().splitlines()]
    (folder / "base").mkdir()
    build_tiny(texts, folder / "base", 0, 120, "[MASK]")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print: a whole one of two objectives, the same cut off at a checkpoint and resumed, and on two
    ranks; the control whose encoder is frozen, adapters on a run's model, and translations alone."""
    lora = ["--peft", "lora", "--model_name_or_path", "whole", "--max_steps", 2, "--eval_steps", 1, "--save_steps", 1,
            "--warmup_steps", 0]  # fmt: skip
    alone = ["--objective", "tlm", "--test_parallel", "en-ht=test.tsv", "--max_steps", 24, "--eval_steps", 4,
             "--save_steps", 4]  # fmt: skip
    runs = [
        (["--output_dir", name, *map(str, [*OPTIONS, "--per_device_train_batch_size", 16 // ranks, *more])], cut, ranks)
        for name, more, cut, ranks in (
            ("whole", MIXED, 0, 1),
            ("cut", MIXED, CUT, 1),
            ("cut", [*MIXED, "--resume_from_checkpoint", "last", "--masked_share", 0.2], 0, 1),
            ("cut", [*MIXED, "--resume_from_checkpoint", "last"], 0, 1),
            ("ranks", MIXED, 0, 2),
            ("control", [*MIXED, "--frozen_encoder", "true"], 0, 1),
            ("lora", [*TEXT, *lora], 0, 1),
            ("pairs", [*PAIRS, *alone], 0, 1),
        )
    ]
    codes, printed = forked_runs("mrs_trainers.pretraining", runs, workplace, 450)
    assert codes == ["0", "9", "2", "0", "0 0", "0", "0", "0"], "\n".join(printed)[-3000:]
    return printed


def test_held_out_perplexity_falls_below_that_of_the_head_alone(folder: Callable[[str], Path]) -> None:
    found, control = record(folder("whole")), record(folder("control"))
    perplexities = curve(folder("whole"), "eval_perplexity", STEPS)
    assert perplexities[-1] < 0.7 * perplexities[0]
    for split in ("validation", "test"):
        assert found["metrics"][f"{split}_perplexity"] < 0.9 * control["metrics"][f"{split}_perplexity"]
    assert found["metrics"]["validation_perplexity"] == pytest.approx(min(perplexities))
    assert found["best_metric"] == pytest.approx(min(perplexities))
    assert found["steps"] == control["steps"] == STEPS
    before, after = (load_file(path / "model.safetensors") for path in (folder("base"), folder("control")))
    assert all(torch.equal(before[name], after[f"bert.{name}"]) for name in before if f"bert.{name}" in after)
    assert sum(name.startswith("bert.") for name in after) > 10


def test_record_and_card_say_what_was_trained(folder: Callable[[str], Path], output: list[str]) -> None:
    found = record(folder("whole"))
    assert (found["trainer"], found["metrics"]["objective"], found["metrics"]["head"]) == (
        "pretraining",
        "mlm tlm",
        "fresh",
    )
    assert found["data"]["rows"].keys() == {"ht", "en", "en-ht"}
    assert found["metrics"]["train_tokens"].keys() == {"mlm", "tlm"}
    assert found["data"]["rows"]["ht"]["validation"] == 30
    assert found["data"]["rows"]["en"]["validation"] == 10, "one sentence in ten at most"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= found["files"].keys()
    assert {"validation_perplexity_ht", "validation_perplexity_en", "test_perplexity_ht"} <= found["metrics"].keys()
    assert "note: base has no language-model head; a fresh one is trained with it." in output
    _, front, body = (folder("whole") / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "fill-mask"
    assert yaml.safe_load(front)["language"] == ["en", "ht"]
    assert "$" not in body
    assert f"| test | mlm | ht | {found['metrics']['test_perplexity_ht']:,.2f} |" in body
    assert f"| validation | tlm | en-ht | {found['metrics']['validation_tlm_perplexity_en-ht']:,.2f} |" in body
    assert f"`{found['metrics']['signature']}`" in body
    assert f"`{found['metrics']['tlm_signature']}`" in body
    assert "The head alone was trained" in (folder("control") / "README.md").read_text(encoding="utf-8")


def test_held_out_losses_are_told_of_each_objective(folder: Callable[[str], Path]) -> None:
    loss, tlm, mean = (curve(folder("whole"), f"eval_{name}", STEPS) for name in ("loss", "tlm_loss", "mean_loss"))
    assert mean == pytest.approx([0.75 * one + 0.25 * two for one, two in zip(loss, tlm, strict=True)])
    found = record(folder("whole"))
    assert found["metrics"]["validation_mean_loss"] == pytest.approx(mean[-1])


def test_translations_alone_train_and_are_tested(folder: Callable[[str], Path]) -> None:
    found = record(folder("pairs"))
    assert found["data"]["rows"] == {"en-ht": {"train": 108, "validation": 12, "test": 10}}
    perplexities = curve(folder("pairs"), "eval_perplexity", 24)
    assert perplexities[-1] < 0.7 * perplexities[0]
    metrics = found["metrics"]
    assert {"validation_perplexity_en-ht", "test_perplexity_en-ht"} <= metrics.keys()
    assert "rows:pairs|tok:" in metrics["signature"]
    assert "rows:pairs|tok:" in record(folder("whole"))["metrics"]["tlm_signature"]
    _, front, _ = (folder("pairs") / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["language"] == ["en", "ht"]


def test_resumed_equals_uninterrupted(folder: Callable[[str], Path], output: list[str]) -> None:
    assert any("was started differently (masked_share 0.15 before, 0.2 now)" in line for line in output)
    epochs = dict(zip(curve(folder("whole"), "step", STEPS), curve(folder("whole"), "epoch", STEPS), strict=True))
    assert 1 < epochs[CUT] < 2
    for name in ("loss", "eval_perplexity", "eval_tlm_perplexity"):
        assert curve(folder("cut"), name, STEPS) == curve(folder("whole"), name, STEPS)
    assert record(folder("cut"))["files"] == record(folder("whole"))["files"], "the same weights, by their hashes"


def test_two_ranks_train_as_one_and_one_writes(folder: Callable[[str], Path], output: list[str]) -> None:
    assert sum(line.startswith("wrote ranks") for line in output) == 1
    one, two = (load_file(folder(name) / "model.safetensors") for name in ("whole", "ranks"))
    assert one.keys() == two.keys()
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-3
    for name in ("eval_perplexity", "eval_tlm_perplexity", "eval_mean_loss"):
        assert curve(folder("ranks"), name, STEPS) == pytest.approx(curve(folder("whole"), name, STEPS), rel=1e-3)


def test_the_result_is_a_start_by_its_name(folder: Callable[[str], Path], output: list[str]) -> None:
    """Other tasks find the trained encoder, and pretraining finds its head."""
    from transformers import AutoModel, AutoModelForMultipleChoice

    from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer
    from mrs_suggest.models.pretraining.masked_lm import load_masked_lm
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder

    name = str(folder("whole"))
    saved = load_file(folder("whole") / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    for kind in (AutoModel, AutoModelForMultipleChoice):
        assert torch.equal(kind.from_pretrained(name).get_input_embeddings().weight, saved)
    build_dual_encoder(name, pooling="mean", encoders="one")
    assert load_masked_lm(name, None, 0)[1] == []
    assert load_fast_tokenizer(name, None).mask_token == "[MASK]"


def test_bad_input_is_refused_in_a_sentence(refusal: Callable[..., str], workplace: Path, tmp_path: Path) -> None:
    from mrs_suggest.models.retrieval.tiny import build_tiny

    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "unmasked").mkdir()
    build_tiny(["aa bb"] * 5, tmp_path / "unmasked", 0, 50)
    for options, sentence in cases(__file__, "REFUSED"):
        assert sentence in refusal(
            "pretraining", [*OPTIONS, *TEXT, *(option.format(tmp=tmp_path) for option in options)], workplace
        ), options
