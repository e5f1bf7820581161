"""The figures of a run as tables, and those of several reply models next to the baselines."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mrs_suggest.common.report.tables import Entry, Grid, print_grid
from mrs_suggest.common.text.text import interval_text
from mrs_suggest.evaluation.baselines import BASELINES
from mrs_suggest.evaluation.comparison import POOLED, grouped_signatures
from mrs_suggest.evaluation.runs.figures import without_version
from mrs_suggest.suggest.answering import MODEL

GUARD_OFF = "Measured with the guard off: every message is answered."
Record = Mapping[str, Any]  # a run's `run.json`


def print_results(record: Record) -> None:
    """Print the figures of a run: every system, then every language, then the paper's figures."""
    figures, speed = record["metrics"], record["milliseconds"]
    languages = list(figures["signatures"])
    ranks = "mrr" in figures["systems"][MODEL][POOLED]
    method = figures["interval_method"]
    pools = f" MRR, P@1: in 1-of-{figures['pool_size']} pools." if ranks else ""
    print_grid(
        _systems(figures, speed, ranks),
        [
            f"ROUGE: weighted ROUGE of the best of three. Brackets: 95 % intervals ({method}); lead: of the model over "
            f"a system, a paired difference.{pools} ms: to answer a message, in batches. {GUARD_OFF}"
        ],
    )
    if len(languages) > 1:
        print_grid(_languages(figures, languages, ranks))
    if figures["paper"]:
        cells = [
            [str(row["table"]), row["model"], row["language"], *(short_number(row[key], 4) for key in PAPER_FIGURES)]
            for row in figures["paper"]
        ]
        header = ["table", "model", "language", "ROUGE", "Dist-1", "Dist-2"]
        print_grid(Grid(header, cells, title="The paper's figures for this setting (whole MRS test sets)"))
    for signature in grouped_signatures(figures):
        print(signature)


PAPER_FIGURES = ("rouge", "dist1", "dist2")


def print_comparison(records: Mapping[str, Record]) -> None:
    """Print the models of several runs that were tested on the same examples, and the baselines, in one table (the
    columns of the paper's Figure 2).

    The baselines' figures are those of the first run that ranks, or of the first. A run's MRR is left out if it ranked
    in other pools than that one, its perplexity if its texts were tokenized differently from the first's.
    """
    ranking = [name for name in records if "mrr" in records[name]["metrics"]["systems"][MODEL][POOLED]]
    first = (ranking or list(records))[0]
    measured = records[first]["metrics"]
    tokens = next(filter(None, (_signatures(record, "reply_perplexity") for record in records.values())), [])
    rows: list[list[str | Entry]] = []
    for name, record in records.items():
        same = record["metrics"].get("pools") == measured.get("pools")
        same = same and _signatures(record, "response_ranking") == _signatures(records[first], "response_ranking")
        alike = _signatures(record, "reply_perplexity") == tokens
        cells = f"{record['trainer']} ({name})", *_figure_2(record, MODEL, same, alike)
        rows.append([Entry(cell, bold=True) for cell in cells])
    rows += [[name, *_figure_2(records[first], name)] for name in measured["systems"] if name in BASELINES]
    header = ["system", "ROUGE", "Dist-1", "Dist-2", "MRR", "perplexity", "seconds / 1,000"]
    print_grid(
        Grid(header, rows, title=_title(measured)),
        [
            "ROUGE: weighted ROUGE of the best of three, with its 95 % interval. MRR and perplexity are left out if "
            "they cannot be compared (other pools, other tokens). seconds: to answer 1,000 messages in batches, on a "
            f"run's own machine. Baselines: as {first} measured them. {GUARD_OFF}"
        ],
    )


def _signatures(record: Record, metric: str) -> list[str]:
    """How a run computed a metric, by language; empty if it did not."""
    texts = record["metrics"]["signatures"].values()
    return [without_version(of[metric]) for of in texts if metric in of]


def same_tests(records: Mapping[str, Record]) -> bool:
    """Whether all runs were tested on the same examples of the same languages."""
    return len({_test(record) for record in records.values()}) == 1


def _test(record: Record) -> tuple[object, ...]:
    figures, data = record["metrics"], record["data"]
    rows = data.get("test_hash") or data.get("revision") or data.get("content_hash")
    return rows, figures["systems"][MODEL][POOLED]["n"], *figures["signatures"]


def _title(figures: Record) -> str:
    languages, own = list(figures["signatures"]), figures["systems"][MODEL][POOLED]
    where = f"{len(languages)} languages pooled" if len(languages) > 1 else languages[0]
    return f"Test split, {where}, {own['n']:,} examples; ceiling {short_number(own['ceiling'], 4)}"


def _figure_2(record: Record, name: str, mrr: bool = True, perplexity: bool = True) -> Iterator[str]:
    row = record["metrics"]["systems"][name][POOLED]
    yield f"{short_number(row['weighted'], 4)} {_interval(row['weighted_interval'])}"
    yield short_number(row["dist1"])
    yield short_number(row["dist2"])
    yield short_number(row.get("mrr") if mrr else None)
    yield short_number(row.get("perplexity") if perplexity else None, 1)
    yield f"{record['milliseconds'][name]:.2f}"


def _systems(figures: Record, speed: Mapping[str, float], ranks: bool) -> Grid:
    header = ["system", "ROUGE", "ROUGE lead", *(["MRR", "MRR lead", "P@1"] if ranks else ["perplexity"])]
    rows = []
    for name, scopes in figures["systems"].items():
        row, lead = scopes[POOLED], figures["differences"].get(name, {}).get(POOLED, {})
        cells = [f"{short_number(row['weighted'], 4)} {_interval(row['weighted_interval'])}"]
        cells.append(_interval(lead["weighted"], sign=True) if lead else "")
        if ranks:
            mrr = f"{short_number(row['mrr'])} {_interval(row['mrr_interval'])}" if "mrr" in row else ""
            cells += [mrr, _interval(lead["mrr"], sign=True) if "mrr" in lead else "", short_number(row.get("p@1"))]
        else:
            cells.append(short_number(row.get("perplexity"), 1))
        cells += [short_number(row["dist1"]), short_number(row["dist2"]), f"{speed[name]:.2f}"]
        rows.append([Entry(cell, bold=name == MODEL) for cell in (name, *cells)])
    return Grid([*header, "Dist-1", "Dist-2", "ms"], rows, title=_title(figures))


def _languages(figures: Record, languages: list[str], ranks: bool) -> Grid:
    rows = []
    for code in languages:
        found = [scopes[code] for scopes in figures["systems"].values()]
        mrr = [f" ({short_number(row['mrr'])})" if ranks else "" for row in found]
        cells = [short_number(row["weighted"], 4) + more for row, more in zip(found, mrr, strict=True)]
        rows.append([code, f"{found[0]['n']:,}", *cells])
    title = f"By language: ROUGE{' (MRR)' if ranks else ''}"
    return Grid(["", "examples", *figures["systems"]], rows, title=title)


def _interval(bounds: list[float] | None, sign: bool = False) -> str:
    return interval_text(bounds, partial(short_number, sign=sign))


def short_number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A share without its leading zero, as the papers print it: .3007, +.024, 1.000; empty for None."""
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
