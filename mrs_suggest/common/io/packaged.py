"""Data that are part of the package, as YAML files next to the code that reads them."""

from importlib import resources
from typing import Any

import yaml


def read_packaged(package: str, *name: str) -> Any:
    """The content of a YAML file of a package, such as `read_packaged("mrs_suggest.common.hub", "baselines.yaml")`."""
    return yaml.safe_load(resources.files(package).joinpath(*name).read_text(encoding="utf-8"))
