"""The retrieval trainer through its real commands, on a small prepared folder in two languages."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import warm_python
from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import log, record

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
TRAINER = ROOT / "trainers" / "retrieval.py"
SYSTEMS = ["Model", "Random", "Most frequent", "TF-IDF"]
THINGS = cases(__file__, "THINGS")
QUESTIONS = cases(__file__, "QUESTIONS")
STEPS = 6
OPTIONS = [
    "--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--eval_steps", 2, "--save_steps", 2,
    "--save_total_limit", 9, "--logging_steps", 1, "--per_device_train_batch_size", 16, "--mini_batch_size", 8,
    "--learning_rate", 1e-3,
]  # fmt: skip


def launch(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, on one thread: small models on a busy machine wait for each other otherwise."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return warm_python.run(command, cwd=cwd, env=environment, timeout=240)


def checked(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def predictions(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("predictions*.tsv"))}


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data/`, prepared by the command: 60 messages a language, and as many translated to Spanish."""
    folder = tmp_path_factory.mktemp("retrieval")
    (folder / "source").mkdir()
    for language, questions in QUESTIONS.items():
        pairs = [
            f"{question.format(thing)}\t{answer}\n"
            for question, answers in questions.items()
            for thing in THINGS[language]
            for answer in answers
        ]
        (folder / "source" / f"{language}.tsv").write_text("".join(pairs), encoding="utf-8")
    translated = [
        f"{question.format(thing)}\t{answer}\n"
        for question, answers in QUESTIONS["es"].items()
        for thing in THINGS["en"]
        for answer in answers
    ]
    (folder / "source" / "mt-es.tsv").write_text("".join(translated), encoding="utf-8")
    checked(launch(BIN / "mrs", "data", "prepare", "mrs", "--source", "source", "--out", "data", cwd=folder))
    return folder


@pytest.fixture(scope="session")
def trained(workplace: Path) -> tuple[Path, str]:
    """The folder of one run, and what it printed."""
    command = [BIN / "accelerate", "launch", TRAINER, "--data", "data", "--output_dir", "base", *OPTIONS]
    return workplace / "base", checked(launch(*command, cwd=workplace)).stdout


def test_run_json_has_what_repeats_the_run(trained: tuple[Path, str], workplace: Path) -> None:
    run = record(trained[0])
    assert run["trainer"] == "retrieval"
    expected = {
        "data": "data", "languages": ["all"], "setting": None, "loss": "eq4", "model_name_or_path": "tiny",
        "mini_batch_size": 8, "learning_rate": 1e-3, "max_steps": STEPS, "per_device_train_batch_size": 16, "seed": 42,
    }  # fmt: skip
    assert {key: run["arguments"].get(key) for key in expected} == expected
    assert {"message_tokens": 70, "reply_tokens": 30}.items() <= run["arguments"].items()
    assert run["seed"] == 42
    assert "hub_token" not in run["arguments"]
    assert {"python", "torch", "sentence-transformers", "mrs-suggest"} <= run["versions"].keys()
    assert run["hardware"]["cores"] >= 1
    assert run["seconds"] > 0
    assert list(run["milliseconds"]) == SYSTEMS
    assert all(value > 0 for value in run["milliseconds"].values())
    assert run["plan"] == {
        "setting": None, "train": ["en", "es"], "sampling_alpha": 1.0, "validation": ["en", "es"], "test": ["en", "es"],
    }  # fmt: skip
    assert run["steps"] == STEPS
    assert run["best_step"] in (2, 4, 6)
    scores = {entry["step"]: entry["eval_rouge_mrr"] for entry in log(trained[0], STEPS) if "eval_mrr" in entry}
    assert scores.keys() == {2, 4, 6}
    assert scores[run["best_step"]] == run["best_metric"] == max(scores.values())
    report = json.loads((workplace / "data" / "report.json").read_text(encoding="utf-8"))["configs"]
    for language in ("en", "es"):
        rows = {split: facts["rows"] for split, facts in report[language].items()}
        assert run["data"]["rows"][language] == {**rows, "responses": report[f"{language}-responses"]["train"]["rows"]}
    assert list(run["data"]["rows"]) == ["en", "es"]
    assert len(run["data"]["content_hash"]) == 16


def test_run_json_has_figures_with_signatures(trained: tuple[Path, str]) -> None:
    metrics = record(trained[0])["metrics"]
    assert list(metrics["systems"]) == SYSTEMS
    assert list(metrics["differences"]) == SYSTEMS[1:]
    for scopes in metrics["systems"].values():
        assert list(scopes) == ["pooled", "en", "es"]
        assert scopes["pooled"]["n"] == scopes["en"]["n"] + scopes["es"]["n"]
        for figures in scopes.values():
            low, high = figures["weighted_interval"] or (figures["weighted"],) * 2  # None: all scores are equal
            assert 0 <= low <= figures["weighted"] <= high <= 1
            assert 0 < figures["mrr"] <= 1
            assert 0 < figures["macro_mrr"] <= 1
            assert 0 <= figures["in_set"] <= 1
            assert figures["weighted"] <= figures["ceiling"] <= 1
    for scope in ("pooled", "en", "es"):
        assert len({scopes[scope]["ceiling"] for scopes in metrics["systems"].values()}) == 1
    assert metrics["alpha"] == 0
    assert metrics["paper"] == [], "the paper has no such setting"
    for language in ("en", "es"):
        signatures = metrics["signatures"][language]
        assert f"lang:{language}|" in signatures["mrs_rouge"]
        assert "seed:42" in signatures["response_ranking"]


def test_the_folder_of_the_run(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    finished = [path for path in folder.rglob("*") if not path.relative_to(folder).parts[0].startswith("checkpoint-")]
    assert not [path for path in finished if path.suffix in (".bin", ".pt", ".pth", ".pkl")]
    assert len([path for path in finished if path.name == "model.safetensors"]) == 2
    for path in folder.glob("checkpoint-*/**/*"):
        assert path.suffix not in (".bin", ".pt", ".pth") or path.name in (
            "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin",
        )  # fmt: skip
    assert sorted(path.name for path in (folder / "response_index").iterdir()) == ["en", "es"]
    assert "languages.safetensors" in record(folder)["files"]
    assert not [path for path in folder.iterdir() if ".partial" in path.name]


def test_the_printed_table_has_the_four_systems(trained: tuple[Path, str]) -> None:
    printed = trained[1]
    run = record(trained[0])
    pooled = {name: scopes["pooled"] for name, scopes in run["metrics"]["systems"].items()}
    for name in SYSTEMS:
        row = next(line for line in printed.splitlines() if line.startswith(f"│ {name}"))
        assert f"{pooled[name]['weighted']:.4f}".removeprefix("0") in row
        assert f"{pooled[name]['mrr']:.3f}".removeprefix("0") in row
    assert f"{pooled['Model']['n']} examples" in printed
    assert run["metrics"]["signatures"]["en"]["mrs_rouge"].replace("lang:en", "lang:en,es") in printed


@pytest.mark.parametrize("language", ["en", "es"])
def test_predictions_score_to_the_figures_of_the_record(
    trained: tuple[Path, str], language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    folder = trained[0]
    assert main(["score", str(folder / f"predictions.{language}.tsv"), "--language", language, "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    metrics = record(folder)["metrics"]
    own = metrics["systems"]["Model"][language]
    assert scored["n"] == own["n"]
    for key in ("weighted", "rouge1", "rouge2", "rouge3", "dist1", "dist2"):
        assert scored[key] == pytest.approx(own[key], abs=1e-9)
    assert scored["signature"] == metrics["signatures"][language]["mrs_rouge"]


def test_the_kept_weights_are_those_of_the_best_checkpoint(trained: tuple[Path, str]) -> None:
    from safetensors.torch import load_file

    folder = trained[0]
    best = folder / f"checkpoint-{record(folder)['best_step']}"
    for route in ("query_0_Transformer", "document_0_Transformer"):
        mine, theirs = (load_file(place / route / "model.safetensors") for place in (folder, best))
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_the_suggestions_of_a_message_are_those_in_its_predictions(trained: tuple[Path, str]) -> None:
    from mrs_suggest.suggest.suggester import Suggester

    suggester = Suggester.from_pretrained(trained[0])
    for language in ("en", "es"):
        lines = (trained[0] / f"predictions.{language}.tsv").read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines]
        answers = suggester.suggest([row[0] for row in rows], language)
        assert [[s.reply for s in answer] for answer in answers] == [row[2:] for row in rows]


@pytest.fixture(scope="session")
def overwritten(trained: tuple[Path, str], workplace: Path) -> Path:
    """A copy of the run, trained again over itself with the same seed."""
    folder = workplace / "again"
    shutil.copytree(trained[0], folder)
    (folder / "run.json").write_text('{"old": true}', encoding="utf-8")
    (folder / "predictions.en.tsv").write_text("old\told\told\n", encoding="utf-8")
    command = [sys.executable, TRAINER, "--data", "data", "--output_dir", "again", "--overwrite", "true", *OPTIONS]
    checked(launch(*command, cwd=workplace))
    return folder


def test_overwrite_replaces_and_the_same_seed_gives_the_same_run(trained: tuple[Path, str], overwritten: Path) -> None:
    assert log(overwritten, STEPS) == log(trained[0], STEPS)
    assert predictions(overwritten) == predictions(trained[0])
    one, other = record(trained[0]), record(overwritten)
    assert one["metrics"] == other["metrics"]
    assert one["data"] == other["data"]


def weights(folder: Path, step: int = STEPS) -> dict[str, torch.Tensor]:
    """Of both encoders in a checkpoint."""
    from safetensors.torch import load_file

    files = sorted((folder / f"checkpoint-{step}").rglob("model.safetensors"))
    assert len(files) == 2
    return {f"{path.parent.name}.{name}": tensor for path in files for name, tensor in load_file(path).items()}


def test_two_ranks_train_as_one_and_one_writes(trained: tuple[Path, str], workplace: Path) -> None:
    """Two ranks share the global batch: the same rows in each step, and each other's replies as negatives."""
    half = ["--global_batch_size", 16, "--use_cpu", "true", "--output_dir", "ranks"]
    options = list(map(str, ["--data", "data", *OPTIONS, *half]))
    codes, printed = forked_runs("mrs_trainers.retrieval", [(options, 0, 2)], workplace, 240)
    assert codes == ["0 0"], "\n".join(printed)[-5000:]
    folder = workplace / "ranks"
    assert len([line for line in printed if "wrote ranks" in line]) == 1
    assert len([line for line in printed if "Test split, 2 languages pooled" in line]) == 1
    run = record(folder)
    assert run["steps"] == STEPS
    assert (
        run["metrics"]["systems"]["Model"]["pooled"]["n"]
        == record(trained[0])["metrics"]["systems"]["Model"]["pooled"]["n"]
    )
    for name, content in predictions(folder).items():
        assert content.count(b"\n") == predictions(trained[0])[name].count(b"\n")
    one, other = ([entry["loss"] for entry in log(place, STEPS) if "loss" in entry] for place in (trained[0], folder))
    assert len(other) == STEPS
    assert other == pytest.approx(one, abs=1e-3)
    first, second = weights(trained[0]), weights(folder)
    assert first.keys() == second.keys()
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-4


# --- resuming, settings, bonus, patience, batches: the same command, called in this process


@pytest.fixture
def train(workplace: Path, monkeypatch: pytest.MonkeyPatch, one_process: None) -> Callable[..., Path]:
    """A function that trains in the folder `output` below the workplace, and returns it; on one thread, as `launch`."""
    from mrs_trainers.retrieval import main

    def call(output: str, *options: object) -> Path:
        monkeypatch.chdir(workplace)
        assert main([str(option) for option in ("--data", "data", *OPTIONS, "--output_dir", output, *options)]) == 0
        return workplace / output

    return call


def test_resumed_equals_uninterrupted(train: Callable[..., Path], trained: tuple[Path, str], workplace: Path) -> None:
    shutil.copytree(trained[0] / "checkpoint-2", workplace / "resumed" / "checkpoint-2")
    folder = train("resumed", "--resume_from_checkpoint", "last")
    assert log(folder, STEPS) == log(trained[0], STEPS)
    assert predictions(folder) == predictions(trained[0])
    assert record(folder)["metrics"] == record(trained[0])["metrics"]
    assert record(folder)["best_step"] == record(trained[0])["best_step"]


def test_a_run_is_not_resumed_with_another_decay(
    train: Callable[..., Path], trained: tuple[Path, str], workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained[0], workplace / "decays")
    decay = ["--rate_decay", 0.9, "--lr_scheduler_type", "constant_with_warmup"]
    with pytest.raises(AssertionError):
        train("decays", *decay, "--resume_from_checkpoint", "last")
    assert "rate_decay 1.0 before, 0.9 now" in capsys.readouterr().err


SHORT = ["--max_steps", 2]
# Options, the plan (every share is by size unless it says so), and which words the small tokenizer knows from training.
PLANS: dict[str, tuple[list[str], dict[str, Any], set[str]]] = {
    "zero_shot": ([], {"train": ["en"], "validation": ["en"], "test": ["en", "es"]}, {"dinner"}),
    "mt": ([], {"train": ["mt-es"], "validation": ["es"], "test": ["es"]}, {"dinner", "gracias"}),
    "multilingual": (
        ["--train", "en", "es"],  # in place of five languages
        {"train": ["en", "es"], "validation": ["en", "es"], "test": ["en", "es"], "sampling_alpha": 0.0},
        {"dinner", "cena", "gracias"},
    ),
}


@pytest.mark.parametrize("setting", PLANS)
def test_a_setting_of_the_paper_from_data_to_suggestions(
    setting: str, train: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from tokenizers import Tokenizer

    from mrs_suggest.suggest.suggester import Suggester

    options, plan, words = PLANS[setting]
    folder = train(setting, "--setting", setting, *options, *SHORT)
    run = record(folder)
    assert run["plan"] == {"setting": setting, "sampling_alpha": 1.0, **plan}
    rows = run["data"]["rows"]
    assert rows.keys() == {*plan["train"], *plan["validation"], *plan["test"]}
    assert {code for code, counts in rows.items() if "train" in counts} == set(plan["train"])
    assert {code for code, counts in rows.items() if "validation" in counts} == set(plan["validation"])
    tested = plan["test"]
    names = [f"predictions.{code}.tsv" for code in tested]
    assert {name: content.count(b"\n") for name, content in predictions(folder).items()} == {
        name: rows[code]["test"] for name, code in zip(names, tested, strict=True)
    }
    assert list(run["metrics"]["signatures"]) == tested
    assert sorted(path.name for path in (folder / "response_index").iterdir()) == tested
    assert len(Suggester.from_pretrained(folder).suggest(["hola"], tested[-1])[0]) == 3
    printed = capsys.readouterr().out
    vocabulary = Tokenizer.from_file(str(folder / "query_0_Transformer" / "tokenizer.json")).get_vocab()
    assert {word for word in ("dinner", "cena", "gracias") if f"▁{word}" in vocabulary} == words
    paper = [(row["model"], row["language"]) for row in run["metrics"]["paper"]]
    own = "--train" in options  # other sources than the paper's
    assert paper == ([] if own else [(model, code) for model in ("mbert", "xlmr") for code in tested])
    assert ("The paper's figures for this setting" in printed) == (not own)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"sources `{' '.join(plan['train'])}`" in card
    assert f"{setting} setting (section 3.2)" in card


def test_a_swept_bonus_is_stored_and_shown_beside_the_model_without_it(
    train: Callable[..., Path], workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nearly everybody gives one answer, and static vectors after one step cannot know."""
    from mrs_datasets.prepared.prepare import prepare_mrs
    from mrs_suggest.suggest.index.response_index import ResponseIndex
    from mrs_suggest.suggest.suggester import Suggester

    source = workplace / "frequent-source"
    source.mkdir()
    answers = [f"I do not know anything about number {n}, sorry" if n % 5 == 0 else "See you there" for n in range(200)]
    lines = [f"question {n} of many\t{answer}\n" for n, answer in enumerate(answers)]
    (source / "en.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(source), workplace / "frequent")
    options = ["--data", "frequent", "--encoders", "static", "--alpha", "sweep", "--max_steps", 1]
    folder = train("swept", *options, "--eval_steps", 1, "--save_steps", 1)
    metrics = record(folder)["metrics"]
    found = {float(alpha): rouge for alpha, rouge in metrics["alpha_on_validation"].items()}
    assert min(found) == 0
    assert 0 < metrics["alpha"] < max(found), "the best weight lies inside the grid"
    assert metrics["alpha_unit"] > 0
    assert metrics["alpha"] == min(alpha for alpha, rouge in found.items() if rouge == max(found.values()))
    assert ResponseIndex.load(folder / "response_index" / "en").alpha == metrics["alpha"]
    assert list(metrics["systems"]) == ["Model", "Model, no bonus", *SYSTEMS[1:]]
    own, plain = (metrics["systems"][name]["pooled"] for name in ("Model", "Model, no bonus"))
    assert own["weighted"] > plain["weighted"]
    assert own["mrr"] == plain["mrr"], "the bonus is for suggestions alone"
    assert "│ Model, no bonus" in capsys.readouterr().out
    lines = (folder / "predictions.en.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    again = Suggester.from_pretrained(folder, guard=False).suggest([row[0] for row in rows], "en")
    assert [[s.reply for s in answer] for answer in again] == [row[2:] for row in rows]
    assert sum("See you there" in row[2:] for row in rows) > 0.5 * len(rows), len(rows)


def test_a_run_with_fewer_languages_over_an_old_one_answers_only_those(
    overwritten: Path, train: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the index of the old model would be searched with the new model's vectors."""
    from mrs_suggest.cli.main import main

    shutil.copytree(overwritten, overwritten.parent / "fewer")
    folder = train("fewer", "--languages", "es", "--overwrite", "true", *SHORT)
    assert main(["suggest", "--model", str(folder), "--language", "es", "hola"]) == 0
    capsys.readouterr()
    assert main(["suggest", "--model", str(folder), "--language", "en", "hello"]) == 2
    assert list(predictions(folder)) == ["predictions.es.tsv"]


BAD_OPTIONS: dict[str, Any] = cases(__file__, "BAD_OPTIONS")


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_mrs_train_refuses_in_one_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("unknown.yaml").write_text("loss: eq4\nlearning_rat: 1.0\n")
    Path("type.yaml").write_text("learning_rate: fast\n")
    Path("list.yaml").write_text("- loss\n")
    Path("broken.yaml").write_text("loss: eq4\n  data: x: y\n")
    options, expected = BAD_OPTIONS[case]
    assert main(["train", "retrieval", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    assert expected in captured.err
    assert not Path("build").exists()


BAD_RUNS: dict[str, Any] = cases(__file__, "BAD_RUNS")


@pytest.mark.parametrize("case", BAD_RUNS)
def test_the_trainer_refuses_in_one_sentence(case: str, workplace: Path, refusal: Callable[..., str]) -> None:
    options, expected = BAD_RUNS[case]
    assert expected in refusal("retrieval", ["--data", "data", "--max_steps", 1, *options], workplace)
