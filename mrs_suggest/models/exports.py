"""Exported copies of an encoder or a generator, which answer faster than torch: their files and settings.

A copy is made by `mrs models export` after its answers were compared with torch's; whoever loads the folder gets it.
"""

import json
import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError, MissingExtraError, extra_needed
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.text.text import visible

ONNX = "onnx"  # the folder; also the name of the extra that runs it
SETTINGS = "export.json"
GRAPH = "encoder.onnx"
ONNX_FILES = tuple(f"{ONNX}/{name}" for name in (SETTINGS, GRAPH))
CTRANSLATE2 = "ctranslate2"  # likewise
WEIGHTS = "model.bin"  # CTranslate2 accepts no other name; its own format, no pickle
CTRANSLATE2_FILES = tuple(
    f"{CTRANSLATE2}/{name}" for name in (SETTINGS, "config.json", WEIGHTS, "shared_vocabulary.json")
)
# Extra -> what it is for, and its packages.
PACKAGES = {
    ONNX: ("export to ONNX", ("onnx", "onnxscript", "onnxruntime")),
    CTRANSLATE2: ("export to CTranslate2", ("ctranslate2",)),
}


def require_packages(extra: str) -> None:
    """Raise MissingExtraError if a package that an export needs, and its extra brings, is missing."""
    purpose, packages = PACKAGES[extra]
    for package in packages:
        with extra_needed(package, extra, purpose):
            import_module(package)


def read_settings(folder: Path, kind: str) -> dict[str, Any] | None:
    """The settings of an export of a kind in a model's folder; None without one, InputError if damaged."""
    path = folder / kind / SETTINGS
    if not path.is_file():
        return None
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError):
        raise damaged(path, folder) from None
    return settings


def damaged(path: Path, folder: Path, problem: str = "damaged") -> InputError:
    """The error for a file of an export that cannot be used."""
    return InputError(f"{path}: {problem}; {again(folder)}, or answer without it: mrs models export {folder} --remove.")


def bounded_threads() -> int:
    """The threads of an export's runtime: what bounds torch and NumPy bounds it, too; 0 if nothing does."""
    if (torch := sys.modules.get("torch")) is not None:  # a program may have set it there
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() else 0


@cache
def note_missing(package: str, kind: str, folder: Path) -> None:
    """Print once a process that a folder's export is not used, since its extra is not installed."""
    reason = MissingExtraError(package, kind, f"the export in {folder / kind}")
    print(f"note: {visible(reason)} Until then its weights answer, more slowly.", file=sys.stderr)
