"""The tables of the project name what there is, and mistakes in a table are found."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.paper_results import paper_figure
from mrs_suggest.reproduce.cells import Setup, States, all_cells, chosen_cells, read_config
from mrs_suggest.reproduce.table import only_tables, read_table, table_names
from tests.mrs_suggest.reproduce.checked_tables import parse_table
from tests.mrs_suggest.reproduce.conftest import TABLE, Ready


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("seeds: [42, 43]", "seed: 42", "cells, teacher: unknown field 'seed'"),
        ("{config: a.yaml, data: chats", "{data: chats", "cells, chats: missing field 'config'"),
        ("seeds: [42, 43]", "seeds: many", "cells, teacher, seeds: input should be a valid list, found 'many'"),
        ("data: chats, needs", "data: chat, needs", "cells chats: data 'chat' is not described"),
        ("@teacher", "@teachers", "cells student: @teachers is not a cell with that seed"),
        ('"@teacher"', '"@teacher/44"', "@teacher/44 is not a cell with that seed"),
        ("{cell: student}", "{cell: students}", "main, student: unknown cell 'students'"),
        ("{cell: student}", "{system: Model}", "main, student: .*'cell'"),
        ('"{language}"', '"{code}"', "by language, teacher: 'code'"),
        ("[student, teacher]", "[student, parent]", "leads: expected two rows of the table, found student and parent"),
        ("cells:", "cells: [", "the file is not valid YAML"),
    ],
)
def test_a_mistake_in_a_table_is_named(old: str, new: str, sentence: str) -> None:
    assert old in TABLE
    with pytest.raises(InputError, match=sentence):
        parse_table("test", TABLE.replace(old, new), "test.yaml")


def test_cells_that_wait_for_each_other_are_refused() -> None:
    teacher = "teacher: {config: a.yaml, seeds: [42, 43]}"
    text = TABLE.replace(teacher, 'teacher: {config: a.yaml, options: {teacher: "@student"}}')
    with pytest.raises(InputError, match="teacher/42 and student/42 and teacher/42 wait for each other"):
        all_cells(parse_table("test", text, "test.yaml"))


def test_patterns_choose_cells_with_those_that_they_wait_for() -> None:
    table = parse_table("test", TABLE, "test.yaml")
    assert list(chosen_cells(table, [])) == [
        "teacher/42",
        "teacher/43",
        "student/42",
        "chats/42",
        "adapted/42",
        "planned/42",
    ]
    assert list(chosen_cells(table, ["student"])) == ["teacher/42", "student/42"]
    assert list(chosen_cells(table, ["*/43", "ch*"])) == ["teacher/43", "chats/42"]
    with pytest.raises(InputError, match="--only pupil: no such cell; the table has teacher, student, chats"):
        chosen_cells(table, ["pupil"])


def test_the_command_of_a_cell(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready(config="keep_pieces: 9\n")
    out, config = tmp_path / "out" / "cells", tmp_path / "configs" / "a.yaml"
    assert " ".join(cells["teacher/43"].command(setup)) == (
        f"train retrieval --config {config} --seed 43 --output_dir {out}/teacher-43/run --overwrite true"
    )
    assert " ".join(cells["student/42"].command(setup, resume=True)) == (
        f"train retrieval --config {config} --model_name_or_path {out}/teacher-42/run --languages en fr --ranker true "
        f"--seed 42 --output_dir {out}/student-42/run --overwrite true --resume_from_checkpoint last"
    )
    setup, cells = ready(config="keep_pieces: 9\n", scale="tiny")
    assert cells["teacher/42"].command(setup)[4:8] == ["--max_steps", "4", "--model_name_or_path", "tiny"]
    assert "keep_pieces" not in cells["teacher/42"].config(setup)
    assert "--perturbed 1" in " ".join(cells["student/42"].command(setup))


TABLES = Path(__file__).resolve().parents[3] / "trainers" / "configs" / "reproduce"


@pytest.mark.parametrize("name", table_names(TABLES))
def test_the_projects_tables_have_no_mistake(name: str) -> None:
    text = (TABLES / f"{name}.yaml").read_text(encoding="utf-8")
    assert parse_table(name, text, name) == read_table(TABLES, name)


@pytest.mark.parametrize("name", table_names(TABLES))
def test_the_commands_of_the_projects_tables_are_understood(name: str, tmp_path: Path) -> None:
    """The trainer's own parser reads every configuration and option, at every scale, and rows fit the encoder."""
    from mrs_suggest.models.retrieval.tiny import POSITIONS

    table = read_table(TABLES, name)
    trainers = {cell.trainer or table.trainer for cell in table.cells.values()}
    parsers = {trainer: import_module(f"mrs_trainers.{trainer}").make_parser() for trainer in trainers}
    for scale in table.scale_names():
        setup, cells = Setup(table, tmp_path, TABLES.parent, scale), all_cells(table)
        states = States(setup, cells)
        for cell in (cell for name, cell in cells.items() if not states.without_command(name)):
            parser = parsers[cell.spec.trainer or table.trainer]
            known = {action.dest for action in parser._actions}
            options = {**read_config(setup.configs / cell.spec.config), **cell.options(setup)}
            assert set(options) <= known, cell.name
            _, rest = parser.parse_known_args(cell.command(setup)[4:])
            assert rest == [], cell.name
            options = {**cell.config(setup), **cell.options(setup)}
            most = POSITIONS if setup.tiny else 512  # tokens that a tiny encoder reads, and the published ones
            lengths = [int(options.get(key) or 0) for key in ("max_tokens", "message_tokens", "reply_tokens")]
            assert max(lengths) <= most, cell.name


def test_the_small_scale_is_of_retrieval_alone(tmp_path: Path) -> None:
    table = read_table(TABLES, "mrs")
    cells = all_cells(table)
    states = States(Setup(table, tmp_path, TABLES.parent, "small"), cells)
    without = {name: why for name, cell in cells.items() if (why := states.without_command(name))}
    assert set(without) == {name for name in cells if name.startswith("generation-")}
    assert set(without.values()) == {"the scale small is of retrieval alone"}
    assert states.unavailable("generation-zero-shot/42") == "the scale small is of retrieval alone"


def test_a_printed_table_of_xcopa_has_its_cells_and_those_that_they_wait_for() -> None:
    table = read_table(TABLES, "xcopa")
    seven = only_tables(table, ["7"])
    assert list(seven.tables) == ["7"]
    assert {"si-co-zs-t-rep-qu", "si-zs-t-rep-qu", "adapt-t-rep-qu", "co-zs-xlmr"} <= set(seven.cells)
    assert not {"co-zs-mbert", "co-tlv-xlmr", "si-zs-nop"} & set(seven.cells)
    assert all_cells(seven)
    assert seven.cells["adapt-s-t-ht"].data_names("full") == ["sample", "texts"]
    assert table.cells["si-zs-xlmr"].data_names("full") == ["siqa", "xcopa"]
    with pytest.raises(InputError, match="--table 4: xcopa has no such table; expected 5, 6, 6-copa, 7, 8"):
        only_tables(table, ["4"])


def test_every_field_of_xcopas_tables_has_the_papers_figure_where_it_prints_one() -> None:
    table = read_table(TABLES, "xcopa")
    printed = {
        name: [paper_figure(grid.place(*field).paper) for field in grid.fields() if grid.place(*field).paper]
        for name, grid in table.tables.items()
    }
    assert {name: (len(found), found.count(None)) for name, found in printed.items()} == {
        "5": (60, 0),
        "6": (60, 8),  # no Quechua, and of the masked and full rows no Haitian Creole
        "6-copa": (0, 0),
        "7": (36, 0),
        "8": (240, 0),
    }
    place = table.tables["7"].place("SI+CO-ZS, +T-REP", "ht")
    assert (place.cell, place.scope, paper_figure(place.paper)) == ("si-co-zs-t-rep-ht", "ht", 58.4)
    place = table.tables["5"].place("CO-ZS, MBERT", "4 (USE)")
    assert (place.cell, place.scope, paper_figure(place.paper)) == ("co-zs-mbert", "it th tr zh", 55.7)
    assert table.tables["8"].place("CO-ZS, USE", "et").empty.startswith("USE has no checkpoint")
