"""`mrs data audit`: samples of a prepared folder that people judge, and the shares that they found."""

from __future__ import annotations

import argparse


def add_audit(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("audit", help="write sheets and a page to judge samples of a data set; read them")
    parser.set_defaults(run=run_audit)


def run_audit(options: argparse.Namespace) -> int:
    return 0
