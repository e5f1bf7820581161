"""The user's own message-reply pairs: one file, named by its language, or a folder of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.prepared.schema import MT_PREFIX
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pair_checks import PairOptions, checked_pairs
from mrs_datasets.readers.pairs.pair_files import Broken, format_of, read_rows, stem_of
from mrs_datasets.readers.pairs.pairs import chunked, split_pairs
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import require_any_language


def read_pair_files(
    source: Path,
    report: Report,
    options: PairOptions | None = None,
    min_reply_count: int = 1,
    max_responses: int = MAX_RESPONSES,
) -> Chunks:
    """Read a file of pairs, or a folder of them: `LANG.tsv`, `LANG.csv`, `LANG.jsonl`, also `.gz` and `.xz`;
    `mt-LANG.*` is for machine-translated training pairs. LANG is any code (see
    `mrs_suggest.common.text.languages.find_language`).

    Raises:
        InputError: no such file, a name that is not a language, two files for one language, or a broken line.
    """
    options = options or PairOptions()
    paths = [source] if source.is_file() else [path for path in sorted(source.iterdir()) if is_pair_file(path)]
    if not paths:
        raise InputError(
            f"{source}: neither the official layout (train/, valid/, test/) nor files of pairs (LANG.tsv, LANG.csv or "
            "LANG.jsonl, with LANG a code such as es or pl) nor a folder that `datasets` can load was found."
        )
    files = {path: _config(path, options.language if source.is_file() else None) for path in paths}
    names = Counter(files.values())
    for path, config in files.items():
        if names[config] > 1:
            raise InputError(f"{path}: there is more than one file for {config}; keep one of them.")
    for path, config in files.items():
        translated = config.startswith(MT_PREFIX)
        part = f"{config}/train" if translated else config
        rows = read_rows(path, options.columns, Broken(report, part, str(path), path.name, options.on_error))
        pairs = checked_pairs(rows, config.removeprefix(MT_PREFIX), part, report, options)
        if translated:
            yield from chunked(config, "train", pairs)
        else:
            yield from split_pairs(config, pairs, report, min_reply_count, max_responses)


def is_pair_file(path: Path) -> bool:
    """Whether a file name is that of a file of pairs."""
    return path.is_file() and format_of(path) is not None and not path.name.startswith(".")


def _config(path: Path, language: str | None) -> str:
    """The config of a file: `es` or `mt-es`, from its name or the given language."""
    if language:
        return require_any_language(language, "--language").code
    stem = stem_of(path)
    require_any_language(stem.removeprefix(MT_PREFIX), str(path))
    return stem
