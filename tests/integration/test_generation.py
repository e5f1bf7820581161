"""The generation trainer through its real commands, on a small prepared folder in two languages."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.adapters import add_lora, load_lora_state, read_lora_state
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import record

pytestmark = pytest.mark.integration

SYSTEMS = ["Model", "Random", "Most frequent", "TF-IDF"]
THINGS = ("train", "dinner", "dog", "meeting", "sister", "weather", "trip", "match", "phone", "exam", "cake", "bike")
QUESTIONS = cases(__file__, "QUESTIONS")
STEPS = 6
OPTIONS = [
    "--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--eval_steps", 2, "--save_steps", 2,
    "--save_total_limit", 9, "--logging_steps", 1, "--per_device_train_batch_size", 8, "--max_validation_examples", 5,
    "--max_test_examples", 7, "--vocabulary", 300, "--max_tokens", 8, "--learning_rate", 1e-3,
]  # fmt: skip
# Steps in proportion to the gradient: Adam would hide a wrong scale, and turn rounding errors into whole steps.
PLAIN = ["--optim", "sgd", "--learning_rate", 0.2, "--lr_scheduler_type", "constant"]
LORA = ["--peft", "lora", "--lora_rank", 4, "--learning_rate", 0.02]
SHORT = ["--max_steps", 2]


def in_forks(workplace: Path, options: list[Any], ranks: int = 1) -> str:
    """Train in processes of their own, and return what they print."""
    words = [str(part) for part in ("--data", "data", *options)]
    codes, printed = forked_runs("mrs_trainers.generation", [(words, 0, ranks)], workplace, 240)
    assert codes == [" ".join(["0"] * ranks)], "\n".join(printed)[-5000:]
    return "\n".join(printed)


def history(folder: Path) -> list[dict[str, Any]]:
    """The log of a run."""
    last = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    return json.loads((last / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in history(folder) if "loss" in entry]


def evaluations(folder: Path) -> dict[int, dict[str, float]]:
    """Step -> the figures on validation."""
    found = {}
    for entry in history(folder):
        figures = {key: value for key, value in entry.items() if key.startswith("eval_")}
        if figures:
            found[entry["step"]] = figures
    return found


def predictions(folder: Path) -> dict[str, list[list[str]]]:
    """File name -> its rows."""
    paths = sorted(folder.glob("predictions*.tsv"))
    return {p.name: [line.split("\t") for line in p.read_text(encoding="utf-8").splitlines()] for p in paths}


def weights(folder: Path, step: int = STEPS) -> dict[str, torch.Tensor]:
    """Of a checkpoint."""
    (path,) = (folder / f"checkpoint-{step}").glob("*.safetensors")
    return load_file(path)


def largest_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data/`: 36 messages a language, some of them translated to Spanish, too."""
    from mrs_datasets.prepared.prepare import prepare_mrs

    folder = tmp_path_factory.mktemp("generation")
    (folder / "source").mkdir()
    for name, code, things in (("en", "en", THINGS), ("es", "es", THINGS), ("mt-es", "es", THINGS[:7])):
        lines = [
            f"{question.format(thing)}\t{answer}\n"
            for question, answers in QUESTIONS[code].items()
            for thing in things
            for answer in answers
        ]
        (folder / "source" / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(folder / "source"), folder / "data")
    return folder


@pytest.fixture(scope="session")
def base(workplace: Path) -> Path:
    """A checkpoint to start from, with dropout, as the published ones have."""
    from mrs_suggest.models.generation.tiny_generator import build_tiny_generator

    texts = [line for path in (workplace / "source").iterdir() for line in path.read_text("utf-8").splitlines()]
    folder = build_tiny_generator(texts, ["en", "es"], workplace / "small", 5, 300)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["dropout"] == 0
    (folder / "config.json").write_text(json.dumps({**config, "dropout": 0.1}), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def trained(workplace: Path) -> tuple[Path, str]:
    """The folder of one run, and what it printed."""
    return workplace / "base", in_forks(workplace, ["--output_dir", "base", *OPTIONS])


@pytest.fixture
def train(workplace: Path, monkeypatch: pytest.MonkeyPatch, one_process: None) -> Callable[..., Path]:
    """A function that trains in this process, in the folder `output` below the workplace, and returns it."""
    from accelerate.state import AcceleratorState
    from mrs_trainers.generation import main

    def call(output: str, *options: object) -> Path:
        monkeypatch.chdir(workplace)
        if not (workplace / output / "run.json").exists():  # of another test
            AcceleratorState._reset_state(reset_partial_state=True)
            assert main([str(part) for part in ("--data", "data", *OPTIONS, "--output_dir", output, *options)]) == 0
        return workplace / output

    return call


# --- the folder of a run


def test_the_folder_has_what_a_retrievers_has(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    names = {path.name for path in folder.iterdir() if not path.name.startswith("checkpoint-")}
    assert names == {
        "resume.json",
        "model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "generator.json", "run.json", "README.md", "curves.json", "curves.png", "predictions.en.tsv",
        "predictions.es.tsv",
    }  # fmt: skip
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    facts = json.loads((folder / "generator.json").read_text(encoding="utf-8"))
    assert (facts["language_tokens"], facts["languages"]) == ("unicoder", ["en", "es"])
    assert (facts["message_tokens"], facts["reply_tokens"]) == (70, 30)
    assert (facts["decoding"]["beams"], facts["decoding"]["max_tokens"]) == (5, 8)


def test_run_json_has_what_repeats_the_run_and_its_figures(trained: tuple[Path, str]) -> None:
    folder, printed = trained
    run = record(folder)
    assert (run["trainer"], run["steps"], run["seed"]) == ("generation", STEPS, 42)
    expected = {"data": "data", "model_name_or_path": "tiny", "beams": 5, "label_smoothing_factor": 0.1}
    assert {key: run["arguments"][key] for key in expected} == expected
    assert run["plan"] == {
        "setting": None, "train": ["en", "es"], "sampling_alpha": 1.0, "validation": ["en", "es"], "test": ["en", "es"],
    }  # fmt: skip
    scores = {step: figures["eval_perplexity"] for step, figures in evaluations(folder).items()}
    assert scores.keys() == {2, 4, 6}
    assert scores[run["best_step"]] == run["best_metric"] == min(scores.values())
    systems = run["metrics"]["systems"]
    assert list(systems) == SYSTEMS
    for scopes in systems.values():
        assert list(scopes) == ["pooled", "en", "es"]
        assert scopes["pooled"]["n"] == scopes["en"]["n"] + scopes["es"]["n"]
        assert not [key for key in scopes["pooled"] if "mrr" in key], "a generator ranks nothing"
    own = [systems["Model"][scope]["perplexity"] for scope in ("en", "es", "pooled")]
    assert 1 < min(own) <= own[2] <= max(own)
    assert not any("perplexity" in scopes["pooled"] for name, scopes in systems.items() if name != "Model")
    for language in ("en", "es"):
        signatures = run["metrics"]["signatures"][language]
        assert f"lang:{language}|" in signatures["mrs_rouge"]
        assert signatures["reply_perplexity"].startswith("reply_perplexity|avg:token|")
    assert f"{own[2]:,.1f}" in next(line for line in printed.splitlines() if line.startswith("│ Model"))


def test_the_card_renders_and_renders_again(trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    from huggingface_hub import ModelCard

    from mrs_suggest.cli.main import main

    path = trained[0] / "README.md"
    card = ModelCard.load(path)
    assert card.data.language == ["en", "es"]
    assert 'Suggester.from_pretrained("' in card.text
    assert {result.dataset_config for result in card.data.eval_results} == {"en", "es"}
    systems = record(trained[0])["metrics"]["systems"]["Model"]
    for language in ("en", "es"):
        assert f"{systems[language]['weighted']:.4f}" in card.text
    assert f"{systems['pooled']['perplexity']:,.2f}" in card.text
    before = path.read_bytes()
    path.unlink()
    assert main(["models", "card", str(trained[0])]) == 0
    capsys.readouterr()
    assert path.read_bytes() == before


def test_the_command_suggests_what_is_in_the_predictions(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    rows = predictions(trained[0])["predictions.es.tsv"]
    messages = [row[0] for row in rows]
    assert main(["suggest", "--model", str(trained[0]), "--language", "es", "--json", *messages]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[s["reply"] for s in answer["suggestions"]] for answer in answers] == [row[2:] for row in rows]
    for row in rows:
        assert len({normalise_reply(reply) for reply in row[2:]}) == len(row[2:]) <= 3
    assert main(["suggest", "--model", str(trained[0]), "--language", "ja", "hola"]) == 2


@pytest.mark.usefixtures("one_process")
def test_mrs_train_with_yaml_and_command_line(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    monkeypatch.chdir(workplace)
    (workplace / "run.yaml").write_text(
        "data: data\nlanguages: [es]\nmax_steps: 50\nlabel_smoothing_factor: 0.2\nwarmup_steps: 1\n"
        "eval_strategy: steps\nsave_strategy: steps\neval_steps: 2\nsave_steps: 2\nvocabulary: 200\nbeams: 6\n"
        "groups: 2\ndiversity_penalty: 0.5\nno_repeat_ngram: 3\nblocked: [gracias, no hay]\nmax_train_examples: 20\n"
        "max_tokens: 6\noutput_dir: never\n"
    )
    options = ["--config", "run.yaml", *map(str, SHORT), "--output_dir", "single"]
    assert main(["train", "generation", *options]) == 0
    folder = workplace / "single"
    assert not (workplace / "never").exists()
    run = record(folder)
    expected = {"languages": ["es"], "max_steps": 2, "label_smoothing_factor": 0.2, "groups": 2}
    assert {key: run["arguments"][key] for key in expected} == expected
    assert run["data"]["rows"]["es"]["train"] == 20
    assert list(predictions(folder)) == ["predictions.es.tsv"]
    assert "predictions.es.tsv" in capsys.readouterr().out
    stored = json.loads((folder / "generator.json").read_text(encoding="utf-8"))["decoding"]
    assert (stored["groups"], stored["no_repeat_ngram"], stored["blocked"]) == (2, 3, ["gracias", "no hay"])


# --- invariants of training


def test_resumed_equals_uninterrupted(train: Callable[..., Path], base: Path, workplace: Path) -> None:
    """With dropout: the random state comes back, too."""
    options = ["--model_name_or_path", base]
    whole = train("dropped", *options)
    shutil.copytree(whole / "checkpoint-2", workplace / "resumed" / "checkpoint-2")
    resumed = train("resumed", *options, "--resume_from_checkpoint", "last")
    assert largest_difference(weights(resumed), weights(whole)) <= 1e-6
    assert losses(resumed) == pytest.approx(losses(whole), abs=1e-4)
    assert predictions(resumed) == predictions(whole)
    assert record(resumed)["best_step"] == record(whole)["best_step"]


def test_two_ranks_equal_one_and_one_writes(train: Callable[..., Path], workplace: Path) -> None:
    """Five validation examples a language on two ranks: one has three of them, the other two."""
    whole = train("plain", *PLAIN)
    half = ["--global_batch_size", 8, "--use_cpu", "true", "--output_dir", "ranks"]
    printed = in_forks(workplace, [*OPTIONS, *PLAIN, *half], ranks=2)
    assert printed.count("wrote ranks") == 1
    assert printed.count("Test split, 2 languages pooled") == 1
    ranks = workplace / "ranks"
    assert record(whole)["data"]["rows"]["es"]["validation"] % 2 == 1
    assert losses(ranks) == pytest.approx(losses(whole), abs=1e-3)
    assert largest_difference(weights(ranks), weights(whole)) < 1e-4
    one, other = evaluations(whole), evaluations(ranks)
    assert one.keys() == other.keys() == {2, 4, 6}
    for step, figures in one.items():
        assert other[step] == pytest.approx(figures, rel=1e-3), "every example once"
    assert predictions(ranks) == predictions(whole)


# --- settings


def test_a_setting_of_the_paper_from_data_to_suggestions(train: Callable[..., Path]) -> None:
    from tokenizers import Tokenizer

    from mrs_suggest.suggest.suggester import Suggester

    folder = train("mt", "--setting", "mt", *SHORT)
    run = record(folder)
    plan = {"train": ["mt-es"], "validation": ["es"], "test": ["es"]}
    assert run["plan"] == {"setting": "mt", "sampling_alpha": 1.0, **plan}
    rows = run["data"]["rows"]
    for split in ("train", "validation"):
        assert [code for code, counts in rows.items() if split in counts] == plan[split]
    assert {name: len(found) for name, found in predictions(folder).items()} == {
        "predictions.es.tsv": rows["es"]["test"]
    }
    assert "es" in Suggester.from_pretrained(folder).languages
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    assert "▁gracias" in vocabulary
    assert "▁thanks" not in vocabulary
    assert [(row["model"], row["language"]) for row in run["metrics"]["paper"]] == [("xdae", "es")]
    assert "mt setting (section 3.2)" in (folder / "README.md").read_text(encoding="utf-8")


# --- adapters


def test_adapters_of_a_generator(
    train: Callable[..., Path], base: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    whole = train("lora", "--model_name_or_path", base, *LORA)
    check_adapters(whole, base, {"seq2seq": "."})
    shutil.copytree(whole / "checkpoint-2", workplace / "lora-resumed" / "checkpoint-2")
    resumed = train("lora-resumed", "--model_name_or_path", base, *LORA, "--resume_from_checkpoint", "last")
    assert largest_difference(weights(resumed), weights(whole)) <= 1e-6
    assert predictions(resumed) == predictions(whole)

    start, merged = load_file(base / "model.safetensors"), load_file(whole / "model.safetensors")
    assert start.keys() == merged.keys()
    changed = {name for name in start if not torch.allclose(start[name], merged[name], atol=1e-7)}
    assert changed
    assert all(name.endswith(("q_proj.weight", "v_proj.weight")) for name in changed), changed
    assert (whole / "adapter" / "generator.json").read_bytes() == (whole / "generator.json").read_bytes()
    rows = predictions(whole)["predictions.es.tsv"]
    check_suggestions(main, capsys, whole, [row[0] for row in rows], [row[2:] for row in rows])

    other = Generator.build(str(base), ["en"], 12, 9, Decoding(max_tokens=6)).model
    add_lora(other, rank=3, alpha=8, dropout=0.1, seed=3)
    with pytest.raises(InputError, match="pass the LoRA options that they were trained with"):
        load_lora_state(other, read_lora_state(whole / "checkpoint-2"))


def check_adapters(folder: Path, base: Path, encoders: dict[str, str]) -> None:
    """Checkpoints hold adapters alone, the best of which are in `adapter/`, which is small and names its base."""
    size = (base / "model.safetensors").stat().st_size
    for step in (2, 4, 6):
        held = [path.name for path in (folder / f"checkpoint-{step}").rglob("*.safetensors")]
        assert held == ["adapter_state.safetensors"]
        assert all(".lora_" in name for name in weights(folder, step))
    facts = json.loads((folder / "adapter" / "adapter.json").read_text(encoding="utf-8"))
    assert facts["base"] == str(base)
    assert {path.name for path in (folder / "adapter").iterdir() if path.is_dir()} == {*encoders.values()} - {"."}
    assert sum(path.stat().st_size for path in (folder / "adapter").rglob("*.safetensors")) < size / 3
    best = weights(folder, record(folder)["best_step"])
    kept = {
        f"{name}.{key}": value
        for name, place in encoders.items()
        for key, value in load_file(folder / "adapter" / place / "adapter_model.safetensors").items()
    }
    assert len(kept) == len(best)
    for name, value in best.items():
        encoder, _, key = name.partition(".")
        assert torch.equal(kept[f"{encoder}.base_model.model.{key.replace('.default.', '.')}"], value)
    assert largest_difference(best, weights(folder, 2 if record(folder)["best_step"] != 2 else 4)) > 0


def check_suggestions(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str], folder: Path, messages: list[str],
    expected: list[list[str]],
) -> None:  # fmt: skip
    """The merged model and the adapters on their base answer alike."""
    capsys.readouterr()
    for model in (folder, folder / "adapter"):
        assert main(["suggest", "--model", str(model), "--language", "es", "--json", *messages]) == 0
        answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [[s["reply"] for s in answer["suggestions"]] for answer in answers] == expected


# --- refusals


BAD_RUNS: dict[str, Any] = cases(__file__, "BAD_RUNS")


@pytest.mark.parametrize("case", BAD_RUNS)
def test_the_trainer_refuses_in_one_sentence(
    case: str, workplace: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    options, expected = BAD_RUNS[case]
    assert expected in refusal("generation", ["--data", "data", *OPTIONS, *options], workplace)
    assert not list(tmp_path.glob("refused/*"))
