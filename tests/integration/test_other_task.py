"""A trainer of sequence classification: a task without replies gets a whole run from the parts that any task shares."""

from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from tests.forked_runs import forked_runs
from tests.run_files import log, record

pytestmark = pytest.mark.integration

STEPS = 4
TRAINER = """
import sys
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments
from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.models.saved.families import Family
from mrs_suggest.training.options import RunArguments, sound
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import PairSampler
from mrs_suggest.training.trainer import OurTrainer

class Classifier:
    def __init__(self, name):
        self.model = AutoModelForSequenceClassification.from_pretrained(name)

def run(options, training):
    options = sound(options, training, ("loss",))
    with Run(Family("classification"), options, training, steps=4, lower_is_better=("loss",)) as run:
        tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path)
        texts = [f"w{n % 7} w{n % 5} w{n % 3}" for n in range(48)]
        rows = run.load(lambda: Dataset.from_dict({**tokenizer(texts), "labels": [n % 2 for n in range(48)]}))
        data = {"id": "made", "title": "Sentences", "content_hash": "0", "rows": {"en": {"train": 48}}}
        run.begin({"data": data}, ())
        parts = run.build(lambda: Classifier(options.model_name_or_path))
        trainer = OurTrainer(parts.model, training, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer)
        trainer.sampler = PairSampler([48], training.per_device_train_batch_size, world_size=training.world_size,
                                      rank=training.process_index, seed=training.seed)
        if not run.train(trainer, parts.model):
            return None
        run.save(lambda folder: (parts.model.save_pretrained(folder), tokenizer.save_pretrained(folder)))
        return run.finish({})

def main(argv):
    parser = make_dataclass_parser((RunArguments, TrainingArguments), "classification", "")
    return run_with_sentence("classification", lambda: run(*parse_with_config(parser, argv)))
"""
OPTIONS = [
    "--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--eval_steps", 2, "--save_steps", 2,
    "--logging_steps", 1, "--load_best_model_at_end", "true", "--metric_for_best_model", "loss", "--use_cpu", "true",
    "--learning_rate", 0.1, "--optim", "sgd", "--report_to", "none", "--model_name_or_path", "base",
    "--average_tokens_across_devices", "false",  # the loss is a mean over examples
]  # fmt: skip


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trainer and a small BERT, two layers of random weights, to start from."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from mrs_suggest.models.retrieval.tiny import train_tokenizer

    folder = tmp_path_factory.mktemp("classification")
    (folder / "trainer.py").write_text(TRAINER, encoding="utf-8")
    tokenizer = train_tokenizer([f"w{n}" for n in range(7)] * 9, 100)
    tokenizer.save_pretrained(folder / "base")
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder / "base")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print: a whole one, one cut off at its first checkpoint, the same resumed, and one on two ranks."""
    runs = [
        (
            ["--output_dir", name, "--per_device_train_batch_size", str(8 // ranks), *map(str, OPTIONS), *more],
            cut,
            ranks,
        )
        for name, more, cut, ranks in (
            ("whole", [], 0, 1),
            ("cut", [], 1, 1),
            ("cut", ["--resume_from_checkpoint", "last", "--seed", "7"], 0, 1),
            ("cut", ["--resume_from_checkpoint", "last"], 0, 1),
            ("ranks", [], 0, 2),
        )
    ]
    codes, printed = forked_runs("trainer", runs, workplace, 240)
    assert codes == ["0", "9", "2", "0", "0 0"], "\n".join(printed)[-3000:]
    return printed


@pytest.fixture
def folders(workplace: Path, output: list[str]) -> dict[str, Path]:
    """The folders of the runs, by their names."""
    return {name: workplace / name for name in ("whole", "cut", "ranks")}


def test_a_run_has_its_model_and_its_record(folders: dict[str, Path], output: list[str]) -> None:
    found = record(folders["whole"])
    assert (found["trainer"], found["steps"], found["metrics"], found["milliseconds"]) == ("classification", 4, {}, {})
    assert found["data"]["rows"] == {"en": {"train": 48}}
    assert found["files"].keys() == {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}
    assert not {"peft", "languages", "sampling_alpha"} & found["arguments"].keys(), "options of other tasks"
    assert "plan" not in found
    assert "wrote whole: model, run.json, curves.png" in output


def test_a_run_has_its_card_and_curves(folders: dict[str, Path]) -> None:
    _, front, body = (folders["whole"] / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["tags"] == ["transformers", "mrs", "classification"]
    assert "$" not in body
    assert f"{record(folders['whole'])['best_metric']:.4g}" in body
    assert (folders["whole"] / "curves.png").stat().st_size > 1000


def test_resumed_equals_uninterrupted(folders: dict[str, Path], output: list[str]) -> None:
    assert any("was started differently (seed 42 before, 7 now)" in line for line in output)
    assert log(folders["cut"], STEPS) == log(folders["whole"], STEPS)
    assert record(folders["cut"])["files"] == record(folders["whole"])["files"], "the same weights, by their hashes"


def test_two_ranks_train_as_one_and_one_writes(folders: dict[str, Path], output: list[str]) -> None:
    assert sum(line.startswith("wrote ranks") for line in output) == 1
    one, two = (load_file(folders[name] / "model.safetensors") for name in ("whole", "ranks"))
    assert one.keys() == two.keys()
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-5
