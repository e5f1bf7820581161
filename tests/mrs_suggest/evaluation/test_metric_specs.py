"""The rows of the metrics, and what follows from them: the options of `mrs score`, its refusals, the documentation."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_metrics.spaces import metric_names
from mrs_suggest.cli.score import make_parser
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.metrics import SPECS
from mrs_suggest.evaluation.metrics.dist_n import DistN
from mrs_suggest.evaluation.metrics.xglue_score import XglueScore
from mrs_suggest.evaluation.scores.metric_options import make_metric, require_options_of, shared_options
from mrs_suggest.evaluation.scores.metric_spec import MetricSpec, declared_options

COMMAND = {"help", "files", "pred", "metric", "compare", "holm", "save_scores", "form"}


def test_there_is_one_row_for_each_metric(repository: Path) -> None:
    assert list(SPECS) == metric_names()
    for name, spec in SPECS.items():
        assert spec.name == name
        assert (repository / "mrs_metrics" / name / f"{name}.py").is_file()
        page = (repository / "docs" / "metrics" / f"{name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {name}\n")


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_row_says_what_is_shown(spec: MetricSpec) -> None:
    keys = [column.key for column in spec.columns]
    assert keys[0] == "n"
    assert spec.main in keys
    assert len(set(keys)) == len(keys)
    assert dataclasses.is_dataclass(spec.metric)
    assert all(option.about.help for option in declared_options(spec.metric).values())


def test_the_options_of_the_command_are_those_of_the_rows() -> None:
    parser = make_parser()
    declared = {name for spec in SPECS.values() for name in declared_options(spec.metric)}
    assert {action.dest for action in parser._actions} - COMMAND == declared == set(shared_options())
    text = parser.format_help()
    assert "--absent" not in text  # a former name
    for option in shared_options().values():
        assert option.first.flag in text
        assert {one.type for one in option.metrics.values()} == {option.first.type}
        assert {one.several for one in option.metrics.values()} == {option.first.several}
        for one in option.metrics.values():
            assert one.default is None or not one.about.choices or one.default in one.about.choices


def test_the_tables_of_the_documentation_are_those_of_the_rows(repository: Path) -> None:
    page = (repository / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [f"| [{name}](metrics/{name}.md) | {spec.tells} | {spec.compares_with} |" for name, spec in SPECS.items()]
    readers: dict[str, list[str]] = {}
    for name, spec in SPECS.items():
        readers.setdefault(spec.reads.what, []).append(name)
    files = [f"| {', '.join(names)} | {what} |" for what, names in readers.items()]
    for table in (
        "\n".join(["| metric | what it measures | compares with |", "|---|---|---|", *rows]),
        "\n".join(["| metric | a system's file |", "|---|---|", *files]),
    ):
        assert f"\n{table}\n" in page, f"docs/metrics.md lacks this table:\n{table}"


def test_the_help_joins_metrics_that_say_the_same() -> None:
    options = shared_options()
    assert options["seed"].help == (
        "dist_n: seed of the samples (default: a fixed number); response_ranking: seed of the pools (default 0)"
    )
    assert len(options["nbest"].metrics) > 4
    assert options["nbest"].help.count("suggestions a line at most (default 3, from section 3.3 of MRS)") == 1


def test_options_of_a_metric_have_its_types_and_defaults(tmp_path: Path) -> None:
    assert make_metric(SPECS["dist_n"], {"language": "es", "sample_size": 7}) == DistN(language="es", sample_size=7)
    metric = make_metric(SPECS["xglue_score"], {"gold": tmp_path, "task": ["POS"]})
    assert isinstance(metric, XglueScore)
    assert (metric.gold, metric.task, metric.rules, metric.language) == (tmp_path, ("POS",), "paper", None)
    assert declared_options(XglueScore)["task"].several


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: require_options_of(SPECS["mrs_rouge"], ["language", "pool"]),
            r"^--pool does not apply to mrs_rouge; it belongs to response_ranking\.$",
        ),
        (
            lambda: make_metric(SPECS["self_rouge"], {}),
            "^--lang: self_rouge needs the language of the texts; MRS has",
        ),
        (lambda: make_metric(SPECS["weighted_f1"], {}), "^--gold: weighted_f1 needs the gold file of the task.$"),
        (
            lambda: make_metric(SPECS["dist_n"], {"language": "en", "level": "word"}),
            "^--level word: dist_n takes corpus or response.$",
        ),
        (
            lambda: make_metric(SPECS["dist_n"], {"language": "en", "level": "response", "vocabulary": 9}),
            "^--level response: .* computed over the corpus",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_libraries_are_imported_when_a_metric_scores() -> None:
    heavy = {"numpy", "torch", "scipy", "datasets", "evaluate", "sacrebleu", "rich"}
    code = (
        f"import sys, mrs_suggest.cli.score as s; s.make_parser(); assert not {heavy} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
