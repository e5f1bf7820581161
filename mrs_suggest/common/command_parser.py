"""The parser of every command."""

import argparse
from functools import partialmethod


class CommandParser(argparse.ArgumentParser):
    """The library's without abbreviated options, in subcommands too: `--lang` would be read as `--language-model`."""

    __init__ = partialmethod(argparse.ArgumentParser.__init__, allow_abbrev=False)
