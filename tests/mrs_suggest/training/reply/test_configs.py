"""The configurations behind the paper's tables: one for each run, with the paper's values, each with its source."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.evaluation.paper_results import paper_rows
from mrs_suggest.training.reply.options import make_plan

CONFIGS = Path(__file__).parents[4] / "trainers" / "configs"
FOLDERS = {"retrieval/mbert": "mbert", "retrieval/xlmr": "xlmr", "generation/unicoder": "xdae"}
WHOLE = [*LANGUAGES, *(f"mt-{code}" for code in LANGUAGES if code != "en")]
NAMES = (
    [f"monolingual_{code}" for code in LANGUAGES]
    + [f"mt_{code}" for code in LANGUAGES if code != "en"]
    + ["zero_shot", "multilingual"]
)
RUNS = [f"{folder}/{name}" for folder in FOLDERS for name in NAMES]
# What differs between the runs of a folder; all else is the same.
OF_A_RUN = {
    "setting", "languages", "sampling_alpha", "batches", "num_train_epochs", "max_steps", "output_dir",
}  # fmt: skip


def read(run: str) -> dict[str, Any]:
    content = yaml.safe_load((CONFIGS / f"{run}.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_cell_of_the_tables_has_its_run(folder: str) -> None:
    assert sorted(path.stem for path in (CONFIGS / folder).iterdir()) == sorted(NAMES)
    first = read(f"{folder}/monolingual_en")
    shared = {key: value for key, value in first.items() if key not in OF_A_RUN}
    for name in NAMES:
        assert {key: value for key, value in read(f"{folder}/{name}").items() if key not in OF_A_RUN} == shared, name
    places = [read(f"{folder}/{name}")["output_dir"] for name in NAMES]
    assert len(set(places)) == len(places)
    assert shared["model_name_or_path"] not in places


@pytest.mark.parametrize("run", RUNS)
def test_a_file_plans_the_cells_it_is_for_with_their_figures(run: str) -> None:
    folder, _, name = run.rpartition("/")
    family, values = folder.partition("/")[0], read(run)
    text = (CONFIGS / f"{run}.yaml").read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert any(f"--config trainers/configs/{run}.yaml" in line for line in head)
    assert all(" # " in line for line in text.splitlines()[len(head) :]), "every value names its source"
    plan = make_plan(WHOLE, values["setting"], values["languages"], sampling_alpha=values.get("sampling_alpha"))
    assert name == (f"{plan.setting}_{plan.test[0]}" if plan.setting in ("monolingual", "mt") else plan.setting)
    assert plan.sampling_alpha == (0.0 if plan.setting == "multilingual" else 1.0)
    rows = [row for row in paper_rows(family, FOLDERS[folder], plan.setting) if row.language in plan.test]
    for row in rows:
        assert f"{row.language} .{round(row.rouge * 10_000):04d}" in " ".join(head)
        assert f"Table {row.table}" in " ".join(head)


def test_a_bare_command_trains_the_quickstart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline that ships, further; any option leaves the file out."""
    from mrs_trainers import retrieval

    from mrs_suggest.training import options as command

    seen, parse = list[Any](), command.parse_with_config

    def parse_and_stop(*given: Any) -> Any:
        seen.append(parse(*given))
        raise InputError("parsed")

    monkeypatch.setattr(command, "parse_with_config", parse_and_stop)
    monkeypatch.setattr("sys.argv", ["retrieval.py"])
    assert retrieval.main() == retrieval.main([]) == retrieval.main(["--seed", "7"]) == 2
    for options, training in seen[:2]:
        assert options.model_name_or_path in read_baselines()
        assert options.ranker
        assert training.max_steps > 0
    assert (seen[2][0].model_name_or_path, seen[2][0].ranker, seen[2][1].seed) == ("tiny", False, 7)
