"""`trainers/pretraining.py` with the objectives of seq2seq models, and generators that start from what they wrote."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from mrs_datasets.prepared.prepared import PreparedData
from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.integration.test_pretraining import sentence
from tests.run_files import curve, record
from tests.weights import FEW, differing

pytestmark = pytest.mark.integration

STEPS, CUT = 48, 24
OBJECTIVES = ("xdae", "xfnp")
OPTIONS: list[object] = [
    "--text", "en=en.txt", "ja=ja.txt", "--held_out", 20, "--test_text", "en=test.txt", "--max_steps", STEPS,
    "--eval_steps", STEPS // 4, "--save_steps", STEPS // 4, "--max_tokens", 24, "--use_cpu",
    "true", "--disable_tqdm", "true", "--logging_steps", 1,
]  # fmt: skip
OWN: dict[str, list[object]] = {
    "xdae": ["--noise", "spans=.7", "shuffle+drop=.3", "--learning_rate", 0.003],
    "xfnp": ["--learning_rate", 0.003],
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts in two languages, and a small encoder with its language-model head."""
    from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer
    from mrs_suggest.models.pretraining.masked_lm import load_masked_lm
    from mrs_suggest.models.retrieval.tiny import build_tiny

    folder, draw = tmp_path_factory.mktemp("seq2seq"), random.Random(0)
    for name, words, count in (("en", "abcdefgh", 200), ("ja", "stuvwxyz", 100), ("test", "abcdefgh", 30)):
        lines = [sentence(draw, words) for _ in range(count)]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    texts = [line for name in ("en", "ja") for line in (folder / f"{name}.txt").read_text().splitlines()]
    (folder / "plain").mkdir()
    plain = str(build_tiny(texts, folder / "plain", 0, 120, "[MASK]"))
    load_masked_lm(plain, None, 0)[0].save_pretrained(folder / "encoder")
    load_fast_tokenizer(plain, None).save_pretrained(folder / "encoder")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print: of each objective a whole one, one cut off at a checkpoint, the same resumed, one on two
    ranks; and one that begins from an encoder."""
    runs, expected = [], []
    for objective in OBJECTIVES:
        for name, more, cut, ranks, code in (
            ("whole", [], 0, 1, "0"),
            ("cut", [], CUT, 1, "9"),
            ("cut", ["--resume_from_checkpoint", "last"], 0, 1, "0"),
            ("ranks", [], 0, 2, "0 0"),
            ("encoder", ["--model_name_or_path", "encoder", "--decoder_layers", 1, "--max_steps", 1, "--eval_steps", 1,
                         "--save_steps", 1], 0, 1, "0"),
        ):  # fmt: skip
            batch = ["--per_device_train_batch_size", 8 // ranks]
            options = [
                "--objective", objective, *OPTIONS, *OWN[objective], *batch, "--output_dir", f"{objective}_{name}",
                *more,
            ]  # fmt: skip
            runs.append(([str(option) for option in options], cut, ranks))
            expected.append(code)
    codes, printed = forked_runs("mrs_trainers.pretraining", runs, workplace, 400)
    assert codes == expected, "\n".join(printed)[-3000:]
    return printed


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_held_out_perplexity_falls_and_the_card_says_of_what(objective: str, folder: Callable[[str], Path]) -> None:
    found = record(folder(f"{objective}_whole"))
    perplexities = curve(folder(f"{objective}_whole"), "eval_perplexity", STEPS)
    assert perplexities[-1] < 0.8 * perplexities[0]
    assert found["metrics"]["validation_perplexity"] == pytest.approx(min(perplexities))
    assert {"validation_perplexity_en", "validation_perplexity_ja", "test_perplexity_en"} <= found["metrics"].keys()
    kind = "denoising_perplexity" if objective == "xdae" else "span_perplexity"
    assert found["metrics"]["signature"].startswith(f"{kind}|")
    _, front, body = (folder(f"{objective}_whole") / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["tags"] == ["transformers", "mrs", "pretraining", objective]
    assert "a starting point for generators" in body
    assert "they began from scratch" in body
    card = (folder(f"{objective}_encoder") / "README.md").read_text(encoding="utf-8")
    assert "they began from an encoder, decoder copied" in card
    if objective == "xdae":
        assert "| `noise` | ['spans=.7', 'shuffle+drop=.3'] |" in body
    else:
        assert "mixes up the terms of relative positions" in body


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_resumed_equals_uninterrupted(objective: str, folder: Callable[[str], Path]) -> None:
    whole, cut = folder(f"{objective}_whole"), folder(f"{objective}_cut")
    epochs = dict(zip(curve(whole, "step", STEPS), curve(whole, "epoch", STEPS), strict=True))
    assert epochs[CUT] > 1, "in an epoch whose noise is another than the first one's"
    for name in ("loss", "eval_perplexity"):
        assert curve(cut, name, STEPS) == curve(whole, name, STEPS)
    assert record(cut)["files"] == record(whole)["files"], "the same weights, by their hashes"


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_two_ranks_train_as_one(objective: str, folder: Callable[[str], Path]) -> None:
    one, two = (load_file(folder(f"{objective}_{name}") / "model.safetensors") for name in ("whole", "ranks"))
    assert differing(one, two, 1e-4) < FEW
    assert curve(folder(f"{objective}_ranks"), "eval_perplexity", STEPS) == pytest.approx(
        curve(folder(f"{objective}_whole"), "eval_perplexity", STEPS), rel=1e-2
    )


def test_generators_start_from_the_results_by_their_names(
    folder: Callable[[str], Path], workplace: Path, prepared: PreparedData
) -> None:
    """They train, search and load again; a start from an encoder, too."""
    from mrs_suggest.models.generation.generator import Generator

    names = ["xdae_whole", "xdae_encoder", "xfnp_encoder"]
    runs = [
        (
            [str(option) for option in (
                "--data", prepared.folder, "--languages", "en", "--model_name_or_path", name, "--max_steps", 1,
                "--eval_steps", 1, "--save_steps", 1, "--warmup_steps", 0, "--learning_rate", 1e-6, "--max_tokens", 5,
                "--max_validation_examples", 4, "--max_test_examples", 4, "--per_device_train_batch_size", 4,
                "--use_cpu", "true", "--disable_tqdm", "true", "--output_dir", f"{name}_generator",
            )], 0, 1,
        )
        for name in names
    ]  # fmt: skip
    codes, printed = forked_runs("mrs_trainers.generation", runs, workplace, 300)
    assert codes == ["0"] * len(names), "\n".join(printed)[-3000:]
    for name in names:
        before, after = (load_file(folder(part) / "model.safetensors") for part in (name, f"{name}_generator"))
        assert before.keys() == after.keys()
        assert all(torch.allclose(before[key], after[key], atol=1e-4) for key in before), "it began there"
        generator = Generator.load(folder(f"{name}_generator"))
        assert generator.languages == ["en"]
        assert len(generator.suggest(["aa aa bb bb"], "ja", 1)) == 1


def test_bad_input_is_refused_in_a_sentence(refusal: Callable[..., str], workplace: Path, output: list[str]) -> None:
    for options, found in cases(__file__, "REFUSED"):
        assert found in refusal("pretraining", [*OPTIONS, *options], workplace), options
