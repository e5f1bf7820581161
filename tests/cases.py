"""Cases that are data: the YAML file beside a test file, with a table for each test or constant."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def _tables(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def cases(file: str, name: str) -> Any:
    """The table `name` of a test file; `file` is its `__file__`."""
    return _tables(Path(file).with_suffix(".yaml"))[name]
