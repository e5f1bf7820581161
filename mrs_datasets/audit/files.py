"""The files of an audit: a sheet and a page for each annotator, the instructions, and the key.

    FOLDER/key.json                 the data, the sample, hashes of every text and sheet
    FOLDER/instructions.txt
    FOLDER/sheets/annotator-1.csv   item, language, message, reply, a column per question, comment, sheet
    FOLDER/pages/annotator-1.html   the same, to be judged in a browser

Completed sheets come back to FOLDER/sheets. Each row names its audit and annotator in the column `sheet`, so that the
name of the file does not matter: browsers change it. Cells are made safe for spreadsheet programs
(`mrs_suggest.common.io.sheets`).
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mrs_datasets.audit.questions import TEXTS, Kind, KindName, instructions
from mrs_datasets.audit.sampling import Drawn, Stratum, audited_languages, draw_sample
from mrs_datasets.catalogue import STRICT
from mrs_datasets.prepared.prepared import PreparedData
from mrs_metrics.signature import package_version
from mrs_suggest.common.errors import InputError, first_problem
from mrs_suggest.common.io.files import atomic_folder, file_sha256
from mrs_suggest.common.io.sheets import RISKY, VALUE_WORDS, escaped, require_unfilled, restored, sheet_bytes, text_hash
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.text import visible

KEY, SHEETS, PAGES, INSTRUCTIONS = "key.json", "sheets", "pages", "instructions.txt"
FORMAT = "mrs data audit 1"  # in every key: the command that made it, and the version of its fields
SEED = 12345
ANNOTATORS = 1  # section 2.2 names no number; agreement needs two
# Excel's cells hold 32,767 UTF-16 units, and a character takes up to two.
MOST_CHARACTERS, CUT = 16_000, " [...]"


@dataclass(frozen=True, config=STRICT)
class Item:
    """One pair of the sample.

    Attributes:
        item: its number, from 1.
        row: its place in the split, from 0.
        texts: hash of message and reply, as they are in the sheets.
    """

    item: int
    language: str
    split: str
    row: int
    texts: tuple[str, ...]


@dataclass(frozen=True, config=STRICT)
class Key:
    """`key.json`: the facts of an audit, for reading its sheets.

    Attributes:
        kind: a key of `KINDS`.
        data: title, id, revision or content hash, and passes (`report.json`).
        sample: SHA-256 over the pairs.
        cut: number of texts that were too long for a cell.
        files: name of a sheet -> its SHA-256 before it was filled in.
    """

    audit: str
    kind: KindName
    examples: int
    seed: int
    version: str
    data: dict[str, Any]
    sample: str
    cut: int
    strata: Annotated[tuple[Stratum, ...], Field(min_length=1)]
    files: dict[str, str]
    items: Annotated[tuple[Item, ...], Field(min_length=1)]

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(stratum.language for stratum in self.strata))

    def sheet(self, annotator: int) -> str:
        """The value of the column `sheet` in an annotator's sheet."""
        return f"audit {self.audit}, annotator {annotator}"


def make_audit(
    data: PreparedData,
    out: Path,
    kind: Kind,
    languages: Sequence[str] | None = None,
    examples: int | None = None,
    annotators: int = ANNOTATORS,
    seed: int = SEED,
    overwrite: bool = False,
) -> Key:
    """Write the folder `out`, completely or not at all.

    Every annotator gets all pairs, language by language, in a different order within each language.

    Args:
        languages: None for all in the data.
        examples: None for the kind's default. If the data have fewer pairs, all are taken.

    Raises:
        InputError: see `audited_languages`; or `out` exists (without `overwrite`, or with judgements in it).
    """
    examples = kind.examples if examples is None else examples
    codes = audited_languages(data, languages)
    if overwrite and (out / KEY).is_file():
        require_unfilled(out / SHEETS, read_key(out).files, out)
    with atomic_folder(out, overwrite, marker=KEY) as folder:
        strata, drawn = draw_sample(data, codes, kind, examples, seed)
        passes = [entry["name"] for entry in data.report().get("passes", [])]
        cells = {number: _cells(pair) for number, pair in enumerate(drawn, start=1)}
        sample = _hash([[asdict(pair) for pair in drawn]])
        key = Key(
            audit=_hash([FORMAT, kind.columns, sample, seed])[:8],
            kind=kind.name,
            examples=examples,
            seed=seed,
            version=package_version(),
            data={**data.identity(codes), "title": data.title(), "passes": passes},
            sample=sample,
            cut=sum(len(text) > MOST_CHARACTERS for pair in drawn for text in (pair.message, pair.reply)),
            strata=tuple(strata),
            files={},
            items=tuple(
                Item(number, pair.language, pair.split, pair.row, tuple(text_hash(restored(c)) for c in cells[number]))
                for number, pair in enumerate(drawn, start=1)
            ),
        )
        _write(folder, key, kind, cells, annotators)
    return key


def read_key(folder: Path) -> Key:
    """Read the key of a folder that `make_audit` wrote; InputError if it is missing or damaged."""
    path = folder / KEY
    if not path.is_file():
        raise InputError(f"{folder} has no {KEY}; expected a folder that `mrs data audit make` wrote.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT or not content.get("files"):
            raise ValueError(f"no format {FORMAT!r}, or no files")
        return TypeAdapter(Key).validate_python(content)
    except ValueError as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(
            f"{path}: not a key of `mrs data audit make` ({problem}); restore the original file."
        ) from None


def _write(folder: Path, key: Key, kind: Kind, cells: dict[int, list[str]], annotators: int) -> None:
    (folder / SHEETS).mkdir()
    (folder / PAGES).mkdir()
    (folder / INSTRUCTIONS).write_text(instructions(kind, key.languages), encoding="utf-8")
    for annotator in range(1, annotators + 1):
        shuffled = np.random.default_rng([key.seed, annotator]).permutation(len(key.items)).tolist()
        items = sorted((key.items[place] for place in shuffled), key=lambda item: key.languages.index(item.language))
        sheet, name = key.sheet(annotator), f"annotator-{annotator}"
        empty = [""] * (len(kind.questions) + 1)
        rows = ([item.item, item.language, *cells[item.item], *empty, sheet] for item in items)
        path = folder / SHEETS / f"{name}.csv"
        path.write_bytes(sheet_bytes(kind.columns, rows))
        key.files[path.name] = file_sha256(path)
        shown = [(item.item, item.language, *cells[item.item]) for item in items]
        page = audit_page(kind, key.data["title"], sheet, path.name, shown)
        (folder / PAGES / f"{name}.html").write_text(page, encoding="utf-8", newline="\n")
    content = json.dumps({"format": FORMAT, **asdict(key)}, indent=1, ensure_ascii=False)
    (folder / KEY).write_text(content + "\n", encoding="utf-8")


def _cells(pair: Drawn) -> list[str]:
    texts = (pair.message, pair.reply)
    return [escaped(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + CUT) for text in texts]


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def audit_page(
    kind: Kind, title: str, sheet: str, file: str, rows: Sequence[tuple[Any, ...]], review: dict[str, Any] | None = None
) -> str:
    """The page; equal arguments give equal texts.

    It needs no network: its content security policy lets it load nothing and run only its own script. It contains the
    cells of the sheet unchanged, so that the sheet that it makes is the one that a spreadsheet program would fill in.

    Args:
        file: the name under which the sheet is downloaded.
        rows: item, language, message and reply, in the order of the sheet and as its cells.
        review: for a page that posts its answers: `judged` (by item) and `sides` (the text that an item is about).
    """
    names = ("item", "language", *TEXTS)
    data = {
        "sheet": sheet,
        "file": file,
        "columns": kind.columns,
        "answers": kind.answers,
        "questions": [asdict(question) for question in kind.questions],
        "languages": {code: language_name(code) for code in dict.fromkeys(row[1] for row in rows)},
        "risky": RISKY,
        "valueWords": VALUE_WORDS,
        "items": [dict(zip(names, row, strict=True)) for row in rows],
        "review": review,
    }
    style, script = _part("page.css"), _part("page.js")
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'"
    heading, policy = ("Review", f"{policy}; connect-src 'self'") if review else ("Data audit", policy)
    about = visible(f"{title}, {sheet.rpartition(', ')[2]}")
    shown = {"policy": policy, "heading": heading, "title": f"{heading}: {about}", "about": about, "sheet": sheet}
    filled = {name: escape(text) for name, text in shown.items()}
    escapes = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}  # no text ends the script element
    filled |= {"style": style, "data": json.dumps(data).translate(escapes), "script": script}
    first, *rest = _part("page.html").split("{{")
    parts = (part.partition("}}") for part in rest)
    return first + "".join(filled[name] + text for name, _, text in parts)


def _part(name: str) -> str:
    return resources.files("mrs_datasets.audit").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"
