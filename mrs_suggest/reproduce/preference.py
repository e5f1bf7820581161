"""Human preference between a figure's two rows: the files of `mrs annotate`, matched to the runs by their hash.

Zhang et al. 2021, section 3.3 and Figure 2: three annotators choose the set of suggestions with more replies that they
prefer to send, or a tie; the score is how often one model was chosen.
"""

from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.text.predictions import predictions_name
from mrs_suggest.evaluation.annotation import OUTCOMES, summarize
from mrs_suggest.evaluation.annotation_files import read_annotation_files, read_key
from mrs_suggest.models.saved.record import Record
from mrs_suggest.reproduce.cells import run_of
from mrs_suggest.reproduce.results import Results
from mrs_suggest.reproduce.table import TableSpec

TIE = "tie"
Share = tuple[float, list[float] | None]  # with its 95 % interval, None where all judgements are equal


@dataclass(frozen=True)
class Preference:
    """The judgements about two rows.

    Attributes:
        shares: of each row, and of ties, among all judgements.
        summary: as `mrs annotate read --json` prints it; A is the first row of `shares`.
    """

    shares: dict[str, Share]
    summary: Record

    def told(self) -> str:
        """How many judgements there are, how far annotators agree, and whether the rows differ."""
        one = self.summary
        kappa = "" if one["kappa"] is None else f", Fleiss' kappa {one['kappa']:.2f}"
        return (
            f"{one['items']:,} items, {one['annotators']} annotators{kappa}; p = {one['p']:.3g} (permutation test over "
            "items). Intervals are over items."
        )


def read_sheets(folder: Path) -> Record:
    """The summary of a folder of `mrs annotate make`; annotators who returned nothing are left out.

    Raises:
        InputError: it is no such folder, or a file is damaged or not filled in.
    """
    key = read_key(folder)
    return summarize(key, read_annotation_files(folder, key, partial=True))


def preference(results: Results, grid: TableSpec, summary: Record) -> Preference | None:
    """The judgements by row; None where the sheets are not about the suggestions of the two rows' runs."""
    hashes = {}
    for row in grid.human:
        place = grid.place(row, None)
        for _, name in results.names(place):
            path = run_of(name, results.setup) / predictions_name(place.scope)
            if name in results.records and path.is_file():
                hashes[file_sha256(path)] = row
    rows = [hashes.get(one, "") for one in summary["inputs_sha256"]]
    if sorted(rows) != sorted(grid.human):
        return None
    names = dict(zip(OUTCOMES, (rows[0], TIE, rows[1]), strict=True))
    judged = summary["judgements"]
    shares = {name: (judged[kind]["share"], judged[kind]["interval"]) for kind, name in names.items()}
    return Preference(shares, dict(summary))
