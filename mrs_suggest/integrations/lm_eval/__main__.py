"""`lm_eval --include_path $(python -m mrs_suggest.integrations.lm_eval)`: writes the task files, prints their folder.

    python -m mrs_suggest.integrations.lm_eval [--out FOLDER] [--languages CODE ...]

`--languages` makes tasks for other languages than those of the data sets, such as those of custom pairs.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from mrs_datasets.catalogue import read_record
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.integrations.prompts import STOPS
from mrs_suggest.integrations.tasks import KINDS, Kind

VERSION = 1.0  # of prompts and rules: a change that moves figures raises it
MODULE = "mrs_suggest.integrations.lm_eval.tasks"
SAMPLED = 3  # generations of a message in `mrs_samples`: as many as suggestions


class Call(str):
    """A function that the harness imports: `!function MODULE.NAME`."""


def texts(languages: Sequence[str] = ()) -> dict[str, str]:
    """The files, by name: of these languages, or of those that the catalogue has for each data set."""
    found = {}
    for kind in KINDS:
        codes = list(languages or read_record(kind.data_set).languages)
        shared = f"_{kind.name}_yaml"  # without the ending, so that the harness does not read it as a task
        found[shared] = _text(_settings(kind))
        for code in codes:
            task = {
                "include": shared,
                "task": f"{kind.name}_{code}",
                "dataset_kwargs": {"kind": kind.name, "language": code},
            }
            found[f"{kind.name}_{code}.yaml"] = _text(task)
        means = [{"metric": name, "aggregation": "mean", "weight_by_size": False} for name in kind.metrics]
        group = {
            "group": kind.name,
            "task": [f"{kind.name}_{code}" for code in codes],
            "aggregate_metric_list": means,
            "metadata": {"version": VERSION},
        }
        found[f"{kind.name}.yaml"] = _text(group)
    return found


def _settings(kind: Kind) -> dict[str, Any]:
    if kind.tokens is None:
        asked: dict[str, Any] = {"doc_to_text": "context", "doc_to_choice": "choices", "doc_to_target": "label"}
    else:
        generation: dict[str, Any] = {
            "until": list(STOPS), "do_sample": kind.sampled, "max_gen_toks": kind.tokens,
        }  # fmt: skip
        asked = {"doc_to_text": "prompt", "doc_to_target": "answer", "generation_kwargs": generation}
        if kind.sampled:
            generation["temperature"] = 1.0
            asked["repeats"] = SAMPLED
            asked["filter_list"] = [{"name": "none", "filter": [{"function": "take_first_k", "k": SAMPLED}]}]
    return {
        "custom_dataset": Call(f"{MODULE}.load"),
        "output_type": "multiple_choice" if kind.tokens is None else "generate_until",
        "test_split": "test",
        "fewshot_split": "fewshot",
        "fewshot_config": {"sampler": "first_n"},
        "process_results": Call(f"{MODULE}.{kind.name}_results"),
        **asked,
        "metric_list": [
            {"metric": name, "aggregation": Call(f"{MODULE}.{name}"), "higher_is_better": name != "self_rouge"}
            for name in kind.metrics
        ],
        "metadata": {"version": VERSION},
    }


def _text(content: dict[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes calls with the harness's tag, and equal parts twice in place of anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(Call, lambda dumper, call: dumper.represent_scalar("!function", str(call)))


def main(arguments: Sequence[str] | None = None) -> int:
    shown = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = CommandParser(prog="python -m mrs_suggest.integrations.lm_eval", **shown)
    parser.add_argument("--out", type=Path, help="folder for the files (default: a temporary folder)")
    parser.add_argument("--languages", nargs="+", default=(), metavar="CODE", help="instead of the data sets' own")
    options = parser.parse_args(arguments)
    folder = options.out or Path(tempfile.gettempdir(), "mrs-suggest-lm-eval")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts(options.languages).items():
        atomic_write(folder / name, text)
    print(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
