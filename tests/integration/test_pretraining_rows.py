"""The same weights, whether rows of tokens were there, were written while they trained, or were cut off in between."""

import random
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.forked_runs import forked_runs
from tests.run_files import curve, record

pytestmark = pytest.mark.integration

STEPS, CUT = 16, 8
# A cache of each run's own, parts of some sentences, and an end in the middle of writing one.
TRAINER = """
import contextlib, os
from pathlib import Path
import datasets, numpy
from mrs_suggest.training.pretraining import streams, texts, training
from mrs_trainers import pretraining

texts.BLOCK = 400

def main(options):
    cache, how, *options = options
    datasets.config.HF_DATASETS_CACHE = cache
    if how == "alone":
        training.written_ahead = lambda rows: contextlib.nullcontext()
        save, folder = numpy.savez, Path(options[options.index("--output_dir") + 1])

        def savez(*args, **named):
            if (folder / "checkpoint-4" / "trainer_state.json").exists():
                os._exit(9)
            save(*args, **named)

        numpy.savez = savez
    return pretraining.main(options)
"""
OPTIONS = [
    "--text", "ht=ht.txt", "en=en.txt", "--parallel", "en-ht=pairs.tsv", "--objective", "mlm", "tlm", "--shares", 3, 1,
    "--held_out", 20, "--model_name_or_path", "base", "--max_steps", STEPS, "--eval_steps", 4, "--save_steps", 4,
    "--max_tokens", 20, "--learning_rate", 0.003, "--use_cpu", "true", "--disable_tqdm", "true", "--logging_steps", 1,
    "--skip_test", "true",
]  # fmt: skip
RESUME = ["--resume_from_checkpoint", "last"]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mrs_suggest.models.retrieval.tiny import build_tiny

    folder, draw = tmp_path_factory.mktemp("rows"), random.Random(0)
    texts = {}
    for name, letters, count in (("ht", "abcdefgh", 1500), ("en", "stuvwxyz", 200)):
        texts[name] = [" ".join(letter * 2 for letter in draw.choices(letters, k=8)) for _ in range(count)]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in texts[name]), encoding="utf-8")
    pairs = zip(texts["en"], texts["ht"], strict=False)
    (folder / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    (folder / "small_parts.py").write_text(TRAINER, encoding="utf-8")
    (folder / "base").mkdir()
    build_tiny([*texts["ht"], *texts["en"]], folder / "base", 0, 120, "[MASK]")
    return folder


@pytest.fixture(scope="module")
def codes(workplace: Path) -> list[str]:
    runs = [
        ([f"cache-{cache}", how, "--output_dir", name, *map(str, OPTIONS), "--per_device_train_batch_size",
          str(16 // ranks), *more], cut, ranks)
        for cache, how, name, more, cut, ranks in (
            ("a", "", "whole", [], 0, 1),
            ("a", "", "found", [], 0, 1),
            ("b", "alone", "writing", [], 0, 1),
            ("b", "", "writing", RESUME, 0, 1),
            ("c", "", "training", [], CUT, 1),
            ("d", "", "training", RESUME, 0, 1),
            ("e", "", "ranks", [], 0, 2),
        )
    ]  # fmt: skip
    found, printed = forked_runs("small_parts", runs, workplace, 450)
    assert found == ["0", "0", "9", "0", "9", "0", "0 0"], "\n".join(printed)[-3000:]
    return found


@pytest.mark.parametrize("name", ["found", "writing", "training"])
def test_rows_that_were_found_or_cut_off_give_the_same_weights(workplace: Path, codes: list[str], name: str) -> None:
    """Cut off while a part was written, and while another process was writing; then resumed with an empty cache."""
    whole = record(workplace / "whole")
    assert record(workplace / name)["files"] == whole["files"], "by their hashes"
    assert curve(workplace / name, "loss", STEPS) == curve(workplace / "whole", "loss", STEPS)
    assert record(workplace / name)["data"] == whole["data"]
    assert len(list((workplace / "cache-a" / "mrs-rows").glob("*/rows.npz"))) > 20


def test_two_ranks_read_the_rows_of_one(workplace: Path, codes: list[str]) -> None:
    one, two = (load_file(workplace / name / "model.safetensors") for name in ("whole", "ranks"))
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-3


def test_the_rows_of_a_part_that_was_cut_off_are_gone(workplace: Path, codes: list[str]) -> None:
    assert not list((workplace / "cache-b" / "mrs-rows").glob(".*partial*/rows.npz"))
