"""The trainer of language models through its real commands: from a checkpoint to a suggester, in full and with LoRA."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_suggest import Suggester
from mrs_suggest.common.text.predictions import read_predictions
from mrs_suggest.models.retrieval.tiny import build_tiny
from tests.cases import cases
from tests.causal_model import make_causal_model
from tests.forked_runs import forked_runs
from tests.run_files import curve, record

pytestmark = pytest.mark.integration

THINGS = ("train", "dinner", "dog", "meeting", "sister", "weather", "trip", "match", "phone", "exam")
PAIRS = {
    "en": [(f"How is the {thing}?", f"The {thing} is fine.") for thing in THINGS],
    "es": [(f"¿Qué tal {thing}?", f"Muy bien {thing}.") for thing in THINGS],
}
TEXTS = [text for pairs in PAIRS.values() for pair in pairs for text in pair]
STEPS = 4
OPTIONS = [
    "--data", "data", "--max_steps", STEPS, "--eval_steps", 2, "--save_steps", 2, "--logging_steps", 1,
    "--per_device_train_batch_size", 8, "--max_tokens", 12, "--beams", 3, "--use_cpu", "true",
]  # fmt: skip
START = ["--model_name_or_path", "base", "--learning_rate", 3e-3]
RUNS: dict[str, list[object]] = {
    "full": START,
    "lora": [*START, "--peft", "lora", "--lora_rank", 4, "--samples", 6],
    "constrained": [
        "--vocabulary", 200, "--constrained", "true", "--prompt", "[{code}]{message}</s>", "--packing", "true",
        "--rank_pools", "true",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared `data`, which have response sets, and `base`, a language model to start from."""
    folder = tmp_path_factory.mktemp("causal")
    (folder / "source").mkdir()
    for code, pairs in PAIRS.items():
        lines = [f"{message}\t{reply}\n" for message, reply in pairs]
        (folder / "source" / f"{code}.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(folder / "source"), folder / "data")
    make_causal_model(folder / "base", TEXTS)
    return folder


@pytest.fixture(scope="module")
def folders(workplace: Path) -> dict[str, Path]:
    """The folders of the runs, by their names."""
    words = [([*map(str, [*OPTIONS, *own, "--output_dir", name])], 0, 1) for name, own in RUNS.items()]
    codes, printed = forked_runs("mrs_trainers.causal", words, workplace, 240)
    assert codes == ["0"] * len(RUNS), "\n".join(printed)[-5000:]
    return {name: workplace / name for name in RUNS}


def test_a_run_trains_and_measures(folders: dict[str, Path]) -> None:
    folder = folders["full"]
    run, losses = record(folder), curve(folder, "loss", STEPS)
    assert (run["trainer"], run["steps"]) == ("causal", STEPS)
    assert losses[-1] < losses[0]
    assert run["best_metric"] == min(curve(folder, "eval_perplexity", STEPS))
    assert list(run["metrics"]["systems"]) == ["Model", "Random", "Most frequent", "TF-IDF"]
    assert run["metrics"]["systems"]["Model"]["pooled"]["perplexity"] > 1
    assert run["metrics"]["prompts"]["es"].startswith("<s>Answer this message with one short reply in Spanish")
    before, after = load_file(folder.parent / "base" / "model.safetensors"), load_file(folder / "model.safetensors")
    assert before.keys() == after.keys()
    assert all((before[name] != after[name]).any() for name in before)


@pytest.mark.parametrize("name", RUNS)
def test_the_saved_model_answers_as_in_its_test_and_its_card_says_what_it_is(
    name: str, folders: dict[str, Path]
) -> None:
    suggester = Suggester.from_pretrained(folders[name], guard=False)
    assert suggester.languages == ["en", "es"]
    rows = read_predictions(folders[name] / "predictions.es.tsv")
    answers = suggester.suggest([row.message for row in rows], "es")
    assert [answer.replies for answer in answers] == [list(row.suggestions) for row in rows]
    assert all(answer.replies for answer in answers)
    _, front, body = (folders[name] / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "text-generation"
    assert "A causal language model for reply suggestion" in body
    assert ("only suggests replies of its response sets" in body) is (name == "constrained")
    assert "$" not in body


def test_adapters_answer_as_the_merged_model(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, messages = folders["lora"], ["How is the dog?", "How is the exam?"]
    monkeypatch.chdir(folder.parent)  # where the base is
    settings = json.loads((folder / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["task_type"] == "CAUSAL_LM"
    both = [Suggester.from_pretrained(place, guard=False).suggest(messages, "en") for place in ("lora", "lora/adapter")]
    assert [answer.replies for answer in both[0]] == [answer.replies for answer in both[1]]
    assert all(answer.replies for answer in both[0])


def test_a_constrained_model_only_knows_its_response_sets_and_ranks_pools_on_request(folders: dict[str, Path]) -> None:
    sets = json.loads((folders["constrained"] / "replies.json").read_text(encoding="utf-8"))
    assert sets.keys() == PAIRS.keys()
    for code, replies in sets.items():
        for row in read_predictions(folders["constrained"] / f"predictions.{code}.tsv"):
            assert {*row.suggestions} <= {*replies}
            assert len(row.suggestions) == 3
    figures = {name: record(folder)["metrics"]["systems"]["Model"]["pooled"] for name, folder in folders.items()}
    assert ["mrr" in of for of in figures.values()] == [False, False, True]
    assert 0 < figures["constrained"]["mrr"] <= 1


def test_runs_are_compared_and_scored(
    folders: dict[str, Path], mrs_here: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders["full"].parent)
    code, out, err = mrs_here("compare", "full", "lora")
    assert code == 0, err
    assert "perplexity" in out
    code, out, err = mrs_here(
        "score", "full/predictions.en.tsv", "--language", "en", "--model", "constrained", "--json"
    )
    assert code == 0, err
    assert len(json.loads(out)) == 2


def test_an_export_says_why_there_is_none(folders: dict[str, Path], mrs_here: Callable[..., Any]) -> None:
    code, _, err = mrs_here("models", "export", folders["full"], "--ctranslate2")
    assert (code, "is a causal language model, and CTranslate2 only runs seq2seq models" in err) == (2, True)
    code, _, err = mrs_here("models", "export", "build/nothing", "--ctranslate2")
    assert (code, "build/nothing: no such folder" in err) == (2, True)


REFUSED: dict[str, tuple[list[object], str]] = cases(__file__, "REFUSED")


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_option_is_named(what: str, workplace: Path, refusal: Callable[..., str]) -> None:
    if what == "an encoder":
        (workplace / "encoder").mkdir()
        build_tiny(TEXTS * 2, workplace / "encoder", 0, 200)
    options, sentence = REFUSED[what]
    assert refusal("causal", [*OPTIONS, *START, *options], workplace).startswith(sentence)


def test_a_language_model_is_no_seq2seq_model(
    folders: dict[str, Path], workplace: Path, refusal: Callable[..., str]
) -> None:
    told = refusal("generation", [*OPTIONS, "--model_name_or_path", folders["full"].name], workplace)
    assert told.startswith("--model_name_or_path full: cannot load the seq2seq model")
