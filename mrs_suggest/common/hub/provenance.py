"""Versions, commit and hardware, for the records of results."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from mrs_suggest.common import __version__

LIBRARIES = (
    "torch", "transformers", "sentence-transformers", "accelerate", "datasets", "evaluate", "tokenizers",
    "huggingface-hub", "numpy", "scikit-learn", "fugashi", "unidic-lite",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of Python, the project and the libraries that are installed."""
    found = {"python": platform.python_version(), "mrs-suggest": __version__}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit of the checkout that runs, with `-dirty` if tracked files differ; None outside a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def about() -> dict[str, object]:
    """Version, Python, platform, commit of a checkout and libraries, for bug reports; no library is imported."""
    libraries = versions()
    return {
        "version": libraries.pop("mrs-suggest"),
        "python": libraries.pop("python"),
        "platform": platform.platform(),
        "commit": commit(),
        "libraries": libraries,
    }


def hardware() -> dict[str, object]:
    """Processor, cores that may be used, accelerators."""
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": cores,
        "gpus": gpus,
        "torch_threads": torch.get_num_threads(),
    }
