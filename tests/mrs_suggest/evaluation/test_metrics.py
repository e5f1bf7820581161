"""The table of metrics, and what follows from it: the options of `mrs score`, its refusals, the documentation."""

import subprocess
import sys
from pathlib import Path

import pytest

from mrs_metrics.spaces import metric_names
from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.cli.score import OPTIONS, checked_options, flag_of, make_parser
from mrs_suggest.evaluation.scores.metrics import METRICS

COMMAND = {"help", "files", "pred", "metric", "model", "compare", "holm", "power", "power_sd", "save_scores", "form"}


@pytest.mark.parametrize("name", METRICS)
def test_the_table_is_complete(name: str, repository: Path) -> None:
    metric = METRICS[name]
    assert metric.main in metric.columns
    assert set(metric.options) <= set(OPTIONS)
    page = (repository / "docs" / "metrics" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    for option, default in metric.options.items():
        choices = OPTIONS[option].choices
        assert not choices or default in choices


def test_each_metric_is_an_evaluate_module_and_each_option_belongs_to_one() -> None:
    alone = ("judge", "semantic")
    assert [name for name in METRICS if name not in alone] == metric_names(), "a Space has no judge, and no encoder"
    assert list(METRICS["xglue_score"].columns)[: len(TASKS)] == list(TASKS)
    parser = make_parser()
    assert {action.dest for action in parser._actions} - COMMAND == set(OPTIONS)
    assert {option for metric in METRICS.values() for option in metric.options} == set(OPTIONS)
    assert all(flag_of(option) in parser.format_help() for option in OPTIONS)
    assert checked_options("reply_perplexity", {"language": "en"}) == {}


def test_libraries_are_imported_when_a_metric_scores() -> None:
    heavy = {"torch", "scipy", "datasets", "evaluate", "sacrebleu", "rich", "pyarrow"}
    code = (
        f"import sys, mrs_suggest.cli.score as s; s.make_parser(); assert not {heavy} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
