"""A measured figure in a page stands in a comment that names its record, or in a table that a script fills in.

Typed ones were wrong whenever a model or a machine changed. `REFERENCE` recognises sections of papers, licences and
signatures; other numbers that are no measurements are listed with their page.
"""

import re

import pytest

from tests.docs.test_pages import PAGES as READ
from tests.docs.test_pages import ROOT

# Cards that a program writes from a record; tests/test_docs.py compares them with those that ship.
RENDERED = ("docs/dataset_card.md", "docs/model_card.md")
OTHERS = ("SECURITY.md", "examples/README.md", "model_cards/*.md", "mrs_metrics/modules/*.md")  # the last: of Spaces
EVERY = [*READ, *(path for pattern in OTHERS for path in sorted(ROOT.glob(pattern)))]
PAGES = [name for path in EVERY if (name := path.relative_to(ROOT).as_posix()) not in RENDERED]
CONFIDENCE = {"95 %", "80 %", ".05"}  # of intervals, power and tests
# Settings, thresholds, constants of the code, versions, examples with their arithmetic, and a paper's own figures.
SETTINGS = {
    "README.md": ".002",  # the tolerance of benchmarks/rederive.py
    "CHANGELOG.md": "3.11",
    "docs/audit.md": "1.3 %",
    "docs/concepts/guard.md": "1 % | 3 % | 10 % | 4.1 | 0.1 | 0.3",
    "docs/concepts/ranking.md": ".8",
    "docs/concepts/runs.md": "256 MiB",
    "docs/corpus.md": ".5 | 1 byte | .8 GB | 8 bytes | 100 bytes",
    "docs/data_sets.md": "20 times | .12 %",
    "docs/export.md": "98 % | .001 | 2 GiB",
    "docs/first_contribution.md": "9.666666666666666",
    "docs/forgetting.md": "1 % | 10 % | 5 % | .85",
    "docs/guard.md": "0.3 | .3",
    "docs/harnesses.md": "0.13",
    "docs/how_to/memory_and_gpus.md": "16 bytes | 4 bytes",
    "docs/how_to/reproduce.md": ".002 | .006 | .003 | .008",  # the tolerances of benchmarks/rederive.py
    "docs/how_to/own_responses.md": "0.1 | 0.9",
    "docs/index.md": "3.11",
    "docs/install.md": "3.11",
    "docs/metrics/human_evaluation.md": ".5",
    "docs/metrics/mrs_rouge.md": ".6667 | .5714 | .4 | .5016",
    "docs/metrics/reply_perplexity.md": ".2",
    "docs/metrics/semantic.md": ".9",
    "docs/metrics/significance.md": "7.85",
    "docs/metrics/weighted_f1.md": ".5 | .25",
    "docs/metrics/wrong_language.md": ".7",
    "docs/papers.md": ".9 | .5 | .999 | .54 | .22 | 4.1 | 15 % | .3 | 6.1",
    "docs/pipeline.md": ".7 | 20 times | .9 | .5 | 2.7 GB | .8 GB | 1 byte | 180 bytes",
    "docs/pretraining.md": "15 % | 10 % | .3 | 5.23 | 4 MiB | 500 MB | 101 GB | 8 bytes | 2 bytes",
    "docs/release.md": "1.0 | 16 MB",
    "docs/reproduce.md": "20 seconds",
    "docs/serving.md": "32 KiB | 1.30",
    "docs/spark.md": "2.7 GB | 3 GB | 1.8 KB | 1 byte | .8 GB | .5 GB | 1 GB",
    "docs/xcopa.md": ".1",
    "docs/xcopa_tables.md": "50 %",
    "docs/xglue.md": "4.46",
    "model_cards/causal.md": ".1667 | .5",
    "model_cards/generation.md": ".1667 | .5 | 5.2",
    "model_cards/multiple_choice.md": "50 %",
    "model_cards/pretraining.md": "15 %",
    "model_cards/retrieval.md": ".1667 | .5",
    "mrs_metrics/modules/mrs_rouge.md": ".1667 | .5",
    "mrs_metrics/modules/simulated_clicks.md": "0.5",
    "mrs_metrics/modules/wrong_language.md": ".7",
    "mrs_metrics/modules/xglue_score.md": "100 times",
}
NO_PROSE = re.compile(
    r"<!-- results:.*?<!-- end of results -->|<!-- \w+, by benchmarks/\S+ -->.*?<!-- end -->|<!-- figure:.*?<!-- -->"
    r"|^```(?!console$)\w+$.*?^```$|^\$ (?:[^\n]*\\\n)*[^\n]*$|`[^`\n]+`|\]\([^)]*\)",
    re.S | re.M,
)
REFERENCE = re.compile(
    r"(?:[Ss]ections?|CCNet) \d[\d.]*(?:(?:,|;| and|, and) \d[\d.]*)*|^\| (?:Tables? |Figure |eq\. |[\d.,; -])+:"
    r"|(?:CC BY[-\w]*|Apache) \d\.\d|\S+\|version:\S+",
    re.M,
)
UNITS = "%|[mnu]?s\\b|[KMG]i?B\\b|bytes?\\b|times\\b|seconds?\\b|minutes?\\b|hours?\\b"
FIGURE = re.compile(rf"(?<![\w.,/§-])(?:(?:\d[\d,.]*|\.\d+)\s?(?:{UNITS})|\d*\.\d+(?![\w.]*\w))")


def figures(text: str) -> list[str]:
    """The figures of a page that name no record."""
    found = FIGURE.findall(REFERENCE.sub(" ", NO_PROSE.sub(" ", text)))
    return [figure for one in found if (figure := " ".join(one.split())) not in CONFIDENCE]


@pytest.mark.parametrize("page", PAGES)
def test_measured_figures_name_their_record(page: str) -> None:
    found = set(figures((ROOT / page).read_text(encoding="utf-8")))
    listed = set(SETTINGS[page].split(" | ")) if page in SETTINGS else set()
    assert sorted(found - listed) == [], "render them (docs/site/quotes.py), or list what is no measurement"
    assert sorted(listed - found) == [], "listed here, and no longer on the page"
