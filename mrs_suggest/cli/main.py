"""The `mrs` command. An error that the user can fix gives one sentence on stderr and exit code 2."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from mrs_suggest.common import __version__
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import run_with_sentence

# group -> verb -> what it does, as `mrs --help` prints it; each lives in mrs_suggest/cli/VERB.py and is imported only
# when called
GROUPS = {
    "verbs": {
        "suggest": "answer messages with a trained model",
        "serve": "answer messages over HTTP",
        "feedback": "report how often people choose the server's suggestions",
        "demo": "a chat page that shows suggestions, on this machine or as a Space",
        "train": "train a model (with accelerate)",
        "score": "score a file of suggestions",
        "compare": "print the figures of several runs of one task next to each other",
        "data": "list, prepare, build, check and publish data sets",
        "models": "list and download baselines, render cards, publish models",
        "reproduce": "run the experiments behind a table of the documentation, and print it",
    },
    "research": {
        "staple": "decode, filter, combine and analyse many translations of a prompt (STAPLE)",
        "annotate": "human evaluation: write blinded annotation files and summarize the annotations",
        "convert": "convert a fairseq checkpoint, or pytorch_model.bin, to safetensors",
        "metrics": "list the metric modules, publish them as Spaces",
    },
    "setup": {"install": 'make load_dataset("mrs") and evaluate.load("mrs_rouge") work from any folder'},
}
VERBS = {verb: text for group in GROUPS.values() for verb, text in group.items()}
# verb -> the extra that brings all that it needs; `suggest` needs none for most models
EXTRAS = {
    "data": "data",
    "install": "score",
    "serve": "serve",
    "feedback": "score",
    "train": "train",
    "reproduce": "train",
    "score": "score",
    "compare": "train",
    "staple": "train",
    "metrics": "score",
    "annotate": "score",
    "models": "train",
    "convert": "train",
}


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs", description="Multilingual reply suggestion, from data to suggestions.")
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--json", action="store_true", help="with --version, also print commit, platform and libraries")
    listing = "\n\n".join(
        "\n".join([f"{group}:", *(f"  {verb:<12}{text}" for verb, text in verbs.items())])
        for group, verbs in GROUPS.items()
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{listing}\n\n`mrs VERB --help` shows the options of a verb."
    parser.add_argument("verb", nargs="?", choices=VERBS, metavar="verb")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 success, 2 invalid input, 130 interrupted."""
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.version and options.json:
        from mrs_suggest.common.hub.provenance import about
        from mrs_suggest.common.text.text import visible_json

        print(visible_json(about()))
        return 0
    if options.version:
        print(f"mrs-suggest {__version__}")
        return 0
    if options.verb is None or options.json:
        parser.error("--json requires --version" if options.json else "the following arguments are required: verb")

    try:
        return run_with_sentence(
            f"mrs {options.verb}", lambda: run_verb(options.verb, options.arguments), EXTRAS.get(options.verb)
        )
    except BrokenPipeError:  # `mrs ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run_verb(verb: str, words: Sequence[str]) -> int:
    """Run one verb and return the exit code; its errors are raised."""
    module = importlib.import_module(f"mrs_suggest.cli.{verb}")
    if hasattr(module, "main"):  # reads its words itself
        return int(module.main(words))
    options = module.make_parser().parse_args(words)
    return int(options.run(options) or 0)


if __name__ == "__main__":
    sys.exit(main())
