"""The figures that papers print, to compare with ours: `paper_results.yaml` (MRS: Zhang et al. 2021, Tables 3, 4, 5),
`paper_results_mrs.yaml` (its Table 1), `paper_results_xcopa.yaml` (XCOPA: Ponti et al. 2020, Tables 5 to 8),
`paper_results_xglue.yaml` (XGLUE: Liang et al. 2020, Tables 4 to 11) and `paper_results_staple.yaml` (STAPLE: Mayhew et
al. 2020, Tables 2, 3, 4, 6 and 7)."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from mrs_suggest.common.io.packaged import read_packaged

RESULTS = "paper_results.yaml"
MRS = "mrs"


@dataclass(frozen=True)
class PaperRow:
    """One language under one setting.

    Attributes:
        table: the number of the table in the paper.
        family: retrieval or generation.
        model: what the model starts from: mbert, xlmr or xdae (Unicoder-xDAE).
        setting: monolingual, zero_shot, mt or multilingual (section 3.2).
        rouge: weighted ROUGE of the best of three suggestions, by the official script.
        dist1: distinct unigrams over all, in the chosen suggestions.
        dist2: the same of bigrams.
    """

    table: int
    family: str
    model: str
    setting: str
    language: str
    rouge: float
    dist1: float
    dist2: float


def paper_rows(family: str | None = None, model: str | None = None, setting: str | None = None) -> tuple[PaperRow, ...]:
    """The rows of the three tables in their order, or those of one family, model or setting.

    >>> len(paper_rows("retrieval", "mbert", "multilingual"))
    10
    """
    return tuple(
        row
        for row in _read()
        if family in (None, row.family) and model in (None, row.model) and setting in (None, row.setting)
    )


def paper_figure(path: str, metric: str = "") -> float | None:
    """A printed figure by the name of its benchmark and the keys in that file; None if the paper does not print it.

    Args:
        metric: the last key, of a table that prints several metrics.

    >>> paper_figure("xcopa/table_8/CO-ZS/xlmr/qu")
    50.7
    >>> paper_figure("xcopa/table_6/nop/xlmr-large/ht") is None
    True
    >>> paper_figure("mrs/table_3/zero_shot/es", "weighted")
    0.0156
    >>> paper_figure("staple/table_3/ko/jspak3/1"), paper_figure("staple/table_7/ko", "10")
    (0.312, 0.35)
    """
    found = _below(*path.split("/"))
    found = _at(found, metric) if isinstance(found, dict) else found
    return float(found) if isinstance(found, (int, float)) else None


def paper_table(benchmark: str, *keys: str) -> dict[str, Any]:
    """The part of a benchmark's file below some keys, or an empty one.

    >>> paper_table("staple", "table_3", "ko")["jspak3"]
    [2, 0.312]
    """
    found = _below(benchmark, *keys)
    return dict(found) if isinstance(found, dict) else {}


def _below(benchmark: str, *keys: str) -> Any:
    found: Any = _figures(benchmark)
    for key in keys:
        found = _at(found, key)
    return found


def _at(found: Any, key: str) -> Any:
    """The entry of a mapping, whose keys may be numbers, or of a list."""
    found = dict(enumerate(found)) if isinstance(found, list) else found
    return found.get(key, found.get(int(key)) if key.isdecimal() else None) if isinstance(found, dict) else None


@cache
def _figures(benchmark: str) -> dict[str, Any]:
    if benchmark == MRS:
        found: dict[str, Any] = dict(read_packaged("mrs_suggest.evaluation", "paper_results_mrs.yaml"))
        for row in _read():
            languages = found.setdefault(f"table_{row.table}", {}).setdefault(row.setting, {})
            languages[row.language] = {"weighted": row.rouge, "dist1": row.dist1, "dist2": row.dist2}
        return found
    try:
        return dict(read_packaged("mrs_suggest.evaluation", f"paper_results_{benchmark}.yaml"))
    except FileNotFoundError:
        return {}


@cache
def _read() -> tuple[PaperRow, ...]:
    return tuple(
        PaperRow(entry["table"], entry["family"], entry["model"], setting, language, *figures)
        for entry in read_packaged("mrs_suggest.evaluation", RESULTS)
        for setting, languages in entry["settings"].items()
        for language, figures in languages.items()
        if figures is not None
    )
