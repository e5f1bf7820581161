"""The pages of the command line: every verb and every option, from the parsers that read them."""

from __future__ import annotations

import argparse
import inspect
import re

from parsers import commands, options_of

from mrs_suggest.cli.main import VERBS

HEAD = """# Command line

Every verb of `mrs` with its options, generated from version {version}. `mrs VERB --help` prints the same text. The
options of `mrs train` are on [a separate page](trainers.md). Exit codes: 0 success, 1 a check found problems, 2 invalid
input (one sentence on standard error explains it), 130 interrupted.

"""
TRAINERS = """# Training options

`accelerate launch trainers/NAME.py` and `mrs train NAME` take the same options, and so does a YAML file given with
`--config` (keys without the dashes; the command line wins). [Configurations](configs.md) lists the files that come with
the project; [Fine-tune](../how_to/fine_tune.md#common-options) explains the most common options. Only `mrs train`
takes `--sweep FILE`, which tries the values in that file and prints the best ones on validation
([guide](../how_to/search_options.md)).

"""
SHORT = 24  # letters of choices that stand in the place of a value


def cli_page(version: str) -> str:
    """Every verb but `mrs train`, one heading each."""
    parts, last = [HEAD.format(version=version)], ""
    parts.append("| verb | what it does |\n|---|---|\n")
    parts += [f"| [`mrs {verb}`]({_target(verb)}) | {cell(text)} |\n" for verb, text in VERBS.items()]
    for name, parser in commands().items():
        verb = name.split()[1]
        if verb == "train":
            continue
        if verb != last:
            parts.append(f"\n## mrs {verb}\n\n{VERBS[verb][:1].upper()}{VERBS[verb][1:]}.\n")
            last = verb
        if name != f"mrs {verb}":
            parts.append(f"\n### {name}\n")
        parts.append(f"\n```text\n{_usage(parser)}\n```\n\n")
        parts.append(table(options_of(parser), parser))
    return "".join(parts)


def trainers_page() -> str:
    """What all trainers have in common, and what is special to each."""
    parsers = {name.split()[2]: one for name, one in commands().items() if name.startswith("mrs train ")}
    rows = {name: {_flags(one): (one, parser) for one in options_of(parser)} for name, parser in parsers.items()}
    texts = {name: {flags: _row(*row) for flags, row in own.items()} for name, own in rows.items()}
    first = next(iter(texts))
    shared = [row for row in texts[first].values() if all(row in own.values() for own in texts.values())]
    parts = [TRAINERS]
    for name, own in texts.items():
        about = inspect.cleandoc(parsers[name].description or "").partition("\n\n")[0]
        parts.append(f"## mrs train {name}\n\n{about}\n\n{_head()}")
        parts += [row for row in own.values() if row not in shared]
        parts.append("\nAnd the options of [every trainer](#every-trainer).\n\n")
    parts.append("## Every trainer\n\nMost of these are those of `transformers.TrainingArguments`, with its texts.\n\n")
    return "".join([*parts, _head(), *shared])


def table(options: list[argparse.Action], parser: argparse.ArgumentParser) -> str:
    """The options as a table, or a sentence if the list is empty."""
    if not options:
        return "It has no options.\n"
    return _head() + "".join(_row(one, parser) for one in options)


def cell(text: str) -> str:
    """A text as a cell of a table: one line, its marks shown as they are; what stands in backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return re.sub(r"([\\*_\[\]`])", r"\\\1", text)


def _head() -> str:
    return "| option | meaning |\n|---|---|\n"


def _row(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    formatter = parser._get_formatter()
    text = formatter._expand_help(action) if action.help else ""
    if action.choices is not None and (action.metavar or len(_choices(action)) > SHORT):
        text += f"; one of {_choices(action).replace(',', ', ')}"
    if action.required and action.option_strings:
        text += " (required)"
    if action.default not in (None, False, argparse.SUPPRESS, []) and "default" not in text:
        text += f" (default {action.default!s})"
    return f"| {_flags(action)} | {cell(text)} |\n"


def _flags(action: argparse.Action) -> str:
    value = action.metavar or action.dest.upper()
    if action.choices is not None and not action.metavar and len(_choices(action)) <= SHORT:
        value = "{" + _choices(action) + "}"
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return f"`{value}`"
    many = " ..." if action.nargs in ("+", "*") else ""
    taken = "" if action.nargs == 0 else f" {value}{many}"
    return " ".join(f"`{flag}{taken}`" for flag in action.option_strings)


def _choices(action: argparse.Action) -> str:
    return ",".join(str(one) for one in action.choices or ())


def _usage(parser: argparse.ArgumentParser) -> str:
    """The usage line with what is required only: the options stand below it."""
    words = [parser.prog]
    for one in options_of(parser):
        flag = _flags(one).split("` `")[0].strip("`")
        if one.required or not one.option_strings:
            words.append(flag if one.nargs not in ("?", "*") else f"[{flag} ...]" if one.nargs == "*" else f"[{flag}]")
    return " ".join([*words, "[options]"])


def _target(verb: str) -> str:
    return "trainers.md" if verb == "train" else f"#mrs-{verb}"
