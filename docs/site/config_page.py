"""The page of configurations: every YAML file of trainers/configs, and what its keys mean."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml
from cli_pages import cell
from parsers import options_of, trainers

HEAD = """# Configurations

The files in `trainers/configs` (`mrs_trainers/configs` in a wheel). The comment on each line gives the source of its
value. Pass a file to a trainer with `--config FILE`; options on the command line override it
([the paper's runs](../how_to/train_on_mrs.md#the-papers-runs)).

## Keys

The keys that these files set are options of their trainers; [Training options](trainers.md) has all of them.

"""
ABOUT = {
    "accelerate": "Processes and devices, for `accelerate launch --config_file FILE`; the keys are those of "
    "`accelerate config`.",
    "official": "What the official scripts set otherwise than the papers' text. Pass such a file after one of a paper "
    "(`--config FILE --config FILE`); the last one wins.",
    "reproduce": "Experiments, for `mrs reproduce NAME`; the format is described in `mrs_suggest/reproduce/table.py`.",
}


def config_page(root: Path) -> str:
    """The table of keys, then each file as it stands, folded."""
    folder = root / "trainers" / "configs"
    files = sorted(folder.rglob("*.yaml"))
    parts = [HEAD, _keys(folder, files)]
    for group, members in _groups(folder, files):
        parts.append(f"\n## {group}\n\n" + (f"{ABOUT[group]}\n\n" if group in ABOUT else ""))
        for path in members:
            text = path.read_text(encoding="utf-8").rstrip("\n")
            body = "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
            name = path.relative_to(folder)
            head = f'<a id="{anchor(str(name))}"></a>\n\n??? quote "{name}: {_title(text)}"'
            parts.append(f"{head}\n\n    ```text\n{body}\n    ```\n\n")
            if group == "official":
                parts.append(_differences(folder, path))
    return "".join(parts)


def _differences(folder: Path, path: Path) -> str:
    """Next to each value of an official file, that of the paper's file which its comment names before it."""
    text = path.read_text(encoding="utf-8")
    base = re.findall(r"--config trainers/configs/(\S+)", text)[0]
    papers = yaml.safe_load((folder / base).read_text(encoding="utf-8"))
    rows = [f"| key | [{base}](#{anchor(base)}) | {path.name} |\n|---|---|---|\n"]
    for key, value in yaml.safe_load(text).items():
        rows.append(f"| `{key}` | {papers.get(key, 'default')} | {value} |\n")
    return "".join([*rows, "\n"])


def anchor(name: str) -> str:
    """The anchor of a file of trainers/configs."""
    return "file-" + re.sub(r"\W+", "-", name.removesuffix(".yaml"))


def _groups(folder: Path, files: list[Path]) -> Iterator[tuple[str, list[Path]]]:
    groups = defaultdict(list)
    for path in files:
        groups[str(path.parent.relative_to(folder))].append(path)
    yield from sorted(groups.items())


def _title(text: str) -> str:
    """The first sentence of the comment that a file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#") or line.startswith("#  "):
            break
        lines.append(line.removeprefix("#").strip())
    sentence = re.split(r"(?<=[.:;?])\s", " ".join(lines))[0].rstrip(".:;")
    return sentence.replace('"', "'")


def _keys(folder: Path, files: list[Path]) -> str:
    helps = {(trainer, one.dest): (one, parser) for trainer, parser in trainers().items() for one in options_of(parser)}
    used: dict[str, set[str]] = defaultdict(set)
    for path in files:
        trainer = path.relative_to(folder).parts[0]
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key in values:
            if (trainer, key) in helps:
                used[key].add(trainer)
    rows = ["| key | set for | meaning |\n|---|---|---|\n"]
    for key, where in sorted(used.items()):
        rows.append(f"| `{key}` | {', '.join(sorted(where))} | {_meaning(*helps[sorted(where)[0], key])} |\n")
    return "".join(rows)


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return cell(parser._get_formatter()._expand_help(action) if action.help else "")
