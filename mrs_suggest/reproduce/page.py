"""The page of a table: its figures next to the paper's, the paper's claims, curves and runs."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from mrs_suggest.common.io.storage import read_object
from mrs_suggest.common.report.pages import Block, Bullets, Entry, Grid, Heading, Paragraph
from mrs_suggest.common.text.text import interval_text
from mrs_suggest.models.saved.record import CURVE_POINTS, CURVES, RECORD, Record
from mrs_suggest.reproduce.cells import STATE, all_cells, place_of, run_of
from mrs_suggest.reproduce.claims import ClaimResult, Verdict
from mrs_suggest.reproduce.comparisons import Comparisons
from mrs_suggest.reproduce.preference import Preference
from mrs_suggest.reproduce.results import NO_EXPERIMENT, ROW, Figure, Lead, Results, short
from mrs_suggest.reproduce.table import CLOSE, TableSpec
from mrs_suggest.training.record import without_place

LEADING = {"weighted": "ROUGE", "mrr": "MRR"}  # the metrics of leads
PAPER = "_paper_"  # the row of the printed figures, below ours


def head_blocks(results: Results) -> Iterator[Block]:
    setup = results.setup
    table, total = setup.table, len(all_cells(setup.table))
    yield Heading(table.title, 1)
    yield Paragraph(table.about)
    if setup.tiny:
        yield Paragraph("**Tiny models, a few steps each: these figures only show that the runs work.**")
    commits = sorted({str(record.get("commit")) for record in results.records.values()})
    of_commit = f", of commit {', '.join(commits)}" if commits else ""
    yield Paragraph(f"{len(results.records)} of {total} runs, scale {setup.scale}{of_commit}.")
    of_runs = [of for record in results.records.values() if {"id", "title"} <= set(of := record.get("data") or {})]
    data = sorted({f"`{of['id']}` ({of['title']})" for of in of_runs})
    if data:
        yield Paragraph(f"Data: {', '.join(data)}.")
    yield Paragraph(unit_note(results.unit))
    if setup.model and not setup.tiny:
        replaced = table.at(setup.scale).base_model or table.base_model
        yield Paragraph(f"`{setup.model.resolve().name}` stands for {replaced} in all of it.")


def unit_note(unit: str) -> str:
    by_row = ", of an earlier version: intervals may be too narrow, and no difference here is called significant"
    return f"Intervals and tests are by {unit}{by_row * (unit == ROW)}."


def table_blocks(
    results: Results, name: str, figures: Sequence[Figure], leads: Sequence[Lead], compared: Comparisons
) -> Iterator[Block]:
    """A table with one grid for each metric, or one for all; its leads, and the reasons of empty fields."""
    grid = results.setup.table.grids()[name]
    yield Heading(grid.title)
    yield Paragraph(" ".join(_notes(grid, figures, compared)), note=True)
    for title, block in grids_of(grid, figures, compared):
        if title:
            yield Heading(title, 3)
        yield block
    if any(lead.intervals for lead in leads):
        yield Paragraph("Leads: differences of two rows, paired 95 % intervals over the same examples, seed by seed.")
        yield leads_grid(leads)
    missing = [one.missing for one in figures] + [lead.missing for lead in leads]
    reasons = list(_reasons([one for one in missing if one], results))
    if reasons:
        yield Bullets(reasons)


def grids_of(grid: TableSpec, figures: Sequence[Figure], compared: Comparisons) -> Iterator[tuple[str, Grid]]:
    """(title, grid) of each metric; one grid for all metrics in a table without columns."""
    found = {(figure.row, figure.column, figure.metric): figure for figure in figures}

    def made(header: Sequence[str], fields: Sequence[tuple[str | None, str]]) -> Grid:
        rows: list[list[str | Entry]] = []
        for row in grid.rows:
            rows.append([row, *(_entry(found[row, column, key], compared) for column, key in fields)])
        return Grid(["", *header], rows, below=PAPER)

    if not grid.columns:
        yield "", made(list(grid.metrics.values()), [(None, key) for key in grid.metrics])
        return
    for key, title in grid.metrics.items():
        yield title, made(list(grid.columns), [(column, key) for column in grid.columns])


def leads_grid(leads: Sequence[Lead]) -> Grid:
    """One row for each lead that has an interval, with the intervals of every seed."""
    leads = [lead for lead in leads if lead.intervals]
    metrics = {key: title for key, title in LEADING.items() if any(key in lead.intervals for lead in leads)}

    def intervals(lead: Lead, metric: str) -> str:
        return "; ".join(interval_text(ends, "{:+.4f}".format) for ends in lead.intervals.get(metric, {}).values())

    rows = [[lead.row, lead.over, lead.column or "", *(intervals(lead, key) for key in metrics)] for lead in leads]
    return Grid(["lead", "over", "", *metrics.values()], rows, folded="Leads, seed by seed")


def claim_blocks(claims: Sequence[ClaimResult], figures: Sequence[Figure]) -> Iterator[Block]:
    """The claims of a table as a grid, and the columns left out for a reason that no empty field gives."""
    if not claims:
        return
    yield Heading("Claims of the paper", 3)
    yield Paragraph(
        "A claim holds, or fails, if the whole 95 % interval of the difference agrees; otherwise it is undecided. "
        "Differences are shares of the second row's mean, over the same examples of all columns that have both rows.",
        note=True,
    )
    yield claims_grid(claims)
    told = {figure.missing for figure in figures}
    missing = [(column, why) for claim in claims for column, why in claim.missing.items() if why not in told]
    if missing:
        columns = {why: ", ".join(dict.fromkeys(one for one, other in missing if other == why)) for _, why in missing}
        yield Bullets([f"{some}: left out of the claims: {why}" for why, some in columns.items()])


def claims_grid(claims: Sequence[ClaimResult]) -> Grid:
    """One row for each claim, without empty columns."""
    header = ["claim", "here", "difference", "by column", "in the paper's figures"]
    rows = [_claim_row(claim) for claim in claims]
    kept = [
        place
        for place in range(len(header))
        if place < 3 or any(str(getattr(row[place], "text", row[place])) for row in rows)
    ]
    return Grid([header[place] for place in kept], [[row[place] for place in kept] for row in rows], texts=True)


def curves_of_rows(results: Results, grid: TableSpec) -> dict[str, dict[str, list[Record]]]:
    """Row -> cell -> the curves of its runs; a run of an earlier version has only a picture of them."""
    found: dict[str, dict[str, list[Record]]] = {}
    for row, column in grid.fields():
        place = grid.place(row, column)
        names = [name for _, name in results.names(place) if name in results.records]
        curves = [read_object(run_of(name, results.setup) / CURVE_POINTS) for name in names]
        drawn = [points for points in curves if points and (points["loss"] or any(points["validation"].values()))]
        if drawn:
            found.setdefault(row, {})[place.cell] = drawn
    return found


def run_blocks(results: Results) -> Iterator[Block]:
    """Every run with its command, and the cells without a run."""
    rows = [_run_row(results, name, record) for name, record in results.records.items()]
    yield Heading("Runs")
    if rows:
        header = ["run", "seed", "commit", "seconds", "steps", "hardware", "curves", "command"]
        yield Grid(header, rows, texts=True, folded=f"{len(rows)} runs, with their commands")
    missing: dict[str, list[str]] = {}
    for name, why in results.problems.items():
        missing.setdefault(why, []).append(name)
    if missing:
        yield Paragraph("Not run:")
        yield Bullets([f"{', '.join(names)}: {why}" for why, names in missing.items()])


def people_blocks(people: Preference | None) -> Iterator[Block]:
    """Human preference, if the sheets are about these runs."""
    yield Heading("Human preference", 3)
    if people is None:
        yield Paragraph("The sheets are not about the suggestions of these runs: their hashes differ.")
        return
    rows: list[list[str | Entry]] = []
    for name, (share, interval) in people.shares.items():
        rows.append([name, Entry(f"{share:.3f}", note=interval_text(interval, "{:.3f}".format))])
    yield Grid(["preferred", "share of judgements"], rows)
    yield Paragraph(people.told(), note=True)


def _entry(figure: Figure, compared: Comparisons) -> Entry:
    field = (figure.table, figure.row, figure.column, figure.metric)
    return Entry(
        figure.text(),
        note=figure.spread(),
        marks=compared.letters.get(field, ""),
        bold=field in compared.best,
        below=figure.printed(),
        shaded=figure.own and figure.mean is not None and figure.column is not None,
    )


def _notes(grid: TableSpec, figures: Sequence[Figure], compared: Comparisons) -> Iterator[str]:
    counts = sorted({len(one.values) for one in figures if one.values})
    many = [count for count in counts if count > 1]
    if many:
        seeds = f"{many[0]} to {many[-1]}" if len(many) > 1 else f"{many[0]}"
        yield f"Mean ± standard deviation over {seeds} seeds."
    if 1 in counts and any(one.intervals for one in figures):
        yield "In brackets: the 95 % interval of a single seed."
    own = {(one.table, one.row, one.column, one.metric) for one in figures}
    if own & compared.best:
        yield "Bold: the best of a column."
    if own & compared.letters.keys():
        yield (
            "Letters: rows of a column without a common letter differ (p < .05, paired permutation test over examples, "
            "Holm)."
        )
    if any(one.own and one.column for one in figures):
        yield "Grey: trained on the language of the column."
    if any(one.paper is not None for one in figures):
        yield "Below ours: the paper's figure."
    if grid.note:
        yield grid.note


def _claim_row(claim: ClaimResult) -> list[str | Entry]:
    spec = claim.spec
    about = [f"section {spec.paper}"] if spec.paper else []
    about += [f"close: at most {100 * spec.within:.0f} % apart"] if spec.says == CLOSE else []
    about += [spec.about] if spec.about else []
    title: str | Entry = Entry(spec.title, note=f"({'; '.join(about)})" if about else "")
    paper = f"({short(claim.paper[0])} and {short(claim.paper[1])})" if claim.paper else ""
    share = f"{_percent(claim.paper[0] / claim.paper[1] - 1)}" if claim.paper and claim.paper[1] else ""
    if claim.pooled is None:
        return [title, "no runs", "", "", Entry(share, note=paper)]
    found = claim.pooled
    seeds = f"{found.seeds} seed{'s' * (found.seeds != 1)}"
    counted = f"(n = {found.n:,}, {seeds}; {short(found.first)} and {short(found.second)})"
    single = len(spec.columns) == 1  # it is the difference then
    by_column = "; ".join(f"{name} {one.verdict} {_interval(one)}" for name, one in claim.columns.items() if not single)
    here = Entry(found.verdict, bold=True)
    return [title, here, Entry(_interval(found), note=counted), by_column, Entry(share, note=paper)]


def _interval(found: Verdict) -> str:
    difference, interval = found.share
    return f"{_percent(difference)} {interval_text(interval, _percent)}"


def _percent(share: float) -> str:
    return f"{round(100 * share) or 0:+d}\u00a0%".replace("+0", "0").replace("-", "−")


def _reasons(missing: Sequence[str], results: Results) -> Iterator[str]:
    """Reasons of empty fields, each once with its cells."""
    cells: dict[str, list[str]] = {}
    for told in dict.fromkeys(missing):
        name, _, reason = told.partition(": ")
        named = name in results.problems or name in results.records
        cells.setdefault(reason if named else told, []).extend([name] if named else [])
    cells.pop(NO_EXPERIMENT, None)
    for reason, names in cells.items():
        yield f"empty: {', '.join(names)}{': ' if names else ''}{reason}"


def _run_row(results: Results, name: str, record: Record) -> list[str | Entry]:
    setup = results.setup
    command = (read_object(place_of(name, setup) / STATE) or {}).get("command", "")
    hardware = record.get("hardware", {})
    machine = [str(hardware.get("machine", "")), f"{hardware['cores']} cores" if "cores" in hardware else ""]
    told = ", ".join(part for part in [*machine, *map(str, hardware.get("gpus", []))] if part)
    run = run_of(name, setup).relative_to(setup.output)
    return [
        Entry(name, link=(run / RECORD).as_posix()),
        str(record.get("seed", "")),
        str(record.get("commit", "")),
        f"{record['seconds']:,.0f}" if "seconds" in record else "",
        f"{record['steps']:,}" if "steps" in record else "",
        told,
        Entry("picture", link=(run / CURVES).as_posix()) if "steps" in record else "",
        Entry(without_places(command, setup.output), code=True),
    ]


def without_places(command: str, output: Path) -> str:
    """A command without the folders of this machine: paths in the output folder are relative to it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    above = f"{output.resolve()}/"
    shortened = (re.sub(rf"(^|=){re.escape(above)}", r"\1", word) for word in words)
    return shlex.join(str(without_place(word)) for word in shortened)
