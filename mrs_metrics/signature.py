"""Signatures: one line per score that says how it was computed, to be printed with it.

After Post 2018, "A Call for Clarity in Reporting BLEU Scores" (sacreBLEU): `key:value` fields joined by `|`.
"""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = "mrs-suggest"
# Used if the code runs as a copy beside an `evaluate` module, without the installed distribution.
FALLBACK_VERSION = "0.1.0"


def package_version() -> str:
    """Return the installed version of the distribution, or the one that this copy of the code was made from."""
    if __name__ != "mrs_metrics.signature":  # a copy beside an `evaluate` module: a different release may be installed
        return FALLBACK_VERSION
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return FALLBACK_VERSION


def signature(metric: str, **fields: object) -> str:
    """Return `metric|key:value|...|version:V`: the fields in the order given, the package version last.

    Fields that are None are left out; True and False become yes and no.

    Raises:
        ValueError: a name or value is empty or holds a `|`, which would make the line ambiguous, or `version` is given.

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
    return "|".join([*parts, f"version:{package_version()}"])
