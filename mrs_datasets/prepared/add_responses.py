"""Add response sets to a prepared folder: counted from its training replies, or read from a file."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from mrs_datasets.check.findings import batches
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.report import REPORT, PreparedReport
from mrs_datasets.prepared.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT, count_responses, response_table
from mrs_datasets.prepared.schema import MRS, SPLITS, responses_config
from mrs_datasets.prepared.soundness import require_values, row_of
from mrs_datasets.prepared.writer import rewrite
from mrs_datasets.readers.official import RESPONSE_FILE, RESPONSE_FOLDER, read_responses
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import is_blank

PART_ROWS = 2_000_000  # of the replies that are counted together; the rest is in a file next to the output


def add_responses(
    folder: Path,
    languages: Sequence[str] = (),
    *,
    file: Path | None = None,
    out: Path | None = None,
    min_reply_count: int = PAPER_MIN_REPLY_COUNT,
    max_responses: int = MAX_RESPONSES,
    replace: bool = False,
    overwrite: bool = False,
) -> PreparedReport:
    """Write response sets into a prepared folder of MRS; return its report.

    The set has the replies that the training split gives most often (Zhang et al. 2021, section 2.1), or those of
    `file`, ranked by their counts, ties in the order of the text; `log_prob` is that of
    `mrs_datasets.prepared.responses.response_table`.

    Args:
        languages: languages to make sets for; empty for all with pairs and no set.
        file: the set of one language. Each line is a reply (counted in the training split; a reply that does not occur
            there gets the probability of an unseen one), or reply, tab, count; or the official
            `response_lm_cluster.txt`, which is copied unchanged.
        out: the folder to write; None replaces `folder`.
        min_reply_count: rarer replies are left out, except from a file without counts.

    Raises:
        InputError: not a prepared folder of MRS, nothing to do, a set exists already, an invalid file, or no reply is
            frequent enough. `folder` is unchanged then.
    """
    if out is not None and (out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents):
        raise InputError(f"--out {out}: is in {folder}; choose another folder, or leave it out to add to the folder.")
    data = open_prepared(str(folder))
    if not folder.is_dir() or data.data_set() != MRS.name or not data.report().get("configs"):
        raise InputError(f"{folder}: not a prepared folder of {MRS.name}; make one with `mrs data prepare mrs`.")
    chosen = _chosen(data, languages, file, replace)
    notes: dict[str, str] = {}

    def tables(code: str) -> list[pa.Table]:
        table, notes[code] = _response_set(data, code, file, new, min_reply_count, max_responses)
        return [table]

    def finish(report: PreparedReport) -> None:
        absent = tuple(f"{code}: no {RESPONSE_FOLDER}/" for code in chosen)  # the notes of a source without sets
        kept = [note for note in report.get("notes", []) if not note.startswith(absent)]
        report["notes"] = [*kept, *notes.values()]

    with atomic_folder(out or folder, overwrite or out is None, REPORT) as new:
        changed = {(responses_config(code), "train"): lambda code=code: tables(code) for code in chosen}
        return rewrite(folder, new, data.report(), MRS, changed, finish)


def _chosen(data: PreparedData, languages: Sequence[str], file: Path | None, replace: bool) -> list[str]:
    """The languages to make sets for."""
    have, configs = data.languages(), data.configs()
    for code in languages:
        if code not in have:
            raise InputError(f"--language {code}: {data.name} has pairs of {' '.join(have)}.")
        if responses_config(code) in configs and not replace:
            raise InputError(
                f"{data.name}: {code} has a response set already ({responses_config(code)}); pass --replace to make it "
                "again."
            )
    chosen = list(dict.fromkeys(languages)) or [
        code for code in have if replace or responses_config(code) not in configs
    ]
    if not chosen:
        raise InputError(f"{data.name}: every language has a response set; pass --replace to replace them.")
    if file and len(chosen) != 1:
        raise InputError(f"--file {file}: holds the set of one language; name it with --language ({' '.join(chosen)}).")
    return chosen


def _response_set(
    data: PreparedData, code: str, file: Path | None, folder: Path, min_reply_count: int, max_responses: int
) -> tuple[pa.Table, str]:
    """The response set of a language, and a note for the report."""
    from mrs_datasets.builders.pipeline.stages import write_batches
    from mrs_datasets.builders.reddit.write import COUNTED, best_replies, counted_runs, frequent_replies

    note = f"{code}: the response set comes from the file {file.name}, by `mrs data responses`" if file else ""
    if file and file.name.removesuffix(".gz").removesuffix(".xz") == RESPONSE_FILE:
        return read_responses(file, code)[2], f"{note}."
    given = _read_file(file) if file else {}
    if file and None not in given.values():
        table = count_responses(Counter(given), min_reply_count, max_responses)
        if not table.num_rows:
            raise InputError(f"{file}: no reply occurs {min_reply_count} times; lower --min-reply-count.")
        return table, f"{note}, with its counts."
    seen = dict.fromkeys(given, 0)
    pairs, parts = 0, 1 + data.report()["configs"][code][SPLITS[0]]["rows"] // PART_ROWS

    def replies() -> Iterator[pa.Array]:
        nonlocal pairs
        for batch in _training_replies(data, code):
            pairs += len(batch)
            yield batch
            for reply in batch.to_pylist() if seen else ():
                if reply in seen:
                    seen[reply] += 1

    with tempfile.TemporaryDirectory(dir=folder) as place:
        runs = Path(place) / "replies.arrow"
        write_batches(runs, COUNTED, counted_runs(replies(), parts))
        found = [frequent_replies([runs], part, parts, min_reply_count, max_responses) for part in range(parts)]
    distinct = sum(number for _, number in found)
    if file:
        unseen = sum(not count for count in seen.values())
        ranked = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:max_responses]
        table = response_table(ranked, pairs, distinct + unseen)
        return table, f"{note}, counted in the training replies."
    best = best_replies([frequent for frequent, _ in found], max_responses)
    if not best:
        raise InputError(
            f"{data.name}: no training reply of {code} occurs {min_reply_count} times; lower --min-reply-count "
            f"(the paper uses {PAPER_MIN_REPLY_COUNT}, in millions of pairs), or pass a set with --file."
        )
    table = response_table(best, pairs, distinct)
    return table, (
        f"{code}: the response set was counted from the training replies by `mrs data responses` (at least "
        f"{min_reply_count} times, at most {max_responses:,} replies)."
    )


def _read_file(file: Path) -> dict[str, int | None]:
    """reply -> its count; None for all if the file has no counts."""
    found: dict[str, int | None] = {}
    with_counts: bool | None = None
    for number, line in read_lines(file):
        reply, tab, rest = line.partition("\t")
        reply = reply.strip()
        if with_counts is None:
            with_counts = bool(tab)
        problem = ""
        if is_blank(reply) or "\0" in line:
            problem = "an empty reply, or one with a NUL character"
        elif bool(tab) != with_counts or (tab and not (rest.strip().isascii() and rest.strip().isdigit())):
            problem = f"expected a reply alone on every line, or reply, tab, count on every line, found {line[:60]!r}"
        elif reply in found:
            problem = f"the reply {reply[:60]!r} is in an earlier line already"
        if problem:
            raise InputError(f"{file}, line {number}: {problem}.")
        found[reply] = int(rest) if tab else None
    if not found:
        raise InputError(f"{file}: the file is empty; expected a reply per line.")
    return found


def _training_replies(data: PreparedData, code: str) -> Iterator[pa.Array]:
    for path in data.files(code, SPLITS[0]):
        for start, table in batches([path], ["reply"]):
            require_values(table, ["reply"], partial(row_of, path, start))
            yield from table["reply"].chunks
