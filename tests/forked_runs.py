"""Training runs of one trainer in forked processes, since importing the libraries takes longer than training."""

import importlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CUT_OFF = 9  # exit code of a run that is cut off
Run = tuple[Sequence[str], int, int]  # options; the step from which its next checkpoint ends it, or 0; ranks


def forked_runs(module: str, runs: Sequence[Run], folder: Path, seconds: float) -> tuple[list[str], list[str]]:
    """Run `module.main` with each run's options, one after the other, in `folder`.

    Returns:
        The exit codes of each run's ranks, with spaces between them, and the lines that all runs printed.
    """
    from tests import warm_python  # not where this file is the program

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(places)}
    done = warm_python.run(
        [sys.executable, __file__, module, json.dumps(runs), str(port)],
        cwd=folder, env={**os.environ, **environment, "PYTHONSAFEPATH": "1"}, timeout=seconds, merged=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    printed = done.stdout.splitlines()
    return [line.removeprefix("ended ") for line in printed if line.startswith("ended ")], printed


def _rank(trainer: Any, options: list[str], cut: int, environment: dict[str, str]) -> int:
    """Fork a process that trains; return its number."""
    from transformers import Trainer

    if child := os.fork():
        return child
    os.environ.update(environment)
    if cut:
        saved = Trainer._save_checkpoint

        def save_and_end(self: Trainer, *arguments: Any) -> None:
            saved(self, *arguments)
            if self.state.global_step >= cut:
                os._exit(CUT_OFF)

        Trainer._save_checkpoint = save_and_end  # type: ignore[method-assign]
    code = trainer.main(options)
    sys.stdout.flush()
    os._exit(code)


def _main(module: str, runs: str, port: str) -> None:
    trainer = importlib.import_module(module)
    for options, cut, ranks in json.loads(runs):
        world = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if ranks > 1 else {}
        environments = [{**world, "RANK": str(n), "LOCAL_RANK": str(n)} if world else {} for n in range(ranks)]
        children = [_rank(trainer, options, cut, environment) for environment in environments]
        print("\nended", *(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
