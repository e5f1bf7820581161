"""Runs commands of `mrs` in one process that has no package of any extra: `python -m tests.lean_process COMMANDS`.

COMMANDS is a JSON list of lists of words; what is printed is JSON: exit code, output and errors of each.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from mrs_suggest.common.extras import modules_by_extra

# What the packages of extras bring along; httpx may come with the base, through huggingface-hub.
BLOCKED = {"multiprocess", "dill", "xxhash", "nltk", "joblib", "aiohttp", "pydantic"}
BLOCKED |= set().union(*modules_by_extra().values()) - {"httpx"}


class Blocker(MetaPathFinder):
    """Finds none of the packages that a base installation lacks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def run(words: list[str]) -> dict[str, object]:
    """One command."""
    from mrs_suggest.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(words)
        except SystemExit as ended:
            code = ended.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    return {"words": words, "code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocker())
    print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
