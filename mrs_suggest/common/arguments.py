"""One parser for command line and YAML: `--config FILE` sets, the command line overrides, unknown keys are named."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_type_hints

import yaml

from mrs_suggest.common.command_parser import did_you_mean
from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from transformers import HfArgumentParser


SET, OTHERS = "set", "trainer"  # the option, and the key of a YAML file, that take what the help does not list


_METAVARS = {int: "N", float: "X", str: "TEXT"}


def make_dataclass_parser(
    types: Sequence[Any], prog: str, description: str, shown: Sequence[str] = ()
) -> HfArgumentParser:
    """A parser with one option per field of our dataclass and of the library's, `--config`, `--set`.

    Args:
        types: ours, and the library's. The help only names the fields that our classes list as `advanced`.
        shown: the fields of the library's that are options; the others are set by `trainer:` in YAML or by `--set`.
    """
    from transformers import HfArgumentParser

    class Parser(HfArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise InputError(f"{message}; `{self.prog} --help` lists the options.")

    parser = Parser(
        types, prog=prog, usage=f"{prog} [options]", description=description, allow_abbrev=False,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=36, width=110),
    )  # fmt: skip
    ours, *library = types
    advanced = [name for kind in ours.__mro__ for name in vars(kind).get("advanced", ())]
    hidden = {field.name for kind in library for field in dataclasses.fields(kind) if field.name not in shown}
    for action in parser._actions:
        action.option_strings = [name for name in action.option_strings if "-" not in name.lstrip("-")]
        negation = any(name.startswith("--no_") and name != f"--{action.dest}" for name in action.option_strings)
        if action.dest in hidden or action.dest in advanced or negation:
            action.help = argparse.SUPPRESS
        elif action.nargs != 0:
            action.metavar = _METAVARS.get(action.type, "BOOL") if isinstance(action.type, type) else "BOOL"
            if action.default not in (None, False, []):
                default = " ".join(action.default) if isinstance(action.default, list) else "%(default)s"
                action.help = f"{action.help} [{default}]"
    parser.add_argument("--config", metavar="FILE", help="YAML file with options (or several); the command line wins")
    parser.add_argument(
        f"--{SET}",
        action="append",
        metavar="NAME=VALUE",
        help="any other setting of the library's trainer; may be repeated",
    )
    if advanced:
        parser.epilog = f"for experiments, see docs/how_to/: {', '.join(f'--{name}' for name in sorted(advanced))}"
    return parser


def parse_with_config(parser: HfArgumentParser, argv: Sequence[str] | None) -> tuple[Any, ...]:
    """Parse into the parser's dataclasses: defaults, then the YAML of each `--config`, then the command line.

    Raises:
        InputError: an unknown key or option, a value of the wrong type, or a file that is not a YAML mapping.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--config=") else [word])]
    configs = [after for word, after in pairwise(words) if word == "--config"]
    try:
        arguments = _with_settings(parser, arguments)
        given: dict[str, list[str]] = {}  # by option: of several files, the last one counts
        for config in configs:
            given |= _words(parser, _read_config(Path(config)), f"--config {config}: ")
        arguments = [*chain(*given.values()), *arguments]
        *objects, _, rest = parser.parse_args_into_dataclasses(
            arguments, return_remaining_strings=True, look_for_args_file=False
        )
    except ValueError as error:
        raise InputError(f"{error}") from None
    if rest:
        name, near = rest[0], did_you_mean(rest[0].partition("=")[0], parser._option_string_actions)
        raise InputError(f"unknown option {name!r}{near}; `{parser.prog} --help` lists the options.")
    return tuple(objects)


def parse_mapping(parser: HfArgumentParser, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Parse options given as a mapping into the parser's dataclasses, with the command line's checks."""
    return parse_with_config(parser, [*chain(*_words(parser, dict(values), "").values())])


def _with_settings(parser: HfArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The words, each `--set NAME=VALUE` replaced by the option of that name."""
    actions = {action.dest: action for action in parser._actions}
    words, rest = [], iter(arguments)
    for word in rest:
        option, equals, pair = word.partition("=")
        if option != f"--{SET}":
            words.append(word)
            continue
        name, equals, value = (pair if equals else next(rest, "")).partition("=")
        if not equals or name not in actions or name in ("help", "config", SET):
            raise InputError(
                f"--{SET} {name}: expected NAME=VALUE with the name of a setting of the library's trainer."
            )
        many = actions[name].nargs in ("+", "*")
        words += [f"--{name}", *value.split()] if many else [f"--{name}={value}"]
    return words


def as_plain(options: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON-able values, without tokens."""
    plain = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name == "token" or field.name.endswith("_token") or field.name.startswith("_"):
            continue
        value = value.value if isinstance(value, Enum) else value
        plain[field.name] = value if isinstance(value, (str, int, float, bool, type(None), list, dict)) else str(value)
    return plain


def words_of(values: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line.

    >>> words_of({"learning_rate": 1e-05, "languages": ["et", "qu"], "frozen_encoder": True})
    ['--learning_rate', '1e-05', '--languages', 'et', 'qu', '--frozen_encoder', 'true']
    """
    words = []
    for option, value in values.items():
        each = value if isinstance(value, list) else [value]
        words += [f"--{option}", *(str(one).lower() if isinstance(one, bool) else str(one) for one in each)]
    return words


def _read_config(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--config {path}: cannot read the file ({error.strerror}).") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise InputError(
            f"--config {path}{line}: the file is not valid YAML; expected `option: value` lines."
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"--config {path}: expected a mapping of options to values, found {type(values).__name__}.")
    return values


def _words(parser: HfArgumentParser, values: dict[str, Any], source: str) -> dict[str, list[str]]:
    """The words of each option of a mapping; `source` begins the sentence about a wrong one."""
    others = values.pop(OTHERS, None) or {}
    if not isinstance(others, dict):
        raise InputError(f"{source}key {OTHERS!r}: expected a mapping of the library's settings to values.")
    if twice := sorted(values.keys() & others.keys()):
        raise InputError(f"{source}{twice[0]!r} is set at the top and under {OTHERS!r}; leave one out.")
    _, *kinds = parser.dataclass_types
    library = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    actions = {action.dest: action for action in parser._actions}
    words: dict[str, list[str]] = {}
    for key, value in {**values, **others}.items():
        if key not in actions or key in ("help", "config", SET) or (key in others and key not in library):
            where = f"{OTHERS}: " if key in others else ""
            raise InputError(f"{source}unknown key {where}{key!r}; `{parser.prog} --help` lists the options.")
        if isinstance(value, dict):
            raise InputError(f"{source}key {key!r}: expected a value, found a mapping.")
        many = actions[key].nargs in ("+", "*")
        if value is None:
            if actions[key].default is not None and key not in _optional(parser):
                raise InputError(f"{source}key {key!r}: expected a value, found none.")
            parser.set_defaults(**{key: None})
            words[key] = []
        elif isinstance(value, list) and not many:
            raise InputError(f"{source}key {key!r}: expected one value, found a list.")
        elif many:
            words[key] = [f"--{key}", *map(str, value if isinstance(value, list) else [value])]
        else:
            words[key] = [f"--{key}={value}"]
    return words


def _optional(parser: HfArgumentParser) -> set[str]:
    """The options that may be None."""
    hints = {name: hint for kind in parser.dataclass_types for name, hint in get_type_hints(kind).items()}
    return {name for name, hint in hints.items() if type(None) in get_args(hint)}
