"""Shared by all metrics: a check of their inputs, and a signature that says how figures were computed.

A signature is one line to be printed with the figures, `key:value` fields joined by `|`, after Post 2018, "A Call for
Clarity in Reporting BLEU Scores" (sacreBLEU).
"""

import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeGuard

DISTRIBUTION = "mrs-suggest"
# Used if the code runs as a copy next to an `evaluate` module, without the installed distribution.
FALLBACK_VERSION = "0.2.0"
# An example's reference: one text, or several texts that are all right.
Reference = str | Sequence[str]


def package_version() -> str:
    """Return the installed version of the distribution, or the one that this copy of the code was made from."""
    if __name__ != "mrs_metrics.signature":  # a copy: a different release may be installed
        return FALLBACK_VERSION
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return FALLBACK_VERSION


@cache
def _commit() -> str:
    """The commit of a clone as the local part of its version, such as +g1234567; empty for a release or a copy."""
    clone, found = Path(__file__).resolve().parents[1], ""
    if (clone / ".git").exists() and shutil.which("git"):
        git = ("git", "-C", str(clone), "rev-parse", "--short=7", "HEAD")
        found = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return f"+g{found}" * bool(found)


def signature(metric: str, **fields: object) -> str:
    """Return `metric|key:value|...|version:V`: the fields in the order given, the package version last, in a
    clone with its commit.

    Fields that are None are left out; True and False become yes and no.

    Raises:
        ValueError: a name or value is empty or has a `|`, which would make the line ambiguous, or `version` is given.

    >>> signature("mrs_rouge", rules="official", nbest=3, eff=False).rsplit("|", 1)[0]
    'mrs_rouge|rules:official|nbest:3|eff:no'
    """
    if "version" in fields:
        raise ValueError("The field 'version' of a signature is the package version and cannot be given.")
    parts = [metric]
    for key, value in fields.items():
        if value is not None:
            text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
            parts.append(f"{key}:{text}" if text else "")
    if any(not part or "|" in part for part in parts):
        raise ValueError(f"The names and values of a signature must be non-empty and without '|', not {parts!r}.")
    return "|".join([*parts, f"version:{package_version()}{_commit()}"])


def with_unit(signature: str, unit: str) -> str:
    """Return a signature that also names what intervals resample and tests swap, such as `unit:message`."""
    fields, version, number = signature.rpartition("|version:")
    return f"{fields}|unit:{unit}{version}{number}"


def check_suggestions(
    predictions: Sequence[Sequence[str]], references: Sequence[Reference] | None = None, required: bool = False
) -> None:
    """Check that each example has a list of suggestions and, if references are given, one or several texts.

    Args:
        predictions: for each example its suggestions.
        references: for each example its reference, or a list of its references.
        required: references must be given.

    Raises:
        ValueError: the two differ in length, an entry has the wrong type, or a list is replaced by something that
            can be read only once (a generator, an iterator) or has no order (a set, a dictionary).

    >>> check_suggestions([["Yes!", "No."], []], [["Yes", "Sure"], "Bye"])
    """
    check_lists(predictions, references, required)
    if references is not None and len(predictions) != len(references):
        # maybe a list for each set of references, as sacreBLEU's own functions expect them
        streams = bool(len(references)) and not any(isinstance(reference, str) for reference in references)
        raise ValueError(
            "Predictions and references must have one entry for each example, "
            f"but there are {len(predictions)} predictions and {len(references)} references."
            + " Several references belong in one list for each example."
            * streams
        )
    for index, reference in enumerate(() if references is None else references):
        if isinstance(reference, str):
            continue
        if not _is_list(reference) or not all(isinstance(text, str) for text in reference):
            raise ValueError(
                f"The reference of example {index} must be a text or a list of texts, not {_kind(reference)}."
            )
        if not len(reference):
            raise ValueError(f"The references of example {index} are an empty list; give one text or more.")
    for index, texts in enumerate(predictions):
        if not _is_list(texts) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"The predictions of example {index} must be a list of texts, not {_kind(texts)}.")


def check_lists(predictions: object, references: object = None, required: bool = False) -> None:
    """Refuse, by a ValueError, predictions and references that are not lists, or required ones that are None."""
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("Predictions and references must be lists with one entry for each example, not one text.")
    if references is None and required:
        raise ValueError("The references are missing; this metric compares each example's prediction with them.")
    for name, entries in (("predictions", predictions), ("references", references)):
        if not (_is_list(entries) or (entries is None and name == "references")):
            raise ValueError(f"The {name} must be a list with one entry for each example, not {_kind(entries)}.")


def as_lists(references: Iterable[Reference]) -> list[list[str]]:
    """Return the references of each example as a list.

    >>> as_lists(["Yes", ["Yes", "Sure"]])
    [['Yes'], ['Yes', 'Sure']]
    """
    return [[reference] if isinstance(reference, str) else list(reference) for reference in references]


def count_references(references: Iterable[Reference]) -> int | str:
    """Return the number of references for a signature, as sacreBLEU does: the number, or `var` where it varies.

    >>> count_references([["a", "b"]]), count_references(["a", ["a", "b"]]), count_references([])
    (2, 'var', 1)
    """
    counts = {1 if isinstance(reference, str) else len(reference) for reference in references} or {1}
    return counts.pop() if len(counts) == 1 else "var"


def _is_list(entries: object) -> TypeGuard[Collection[object]]:
    """Whether it has a length and an order, and can be read again: lists, tuples, arrays, columns of a data set."""
    if isinstance(entries, str | bytes | Mapping | AbstractSet):
        return False
    return isinstance(entries, Sized) and isinstance(entries, Iterable)


def _kind(entries: object) -> str:
    if entries is None:
        return "None"
    if isinstance(entries, Iterable) and not isinstance(entries, Sized):
        return f"{type(entries).__name__}, which can be read only once: make a list of it"
    return f"{type(entries).__name__} ({entries!r:.60})"
