"""The parser of every command."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partialmethod
from itertools import takewhile
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """The library's without abbreviated options, in subcommands too: `--lang` would be read as `--language-model`.
    An error is one line: the verb, what is wrong, the option that was meant, and where the options are listed."""

    __init__ = partialmethod(argparse.ArgumentParser.__init__, allow_abbrev=False)
    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for verb in [word for word in self._words if word in action.choices][:1]:
                    action.choices[verb].error(message)
        options = [word for word in takewhile(lambda word: word != "--", self._words) if word[:2] == "--"]
        names = [word.partition("=")[0] for word in options if " " not in word.partition("=")[0]]
        unknown = [name for name in names if name not in self._option_string_actions]
        if unknown and message.startswith(("unrecognized", "the following")):  # else it is about a value
            message = f"unknown option {unknown[0]!r}{did_you_mean(unknown[0], self._option_string_actions)}"
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` lists the options.\n")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the known name of similar spelling; empty if there is none."""
    return "".join(f" (did you mean {near}?)" for near in get_close_matches(name, known, 1))
