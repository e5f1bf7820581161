"""The committed configurations: one for each run behind the paper's tables, as generated; and accelerate's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.evaluation.paper_results import paper_row
from mrs_suggest.training.reply import make_configs
from mrs_suggest.training.reply.make_configs import CONFIGS, main, paper_runs, render
from mrs_suggest.training.reply.options import make_plan
from tests import warm_python

RUNS = list(paper_runs())
WHOLE = [*LANGUAGES, *(f"mt-{code}" for code in LANGUAGES if code != "en")]
NAMES = (
    [f"monolingual_{code}" for code in LANGUAGES]
    + [f"mt_{code}" for code in LANGUAGES if code != "en"]
    + ["zero_shot", "multilingual"]
)
LENGTHS = {  # Zhang et al. 2021, section 4.3
    ("retrieval", "monolingual_en"): ("num_train_epochs", 20),
    ("retrieval", "zero_shot"): ("num_train_epochs", 20),
    ("retrieval", "monolingual_ja"): ("num_train_epochs", 50),
    ("retrieval", "mt_ja"): ("num_train_epochs", 10),
    ("retrieval", "multilingual"): ("num_train_epochs", 10),
    ("generation", "monolingual_en"): ("num_train_epochs", 4),
    ("generation", "zero_shot"): ("num_train_epochs", 4),
    ("generation", "monolingual_ja"): ("max_steps", 5000),
    ("generation", "mt_ja"): ("num_train_epochs", 1),
    ("generation", "multilingual"): ("max_steps", 40_000),
}


def read(path: str) -> dict[str, Any]:
    content = yaml.safe_load((CONFIGS / path).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def test_the_committed_files_are_the_generated_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("folder", ["retrieval/mbert", "retrieval/xlmr", "generation/unicoder"])
def test_every_cell_of_the_tables_has_its_run(folder: str) -> None:
    assert sorted(path.stem for path in (CONFIGS / folder).glob("*.yaml")) == sorted(NAMES)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.path)
def test_a_file_says_what_it_is_for(run: make_configs.Run) -> None:
    text = (CONFIGS / run.path).read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("#")]
    body = text.splitlines()[len(head) :]
    assert any(f"--config trainers/configs/{run.path}" in line for line in head)
    for row in run.rows:
        assert f"{row.language} .{round(row.rouge * 10_000):04d}" in " ".join(head)
        assert f"Table {row.table}" in " ".join(head)
    assert all(" # " in line for line in body), "every value names its source"
    assert len({line.partition(":")[0] for line in body}) == len(body), "YAML keeps the last of two equal keys"
    assert max(map(len, head + body)) <= 120


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.path)
def test_a_file_plans_the_cells_it_is_for(run: make_configs.Run) -> None:
    values = read(run.path)
    plan = make_plan(WHOLE, values["setting"], values["languages"], sampling_alpha=values.get("sampling_alpha"))
    assert {row.language for row in run.rows} <= set(plan.test)
    assert plan.sampling_alpha == (0.0 if run.setting == "multilingual" else 1.0)
    assert values["freeze_embeddings"] is True
    expected = 256 if run.family == "retrieval" else 1024  # section 4.3; eight devices for generation
    batch = values["per_device_train_batch_size"] * values.get("gradient_accumulation_steps", 1)
    assert batch * (8 if run.family == "generation" else 1) == expected
    assert not {"max_steps", "num_train_epochs"} <= set(values)


@pytest.mark.parametrize("model", ["retrieval/mbert", "retrieval/xlmr", "generation/unicoder"])
def test_runs_are_as_long_as_the_paper_says(model: str) -> None:
    for (family, name), (option, value) in LENGTHS.items():
        if model.startswith(family):
            assert read(f"{model}/{name}.yaml")[option] == value, name


def test_every_printed_cell_is_planned_by_one_file_with_its_figure() -> None:
    covered = {(run.family, run.model, run.setting, row.language) for run in RUNS for row in run.rows}
    for family, model in (("retrieval", "mbert"), ("retrieval", "xlmr"), ("generation", "xdae")):
        for setting in ("monolingual", "zero_shot", "mt", "multilingual"):
            for code in LANGUAGES:
                printed = paper_row(family, model, setting, code) is not None
                assert ((family, model, setting, code) in covered) == printed


def test_no_two_runs_write_the_same_folder() -> None:
    places = [read(run.path)["output_dir"] for run in RUNS]
    assert len(set(places)) == len(places)
    sources = {read(run.path)["model_name_or_path"] for run in RUNS}
    assert not any(place == source or place.startswith(f"{source}/") for place in places for source in sources)


def test_check_names_what_differs_and_writing_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_configs, "CONFIGS", tmp_path)
    assert main([]) == 0
    assert main(["--check"]) == 0
    one, two, three = (tmp_path / run.path for run in RUNS[:3])
    one.write_text(one.read_text(encoding="utf-8").replace("1e-6", "1e-5"), encoding="utf-8")
    two.unlink()
    three.with_name("mine.yaml").touch()
    capsys.readouterr()
    assert main(["--check"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert any(line.startswith(f"{one} differs") for line in printed)
    assert any(line.startswith(f"{two} is missing") for line in printed)
    assert any(line.startswith(f"{three.with_name('mine.yaml')} is not one of the generated") for line in printed)
    assert main([]) == 0
    assert one.read_text(encoding="utf-8") == render(RUNS[0])
    monkeypatch.setattr(make_configs, "CONFIGS", tmp_path / "absent")
    with pytest.raises(InputError, match="run this in a checkout"):
        main([])


ACCELERATE = {  # file: processes, CPU, precision
    "cpu": (1, True, "no"),
    "cpu_two_ranks": (2, True, "no"),
    "gpu": (1, False, "no"),
    "gpu_bf16": (1, False, "bf16"),
    "gpus_8": (8, False, "no"),
}


def test_every_accelerate_file_is_tested() -> None:
    found = {path.stem for path in (CONFIGS / "accelerate").iterdir()}
    assert found == {*ACCELERATE, "fsdp", "deepspeed_zero2", "deepspeed_zero3"}  # the last ones in test_machines.py


@pytest.mark.parametrize("name", ACCELERATE)
def test_accelerate_reads_its_files(name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.utils import DistributedType

    config = load_config_from_file(str(CONFIGS / "accelerate" / f"{name}.yaml"))
    processes, cpu, precision = ACCELERATE[name]
    assert (config.num_processes, config.use_cpu, config.mixed_precision) == (processes, cpu, precision)
    assert config.distributed_type == (DistributedType.MULTI_GPU if processes > 1 else DistributedType.NO)


@pytest.mark.parametrize(("name", "ranks"), [("cpu", 1), ("cpu_two_ranks", 2)])
def test_accelerate_starts_that_many_processes(tmp_path: Path, name: str, ranks: int) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "rank, world = os.environ.get('RANK', '0'), os.environ.get('WORLD_SIZE', '1')\n"
        "pathlib.Path(sys.argv[1], f'rank{rank}').write_text(world)\n"
    )
    command = [sys.executable, "-m", "accelerate.commands.launch", "--main_process_port", "0"]
    command += ["--config_file", str(CONFIGS / "accelerate" / f"{name}.yaml"), str(script), str(tmp_path)]
    done = warm_python.run(command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {path.name: path.read_text() for path in tmp_path.glob("rank?")}
    assert found == {f"rank{number}": str(ranks) for number in range(ranks)}


def test_a_bare_command_trains_the_quickstart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline that ships, further; any option leaves the file out."""
    from mrs_trainers import retrieval

    seen: list[Any] = []
    monkeypatch.setattr(retrieval, "run", lambda options, training: seen.append((options, training)))
    monkeypatch.setattr("sys.argv", ["retrieval.py"])
    assert retrieval.main() == retrieval.main([]) == retrieval.main(["--seed", "7"]) == 0
    for options, training in seen[:2]:
        assert options.model_name_or_path in read_baselines()
        assert options.ranker
        assert training.max_steps > 0
    assert (seen[2][0].model_name_or_path, seen[2][0].ranker, seen[2][1].seed) == ("tiny", False, 7)
