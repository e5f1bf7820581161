"""Count the files, functions and classes of ours that a command executes, and the deepest stack of their calls.

    python benchmarks/reading_path.py                     # train a retriever, build a data set, score, suggest
    python benchmarks/reading_path.py score --list        # one command, with its files in the order of their first call
    python benchmarks/reading_path.py --limits            # exit code 1 if a count is above the project's limit

Each command runs under `sys.setprofile` in a process of its own; all its threads are followed, and child processes are
not. A file counts if one of its functions is called: executing a module on import is not enough. Functions are counted
once, by file and qualified name; module bodies, class bodies, lambdas and comprehensions are none. A class counts if
one of its methods is called. The deepest stack leaves out the frames of libraries between ours.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("mrs_suggest", "mrs_datasets", "mrs_metrics", "trainers", "model_cards")
MRS = "mrs_suggest.cli.main"
SYNTH = "data synth --out dumps --months 2018-01 --comments 4000 --language-model languages.bin --toxic-words toxic"
BUILD = "data build --dumps dumps/RC_2018-01.zst --out built --language-model languages.bin --min-examples 20"
PREPARE = ["data prepare mrs --source sample --out data", SYNTH]  # run before, and not counted
# name: module with a `main`, its arguments
COMMANDS = {
    "train": ("mrs_trainers.retrieval", "--data data --languages en --max_steps 4 --eval_steps 2 --save_steps 2 "
              "--max_train_examples 200 --max_validation_examples 20 --max_test_examples 20 --output_dir run"),
    "build": (MRS, f"{BUILD} --min-reply-count 2 --workers 1"),
    "score": (MRS, "score scored.tsv --language en"),
    "suggest": (MRS, "suggest --language en Hello!"),
}  # fmt: skip
LIMITS = {"train": {"files": 35, "functions": 200}, "build": {"files": 25}, "score": {"files": 12}}
Figures = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; with --limits, the exit code is 1 where a count is above its limit."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commands", nargs="*", metavar="command", help=f"of {', '.join(COMMANDS)} (default: all)")
    parser.add_argument("--list", action="store_true", help="also print the files and the deepest stack")
    parser.add_argument("--limits", action="store_true", help="fail where a command executes more than allowed")
    options = parser.parse_args(argv)
    if unknown := set(options.commands) - set(COMMANDS):
        parser.error(f"expected some of {', '.join(COMMANDS)}, found {', '.join(sorted(unknown))}.")
    found = {name: {} for name in options.commands or COMMANDS}
    with tempfile.TemporaryDirectory(prefix="reading-path-") as folder:
        (Path(folder) / "scored.tsv").write_text("How are you?\tFine, thanks!\tFine!\tNot so good\n", encoding="utf-8")
        for words in PREPARE:
            _run(folder, "-m", MRS, *words.split())
        for name in found:
            module, words = COMMANDS[name]
            printed = _run(folder, __file__, "--walk", module, *words.split())
            found[name] = json.loads(printed.splitlines()[-1])
    print(table(found))
    if options.list:
        for name, figures in found.items():
            print("", f"{name}:", *figures["paths"], "deepest stack:", *figures["stack"], sep="\n  ")
    above = over_limits(found) if options.limits else []
    print(*above, sep="\n", end="\n" if above else "")
    return int(bool(above))


def _run(folder: str, *words: str) -> str:
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_HOME": folder,
        "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def table(found: dict[str, Figures]) -> str:
    """The counts by command, each with its limit if it has one."""
    columns = ("files", "lines", "functions", "classes", "deepest")
    rows = [f"{'command':<8}" + "".join(f"{column:>16}" for column in columns)]
    for name, figures in found.items():
        limits = LIMITS.get(name, {})
        cells = (f"{figures[c]:,}" + (f" (limit {limits[c]})" if c in limits else "") for c in columns)
        rows.append(f"{name:<8}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(rows)


def over_limits(found: dict[str, Figures]) -> list[str]:
    """A sentence for each count above its limit."""
    return [
        f"{name}: {figures[count]} {count}, more than the limit of {limit}"
        for name, figures in found.items()
        for count, limit in LIMITS.get(name, {}).items()
        if figures[count] > limit
    ]


class Walk:
    """What is called while `profile` is the profile function of the process; see the docstring of the module."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = [f"{os.path.realpath(root)}{os.sep}" for root in roots]
        self.functions: dict[tuple[str, str], None] = {}
        self.deepest: tuple[str, ...] = ()
        self._paths: dict[str, str] = {}
        self._threads = threading.local()

    def _path(self, code: CodeType) -> str:
        name = code.co_filename
        if name not in self._paths:
            path = os.path.realpath(name)
            self._paths[name] = path if any(path.startswith(root) for root in self.roots) else ""
        return self._paths[name]

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        stack = self._threads.__dict__.setdefault("stack", [])
        code = frame.f_code
        if event == "return":
            if stack and stack[-1][0] is frame:
                stack.pop()
        elif code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<") and (path := self._path(code)):
            self.functions.setdefault((path, code.co_qualname))
            stack.append((frame, f"{Path(path).name}:{code.co_qualname}"))
            if len(stack) > len(self.deepest):
                self.deepest = tuple(name for _, name in stack)

    def figures(self) -> Figures:
        paths = list(dict.fromkeys(path for path, _ in self.functions))
        owners = {(path, name.rpartition(".")[0]) for path, name in self.functions}
        return {
            "files": len(paths),
            "lines": sum(Path(path).read_text(encoding="utf-8").count("\n") for path in paths),
            "functions": len(self.functions),
            "classes": len([owner for _, owner in owners if owner and not owner.endswith("<locals>")]),
            "deepest": len(self.deepest),
            "paths": [os.path.relpath(path, ROOT) for path in paths],
            "stack": self.deepest,
        }


def walk(module: str, words: Sequence[str]) -> None:
    """Run `main(words)` of a module and print what it executed, as the last line."""
    run, steps = importlib.import_module(module).main, Walk([ROOT / package for package in PACKAGES])
    threading.setprofile(steps.profile)
    sys.setprofile(steps.profile)
    try:
        code = run(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print(json.dumps(steps.figures()))
    sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--walk"]:
        walk(sys.argv[2], sys.argv[3:])
    sys.exit(main())
