"""`trainers/generation.py --task qg | ntg` on the generated tasks in XGLUE's formats: one launch of each kind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from datasets import Dataset

from mrs_datasets.prepared.prepared import open_prepared
from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import curve, record

pytestmark = pytest.mark.integration

STEPS, CUT = 80, 40
BASIC: list[object] = [
    "--data", "data", "--per_device_train_batch_size", 32, "--max_validation_examples", 40, "--max_test_examples", 40,
    "--beams", 1, "--message_tokens", 40, "--warmup_steps", 10, "--lr_scheduler_type", "constant_with_warmup",
    "--logging_steps", 1, "--use_cpu", "true", "--disable_tqdm", "true", "--save_total_limit", 9,
]  # fmt: skip
LONG: list[object] = ["--task", "qg", "--max_steps", STEPS, "--eval_steps", CUT, "--save_steps", CUT]
SHORT: list[object] = ["--max_steps", 8, "--eval_steps", 8, "--save_steps", 8]
GERMAN, OTHER = "de=ntg.de.jsonl", "de=data/data/qg-de/test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`data/`, and German training rows, which XGLUE does not have: those of the validation split, as JSON lines."""
    from mrs_datasets.prepared.prepare import prepare

    folder = tmp_path_factory.mktemp("tasks")
    prepare("synthetic-xglue", ["synthetic"], folder / "data")
    rows = split(folder, "ntg-de", "validation").to_list()
    lines = [json.dumps({**row, "more": 1}, ensure_ascii=False) for row in rows]
    (folder / "ntg.de.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def split(folder: Path, config: str, name: str) -> Dataset:
    return open_prepared(str(folder / "data")).load(config, name)


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print: a whole one, one cut off, refused and resumed, one on two ranks, and the other modes."""
    resume = ["--resume_from_checkpoint", "last"]
    of_all = ["--task", "ntg", "--mode", "multilanguage", "--languages", "en", "de", "--train", GERMAN, *SHORT]
    german = ["--task", "ntg", "--pivot", "de", "--train", GERMAN, "--validation", "all", *SHORT]
    runs = [
        ([str(word) for word in [*BASIC, "--output_dir", name, *more]], cut, ranks)
        for name, more, cut, ranks in (
            ("whole", LONG, 0, 1),
            ("cut", LONG, CUT, 1),
            ("cut", [*LONG, *resume, "--pivot", "de", "--train", OTHER], 0, 1),
            ("cut", [*LONG, *resume], 0, 1),
            ("ranks", [*LONG, *SHORT, "--per_device_train_batch_size", 16], 0, 2),
            ("all", of_all, 0, 1),
            ("german", german, 0, 1),
        )
    ]
    codes, printed = forked_runs("mrs_trainers.generation", runs, workplace, 500)
    assert codes == ["0", "9", "2", "0", "0 0", "0", "0"], "\n".join(printed)[-3000:]
    return printed


def test_a_tiny_model_learns_to_ask(folder: Callable[[str], Path]) -> None:
    systems = record(folder("whole"))["metrics"]["systems"]
    assert systems["QG"]["en"]["score"] > 0.9
    assert systems["Lead"]["en"]["score"] < 0.1
    assert systems["QG"]["de"]["score"] < 0.2, "it has never seen a German word"
    assert systems["QG"]["en"]["perplexity"] < 1.5 < systems["QG"]["de"]["perplexity"]
    assert systems["QG"]["average"] == {
        "score": pytest.approx(sum(systems["QG"][code]["score"] for code in ("en", "de", "es", "fr")) / 4),
        "languages": 4,
    }


def test_official_files_score_as_the_run_says(folder: Callable[[str], Path], workplace: Path, tmp_path: Path) -> None:
    from mrs_metrics.xglue import aggregate
    from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
    from mrs_suggest.evaluation.scores.score_xglue import score_folder

    (tmp_path / "QG").mkdir()
    found = record(folder("whole"))["metrics"]["systems"]["QG"]
    for code in ("en", "de", "es", "fr"):
        rows = sample_rows(split(workplace, f"qg-{code}", "test"), 40, EVALUATION_SEED)
        right = "".join(f"{question}\n" for question in rows["question"][:])
        (tmp_path / "QG" / f"xglue.qg.{code}.tgt.test").write_text(right, encoding="utf-8")
        ours = score_folder(folder("whole") / "predictions", tmp_path, ["QG"], [code])["QG"][code]
        assert {key: found[code][key] for key in aggregate(ours)} == pytest.approx(aggregate(ours))


def test_record_and_card_say_what_was_trained(folder: Callable[[str], Path]) -> None:
    from mrs_suggest.models.saved.families import model_card

    whole, every, german = (record(folder(name)) for name in ("whole", "all", "german"))
    assert (whole["trainer"], whole["plan"]["task"], whole["plan"]["mode"]) == ("text_generation", "QG", "pivot")
    assert (whole["plan"]["train"], whole["plan"]["validation"], whole["plan"]["zero_shot"]) == (["en"], ["en"], True)
    assert whole["metrics"]["missing"] == ["it", "pt"]
    assert whole["metrics"]["signatures"]["de"].startswith("xglue_score|task:QG|rules:paper|score:bleu|lang:de|")
    assert {"config.json", "model.safetensors", "generator.json"} <= whole["files"].keys()
    assert (every["plan"]["train"], every["plan"]["test"]) == (["en", "de"], ["en", "de"])
    assert every["data"]["rows"]["ntg-de"] == {"train": 100, "validation": 40, "test": 40}
    assert list(every["data"]["own_files"]) == ["de"]
    assert (german["plan"]["validation"], german["plan"]["zero_shot"]) == (["en", "de", "es", "fr"], False)
    card = (folder("german") / "README.md").read_text(encoding="utf-8")
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front)["language"] == ["de", "en", "es", "fr"]
    assert "**Not zero-shot**" in body
    assert "No figure for ru: the average is not comparable" in body
    assert "terms: https://microsoft.github.io/XGLUE/" in body
    assert "$" not in body
    assert card == model_card(german)


def test_resumed_equals_uninterrupted(folder: Callable[[str], Path], output: list[str]) -> None:
    assert any("was started differently" in line and "train ['en'] before, ['de'] now" in line for line in output)
    assert curve(folder("cut"), "loss", STEPS) == curve(folder("whole"), "loss", STEPS)
    for key in ("files", "metrics"):
        assert record(folder("cut"))[key] == record(folder("whole"))[key]


def test_two_ranks_train_as_one_and_one_writes(folder: Callable[[str], Path], output: list[str]) -> None:
    assert sum(line.startswith("wrote ranks") for line in output) == 1
    assert curve(folder("ranks"), "loss", 8) == pytest.approx(curve(folder("whole"), "loss", STEPS)[:8], rel=1e-3)
    evaluated = [line for line in output if line.startswith("validation, step 8: BLEU en ")]
    assert len(evaluated) == 3, "each run's first process tells"


def test_the_result_writes(folder: Callable[[str], Path]) -> None:
    from mrs_suggest.suggest.suggester import Suggester

    suggester = Suggester.from_pretrained(str(folder("whole")))
    (found,) = suggester.suggest("Karl lives in Paris. Nobody knows.", "en", 1)
    assert found.reply.lower() == "where does karl live?"


def test_bad_input_is_refused_in_a_sentence(refusal: Callable[..., str], workplace: Path, tmp_path: Path) -> None:
    lacking, null, broken = (tmp_path / name for name in ("lacking.jsonl", "null.parquet", "broken.parquet"))
    lacking.write_text('{"news_body": "a"}\n', encoding="utf-8")
    Dataset.from_list([{"news_body": "a", "news_title": "b"}, {"news_body": "a", "news_title": None}]).to_parquet(null)
    broken.write_bytes(b"PAR1")
    (tmp_path / "empty.jsonl").write_text("")
    shutil.copytree(workplace / "data", tmp_path / "other")
    for path in (tmp_path / "other" / "data").glob("ntg-*"):
        shutil.rmtree(path)
    for options, sentence in cases(__file__, "REFUSED"):
        assert sentence in refusal(
            "generation",
            [*BASIC, "--task", "ntg", *SHORT, *(option.format(tmp=tmp_path) for option in options)],
            workplace,
        ), options
