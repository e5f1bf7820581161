"""Diversity of a sample of languages: typology, family and geography (Ponti et al. 2020, section 2 and Table 2)."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import KNOWN, Language, require_known

MISSING = {"", "--", "?", "nan"}  # `--` in URIEL's own tables, `nan` as pandas may write it

Vector = Mapping[str, "float | None"]


@dataclass(frozen=True)
class Benchmark:
    """The language sample of a benchmark in Table 2, without English (only then the paper's figures are reproduced).

    Attributes:
        codes: BCP-47.
        source: the benchmark's paper, which lists its languages.
        typology: what Table 2 prints; `typology_index` does not reproduce it.
        family, geography: likewise (cut off, not rounded: 4/6 is .66), and reproduced.
    """

    codes: tuple[str, ...]
    source: str
    typology: float
    family: float
    geography: float

    @property
    def languages(self) -> list[Language]:
        """The languages in the order of `codes`."""
        return [KNOWN[code] for code in self.codes]


def _benchmark(codes: str, source: str, typology: float, family: float, geography: float) -> Benchmark:
    return Benchmark(tuple(codes.split()), source, typology, family, geography)


BENCHMARKS: dict[str, Benchmark] = {
    "XCOPA": _benchmark("et ht id it qu sw ta th tr vi zh", "Ponti et al. 2020", 0.41, 1, 1.67),
    "TyDiQA": _benchmark("ar bn fi id ja ko ru sw te th", "Clark et al. 2020", 0.41, 0.9, 0.92),
    "XNLI": _benchmark("ar bg de el es fr hi ru sw th tr ur vi zh", "Conneau et al. 2018", 0.39, 0.5, 0.37),
    # Romanian came later
    "XQUAD": _benchmark("ar de el es hi ru th tr vi zh", "Artetxe et al. 2020", 0.36, 0.6, 0),
    "MLQA": _benchmark("ar de es hi vi zh", "Lewis et al. 2020", 0.32, 0.66, 0),
    "PAWS-X": _benchmark("de es fr ja ko zh", "Yang et al. 2019", 0.31, 0.66, 0),
}


def family_index(languages: Sequence[Language]) -> float:
    """Distinct families per language, in (0, 1]; 1 where no two languages are related (section 2).

    Raises:
        InputError: no language, or a repeated one.

    >>> round(family_index([KNOWN[code] for code in ("de", "nl", "ja")]), 3)
    0.667
    """
    _check_sample("family_index", languages)
    return len({language.family for language in languages}) / len(languages)


def geography_index(languages: Sequence[Language]) -> float:
    """Entropy in bits of the distribution over the six macro-areas of WALS, in [0, log2 6] (section 2).

    Table 2 gives the range as [0, ln 6], but only bits give its figures.

    Raises:
        InputError: no language, or a repeated one.

    >>> geography_index([KNOWN[code] for code in ("de", "sw")])
    1.0
    """
    _check_sample("geography_index", languages)
    return _entropy(language.area for language in languages)


def typology_index(vectors: Iterable[Vector]) -> float:
    """Mean over binary features of the entropy in bits of a feature's values in the sample, in [0, 1] (section 2).

    Not reproduced: for the samples of `BENCHMARKS` the paper prints .41 .41 .39 .36 .32 .31, but names neither the set
    of features, nor the base of the logarithm, nor its treatment of missing values. From URIEL's 103 syntactic
    features (lang2vec 1.1.2) this function gives .58 .63 .56 .53 .50 .48 with predicted values, .57 .59 .57 .55 .50 .50
    with the known ones. The nearest of some 1,000 definitions tried (sets of features, their unions and means,
    predictions, gaps, bits or nats, with English or without) is the mean over URIEL's sources where it is known, in
    nats, with English in every sample: .39 .40 .38 .36 .33 .33. Table 2 gives the range of bits, and counts English
    nowhere else.

    Missing values, about which the paper says nothing: here a feature's entropy is over the languages with a value for
    it, 0 if there is only one, and a feature without any value does not count. A table without gaps, such as URIEL's
    predicted features, needs none of these rules.

    Args:
        vectors: one per language: feature -> 0, 1, or None (also nan, or left out) if unknown; see `language_vectors`.

    Raises:
        InputError: no language, no feature that a language has a value for, or a value other than 0 and 1.

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
    """The indices of one sample of languages: `typology`, `family` and `geography`.

    Args:
        codes: of the languages.
        table: of `read_uriel`; without one, `typology` is None.
        where: the table's file, which starts error messages.

    Raises:
        InputError: an unknown language, or as for `language_vectors` and the indices.
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

    Raises:
        InputError: the file cannot be read, has no such header, no feature or a repeated one, a line with more or
            fewer values than features, no code or a repeated one, or an invalid value.
    """
    features: list[str] = []
    table: dict[str, dict[str, float | None]] = {}
    delimiter = ","
    for number, line in read_lines(path):
        if not line or line.isspace():
            continue
        where = f"{path}, line {number}"
        if not features:
            delimiter = "\t" if "\t" in line else ","
            features = _features(where, _cells(where, line, delimiter))
            continue
        code, *cells = _cells(where, line, delimiter)
        code = code.lower()
        if len(cells) != len(features):
            raise InputError(
                f"{where}: expected a code and {len(features)} values, one for each feature of the header, "
                f"found {len(cells)} values; leave a cell empty where a value is unknown."
            )
        if not code or code in table:
            problem = f"the language {code!r} has a line already" if code else "the line has no language code"
            raise InputError(f"{where}: {problem}; expected one line per language, which starts with its code.")
        table[code] = {
            feature: _value(f"{where}, {feature}", cell) for feature, cell in zip(features, cells, strict=True)
        }
    if not features:
        raise InputError(f"{path}: the file is empty; expected a header `code,FEATURE,...` and a line per language.")
    return table


def language_vectors(table: Mapping[str, Vector], languages: Sequence[Language], where: str | Path) -> list[Vector]:
    """The rows of the languages in a table of `read_uriel`, by ISO 639-3 code or, if that is missing, by BCP-47.

    Args:
        where: the table's file, which starts error messages.

    Raises:
        InputError: no language, a repeated one, or the table lacks rows; the sentence names all of them.
    """
    _check_sample(str(where), languages)
    absent = [language for language in languages if not {language.iso3, language.code} & table.keys()]
    if absent:
        names = ", ".join(f"{language.name} ({language.iso3} or {language.code})" for language in absent)
        raise InputError(f"{where}: the table has no line for {names}; add it or leave these languages out.")
    return [table[language.iso3 if language.iso3 in table else language.code] for language in languages]


def _check_sample(where: str, languages: Sequence[Language]) -> None:
    if not languages:
        raise InputError(f"{where}: expected a sample of at least one language.")
    code, times = Counter(language.code for language in languages).most_common(1)[0]
    if times > 1:
        raise InputError(f"{where}: the sample has {code} {times} times; name each language once.")


def _entropy(values: Iterable[Hashable]) -> float:
    """Entropy in bits of the distribution of the values, of which there is at least one."""
    counts = Counter(values).values()
    total = sum(counts)
    return math.fsum(count / total * math.log2(total / count) for count in counts)


def _cells(where: str, line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError(
            f"{where}: not a line of a CSV or TSV table ({error}); quote whole cells or none, one line per language."
        ) from None


def _features(where: str, header: list[str]) -> list[str]:
    name, *features = header
    if name.lower() != "code" or not features or not all(features):
        raise InputError(
            f"{where}: expected a header of `code` and the name of at least one feature, separated by commas or tabs; "
            f"found {','.join(header)[:60]!r}."
        )
    feature, times = Counter(features).most_common(1)[0]
    if times > 1:
        raise InputError(f"{where}: the header has the feature {feature!r} {times} times; name each once.")
    return features


def _value(where: str, cell: str) -> float | None:
    if cell.lower() in MISSING:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if value not in (0, 1):
        raise InputError(f"{where}: expected 0, 1 or, where unknown, nothing, --, ? or nan; found {cell!r}.")
    return float(value == 1)  # not -0.0
