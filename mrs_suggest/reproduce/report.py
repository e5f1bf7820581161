"""The page of a table's finished runs: printed, and written as HTML, Markdown, JSON and pictures."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.report.pages import Block, Grid, Picture, as_html, as_markdown
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.models.saved.record import Record
from mrs_suggest.reproduce import page
from mrs_suggest.reproduce.cells import Setup
from mrs_suggest.reproduce.claims import ClaimResult, check_claims
from mrs_suggest.reproduce.comparisons import Comparisons, compare, grouped
from mrs_suggest.reproduce.pictures import draw_bars, draw_curves_of_rows, draw_table
from mrs_suggest.reproduce.preference import Preference, preference
from mrs_suggest.reproduce.results import ROW, Figure, Lead, Results
from mrs_suggest.reproduce.table import Table, TableSpec


@dataclass(frozen=True)
class Report:
    """The content of a page; `people` maps a figure to human preference, None if the sheets are about other runs."""

    results: Results
    figures: list[Figure]
    leads: list[Lead]
    compared: Comparisons
    claims: list[ClaimResult]
    people: dict[str, Preference | None]

    def of(self, name: str) -> list[Figure]:
        return [figure for figure in self.figures if figure.table == name]


def make_report(setup: Setup, problems: Mapping[str, str], sheets: Record | None = None) -> Report:
    """Read the runs and compute the content of the page; `sheets` as `read_sheets` gives them."""
    results = Results.read(setup, problems)
    figures = list(results.fields())
    people = {
        name: preference(results, grid, sheets)
        for name, grid in setup.table.grids().items()
        if grid.human and sheets is not None
    }
    compared, claims = compare(results, figures), list(check_claims(results))
    return Report(results, figures, list(results.leads()), compared, claims, people)


def write_report(setup: Setup, problems: Mapping[str, str], sheets: Record | None = None) -> list[Path]:
    """Print the tables; write `NAME.html`, `.md`, `.json` and the pictures; return their paths, the page first."""
    report = make_report(setup, problems, sheets)
    table = setup.table
    drawn = _draw(report, setup.output)
    tables = list(_table_blocks(report, drawn))
    blocks = [*tables, *page.run_blocks(report.results)]
    paths = [setup.output / f"{table.name}.{kind}" for kind in ("html", "md", "json")]
    print(as_markdown(tables), end="")
    atomic_write(paths[1], as_markdown(blocks))
    atomic_write(paths[0], as_html(blocks, setup.output, contents=True))
    content = finite_json(_record(report))
    atomic_write(paths[2], json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return [*paths, *(setup.output / file for files in drawn.values() for file in files)]


def _table_blocks(report: Report, drawn: Mapping[str, Mapping[str, str]]) -> Iterator[Block]:
    yield from page.head_blocks(report.results)
    for name in report.results.setup.table.grids():
        leads = [lead for lead in report.leads if lead.table == name]
        yield from page.table_blocks(report.results, name, report.of(name), leads, report.compared)
        yield from (Picture(file, shows) for file, shows in drawn.get(name, {}).items())
        if name in report.people:
            yield from page.people_blocks(report.people[name])
        yield from page.claim_blocks([claim for claim in report.claims if claim.table == name], report.of(name))


def _draw(report: Report, folder: Path) -> dict[str, dict[str, str]]:
    """Draw what has figures; table -> file -> what it shows."""
    table = report.results.setup.table
    drawn = {}
    for name, grid in table.grids().items():
        own = report.of(name)
        if not any(one.mean is not None or one.paper is not None for one in own):
            continue
        fields = {(one.row, one.column, one.metric): one for one in own}
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "table"
        file = f"{table.name}-{slug}.png"
        if name in table.tables:
            draw_table(grid, fields, folder / file)
        else:
            people = report.people.get(name)
            draw_bars(grid, fields, people.shares if people else {}, folder / file)
        drawn[name] = {file: f"{grid.title}: {', '.join(grid.metrics.values())}"}
        if name in table.tables and (rows := page.curves_of_rows(report.results, grid)):
            curves = f"{table.name}-{slug}-curves.png"
            draw_curves_of_rows(rows, folder / curves)
            drawn[name][curves] = f"{grid.title}: training loss and validation of every run; circles: the kept step"
    return drawn


def _record(report: Report) -> Record:
    results = report.results
    runs = {
        name: {key: record.get(key) for key in ("seed", "commit", "versions", "hardware", "data", "seconds")}
        for name, record in results.records.items()
    }
    record = {
        "table": results.setup.table.name,
        "title": results.setup.table.title,
        "base_model": results.setup.table.at(results.setup.scale).base_model or results.setup.table.base_model,
        "titles": {name: {"": grid.title, **grid.metrics} for name, grid in results.setup.table.grids().items()},
        "scale": results.setup.scale,
        "unit": results.unit,
        "figures": [
            {**asdict(figure), "mean": figure.mean, "deviation": figure.deviation, "n": len(figure.values)}
            for figure in report.figures
        ],
        "leads": [asdict(lead) for lead in report.leads],
        "comparisons": report.compared.p,
        "claims": [asdict(claim) for claim in report.claims],
        "people": {name: one and asdict(one) for name, one in report.people.items()},
        "runs": runs,
        "not_run": dict(results.problems),
    }
    return record | {"printed": printed_tables(record, results.setup.table)}


def printed_tables(record: Record, table: Table) -> dict[str, dict[str, str]]:
    """The tables of a record as Markdown, for pages that quote them: by metric (`all`: one table has all), the leads of
    each column, and the claims.

    Columns without a run are left out, and rows with neither a run nor a printed figure, if any run has finished. If
    the unit of inference is the row, rows have no letters, and verdicts on claims say so.
    """
    grids = {name: grid for name, grid in table.grids().items() if name in record["titles"]}
    figures = TypeAdapter(list[Figure]).validate_python(record["figures"])
    leads = [lead for lead in TypeAdapter(list[Lead]).validate_python(record["leads"]) if lead.intervals]
    by_row = record["unit"] == ROW
    told = json.dumps(record["claims"]).replace('"verdict": "', '"verdict": "by row: ' if by_row else '"verdict": "')
    claims = TypeAdapter(list[ClaimResult]).validate_json(told)
    try:
        compared = grouped(grids, figures, [] if by_row else record["comparisons"])
    except KeyError as error:
        if not isinstance(error.args[0], tuple):  # table, row, column, metric
            raise
        of, again = f"{table.name} at scale {record['scale']}", f"mrs reproduce {table.name} --scale {record['scale']}"
        lacks = f"the record has no figure for the newer row {error.args[0][1]!r} of table {error.args[0][0]}"
        raise InputError(f"{of}: {lacks}; write it again with `{again} --page`.") from None
    found = {}
    for name, grid in grids.items():
        parts = _by_metric(grid, [one for one in figures if one.table == name], compared)
        for column in dict.fromkeys(lead.column for lead in leads if lead.table == name):
            some = [lead for lead in leads if (lead.table, lead.column) == (name, column)]
            parts[f"leads-{column}" if column else "leads"] = page.leads_grid(some)
        if some_claims := [claim for claim in claims if claim.table == name]:
            parts["claims"] = page.claims_grid(some_claims)
        found[name] = {part: as_markdown([one]) for part, one in parts.items()}
    return found


def _by_metric(grid: TableSpec, figures: Sequence[Figure], compared: Comparisons) -> dict[str, Grid]:
    run = [figure for figure in figures if figure.mean is not None]
    if run:
        columns = {figure.column for figure in run}
        rows = {figure.row for figure in figures if figure.mean is not None or figure.paper is not None}
        grid = replace(
            grid,
            columns={column: place for column, place in grid.columns.items() if column in columns},
            rows={row: place for row, place in grid.rows.items() if row in rows},
        )
    made = [one for _, one in page.grids_of(grid, figures, compared)]
    return dict(zip(grid.metrics, made, strict=True)) if grid.columns else {"all": made[0]}
