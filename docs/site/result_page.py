"""The page of results: the tables of `mrs reproduce` in docs/results/, and the ratios in benchmarks/results/."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from cli_pages import cell
from quotes import END, quoted

from mrs_suggest.reproduce.page import unit_note

HEAD = """# Results

## Tables of the papers

`mrs reproduce` writes each table as a JSON file, with the commands and versions that made it; those in `docs/results`
are shown here as they stand. [Reproduce the tables](reproduce.md) explains how to run them and what the scales mean:
figures of the scales `tiny` and `small` cannot be compared with those of a paper.

"""
NONE = "No table is in `docs/results` yet.\n\n"
SPEED = """## Speed

`make bench` runs one script per claim. Each measures against a named alternative, in turns on the same machine; where
the ratio is the alternative's time over ours, above 1 means that ours is faster. The scripts below `benchmarks/` state
workload and rival in full, and the JSON files in `benchmarks/results` have the seconds, versions and machine.

| script | what it compares | ratios |
|---|---|---|
"""
INFERENCE = """## Intervals and tests

`benchmarks/bench_intervals.py` simulates samples whose true figure is known. Of {checks} checks with 50 examples or
more (of gaps between languages, 10 messages or more in one of them), {fine} have, within two standard errors, the
coverage (.94 to .97) or the rejections (.04 to .06) that they should have; a sequential test must only reject at most
.06. {rest}

"""
LAWS = {
    "lognormal": "log-normal scores", "zeros_70_beta": "scores of which 70 % are 0", "zeros_80_uniform":
    "uniform scores of which 80 % are 0", "zeros_80_lognormal": "log-normal scores of which 80 % are 0",
    "differences": "differences of which 70 % are 0", "zero_or_one": "shares of .1", "share_02": "shares of .02",
    "zeros_95_beta": "scores of which 95 % are 0", "reciprocal_ranks": "reciprocal ranks", "all": "ratios",
    "dist1": "Dist-1", "dist2": "Dist-2", "macro_mrr": "macro-MRR", "bleu": "BLEU", "fixed": "clicks",
    "sequential": "clicks, sequential", "normal": "normal scores",
}  # fmt: skip
TABLES = Path("trainers/configs/reproduce")
RATIO = ("ratio", "times_the_rival")
LEFT_OUT = ("check", "comparison", "goals")  # ratios to a line through other sizes, of parts, to aim at
OTHERS = {"all": "", "claims": "the paper's claims", "leads": "leads in"}  # printed, and no metrics
KINDS = ("means", "ratio", "corpus", "units", "gaps", "clicks")  # of bench_intervals
SHOWN = 4  # ratios of a script; the others are in its file


JUDGED = """## Judged by readers

{messages} messages that served for nothing else ({each} in each language, `benchmarks/panel`), answered by each system,
were graded by {readers} readers, who did not know which system was which: `good` if one of the three replies would be
clicked as it stands, `ok` if one could be sent, `bad` if none. Where the readers differ, the worse grade counts; they
gave equal grades to {equal:.0%} of the answers (Fleiss' kappa {kappa:.2f}). `everyday-retriever` is the model that
ships, `everyday-large` the larger baseline (`make baseline-large`), and `e5-small` the ranker of the shipped model with
the vectors of multilingual-e5-small as it is on the hub.

| system | good | ok | bad | wrongly silent |
|---|---|---|---|---|
"""


NOT_YET = "The model of this version has not been measured yet.\n\n"
SILENCE = """## Silence

Messages at which the guard of the shipped model is silent (`benchmarks/bench_guard.py`). In brackets: 95 % intervals
(Wilson). [How the guard decides](concepts/guard.md) explains the two judges.

| messages written for the test | grave: found | of these about self-harm | everyday, or only sounding grave: silent |
|---|---|---|---|
"""
PRECISION = """## Precision

Whether `--precision` keeps its promise on real conversations that the shipped model never saw
(`benchmarks/bench_trigger.py`): the messages that it answers, and the share of these answers of which a suggestion is
used (weighted ROUGE of .3 or more against the real reply). In brackets: 95 % intervals (Wilson). [Likely
use](guard.md#likely-use) explains the option.

| corpus | language | pairs | promised | answered | used |
|---|---|---|---|---|---|
"""
CHAT = """
Real chat, of which hardly any message is grave:

| corpus | language | messages | silent | word lists alone |
|---|---|---|---|---|
"""


def result_page(root: Path) -> str:
    """The filled page; the blocks are those that `make results` fills in any page."""
    blocks = [block for path in sorted((root / "docs" / "results").glob("*.json")) for block in _blocks(root, path)]
    tables = quoted("".join(blocks), root, "the page of results") if blocks else NONE
    return HEAD + tables + _judged(root) + _silence(root) + _precision(root) + _inference(root) + SPEED + _speed(root)


def _inference(root: Path) -> str:
    """Which intervals and tests miss their aim, from the record of the simulation."""
    record = json.loads((root / "benchmarks" / "results" / "bench_intervals.json").read_text(encoding="utf-8"))
    if "outside" not in record:
        return ""
    rows = [row for kind in KINDS for of in record[kind].values() for row in of.values()]
    checks = sum(key in row for row in rows for key in ("ours", "ours_rejected"))
    told = []
    for one in record["outside"]:
        law = LAWS[one["law"]] + {"units": " in units", "gaps": " in units, gap"}.get(one["of"], "")
        what = f"covered {one['interval']:.1%}" if "interval" in one else f"rejected {one['test']:.1%}"
        told.append(f"{law}, n = {one['n']}: {what}")
    rest = f"The others: {'; '.join(told)}." if told else ""
    return INFERENCE.format(checks=checks, fine=checks - len(told), rest=rest)


def _judged(root: Path) -> str:
    path = max((root / "benchmarks" / "panel").glob("round_*/counts.json"))
    record = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for name, one in record["systems"].items():
        counts = [str(one["worse_of_both"].get(grade, 0)) for grade in ("good", "ok", "bad", "silent")]
        rows.append(f"| {name} | {' | '.join(counts)} |\n")
    return JUDGED.format(each=record["messages"] // 10, **record) + "".join(rows) + "\n"


def _silence(root: Path) -> str:
    path = root / "benchmarks" / "results" / "bench_guard.json"
    if not path.is_file():
        return "## Silence\n\n" + NOT_YET
    record = json.loads(path.read_text(encoding="utf-8"))

    def share(one: dict[str, Any]) -> str:
        return f"{one['silent']} of {one['messages']} ({one['share']:.1%}) [{one['low']:.1%}, {one['high']:.1%}]"

    sheets = [
        f"| `{name}` | {share(one['grave'])} | {share(one['self_harm'])} | {share(one['light'])} |\n"
        for name, one in record["sheets"].items()
    ]
    chat = [
        f"| {corpus} | {code} | {one['messages']} | {one['share']:.1%} [{one['low']:.1%}, {one['high']:.1%}] "
        f"| {one['lists alone']:.1%} |\n"
        for corpus, languages in record["corpora"].items()
        for code, one in languages.items()
    ]
    return SILENCE + "".join(sheets) + CHAT + "".join(chat) + "\n"


def _precision(root: Path) -> str:
    path = root / "benchmarks" / "results" / "bench_trigger.json"
    if not path.is_file():
        return "## Precision\n\n" + NOT_YET
    record = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for corpus, languages in record["corpora"].items():
        for code, one in languages.items():
            for promised, of in one["promises"].items():
                used = (
                    ""
                    if of["low"] is None
                    else f"{of['used'] / of['answered']:.1%} [{of['low']:.1%}, {of['high']:.1%}]"
                )
                rows.append(f"| {corpus} | {code} | {one['pairs']} | {promised} | {of['answered']} | {used} |\n")
    return PRECISION + "".join(rows) + "\n"


def _blocks(root: Path, path: Path) -> Iterator[str]:
    record = json.loads(path.read_text(encoding="utf-8"))
    about = yaml.safe_load((root / TABLES / f"{record['table']}.yaml").read_text(encoding="utf-8"))
    used = {run["data"]["id"] for run in record["runs"].values()}
    data = [f"`{name}`: {one['about']}." for name, one in about.get("data", {}).items() if name in used]
    yield f"### {record['title']}, scale {record['scale']} {{: #{record['table']} }}\n\n"
    base = f"The base model is `{record['base_model']}`."
    yield " ".join([about["about"], *data, base, unit_note(record["unit"])]) + "\n\n"
    for table, parts in record["printed"].items():
        titles = record["titles"][table]
        for part in parts:
            name = table.replace("figure ", "figure-")
            what, _, column = part.partition("-")
            told = titles.get(part) or f"{OTHERS[what]} {column}".strip().removesuffix(" in")
            yield f"#### {titles['']}{told and ': '}{told}\n\n"
            yield f"<!-- results: {path.relative_to(root)} {name} {part} -->\n\n{END}\n\n"


def _speed(root: Path) -> str:
    rows = []
    for path in sorted((root / "benchmarks" / "results").glob("*.json")):
        script = root / "benchmarks" / f"{path.stem}.py"
        about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        ratios = list(_ratios(json.loads(path.read_text(encoding="utf-8"))))
        more = f"; {len(ratios) - SHOWN} more" if len(ratios) > SHOWN else ""
        shown = "; ".join(f"{name} {value:,.3g}".strip() for name, value in ratios[:SHOWN]) or "see the file"
        rows.append(f"| `{path.stem}` | {cell(about)} | {cell(shown + more)} |\n")
    return "".join(rows)


def _ratios(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Every figure under a key that says that it is a ratio, with the keys above it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _ratios(below, (*path, key))
    elif isinstance(value, int | float) and path and path[-1].startswith(RATIO) and path[0] not in LEFT_OUT:
        name = [*path[:-1], path[-1].removeprefix("ratio").removeprefix("times_the_rival").strip("_")]
        yield " ".join(part for part in name if part), value
