"""Views of XCOPA's tables: adversarial variants, sentence pairs, and translate-test joined with its original."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.xcopa import QUESTION
from mrs_suggest.common.errors import InputError

# Ponti et al. 2020, section 2; section 4.1, note 8, shows one as model input. The paper gives them only in English.
PROMPTS = {"cause": "What was the cause?", "effect": "What happened as a result?"}
TEXTS = ("premise", "choice1", "choice2")
TRANSLATION = "translation-"  # prefix of the configs of translations
PAIRS, JOINED = "pairs", "joined"  # the views that are more than columns left out
SHOWN = 3  # how many values an error names


def sentence_pairs(rows: pa.Table, question: str = QUESTION) -> pa.Table:
    """The input of a sentence-pair encoder (section 4.1): two rows per example, for choice1 and choice2.

    Args:
        question: the column that gives the prompt: `question`, as in the published files, or `question_corrected`.

    Returns:
        idx (int64), choice (int64, 0 or 1), text (the premise, a space and the prompt; only one of them if the other
        column is hidden), text_pair (the choice), plausible (int64, 1 if the choice is the label).

    Raises:
        InputError: a column is missing or has a gap, a question has no prompt, or a label is not 0 or 1.
    """
    if question != QUESTION and QUESTION in rows.column_names and question not in rows.column_names:
        raise InputError(f"sentence pairs: the table has no column {question}; prepare the data set again.")
    context = [name for name in ("premise", question) if name in rows.column_names]
    if not context:
        raise InputError("sentence pairs: the table has neither premise nor question; expected one of them at least.")
    rows = _selected(rows, (*context, "choice1", "choice2", "label", "idx"))
    for name in rows.column_names:
        if rows[name].null_count:
            raise InputError(f"sentence pairs: {name} has {rows[name].null_count} gaps; expected a value in every row.")
    known: dict[str, list[Any]] = {"label": [0, 1], **({question: list(PROMPTS)} if question in context else {})}
    for name, values in known.items():
        unknown = rows.filter(pc.invert(pc.is_in(rows[name], pa.array(values, rows[name].type))))
        if len(unknown):
            raise InputError(
                f"sentence pairs: the {name} of idx {_first(unknown['idx'])} is {unknown[name][0].as_py()!r}; "
                f"expected {' or '.join(map(str, values))}."
            )
    parts = [rows["premise"].cast(pa.string())] if "premise" in context else []
    if question in context:
        kind = pc.index_in(rows[question].cast(pa.string()), pa.array(list(PROMPTS)))
        parts.append(pc.take(pa.array(list(PROMPTS.values())), kind))
    text = pc.binary_join_element_wise(*parts, " ")
    sides = []
    for side in (0, 1):
        idx, choice = rows["idx"].cast(pa.int64()), pa.array(np.full(len(rows), side, np.int64))
        pair, plausible = rows[f"choice{side + 1}"].cast(pa.string()), pc.equal(rows["label"], side).cast(pa.int64())
        columns = {"idx": idx, "choice": choice, "text": text, "text_pair": pair, "plausible": plausible}
        sides.append(pa.table(columns))
    return pa.concat_tables(sides).take(pa.array(np.arange(2 * len(rows)).reshape(2, -1).T.ravel()))


def join_translations(original: pa.Table, translated: pa.Table) -> pa.Table:
    """Translate-test joined with its original by idx.

    Returns:
        The original's rows and columns unchanged, then premise_translated, choice1_translated, choice2_translated.

    Raises:
        InputError: a column is missing, an idx is repeated, the two do not have the same idx, or a label or question
            differs (XCOPA's translations repeat those of the original, including wrong questions).
    """
    for name, rows in (("original", original), ("translations", translated)):
        missing = [column for column in (*TEXTS, "question", "label", "idx") if column not in rows.column_names]
        if missing:
            raise InputError(f"{name}: the table has no column {missing[0]}; expected XCOPA's columns.")
        counts = pc.value_counts(rows["idx"])
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(twice):
            raise InputError(f"{name}: idx {_first(twice)} occurs more than once; expected every idx once.")
    ours, theirs = original["idx"].cast(pa.int64()), translated["idx"].cast(pa.int64())
    for name, have, other in (("translations", theirs, ours), ("original", ours, theirs)):
        lacking = other.filter(pc.invert(pc.is_in(other, have)))
        if len(lacking):
            raise InputError(f"{name}: idx {_first(lacking)} is missing; expected the same examples in both tables.")
    matched = translated.take(pc.index_in(ours, theirs))
    for name in ("label", "question"):
        differ = ours.filter(pc.not_equal(original[name], matched[name]))
        if len(differ):
            raise InputError(
                f"translations: the {name} of idx {_first(differ)} is not the original's; "
                "expected translations of the same language and split."
            )
    for name in TEXTS:
        original = original.append_column(f"{name}_translated", matched[name])
    return original


def with_views(chunks: Chunks, views: Sequence[str], record: DatasetRecord) -> Chunks:
    """The chunks of XCOPA, or of a data set like it, unchanged, then their views as separate configs.

    Args:
        chunks: whole splits (XCOPA is small).
        views: of `nop`, `noq`, `nopq` (the columns of these kinds in the record), `pairs` and `joined`.

    Raises:
        InputError: nothing to join: no language has both its own examples and their translations.
    """
    read: dict[tuple[str, str], pa.Table] = {}
    for config, split, table in chunks:
        read[config, split] = table
        yield config, split, table
    own = {key: table for key, table in read.items() if not key[0].startswith(TRANSLATION)}
    for view in dict.fromkeys(views):
        if view != JOINED:
            for (config, split), table in own.items():
                shown = sentence_pairs(table) if view == PAIRS else _selected(table, record.kinds[view].columns)
                yield f"{view}-{config}", split, shown
            continue
        both = [key for key in own if (TRANSLATION + key[0], key[1]) in read]
        if not both:
            raise InputError(f"--views {view}: the source has no language with its translations (data and data-gmt).")
        for config, split in both:
            try:
                joined = join_translations(own[config, split], read[TRANSLATION + config, split])
            except InputError as error:
                raise InputError(f"--views {view}, {config}/{split}: {error}") from None
            yield f"{view}-{config}", split, joined


def _selected(rows: pa.Table, names: tuple[str, ...]) -> pa.Table:
    missing = [name for name in names if name not in rows.column_names]
    if missing:
        raise InputError(f"the table has no column {missing[0]}; expected {', '.join(names)}.")
    return rows.select(names)


def _first(numbers: pa.Array | pa.ChunkedArray) -> str:
    """The lowest idx, and the number of others."""
    values = sorted(numbers.to_pylist())
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(str(value) for value in values[:SHOWN]) + more
