"""The page of an audit: one HTML file on which an annotator judges the pairs of a sheet.

It needs no network: its content security policy lets it load nothing and run only its own script. It contains the cells
of the sheet unchanged, so that the sheet that it makes is the one that a spreadsheet program would fill in.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from typing import Any

from mrs_datasets.audit.questions import ANSWERS, Kind, language_name
from mrs_suggest.common.io.sheets import RISKY, VALUE_WORDS
from mrs_suggest.common.text.text import visible


def audit_page(kind: Kind, title: str, sheet: str, file: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """The page; equal arguments give equal texts.

    Args:
        title: of the data set.
        sheet: what the column `sheet` says.
        file: the name under which the sheet is downloaded.
        rows: item, language, message and reply, in the order of the sheet and as its cells.
    """
    names = ("item", "language", "message", "reply")
    data = {
        "sheet": sheet,
        "file": file,
        "columns": kind.columns,
        "answers": ANSWERS,
        "questions": [asdict(question) for question in kind.questions],
        "languages": {code: language_name(code) for code in dict.fromkeys(row[1] for row in rows)},
        "risky": RISKY,
        "valueWords": VALUE_WORDS,
        "items": [dict(zip(names, row, strict=True)) for row in rows],
    }
    style, script = _part("page.css"), _part("page.js")
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'"
    about = visible(f"{title}, {sheet.rpartition(', ')[2]}")
    filled = {
        "policy": escape(policy),
        "title": escape(f"Data audit: {about}"),
        "about": escape(about),
        "sheet": escape(sheet),
        "style": style,
        "data": _json(data),
        "script": script,
    }
    first, *rest = _part("page.html").split("{{")
    parts = (part.partition("}}") for part in rest)
    return first + "".join(filled[name] + text for name, _, text in parts)


def _part(name: str) -> str:
    return resources.files("mrs_datasets.audit").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def _json(content: Any) -> str:
    """JSON in ASCII that cannot end the element that it stands in."""
    escapes = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}
    return json.dumps(content).translate(escapes)
