"""The work of one shard of a corpus: a file of texts, or a language's duplicates or model."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mrs_datasets.builders.pipeline.stages import (
    Advance,
    ShardCounts,
    read_batches,
    read_codes,
    whole_file,
    write_array,
    write_batches,
)
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.plan import LOW_SCORE, UNKNOWN_LANGUAGE
from mrs_datasets.builders.reddit.repeated import parts_of, repeated
from mrs_datasets.corpus.lines import LineRules, clean_lines, line_keys
from mrs_datasets.corpus.ngrams import CharacterModel
from mrs_datasets.corpus.settings import IdentifierFile
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.io.storage import Location, local_file
from mrs_suggest.common.text.language_id import UNDETERMINED

BATCH_LINES = 1 << 14
BATCH_CHARACTERS = 1 << 24  # of a batch with long lines: 64 MB
DUPLICATE = "duplicate"
OTHER_LANGUAGE = "other language"
CLEANED = pa.schema([("text", pa.string()), ("key", pa.uint64())])
SCORED = pa.schema([("text", pa.string()), ("perplexity", pa.float64())])
NO_PERPLEXITY = -1.0  # of a language without a model
REFERENCE_CHARACTERS = 10_000_000  # ours: 1 GB of memory


def clean_shard(path: Location, target: Location, rules: LineRules, advance: Advance) -> ShardCounts:
    """Normalise the lines of a file, and write those that stay, with their keys."""
    dropped: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    lines = kept = 0
    digest = hashlib.sha256()

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal lines, kept
        for batch in _batches(path, advance, digest):
            lines += len(batch)
            texts = clean_lines(batch, rules, dropped, repairs)
            kept += len(texts)
            columns = [pa.array(texts, pa.string()), pa.array(line_keys(texts), pa.uint64())]
            yield pa.RecordBatch.from_arrays(columns, schema=CLEANED)

    write_batches(target, CLEANED, batches())
    counts = {reason: count for reason, count in dropped.items() if count}
    return {"sha256": digest.hexdigest(), "lines": lines, "dropped": counts, "repairs": dict(repairs), "kept": kept}


def _batches(path: Location, advance: Advance = lambda _: None, digest: Any = None) -> Iterator[list[str]]:
    """The lines of a file, as many at a time as memory should hold."""
    held: list[str] = []
    characters = 0
    for _, line in read_lines(path, tolerant=True, advance=advance, digest=digest):
        held.append(line)
        characters += len(line)
        if len(held) >= BATCH_LINES or characters >= BATCH_CHARACTERS:
            yield held
            held, characters = [], 0
    if held:
        yield held


def duplicates_shard(cleaned: Sequence[Location], target: Location, lines: int, advance: Advance) -> dict[str, int]:
    """Write which lines of a language's files, one after the other, repeat an earlier one: (lines,) bytes, 1 if so.

    Memory: 1 byte per line, and what `repeated.PART_PAIRS` take. Temporary disk space: 20 bytes per line.
    """
    codes = np.zeros(lines, dtype=np.uint8)
    with local_file(target, "keys") as path:
        if lines:
            with writing(path), path.open("wb") as file:  # written, not mapped, so that a full disk raises an error
                for source in cleaned:
                    for batch in read_batches(source, ["key"]):
                        file.write(batch["key"].to_numpy())
            mapped = np.array_split(np.memmap(path, np.uint64, "r"), len(parts_of(lines)))
            with writing(target):
                for rows, opens in repeated(mapped, [], parts_of(lines), path.parent):
                    codes[rows[~opens]] = 1
            del mapped
    write_array(target, codes)
    advance(lines)
    return {DUPLICATE: int(codes.sum())}


def model_shard(
    references: Sequence[Location], target: Location, rules: LineRules, language: str, advance: Advance
) -> dict[str, Any]:
    """Train the model of a language, and write it; InputError if no line of its references stays."""
    texts, step = reference_lines(references, rules, REFERENCE_CHARACTERS, advance)
    if not texts:
        raise InputError(f"--reference {language}={references[0]}: no line passes; pass another text.")
    model = CharacterModel.train(texts)
    model.facts["every"] = step
    with whole_file(target) as temporary:
        model.save(temporary)
    return dict(model.facts)


def reference_lines(
    paths: Sequence[Location], rules: LineRules, most: int, advance: Advance = lambda _: None
) -> tuple[list[str], int]:
    """The lines of reference texts that stay, evenly thinned out to at most `most` characters and one line.

    Returns:
        The lines 0, s, 2s ... of those that stay, and the step s, a power of two.
    """
    held: list[str] = []
    step, seen, characters = 1, 0, 0
    for path in paths:
        for batch in _batches(path, advance):
            for text in clean_lines(batch, rules, Counter()):
                if seen % step == 0:
                    held.append(text)
                    characters += len(text)
                seen += 1
                while characters > most and len(held) > 1:
                    held, step = held[::2], 2 * step
                    characters = sum(map(len, held))
    return held, step


def score_shard(
    cleaned: Location,
    codes: tuple[Location, int, int],
    target: Location,
    language: str,
    identifier: IdentifierFile | None,
    min_score: float,
    model: Path | None,
    advance: Advance,
) -> ShardCounts:
    """Drop the duplicates and the lines in another language, and write the others with their perplexities.

    Args:
        codes: the file of the language's duplicates, its number of lines, and which of them is this file's first.
        min_score: a language counts if its probability is above.
    """
    dropped: Counter[str] = Counter()
    others: Counter[str] = Counter()
    kept = 0
    path, lines, first = codes
    repeats = read_codes(path, lines)
    plain = language.partition("-")[0]

    def in_language(texts: list[str]) -> list[str]:
        if identifier is None:
            return texts
        found = []
        for text, (label, score) in zip(texts, identifier.open().identify(texts), strict=True):
            if label == UNDETERMINED:
                dropped[UNKNOWN_LANGUAGE] += 1
            elif score <= min_score:
                dropped[LOW_SCORE] += 1
            elif label != plain:
                dropped[OTHER_LANGUAGE] += 1
                others[label] += 1
            else:
                found.append(text)
        return found

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal kept
        done = first
        for batch in read_batches(cleaned, ["text"]):
            new = np.flatnonzero(repeats[done : done + batch.num_rows] == 0)
            dropped[DUPLICATE] += batch.num_rows - len(new)
            texts = in_language(batch["text"].take(pa.array(new)).to_pylist())
            kept += len(texts)
            found = np.full(len(texts), NO_PERPLEXITY) if model is None else _model(model).perplexities(texts)
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string()), pa.array(found)], schema=SCORED)
            done += batch.num_rows
            advance(batch.num_rows)

    write_batches(target, SCORED, batches())
    return {"dropped": {reason: n for reason, n in dropped.items() if n}, "languages": dict(others), "kept": kept}


_model = lru_cache(maxsize=1)(CharacterModel.load)  # once per process, not for every file
