"""`trainers/generation.py --task staple` on a small source in the task's files: one launch of each kind."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import curve, record
from tests.staple_source import sentences, write_source

pytestmark = pytest.mark.integration

STEPS, CUT = 60, 20
BASIC: list[object] = [
    "--task", "staple", "--data", "data", "--per_device_train_batch_size", 24, "--warmup_steps", 10,
    "--lr_scheduler_type", "constant_with_warmup", "--logging_steps", 1, "--use_cpu", "true", "--disable_tqdm", "true",
    "--save_total_limit", 9, "--nbest", 4, "--beams", 4, "--message_tokens", 12, "--reply_tokens", 12,
    "--max_tokens", 10,
]  # fmt: skip
LONG: list[object] = ["--max_steps", STEPS, "--eval_steps", CUT, "--save_steps", CUT]
SHORT: list[object] = ["--max_steps", 6, "--eval_steps", 6, "--save_steps", 6, "--max_validation_examples", 4]
LORA = ["--model_name_or_path", "first", "--right_to_left", "true", "--peft", "lora"]
GENERAL = ["--parallel", "pt-en=general.pt,general.en"]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`data/`; `blind/`, whose test split has no gold; general translations as a pair of files, Portuguese first."""
    from mrs_datasets.prepared.prepare import prepare

    folder = tmp_path_factory.mktemp("staple")
    prepare("staple", [str(write_source(folder / "source"))], folder / "data")
    prepare("staple", [str(write_source(folder / "hidden", blind=["test"]))], folder / "blind")
    rows = [(f"{prompt} now", f"{texts[0][0]} agora") for prompt, texts in sentences()]
    (folder / "general.en").write_text("".join(f"{prompt}\n" for prompt, _ in rows), encoding="utf-8")
    (folder / "general.pt").write_text("".join(f"{text}\n" for _, text in rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print: a whole one; one that is cut off, refused and resumed; two ranks; and other kinds."""
    resume = ["--resume_from_checkpoint", "last"]
    runs = [
        ([str(word) for word in [*BASIC, "--output_dir", name, *more]], cut, ranks)
        for name, more, cut, ranks in (
            ("whole", LONG, 0, 1),
            ("cut", LONG, CUT, 1),
            ("cut", [*LONG, *resume, "--draw", "uniform"], 0, 1),
            ("cut", [*LONG, *resume], 0, 1),
            ("ranks", [*SHORT, "--per_device_train_batch_size", 12], 0, 2),
            ("first", [*SHORT, *GENERAL, "--parallel_mode", "first", "--right_to_left", "true"], 0, 1),
            ("tuned", [*SHORT, *LORA, "--draw", "top", "--top_k", 2, "--data", "blind"], 0, 1),
            ("english", [*SHORT, *GENERAL, "--parallel_share", 0.25, "--direction", "to_english"], 0, 1),
        )
    ]  # fmt: skip
    codes, printed = forked_runs("mrs_trainers.generation", runs, workplace, 900)
    assert codes == ["0", "9", "2", "0", "0 0", "0", "0", "0"], "\n".join(printed)[-3000:]
    return printed


def test_a_tiny_model_learns_what_learners_would_write(folder: Callable[[str], Path]) -> None:
    metrics = record(folder("whole"))["metrics"]
    model, reference = metrics["systems"]["model"]["pt"], metrics["systems"]["reference"]["pt"]
    assert model["weighted_macro_f1"] > 0.5
    assert model["interval"][0] <= model["weighted_macro_f1"] <= model["interval"][1]
    assert model["perplexity"] < 2
    assert reference["weighted_macro_f1"] == pytest.approx(2 * 0.3 / 1.3), "always the second translation"
    assert metrics["oracle"]["pt"]["1"] == pytest.approx(2 * 0.5 / 1.5)
    assert metrics["paper"] == {}, "the test split is not the task's"


def test_the_prediction_file_scores_as_the_run_says(folder: Callable[[str], Path], workplace: Path) -> None:
    from mrs_metrics.translations_f1 import aggregate
    from mrs_suggest.evaluation.scores.score_staple import score_files

    predicted = folder("whole") / "predictions" / "test.en_pt.pred.txt"
    scores = aggregate(score_files(workplace / "source" / "en_pt" / "test.en_pt.toy.gold.txt", predicted))
    found = record(folder("whole"))["metrics"]["systems"]["model"]["pt"]
    assert {name: found[name] for name in scores} == pytest.approx(scores)
    assert scores["missing"] == 0
    blind = (folder("tuned") / "predictions" / "test.en_pt.pred.txt").read_text(encoding="utf-8")
    assert blind.count("prompt_") == 14
    tuned = record(folder("tuned"))["metrics"]
    assert (tuned["blind"], tuned["systems"]["model"]) == (["pt"], {})


def test_the_n_best_are_likely_as_learners_write_them(folder: Callable[[str], Path]) -> None:
    from mrs_suggest.models.generation.generator import Generator

    generator = Generator.load(folder("whole"))
    (found,) = generator.suggest(["we wash the bread"], "pt", 4)
    right = ["lavamos o pão", "nós lavamos o pão", "limpamos o pão", "nós limpamos o pão"]
    assert len({text for text, _ in found} & set(right)) > 1
    losses, _ = generator.losses(["we wash the bread"] * 5, [*right, "o lavamos pão"], "pt")
    assert losses[0] < losses[3] < losses[4], "half of the learners write the first, and 5 % the last"
    assert generator.coder.direction.source == "en"


def test_record_and_card_say_what_was_trained(folder: Callable[[str], Path]) -> None:
    from mrs_suggest.models.saved.families import model_card

    whole, first, tuned, english = (record(folder(name)) for name in ("whole", "first", "tuned", "english"))
    assert (whole["trainer"], whole["plan"]["draw"], whole["plan"]["train"]) == (
        "staple_generation",
        "weighted",
        ["pt"],
    )
    assert whole["data"]["rows"] == {"pt": {"train": 68, "validation": 14, "test": 14}}
    assert {"config.json", "model.safetensors", "generator.json"} <= whole["files"].keys()
    assert first["data"]["rows"] == {"parallel pt": {"train": 96}, "pt": {"validation": 4, "test": 14}}
    assert first["plan"]["parallel"][0].items() >= {"languages": "pt-en", "source": "general.pt,general.en"}.items()
    assert (tuned["plan"]["draw"], tuned["plan"]["number"]) == ("top", 2)
    assert english["plan"]["direction"] == "to_english"
    assert not (folder("english") / "predictions").exists()
    assert english["metrics"]["systems"]["model"]["pt"].keys() == {"perplexity"}
    for name in ("whole", "first", "tuned", "english"):
        card = (folder(name) / "README.md").read_text(encoding="utf-8")
        _, front, body = card.split("---\n", 2)
        assert yaml.safe_load(front)["license"] == "cc-by-nc-4.0"
        assert "carry the terms of these data" in body
        assert ("The terms of the general translations apply too." in body) == (name in ("first", "english"))
        assert ("writes the last token of a text first" in body) == (name in ("first", "tuned"))
        assert "$" not in body
        assert card == model_card(record(folder(name)))
    assert "Written and not scored" in (folder("tuned") / "README.md").read_text(encoding="utf-8")


def test_from_right_to_left_and_to_english_texts_come_in_order(folder: Callable[[str], Path]) -> None:
    from mrs_suggest.models.generation.generator import Generator

    backward, english = Generator.load(folder("tuned")), Generator.load(folder("english"))
    assert backward.coder.direction.right_to_left
    texts = ["como o arroz", "arroz o como"]
    likely, unlikely = backward.losses(["i eat the rice"] * 2, texts, "pt")[0]
    assert likely < unlikely, "the first word is written last"
    assert english.coder.direction.target == "en"
    assert english.coder.prompt("pt") == english.coder.tokenizer.convert_tokens_to_ids(["[en]"])


def test_the_whole_chain_goes_from_a_run_to_a_report(
    folder: Callable[[str], Path], workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decoded, scored back, pooled with a right-to-left member, tuned, filtered, exported, reported: figures agree."""
    from mrs_suggest.cli.main import main

    def staple(*words: object) -> str:
        assert main(["staple", *map(str, words)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    data = workplace / "data"
    for split in ("validation", "test"):
        found, scored, pooled = (tmp_path / f"{split}.{kind}" for kind in ("found", "scored", "pooled"))
        members = [f"forward={folder('whole')}", f"backward={folder('first')}"]
        staple("decode", *members, "--data", data, "--split", split, "--nbest", 6, "--out", found)
        staple("rescore", found, "--with", f"back={folder('english')}", "--out", scored)
        staple("combine", scored, "--out", pooled)
    told = staple(
        "tune", tmp_path / "validation.pooled", "--data", data, "--rule", "threshold", "--out", tmp_path / "rule"
    )
    assert "out of fold" in told
    kept, predicted = tmp_path / "kept", tmp_path / "test.pred.txt"
    staple("filter", tmp_path / "test.pooled", "--with", tmp_path / "rule", "--out", kept)
    staple("export", kept, "--out", predicted)
    systems = [f"kept={kept}", f"exported={predicted}"]
    staple("report", "--data", data, "--language", "pt", "--systems", *systems, "--out", tmp_path / "report")
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    rows = {row["system"]: row for row in report["systems"]}
    assert {"kept", "exported", "reference"} == rows.keys()
    gold = workplace / "source" / "en_pt" / "test.en_pt.toy.gold.txt"
    assert main(["score", str(predicted), "--metric", "weighted_f1", "--gold", str(gold), "--json"]) == 0
    score = json.loads(capsys.readouterr().out)["weighted_macro_f1"]
    assert score > 0.5
    assert [rows[name]["weighted_macro_f1"] for name in ("kept", "exported")] == pytest.approx([score, score])
    assert (tmp_path / "report" / "precision_recall.png").stat().st_size > 1000


def test_resumed_equals_uninterrupted(folder: Callable[[str], Path], output: list[str]) -> None:
    assert any("was started differently" in line and "draw weighted before, uniform now" in line for line in output)
    assert curve(folder("cut"), "loss", STEPS) == curve(folder("whole"), "loss", STEPS)
    for key in ("files", "metrics"):
        assert record(folder("cut"))[key] == record(folder("whole"))[key]


def test_two_ranks_train_as_one_and_one_writes(folder: Callable[[str], Path], output: list[str]) -> None:
    assert sum(line.startswith("wrote ranks") for line in output) == 1
    assert curve(folder("ranks"), "loss", 6) == pytest.approx(curve(folder("whole"), "loss", STEPS)[:6], rel=1e-3)
    evaluated = [line for line in output if line.startswith("validation, step 6: weighted F1 of the 4 best pt ")]
    assert len(evaluated) == 3, "each run's first process tells"


def test_bad_input_is_refused_in_a_sentence(
    refusal: Callable[..., str], folder: Callable[[str], Path], workplace: Path, tmp_path: Path
) -> None:
    from mrs_datasets.prepared.prepare import prepare

    prepare("staple", [str(write_source(tmp_path / "source", blind=["train"]))], tmp_path / "blind")
    os.remove(next(iter((tmp_path / "source" / "en_pt").glob("train*pred.txt"))))
    prepare("staple", [str(tmp_path / "source")], tmp_path / "lacking")
    prepare("synthetic-copa", ["synthetic"], tmp_path / "copa")
    short, xx = tmp_path / "short.pt", tmp_path / "pairs.tsv"
    short.write_text("um\n", encoding="utf-8")
    xx.write_text("a\tb\tc\n", encoding="utf-8")
    for options, sentence in cases(__file__, "REFUSED"):
        assert sentence in refusal(
            "generation", [*BASIC, *SHORT, *(option.format(tmp=tmp_path) for option in options)], workplace
        ), options
