"""The table of metrics, and what follows from it: the options of `mrs score`, its refusals, the documentation."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_metrics.spaces import metric_names
from mrs_suggest.cli.score import OPTIONS, checked_options, flag_of, make_parser
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.scores.metrics import METRICS, score_system

COMMAND = {"help", "files", "pred", "metric", "compare", "holm", "save_scores", "form"}


@pytest.mark.parametrize("name", METRICS)
def test_the_table_is_complete(name: str, repository: Path) -> None:
    metric = METRICS[name]
    assert metric.main in metric.columns
    assert set(metric.options) <= set(OPTIONS)
    assert "signature" in inspect.getsource(metric.score), "every metric gives a signature"
    page = (repository / "docs" / "metrics" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    for option, default in metric.options.items():
        choices = OPTIONS[option].choices
        assert not choices or default in choices


def test_each_metric_is_an_evaluate_module_and_each_option_belongs_to_one() -> None:
    assert list(METRICS) == metric_names()
    parser = make_parser()
    assert {action.dest for action in parser._actions} - COMMAND == set(OPTIONS)
    assert {option for metric in METRICS.values() for option in metric.options} == set(OPTIONS)
    assert all(flag_of(option) in parser.format_help() for option in OPTIONS)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: checked_options("mrs_rouge", {"language": "en", "pool": 3}),
            r"^--pool does not apply to mrs_rouge; it belongs to response_ranking\.$",
        ),
        (lambda: checked_options("self_rouge", {}), "^--lang: self_rouge needs the language of the texts; MRS has"),
        (
            lambda: checked_options("weighted_f1", {}),
            "^--gold: weighted_f1 needs the file of the accepted translations",
        ),
        (
            lambda: score_system("dist_n", Path("p.tsv"), language="en", level="response", vocabulary=9),
            "^--level response: .* computed over the corpus",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_language_is_accepted_where_it_has_no_effect() -> None:
    assert checked_options("reply_perplexity", {"language": "en"}) == {}


def test_libraries_are_imported_when_a_metric_scores() -> None:
    heavy = {"torch", "scipy", "datasets", "evaluate", "sacrebleu", "rich", "pyarrow"}
    code = (
        f"import sys, mrs_suggest.cli.score as s; s.make_parser(); assert not {heavy} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
