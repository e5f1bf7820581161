"""Many translations of each prompt, by one or several runs, in a file of hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.staple.hypotheses import Hypotheses, schema_of, write_hypotheses
from mrs_suggest.staple.members import Run, written_language
from mrs_suggest.staple.parts import Part, make_parts, parts_of, run_parts
from mrs_suggest.staple.prompts import Prompts
from mrs_suggest.staple.search import Found, Search, Translate, member_facts, require_able, translator


def decode(
    runs: Sequence[Run], prompts: Prompts, language: str, search: Search, out: Path, overwrite: bool = False
) -> Hypotheses:
    """Translate prompts with each run, and write the hypotheses; a killed call goes on where it was.

    Equal runs, prompts and options give the same bytes.

    Raises:
        InputError: the file exists, the options do not fit a run, or parts of another call lie beside it.
    """
    require_new_file(out, overwrite)
    require_able(runs, search)
    written = written_language(runs, language)
    features = search.features
    members = {run.name: member_facts(run, search) for run in runs}
    identity = {
        "language": language,
        "data": dict(prompts.data),
        "prompts": len(prompts.texts),
        "search": search.facts(),
        "members": members,
    }
    parts = make_parts(len(runs), {key: len(text) for key, text in prompts.texts.items()})
    schema = schema_of(features)
    loaded: dict[int, Translate] = {}

    def make(part: Part) -> pa.Table:
        if part.member not in loaded:
            loaded.clear()  # the run before is not needed any more
            loaded[part.member] = translator(runs[part.member], search, language)
        found = loaded[part.member]([prompts.texts[key] for key in part.prompts])
        return table_of(part.prompts, prompts, runs[part.member].name, found, schema)

    with parts_of(out, identity, overwrite) as folder:
        table = run_parts(folder, parts, schema, make, "decode")
        table = in_order(table, list(prompts.texts), list(members))
        steps = (search.signature(),)
        made = Hypotheses(table, written, prompts.texts, prompts.data, members, features, steps)
        write_hypotheses(made, out, overwrite)
    return made


def table_of(
    ids: Sequence[str], prompts: Prompts, member: str, found: Sequence[Sequence[Found]], schema: pa.Schema
) -> pa.Table:
    """The rows of a member's translations of some prompts."""
    rows: list[tuple[Any, ...]] = []
    for key, translations in zip(ids, found, strict=True):
        for rank, (text, features) in enumerate(translations, 1):
            rows.append((key, prompts.texts[key], member, rank, *text, *features))
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [() for _ in schema.names]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def in_order(table: pa.Table, ids: Sequence[str], members: Sequence[str]) -> pa.Table:
    """The rows prompt by prompt, member by member, by rank."""
    places = [{name: number for number, name in enumerate(names)} for names in (members, ids)]
    keys = [
        [place[name] for name in table[column].to_pylist()]
        for place, column in zip(places, ("member", "id"), strict=True)
    ]
    return table.take(np.lexsort((table["rank"].to_numpy(), *keys))).combine_chunks()
