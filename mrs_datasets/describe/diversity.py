"""Diversity of a sample of languages: typology, family and geography (Ponti et al. 2020, section 2 and Table 2).

InputError: a sample without a language or with one twice, an unknown language or one that the table of features lacks,
or a line of the table that is invalid.
"""

import csv
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import Language, require_known

MISSING = {"", "--", "?", "nan"}  # `--` in URIEL's own tables, `nan` as pandas may write it

Vector = Mapping[str, "float | None"]


@dataclass(frozen=True)
class Benchmark:
    """The language sample of a benchmark in Table 2, without English (only then the paper's figures are reproduced).

    Attributes:
        codes: BCP-47.
        typology: the figure of Table 2; `typology_index` does not reproduce it.
        family, geography: the figures of Table 2 (cut off, not rounded: 4/6 is .66), which are reproduced.
    """

    codes: tuple[str, ...]
    typology: float
    family: float
    geography: float


BENCHMARKS: dict[str, Benchmark] = {
    name: Benchmark(**{**entry, "codes": tuple(entry["codes"].split())})
    for name, entry in read_packaged("mrs_datasets.describe", "paper_tables.yaml")["benchmarks"].items()
}


def family_index(languages: Sequence[Language]) -> float:
    """Distinct families per language, in (0, 1]; 1 if no two languages are related (section 2).

    >>> from mrs_suggest.common.text.languages import KNOWN
    >>> round(family_index([KNOWN[code] for code in ("de", "nl", "ja")]), 3)
    0.667
    """
    return len({language.family for language in _distinct(languages)}) / len(languages)


def geography_index(languages: Sequence[Language]) -> float:
    """Entropy in bits of the distribution over the six macro-areas of WALS, in [0, log2 6] (section 2).

    Table 2 gives the range as [0, ln 6], but only bits give its figures.

    >>> from mrs_suggest.common.text.languages import KNOWN
    >>> geography_index([KNOWN[code] for code in ("de", "sw")])
    1.0
    """
    return _entropy(language.area for language in _distinct(languages))


def typology_index(vectors: Iterable[Vector]) -> float:
    """Mean over binary features of the entropy in bits of a feature's values in the sample, in [0, 1] (section 2).

    Table 2's 103 features are the syntactic ones of URIEL, and its figures are close to nats (bits times ln 2), but not
    reproduced: section 2 has no rule for missing values. Here a feature's entropy is over the languages with a value,
    0 if there is only one, and a feature without any value does not count.

    Args:
        vectors: one per language: feature -> 0, 1, or None (also nan, or left out) if unknown; see `language_vectors`.

    >>> typology_index([{"SVO": 1, "tone": 0}, {"SVO": 0, "tone": 0}])
    0.5
    """
    sample = list(vectors)
    if not sample:
        raise InputError("typology_index: expected the vector of at least one language.")
    values: dict[str, list[float]] = {}
    for vector in sample:
        for feature, value in vector.items():
            if value is None or math.isnan(value):
                continue
            if value not in (0, 1):
                raise InputError(f"typology_index: {feature}: expected 0, 1 or None, found {value!r}.")
            values.setdefault(feature, []).append(value)
    if not values:
        raise InputError("typology_index: no language has a value for any feature; choose a table with their values.")
    return math.fsum(map(_entropy, values.values())) / len(values)


def sample_indices(
    codes: Sequence[str], table: Mapping[str, Vector] | None = None, where: str | Path = "the table"
) -> dict[str, float | None]:
    """The indices of a sample of languages: `typology`, `family` and `geography`.

    Args:
        table: of `read_uriel`; without one, `typology` is None.
    """
    languages = [require_known(code, "languages") for code in codes]
    return {
        "typology": None if table is None else typology_index(language_vectors(table, languages, where)),
        "family": family_index(languages),
        "geography": geography_index(languages),
    }


def read_uriel(path: Path) -> dict[str, dict[str, float | None]]:
    """Read a table of binary features such as those of URIEL (Littell et al. 2017).

    Its header is `code,FEATURE,...`; every other line has a language's ISO 639-3 or BCP-47 code and its values: 0 or 1,
    and if unknown, nothing, `--`, `?` or `nan`. They are separated by commas or tabs; the file may be `.gz` or `.xz`.

    Returns:
        Code in lower case -> feature -> 0.0, 1.0 or None, in the order of the file.
    """
    lines = [(f"{path}, line {number}", line) for number, line in read_lines(path) if line.strip()]
    if not lines:
        raise InputError(f"{path}: the file is empty; expected a header `code,FEATURE,...` and a line per language.")
    where, header = lines[0]
    delimiter = "\t" if "\t" in header else ","
    first, *features = _cells(where, header, delimiter)
    if first.lower() != "code" or not features or not all(features):
        raise InputError(
            f"{where}: expected a header of `code` and the name of at least one feature, separated by commas "
            f"or tabs; found {header[:60]!r}."
        )
    feature, times = Counter(features).most_common(1)[0]
    if times > 1:
        raise InputError(f"{where}: the header has the feature {feature!r} {times} times; name each once.")
    table: dict[str, dict[str, float | None]] = {}
    for where, line in lines[1:]:
        code, *cells = _cells(where, line, delimiter)
        code = code.lower()
        if len(cells) != len(features):
            raise InputError(
                f"{where}: expected a code and {len(features)} values, one for each feature of the header, "
                f"found {len(cells)} values; leave a cell empty if a value is unknown."
            )
        if not code or code in table:
            problem = f"the language {code!r} has a line already" if code else "the line has no language code"
            raise InputError(f"{where}: {problem}; expected one line per language, which starts with its code.")
        table[code] = {name: _value(f"{where}, {name}", cell) for name, cell in zip(features, cells, strict=True)}
    return table


def _cells(where: str, line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError(f"{where}: not a line of a CSV or TSV table ({error}).") from None


def language_vectors(table: Mapping[str, Vector], languages: Sequence[Language], where: str | Path) -> list[Vector]:
    """The rows of the languages in a table of `read_uriel`, by ISO 639-3 code or, if that is missing, by BCP-47.

    InputError: the table lacks rows (the sentence starts with `where`), or a language is repeated.
    """
    rows = {one.code: table.get(one.iso3, table.get(one.code)) for one in _distinct(languages)}
    absent = [f"{one.name} ({one.iso3} or {one.code})" for one in languages if rows[one.code] is None]
    if absent:
        raise InputError(
            f"{where}: the table has no line for {', '.join(absent)}; add it or leave these languages out."
        )
    return [row for row in rows.values() if row is not None]


def _distinct(languages: Sequence[Language]) -> Sequence[Language]:
    if not languages:
        raise InputError("languages: expected a sample of at least one language.")
    code, times = Counter(language.code for language in languages).most_common(1)[0]
    if times > 1:
        raise InputError(f"languages: the sample has {code} {times} times; name each language once.")
    return languages


def _entropy(values: Iterable[Hashable]) -> float:
    """Entropy in bits of the distribution of one or more values."""
    counts = Counter(values).values()
    total = sum(counts)
    return math.fsum(count / total * math.log2(total / count) for count in counts)


def _value(where: str, cell: str) -> float | None:
    if cell.lower() in MISSING:
        return None
    try:
        return {0.0: 0.0, 1.0: 1.0}[float(cell)]  # 0.0, not -0.0
    except (ValueError, KeyError):
        raise InputError(f"{where}: expected 0, 1 or, if unknown, nothing, --, ? or nan; found {cell!r}.") from None
