"""The tables of the project name what there is, and mistakes in a table are found."""

from importlib import import_module
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce.cells import Setup, States, all_cells, chosen_cells, read_config
from mrs_suggest.reproduce.measure import MEASURES
from mrs_suggest.reproduce.table import at_scale, read_table, table_names
from tests.mrs_suggest.reproduce.checked_tables import parse_table
from tests.mrs_suggest.reproduce.conftest import TABLE, Ready


def test_cells_that_wait_for_each_other_are_refused() -> None:
    teacher = "teacher: {config: a.yaml, seeds: [42, 43]}"
    text = TABLE.replace(teacher, 'teacher: {config: a.yaml, options: {teacher: "@student"}}')
    with pytest.raises(InputError, match="teacher/42 and student/42 and teacher/42 wait for each other"):
        all_cells(parse_table(text))


def test_patterns_choose_cells_with_those_that_they_wait_for() -> None:
    table = parse_table(TABLE)
    everything = "teacher/42 teacher/43 student/42 chats/42 adapted/42 planned/42"
    assert " ".join(chosen_cells(table, [])) == everything
    assert list(chosen_cells(table, ["student"])) == ["teacher/42", "student/42"]
    assert list(chosen_cells(table, ["*/43", "ch*"])) == ["teacher/43", "chats/42"]
    with pytest.raises(InputError, match="--only pupil: no such cell; the table has teacher, student, chats"):
        chosen_cells(table, ["pupil"])


def test_the_command_of_a_cell(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready(config="keep_pieces: 9\n")
    out, config = tmp_path / "out" / "cells", tmp_path / "configs" / "a.yaml"
    assert " ".join(cells["teacher/43"].command(setup)) == (
        f"mrs train retrieval --config {config} --seed 43 --output_dir {out}/teacher-43/run --overwrite true"
    )
    assert " ".join(cells["student/42"].command(setup, resume=True)) == (
        f"mrs train retrieval --config {config} --model_name_or_path {out}/teacher-42/run --languages en fr "
        f"--ranker true --seed 42 --output_dir {out}/student-42/run --overwrite true --resume_from_checkpoint last"
    )
    setup, cells = ready(config="keep_pieces: 9\n", scale="tiny")
    assert cells["teacher/42"].command(setup)[5:9] == ["--max_steps", "4", "--model_name_or_path", "tiny"]
    assert "keep_pieces" not in cells["teacher/42"].config(setup)
    assert "--perturbed 1" in " ".join(cells["student/42"].command(setup))


TABLES = Path(__file__).resolve().parents[3] / "trainers" / "configs" / "reproduce"


def test_a_cell_waits_for_the_run_that_stands_for_others_at_a_scale() -> None:
    """Generated data have two languages: the tracks share their runs."""
    table = at_scale(read_table(TABLES, "staple"), "tiny")
    assert all_cells(table)["effects/42"].needs() == ["report-pt/42", "report-ja/42"]


@pytest.mark.parametrize("name", table_names(TABLES))
def test_the_projects_tables_have_no_mistake_and_their_commands_are_understood(name: str, tmp_path: Path) -> None:
    """The trainer's own parser reads every configuration and option, at every scale, and rows fit the encoder."""
    from mrs_suggest.models.retrieval.tiny import POSITIONS

    table = read_table(TABLES, name)
    assert parse_table((TABLES / f"{name}.yaml").read_text(encoding="utf-8"), name) == table
    assert {cell.trainer for cell in table.cells.values() if not cell.config} <= set(MEASURES)
    trainers = {cell.trainer or table.trainer for cell in table.cells.values() if cell.config}
    parsers = {trainer: import_module(f"mrs_trainers.{trainer}").make_parser() for trainer in trainers}
    for scale in table.scale_names():
        setup, cells = Setup(table, tmp_path, TABLES.parent, scale), all_cells(table)
        states = States(setup, cells)
        for cell in (one for name, one in cells.items() if one.spec.config and not states.without_command(name)):
            parser = parsers[cell.spec.trainer or table.trainer]
            known = {action.dest for action in parser._actions}
            options = {**read_config(setup.configs / cell.spec.config), **cell.options(setup)}
            assert set(options) <= known, cell.name
            _, rest = parser.parse_known_args(cell.command(setup)[5:])
            assert rest == [], cell.name
            options = {**cell.config(setup), **cell.options(setup)}
            most = POSITIONS if setup.tiny else 512  # tokens that a tiny encoder reads, and the published ones
            lengths = [int(options.get(key) or 0) for key in ("max_tokens", "message_tokens", "reply_tokens")]
            assert max(lengths) <= most, cell.name
