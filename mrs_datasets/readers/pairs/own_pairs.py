"""The user's own message-reply pairs: a file named by its language, a folder of them, or a data set of the library
`datasets` (a folder that it saved or can load, or a hub id); and checks of their rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mrs_datasets.prepared.prepared import bars_for_long_work
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.prepared.schema import MT_PREFIX
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pair_files import STOP, Broken, Columns, Row, format_of, read_rows, row_texts, stem_of
from mrs_datasets.readers.pairs.pairs import Pair, chunked, placed_pairs, split_of, split_pairs
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.text.language_id import MIN_LANGUAGE_SCORE, Identify, is_other_language
from mrs_suggest.common.text.languages import find_language, require_any_language
from mrs_suggest.common.text.scripts import MIN_LETTERS, in_other_script, knows_script
from mrs_suggest.common.text.text import is_blank

if TYPE_CHECKING:
    from datasets import Dataset

# The official training script (train.sh) cuts messages off at 70 tokens and replies at 30. A subword tokenizer makes at
# least one token per word, and tokens of more than ten characters are rare: longer texts are not read completely.
TOKENS = {"message": 70, "reply": 30}
CHARACTERS_A_TOKEN = 10
BATCH = 1024
SAVED = ("dataset_dict.json", "state.json")  # written by save_to_disk
LOADABLE = (".parquet", ".arrow", ".jsonl", ".json", ".csv", ".tsv")
# Usual names of splits on the hub -> ours.
SPLIT_NAMES = {"train": "train", **dict.fromkeys(["validation", "valid", "val", "dev"], "validation"), "test": "test"}
LANGUAGE = "language"  # the column of a data set in memory with the code of each row's language
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class PairOptions:
    """How the user's own pairs are read.

    Attributes:
        on_error: `stop` at the first row that breaks the layout, or `skip` such rows and count them.
        language: of a file or data set whose name does not give it.
        identify, known_languages: identifies the language of texts, and the languages it knows (see
            `mrs_datasets.check.check.check`); None leaves the languages unchecked.
    """

    columns: Columns = field(default_factory=Columns)
    on_error: str = STOP
    language: str | None = None
    identify: Identify | None = None
    known_languages: frozenset[str] = frozenset()


def read_pair_files(
    source: Path, report: Report, options: PairOptions, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Read a file of pairs, or a folder of them: `LANG.tsv`, `LANG.csv`, `LANG.jsonl`, also `.gz` and `.xz`;
    `mt-LANG.*` is for machine-translated training pairs. LANG is any code (see
    `mrs_suggest.common.text.languages.find_language`).
    """
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


def checked_pairs(
    rows: Iterable[Row], language: str, part: str, report: Report, options: PairOptions
) -> Iterator[tuple[str, str]]:
    """Yield the rows' (message, reply), stripped of spaces at the ends, and record findings under `part`.

    Dropped: rows whose message or reply is blank (see `is_blank`). Kept and counted: texts that are longer than models
    read, rows without a letter of the language's script, rows that `options.identify` identifies as another language.
    """
    described = find_language(language)
    script = described.script if described and knows_script(described.script) else None
    identify = options.identify if language.partition("-")[0] in options.known_languages else None
    for batch in in_batches(rows, BATCH):
        usable = []
        for row in batch:
            if is_blank(row.message) or is_blank(row.reply):
                report.drop(part, f"empty {'message' if is_blank(row.message) else 'reply'}", where=row.where)
            else:
                usable.append(row)
                for finding in _unusual(row, language, script):
                    report.find(part, finding, row.where)
        if identify:
            answers = identify([f"{row.message} {row.reply}" for row in usable])
            for row, answer in zip(usable, answers, strict=True):
                if is_other_language(answer, language):
                    rule = f"in another language than {language} (fastText, above {MIN_LANGUAGE_SCORE}), kept"
                    report.find(part, rule, row.where)
        for row in usable:
            yield row.message.strip(), row.reply.strip()


def _unusual(row: Row, language: str, script: str | None) -> Iterator[str]:
    if row.message != row.message.strip() or row.reply != row.reply.strip():
        yield "spaces at the ends, removed"
    for side, text in (("message", row.message), ("reply", row.reply)):
        most, characters = TOKENS[side], TOKENS[side] * CHARACTERS_A_TOKEN
        if len(text) > 2 * most and (len(text) > characters or len(text.split()) > most):
            yield (
                f"{side} of more than {most} words or {characters} characters (the official script cuts off at {most} "
                "tokens), kept"
            )
    if script and in_other_script(f"{row.message} {row.reply}", script):
        yield f"{MIN_LETTERS} letters or more, and none of {language}'s script ({script}), kept"


def is_saved_set(folder: Path) -> bool:
    """Whether `datasets` saved the folder, or it has a folder per split with files that `datasets` loads (the official
    archive has folders of languages there)."""
    if any((folder / name).is_file() for name in SAVED):
        return True
    splits = [folder / name for name in SPLIT_NAMES if (folder / name).is_dir()]
    return any(path.suffix in LOADABLE and path.is_file() for split in splits for path in split.iterdir())


def is_set_folder(folder: Path) -> bool:
    """Whether a folder is one that `datasets` saved or can load, rather than one of `LANG.*` files."""
    if is_saved_set(folder):
        return True
    named = [path for path in folder.iterdir() if path.is_file() and format_of(path)]
    if named:
        stems = [re.split(r"[-.]", stem_of(path))[0] for path in named]
        return all(stem in SPLIT_NAMES for stem in stems)
    return any(path.suffix in LOADABLE for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern))


def read_set(source: str, report: Report, options: PairOptions, min_reply_count: int, max_responses: int) -> Chunks:
    """Read the pairs of a data set: of each config named by a language, or of `options.language`.

    The data set's own splits stay; missing ones are filled with rows of its train split, by the message's hash.
    """
    for language, splits in _load(source, options, report).items():
        rows = _placed(source, language, splits, report, options)
        yield from placed_pairs(language, rows, report, min_reply_count, max_responses)


def read_loaded(splits: Mapping[str, Dataset], report: Report, options: PairOptions) -> Chunks:
    """Read the pairs of a data set that is in memory: split -> rows. As `read_set`; `options.language` is that of rows
    without a `language` column.

    Raises:
        InputError: a column is missing, a code is not that of a language, or no split is usable.
    """
    source = "the data set"
    by_language: dict[str, dict[str, Dataset]] = {}
    for name, rows in splits.items():
        if LANGUAGE in rows.column_names:
            codes = pa.array(rows[LANGUAGE][:], pa.string())
            for code in dict.fromkeys(codes.to_pylist()):
                known = require_any_language(str(code), f"{source}, column {LANGUAGE!r}").code
                chosen = rows.select(np.flatnonzero(np.asarray(codes) == code))
                by_language.setdefault(known, {})[name] = chosen
        else:
            by_language.setdefault(_language(source, options), {})[name] = rows
    for language, own in by_language.items():
        placed = _placed(source, language, own, report, options)
        yield from placed_pairs(language, placed, report, 1, MAX_RESPONSES)


def _placed(
    source: str, language: str, splits: dict[str, Dataset], report: Report, options: PairOptions
) -> Iterator[tuple[str, Pair]]:
    """(our split, pair) of all rows."""
    kept = {name: SPLIT_NAMES[name] for name in splits if name in SPLIT_NAMES}
    if not kept:
        raise InputError(
            f"{source}: expected a split called train, validation or test, found {', '.join(splits)}; rename one."
        )
    left_out = [name for name in splits if name not in kept]
    if left_out:
        report.notes.append(f"{language}: the splits {', '.join(left_out)} of the source were left out.")
    own = set(kept.values()) if "train" in kept.values() else set()
    if len(own) > 1:
        report.notes.append(f"{language}: the source's own splits stay ({', '.join(sorted(own))}).")
    for name, split in kept.items():
        broken = Broken(report, language, f"{source}, {name}", name, options.on_error)
        rows = _rows(splits[name], options, broken)
        for message, reply in checked_pairs(rows, language, language, report, options):
            side = split_of(message)
            if len(own) > 1:
                side = split if split != "train" or side in own else side
            yield side, (message, reply)


def _rows(data: Dataset, options: PairOptions, broken: Broken) -> Iterator[Row]:
    columns = options.columns
    missing = [name for name in columns if name not in data.column_names]
    if missing:
        raise InputError(
            f"{broken.source}: expected the column {missing[0]!r}, found {', '.join(data.column_names)}; name the "
            "columns with --message-column and --reply-column."
        )
    batches = data.select_columns([columns.message, columns.reply]).iter(batch_size=BATCH)
    pairs = chain.from_iterable(zip(*(batch[name] for name in columns), strict=True) for batch in batches)
    for number, pair in enumerate(pairs):
        texts = row_texts(dict(zip(columns, pair, strict=True)), columns, broken, number, "row")
        if texts:
            yield Row(broken.place(number), *texts)


def _load(source: str, options: PairOptions, report: Report) -> dict[str, dict[str, Dataset]]:
    """Language -> split -> rows."""
    from datasets import DatasetDict, get_dataset_config_names, load_dataset, load_from_disk

    if any((Path(source) / name).is_file() for name in SAVED):
        saved = _asked(source, lambda: load_from_disk(source))
        language = _language(source, options)
        return {language: dict(saved) if isinstance(saved, DatasetDict) else {"train": saved}}
    if not Path(source).exists():
        from mrs_suggest.common.hub.hub import commit_of

        report.settings["revision"] = commit_of("dataset", source)
    configs: list[str] = _asked(source, lambda: list(get_dataset_config_names(source)))
    chosen: dict[str, str] = {code: code for code in configs if find_language(code)}
    if options.language or not chosen:
        language = _language(source, options, configs)
        if language not in configs and len(configs) > 1:
            raise InputError(f"{source}: the data set lacks the config {language}; it has {', '.join(configs)}.")
        chosen = {language: language if language in configs else configs[0]}
    left_out = [config for config in configs if config not in chosen.values()]
    if left_out:
        report.notes.append(f"The configs {', '.join(left_out)} of the source were left out.")
    return {
        code: dict(_asked(source, lambda config=config: load_dataset(source, config)))  # type: ignore[misc]
        for code, config in chosen.items()
    }


def _language(source: str, options: PairOptions, configs: Sequence[str] = ()) -> str:
    if options.language is None:
        listed = f" (its configs are {', '.join(configs)})" if configs else ""
        raise InputError(f"{source}: the data set does not give its language{listed}; name it with --language CODE.")
    return require_any_language(options.language, "--language").code


def _asked(source: str, call: Callable[[], Any]) -> Any:
    from datasets.exceptions import DatasetGenerationError

    try:
        with bars_for_long_work(long=not Path(source).exists()):
            return call()
    except (OSError, ValueError, ConnectionError, RuntimeError, DatasetGenerationError, pa.ArrowException) as error:
        reason = first_line(error.__cause__ or error)
        raise InputError(f"{source}: `datasets` cannot load it ({reason}); pass a folder or a hub id.") from None
