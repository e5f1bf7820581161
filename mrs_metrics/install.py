"""Puts a metric module into the cache of `evaluate`, so that `evaluate.load("mrs_rouge")` works in any folder."""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path

from mrs_metrics.spaces import module_files


def install_metric(name: str) -> Path:
    """Write the module and its topic files to where `evaluate` caches loaded metrics; return the folder.

    Raises:
        ValueError: there is no such metric.
    """
    from evaluate.loading import init_dynamic_modules

    files = module_files(name)
    digest = hashlib.sha256(b"\0".join(part for item in sorted(files.items()) for part in (item[0].encode(), item[1])))
    kind = Path(init_dynamic_modules()) / "metrics"
    folder = kind / f"evaluate-metric--{name}" / digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    for package in (kind, folder.parent, folder):
        (package / "__init__.py").touch()
    for file, content in files.items():
        if file != f"{name}.py":
            (folder / file).write_bytes(content)
    partial = folder / f".{name}.partial"
    partial.write_bytes(files[f"{name}.py"])
    partial.rename(folder / f"{name}.py")  # last: `evaluate` finds the folder by this file, and takes the newest
    os.utime(folder / f"{name}.py")
    importlib.invalidate_caches()
    return folder
