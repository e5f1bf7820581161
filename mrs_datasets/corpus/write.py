"""The last stage of a corpus: each language's thirds by perplexity, the files of the lines that stay, and the card."""

import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_datasets.builders.pipeline.stages import read_batches
from mrs_datasets.builders.reddit.plan import LOW_SCORE, UNKNOWN_LANGUAGE
from mrs_datasets.corpus.lines import EMPTY, FEW_LETTERS, NOT_UTF8, TOO_LONG, TOO_SHORT
from mrs_datasets.corpus.settings import ALL, BUCKETS, HEAD, MIDDLE, TAIL
from mrs_datasets.corpus.shards import DUPLICATE, NO_PERPLEXITY, OTHER_LANGUAGE
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.report.cards import markdown_table, render_card

LEFT_OUT = "{} third left out"
REASONS = (  # in the order in which they apply
    NOT_UTF8, EMPTY, TOO_SHORT, TOO_LONG, FEW_LETTERS, DUPLICATE, UNKNOWN_LANGUAGE, LOW_SCORE, OTHER_LANGUAGE,
    *(LEFT_OUT.format(bucket) for bucket in BUCKETS),
)  # fmt: skip
HERE = "PATH"  # stands for the folder in the card
SHARD_LINES = 1_000_000  # ours: files of some 30 MB
QUANTILES = (0.05, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.9, 0.95)


def thirds(perplexities: NDArray[np.float64]) -> tuple[float, float]:
    """The highest perplexity of the head and of the middle, with a third of the n lines each (n of 1 or more).

    Equal perplexities are in one third, so that the parts may differ.

    >>> thirds(np.array([5.0, 1.0, 3.0]))
    (1.0, 3.0)
    """
    n = len(perplexities)
    places = [-(-n // 3) - 1, -(-2 * n // 3) - 1]
    found = np.partition(perplexities, places)
    return float(found[places[0]]), float(found[places[1]])


class _Shards:
    """Lines of one bucket, in files of at most `SHARD_LINES` lines; the bytes depend only on the lines."""

    def __init__(self, folder: Path, bucket: str) -> None:
        self._folder, self._bucket = folder, bucket
        self._open = ExitStack()
        self._file: io.TextIOWrapper | None = None
        self.files: list[dict[str, Any]] = []

    def write(self, text: str) -> None:
        if self._file is None or self.files[-1]["lines"] == SHARD_LINES:
            self._open.close()
            name = f"{self._bucket}-{len(self.files):05d}.txt.gz"
            raw = self._open.enter_context((self._folder / name).open("wb"))
            packed = gzip.GzipFile("", "wb", 6, raw, mtime=0)
            self._file = self._open.enter_context(io.TextIOWrapper(packed, encoding="utf-8", newline="\n"))
            self.files.append({"path": f"{self._folder.name}/{name}", "lines": 0})
        self._file.write(text + "\n")
        self.files[-1]["lines"] += 1

    def finished(self) -> list[dict[str, Any]]:
        """Facts of the files."""
        self._open.close()
        for entry in self.files:
            path = self._folder.parent / entry["path"]
            entry |= {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        return self.files


def write_language(
    folder: Path, language: str, scored: Sequence[Location], keep: Sequence[str], advance: Callable[[int], object]
) -> dict[str, Any]:
    """Write a language's lines to `folder/LANGUAGE/BUCKET-NNNNN.txt.gz`, in their order.

    Memory: 8 bytes per line of the language.

    Returns:
        Facts: `dropped` with its reasons, `kept`, `files`; with a model also `thirds` (lines of each, before any is
        left out) and `perplexity` (mean, quantiles and the bounds of head and middle).
    """
    parts = [batch["perplexity"].to_numpy() for path in scored for batch in read_batches(path, ["perplexity"])]
    perplexities = np.concatenate([np.empty(0), *parts])
    dropped: Counter[str] = Counter()
    facts: dict[str, Any] = {}
    bounds = (np.inf, np.inf)
    if len(perplexities) and perplexities[0] != NO_PERPLEXITY:
        bounds = thirds(perplexities)
        facts = _facts(perplexities, bounds)
    shards: dict[str, _Shards] = {}
    (folder / language).mkdir()
    for text, perplexity in _lines(scored, advance):
        bucket = ALL
        if perplexity != NO_PERPLEXITY:
            bucket = HEAD if perplexity <= bounds[0] else MIDDLE if perplexity <= bounds[1] else TAIL
            if bucket not in keep:
                dropped[LEFT_OUT.format(bucket)] += 1
                continue
        if bucket not in shards:
            shards[bucket] = _Shards(folder / language, bucket)
        shards[bucket].write(text)
    files = [entry for bucket in (ALL, *BUCKETS) if bucket in shards for entry in shards[bucket].finished()]
    if not files:
        (folder / language).rmdir()
    return {"dropped": dict(dropped), "kept": sum(entry["lines"] for entry in files), **facts, "files": files}


def _lines(scored: Sequence[Location], advance: Callable[[int], object]) -> Iterator[tuple[str, float]]:
    for path in scored:
        for batch in read_batches(path, ["text", "perplexity"]):
            yield from zip(batch["text"].to_pylist(), batch["perplexity"].to_pylist(), strict=True)
            advance(batch.num_rows)


def _facts(perplexities: NDArray[np.float64], bounds: tuple[float, float]) -> dict[str, Any]:
    head = int((perplexities <= bounds[0]).sum())
    middle = int((perplexities <= bounds[1]).sum()) - head
    values = np.quantile(perplexities, QUANTILES)
    return {
        "thirds": {HEAD: head, MIDDLE: middle, TAIL: len(perplexities) - head - middle},
        "perplexity": {
            "mean": float(perplexities.mean()),
            "quantiles": {f"{share:.3g}": float(value) for share, value in zip(QUANTILES, values, strict=True)},
            "head": bounds[0],
            "middle": bounds[1],
        },
    }


# --- The card -------------------------------------------------------------------------------------------------------


def corpus_card(report: dict[str, Any]) -> str:
    """The card; equal reports give equal bytes."""
    languages = {code: facts for code, facts in report["languages"].items() if facts["kept"]}
    configs = [
        {"config_name": code, "data_files": [{"split": "train", "path": f"{code}/*.txt.gz"}]} for code in languages
    ]
    return render_card("corpus.md", {"language": list(languages), "configs": configs}, _values(report, languages))


def _values(report: dict[str, Any], languages: dict[str, dict[str, Any]]) -> dict[str, str]:
    everything = report["languages"]
    return {
        "kept": f"{sum(facts['kept'] for facts in languages.values()):,}",
        "languages": ", ".join(languages),
        "lines": f"{sum(facts['lines'] for facts in everything.values()):,}",
        "here": HERE,
        "config": next(iter(languages)),
        "options": " ".join(f"--text {code}={HERE}/{code}" for code in languages),
        "lines_table": markdown_table(
            ["language", "lines", "kept", "share"],
            [
                [code, f"{facts['lines']:,}", f"{facts['kept']:,}", f"{facts['kept'] / max(facts['lines'], 1):.1%}"]
                for code, facts in everything.items()
            ],
        ),
        "perplexity": _perplexity(everything),
        "dropped_table": dropped_table(report),
        "other_languages": "".join(
            f" Other languages among `{code}`: "
            + ", ".join(f"{name} {count:,}" for name, count in facts["other_languages"].items())
            + "."
            for code, facts in everything.items()
            if facts["other_languages"]
        ),
        "texts": "\n".join(
            f"- `{text['language']}`: {text['name']}, {text['lines']:,} lines, SHA-256 `{text['sha256'][:16]}`"
            for text in report["texts"]
        ),
        "masked": "; links, names and addresses of the known forms are masked"
        if report["settings"]["rules"]["mask"]
        else "",
    }


def dropped_table(report: dict[str, Any]) -> str:
    """Lines dropped by reason and language."""
    languages = report["languages"]
    reasons = [reason for reason in REASONS if any(reason in facts["dropped"] for facts in languages.values())]
    rows = [
        [code, *(f"{facts['dropped'].get(reason, 0):,}" for reason in reasons)] for code, facts in languages.items()
    ]
    return markdown_table(["language", *reasons], rows)


def _perplexity(languages: dict[str, dict[str, Any]]) -> str:
    """The thirds of the languages with a model."""
    rows = []
    for code, facts in languages.items():
        if "thirds" in facts:
            found = facts["perplexity"]
            bounds = (f"{one:.3f}" for one in (found["quantiles"]["0.5"], found["head"], found["middle"]))
            rows.append([code, *bounds, *(f"{facts['thirds'][bucket]:,}" for bucket in BUCKETS)])
    if not rows:
        return "No language had a model, so perplexity was not computed."
    header = ["language", "median", "head up to", "middle up to", *(f"{bucket}, lines" for bucket in BUCKETS)]
    return "Perplexity per character, before any third is left out:\n\n" + markdown_table(header, rows)
