"""A filter on disk: `filter.json`, and `arrays.safetensors` where the rule was learned. Nothing in it can run code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, writing
from mrs_suggest.staple.rules import RULES, Rule

KIND, VERSION = "mrs-staple-filter", 1
SETTINGS, ARRAYS = "filter.json", "arrays.safetensors"
AGAIN = "make it again with `mrs staple tune`"


@dataclass(frozen=True)
class Filter:
    """A fitted rule and where it comes from.

    Attributes:
        rule: what chooses.
        language: of the translations.
        data: that it was tuned on, as in `Hypotheses`.
        members: of the pool that it was tuned on.
        seed: of the fit.
        figures: out-of-fold scores and those of the comparisons.
        versions: of the libraries.
    """

    rule: Rule
    language: str
    data: Mapping[str, Any]
    members: tuple[str, ...] = ()
    seed: int = 0
    figures: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def save_filter(made: Filter, folder: Path, overwrite: bool = False) -> None:
    """Write a filter; the folder appears whole or not at all.

    Raises:
        InputError: the folder exists, or cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in made.rule.arrays().items()}
    content = save(arrays) if arrays else None
    facts = {
        "kind": KIND,
        "version": VERSION,
        "rule": made.rule.name,
        "features": list(made.rule.features),
        "settings": made.rule.settings(),
        "language": made.language,
        "data": dict(made.data),
        "members": list(made.members),
        "seed": made.seed,
        "figures": dict(made.figures),
        "versions": dict(made.versions),
    }
    facts["sha256"] = _digest(facts, content)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    with writing(folder), atomic_folder(folder, overwrite=overwrite, marker=SETTINGS) as place:
        (place / SETTINGS).write_text(text + "\n", encoding="utf-8")
        if content is not None:
            (place / ARRAYS).write_bytes(content)


def load_filter(folder: Path) -> Filter:
    """Read a filter.

    Raises:
        InputError: there is none, it is damaged, changed by hand, or of another version.
    """
    path = folder / SETTINGS
    if not path.is_file():
        raise InputError(f"{folder}: not a filter (no {SETTINGS} in it); make one with `mrs staple tune`.")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); {AGAIN}.") from None
    if not isinstance(facts, dict) or facts.get("kind") != KIND:
        raise InputError(f"{path}: not a filter of hypotheses, which `mrs staple tune` makes.")
    if facts.get("version") != VERSION:
        raise InputError(f"{path}: a filter of version {facts.get('version')!r:.40}, expected {VERSION}; {AGAIN}.")
    try:
        content = (folder / ARRAYS).read_bytes() if (folder / ARRAYS).is_file() else None
        if facts.pop("sha256", None) != _digest(facts, content):
            raise ValueError("its contents do not match their checksum")
        if facts["rule"] not in RULES:
            raise ValueError(f"unknown rule {facts['rule']!r:.40}")
        arrays: dict[str, NDArray[Any]] = load(content) if content is not None else {}
        features = tuple(str(name) for name in facts["features"])
        rule = RULES[facts["rule"]].stored(facts["settings"], arrays, features)
        return Filter(
            rule, str(facts["language"]), dict(facts["data"]), tuple(facts["members"]), int(facts["seed"]),
            dict(facts["figures"]), dict(facts["versions"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, IndexError, SafetensorError) as error:
        raise InputError(f"{folder}: damaged filter ({error}); {AGAIN}.") from None


def _digest(facts: Mapping[str, Any], content: bytes | None) -> str:
    """SHA-256 over everything else in the folder."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + (content or b"")).hexdigest()
