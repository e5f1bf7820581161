"""The card of a prepared MRS folder: YAML that `datasets` and the hub read, and a page that people read."""

from __future__ import annotations

from typing import Any

import yaml

from mrs_core.languages import LANGUAGES
from mrs_datasets.schema import COLUMN_DOCS, MT_PREFIX, RESPONSES_SUFFIX, config_language, config_schema

HERE = "PATH"  # where the folder lies; publishing puts the repository there
DTYPES = {"string": "string", "int64": "int64", "double": "float64"}
CITATION = """@inproceedings{zhang-etal-2021-dataset,
    title = {A Dataset and Baselines for Multilingual Reply Suggestion},
    author = {Zhang, Mozhi and Wang, Wei and Deb, Budhaditya and Zheng, Guoqing and Shokouhi, Milad and
              Awadallah, Ahmed Hassan},
    booktitle = {Proceedings of ACL-IJCNLP 2021},
    year = {2021}
}"""
WHAT = {
    "sample": "The embedded sample of the mrs-suggest project: everyday messages and replies in the ten languages of "
    "MRS, written for this project, to try its commands on. It is **not** the MRS data set, and no figure measured on "
    "it can be compared with published ones.",
    "official": "MRS (multilingual reply suggestion): message-reply pairs from Reddit in ten languages with response "
    "sets, as its authors publish it, converted to Parquet.",
    "pairs": "Message-reply pairs of your own in the shape of MRS: split 80/10/10 by a stable hash of the message, "
    "with response sets counted from the training replies.",
}
LICENCE = {"sample": "apache-2.0", "official": "unknown", "pairs": "unknown"}
LIMITS = {
    "sample": "Small, friendly and regular: every message of an exchange is answered by every reply of it. Real "
    "messages are not like that.",
    "official": "Reddit comments carry bias, and filters for toxic text are not perfect. The authors mean the data "
    "for benchmarks of cross-lingual generalization, not for use in production systems as they are (section 2.2).",
    "pairs": "Nothing was filtered beyond what the report counts; check the source's licence and its content before "
    "you publish it.",
}


def render_card(report: dict[str, Any]) -> str:
    """README.md of a prepared folder, from its report alone; equal reports give equal bytes."""
    kind = report["reader"]
    front = yaml.safe_dump(_front_matter(report), sort_keys=False, allow_unicode=True, width=120)
    notes = [f"- {note}" for note in report["notes"]]
    drops = [
        f"- {part}: {count:,} rows dropped ({reason})"
        for part, reasons in report["dropped"].items()
        for reason, count in reasons.items()
    ]
    example = next(iter(report["configs"]))
    sections = [
        f"---\n{front}---",
        f"# {report['name']}",
        WHAT[kind],
        f'```python\nfrom datasets import load_dataset\n\nload_dataset("{HERE}", "{example}")\n```',
        "## Configs",
        _configs_table(report),
        "One config per language holds the pairs; `LANG-responses` holds the response set that a retrieval model "
        "suggests from; `mt-LANG`, where there is one, holds machine-translated training pairs.",
        "## Columns",
        "\n".join(["| column | type | meaning |", "|---|---|---|", *_column_rows()]),
        "## Limits",
        LIMITS[kind],
        *(["## What was dropped, and notes", "\n".join(drops + notes)] if drops or notes else []),
        "## Citation",
        f"```bibtex\n{CITATION}\n```",
        f"Built by mrs-suggest {report['version']}; `report.json` has every count and file hash.",
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(report: dict[str, Any]) -> dict[str, Any]:
    configs = report["configs"]
    languages = [code for code in LANGUAGES if any(config_language(c) == code for c in configs)]
    return {
        "pretty_name": report["name"],
        "license": LICENCE[report["reader"]],
        "language": languages,
        "task_categories": ["text-generation", "text-ranking"],
        "tags": ["reply-suggestion", "mrs", "multilingual"],
        "configs": [_config_entry(config, splits, config == next(iter(configs))) for config, splits in configs.items()],
        "dataset_info": [_info_entry(config, splits) for config, splits in configs.items()],
    }


def _config_entry(config: str, splits: dict[str, Any], default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"data/{config}/{split}-*.parquet"} for split in splits]
    return {"config_name": config, "data_files": files, **({"default": True} if default else {})}


def _info_entry(config: str, splits: dict[str, Any]) -> dict[str, Any]:
    return {
        "config_name": config,
        "features": [{"name": column.name, "dtype": DTYPES[str(column.type)]} for column in config_schema(config)],
        "splits": [
            {"name": split, "num_bytes": facts["bytes"], "num_examples": facts["rows"]}
            for split, facts in splits.items()
        ],
        "download_size": sum(file["bytes"] for facts in splits.values() for file in facts["files"]),
        "dataset_size": sum(facts["bytes"] for facts in splits.values()),
    }


def _configs_table(report: dict[str, Any]) -> str:
    rows = ["| language | config | train | validation | test | responses | machine-translated |", "|" + "---|" * 7]
    configs = report["configs"]

    def count(config: str, split: str) -> str:
        return f"{configs[config][split]['rows']:,}" if split in configs.get(config, {}) else "-"

    for code, language in LANGUAGES.items():
        if any(config_language(config) == code for config in configs):
            cells = [count(code, split) for split in ("train", "validation", "test")]
            cells += [count(code + RESPONSES_SUFFIX, "train"), count(MT_PREFIX + code, "train")]
            rows.append(f"| {language.name} | `{code}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def _column_rows() -> list[str]:
    types = {column.name: DTYPES[str(column.type)] for c in ("en", "en-responses") for column in config_schema(c)}
    return [f"| `{name}` | {types[name]} | {meaning} |" for name, meaning in COLUMN_DOCS.items()]
