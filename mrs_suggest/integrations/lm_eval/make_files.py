"""Writes the harness's YAML files: what tasks of a kind share, a file for each language, and a group for each kind.

    python -m mrs_suggest.integrations.lm_eval.make_files [--out FOLDER] [--languages CODE ...]

Without options it writes the files beside this one (a test compares them). A folder elsewhere gets files for other
languages, such as those of your own pairs; give it to `--include_path`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mrs_datasets.catalogue import read_record
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.integrations.prompts import REPLY_TOKENS, STOPS, TRANSLATION_TOKENS

FOLDER = Path(__file__).parent
VERSION = 1.0  # of prompts and rules: a change that moves figures raises it
MODULE = "mrs_suggest.integrations.lm_eval.tasks"
SAMPLED = 3  # generations of a message in `mrs_samples`: as many as suggestions


class Call(str):
    """A function that the harness imports: `!function MODULE.NAME`."""


class Kind(NamedTuple):
    """A group of tasks, one for each language.

    Attributes:
        name: of the group, and the beginning of its tasks' names.
        data_set: whose languages it has.
        settings: what its tasks share.
        arguments: of the function that loads the data, besides the language.
    """

    name: str
    data_set: str
    settings: dict[str, Any]
    arguments: dict[str, str] = {}  # noqa: RUF012


def _metrics(*names: str, lower: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [
        {"metric": name, "aggregation": Call(f"{MODULE}.{name}"), "higher_is_better": name not in lower}
        for name in names
    ]


def _generation(tokens: int, **more: object) -> dict[str, Any]:
    return {"until": list(STOPS), "do_sample": False, "max_gen_toks": tokens, **more}


def _task(loader: str, results: str, output: str, **more: object) -> dict[str, Any]:
    return {
        "custom_dataset": Call(f"{MODULE}.{loader}"),
        "output_type": output,
        "test_split": "test",
        "fewshot_split": "fewshot",
        "fewshot_config": {"sampler": "first_n"},
        "process_results": Call(f"{MODULE}.{results}"),
        **more,
        "metadata": {"version": VERSION},
    }


_REPLIES = _metrics("weighted_rouge", "dist1", "dist2", "self_rouge", "replies", lower=("self_rouge",))
_GENERATED = {"doc_to_text": "prompt", "doc_to_target": "answer"}
_QUESTIONS = _task(
    "load_questions",
    "questions_results",
    "multiple_choice",
    doc_to_text="context",
    doc_to_choice="choices",
    doc_to_target="label",
    metric_list=_metrics("accuracy", "accuracy_bytes"),
)
KINDS = (
    Kind(
        "mrs",
        "mrs",
        _task(
            "load_replies",
            "replies_results",
            "generate_until",
            **_GENERATED,
            generation_kwargs=_generation(REPLY_TOKENS),
            metric_list=_REPLIES,
        ),
    ),
    Kind(
        "mrs_samples",
        "mrs",
        _task(
            "load_samples",
            "samples_results",
            "generate_until",
            **_GENERATED,
            repeats=SAMPLED,
            filter_list=[{"name": "none", "filter": [{"function": "take_first_k", "k": SAMPLED}]}],
            generation_kwargs=_generation(REPLY_TOKENS, do_sample=True, temperature=1.0),
            metric_list=_REPLIES,
        ),
    ),
    *(
        Kind(name, "xcopa", _QUESTIONS, {"view": view})
        for name, view in (("mrs_xcopa", "full"), ("mrs_xcopa_nop", "nop"), ("mrs_xcopa_noq", "noq"))
    ),
    Kind(
        "mrs_staple",
        "staple",
        _task(
            "load_translations",
            "translations_results",
            "generate_until",
            **_GENERATED,
            generation_kwargs=_generation(TRANSLATION_TOKENS),
            metric_list=_metrics("weighted_f1", "predicted"),
        ),
    ),
)


def texts(languages: Sequence[str] = ()) -> dict[str, str]:
    """The files, by name: of these languages, or of those that the catalogue has for each data set."""
    found = {}
    for kind in KINDS:
        codes = list(languages or read_record(kind.data_set).languages)
        shared = f"_{kind.name}_yaml"  # without the ending, so that the harness does not read it as a task
        found[shared] = _text(kind.settings)
        for code in codes:
            task = {
                "include": shared,
                "task": f"{kind.name}_{code}",
                "dataset_kwargs": {"language": code, **kind.arguments},
            }
            found[f"{kind.name}_{code}.yaml"] = _text(task)
        average = [
            {"metric": metric["metric"], "aggregation": "mean", "weight_by_size": False}
            for metric in kind.settings["metric_list"]
        ]
        group = {
            "group": kind.name,
            "task": [f"{kind.name}_{code}" for code in codes],
            "aggregate_metric_list": average,
            "metadata": {"version": VERSION},
        }
        found[f"{kind.name}.yaml"] = _text(group)
    return found


def _text(content: dict[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes calls with the harness's tag, and equal parts twice in place of anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(Call, lambda dumper, call: dumper.represent_scalar("!function", str(call)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m mrs_suggest.integrations.lm_eval.make_files", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder that gets the files")
    parser.add_argument("--languages", nargs="+", default=(), metavar="CODE", help="in place of the data sets' own")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    files = texts(options.languages)
    for name, text in files.items():
        atomic_write(options.out / name, text)
    print(f"wrote {options.out}: {len(files)} files")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
