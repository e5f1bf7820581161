"""Machine-translated training pairs and response sets of a prepared folder (Zhang et al. 2021, sections 2.1, 3.2)."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.builders.passes import Rows, cached_answers, ranges
from mrs_datasets.builders.pipeline.stages import (
    Advance,
    Shard,
    ShardCounts,
    damaged,
    name_and_bytes,
    read_batches,
    summed,
    write_batches,
)
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import PassEntry, PreparedReport
from mrs_datasets.prepared.schema import MRS, MT_PREFIX, PAIR_SCHEMA, RESPONSE_SCHEMA, responses_config
from mrs_datasets.prepared.writer import rewrite
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.language_id import LanguageIdentifier, is_other_language
from mrs_suggest.common.text.languages import require_any_language
from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.common.text.text_services import Translator

TRAIN = "train"
DUPLICATE = "in the set already"
TRANSLATED = "translated"  # the value of the column `source`
PROBABILITIES = (
    "Translated replies have no count; their log_prob is that of a reply that was not seen, or, in a language that had "
    "no response set, that of the replies they translate."
)
PAIR_COLUMNS, REPLY_COLUMN = ("message", "reply"), ("reply",)
BLOCK = 512  # texts; at most so many are translated again after a kill
CODE, ROWS = "code", "rows"
KEPT, NONE, TOO_LONG, COPY, OTHER_LANGUAGE = range(5)  # outcomes of a translated text
REASONS = {
    NONE: "no translation",
    TOO_LONG: "too long for the model",
    COPY: "copy of the source",
    OTHER_LANGUAGE: "other language",
}
_MASK = re.compile(r"<[a-z]+>")  # what a build puts in place of links, names and addresses
_WORD = re.compile(r"[^\W\d_](?:[\w'’]*\w)?")  # begins with a letter


@dataclass(frozen=True)
class TranslationPass:
    """Translates the training pairs of a language to `mt-LANG`, and its response set into those of others.

    Attributes:
        translators: target language -> its translator.
        source: the language that is translated; English, as in the paper.
        identifier, language_model: to check the language of translations, and its file; None: it is not checked.
        replace: replace pairs and replies that were translated before.
        pairs: the most pairs that are translated, the first of the split; None: all. The paper takes 19 million of
            English (section 3.2).
    """

    translators: Mapping[str, Translator]
    source: str = "en"
    identifier: LanguageIdentifier | None = None
    language_model: Path | None = None
    replace: bool = False
    pairs: int | None = None
    name: str = "translation"

    def __post_init__(self) -> None:
        require_targets(self.source, list(self.translators))
        if self.pairs is not None and self.pairs < 1:
            raise InputError(f"--pairs {self.pairs}: expected a whole number from 1.")
        for target, translator in self.translators.items():
            translator.require(self.source, target)

    def identity(self) -> dict[str, object]:
        model = self.language_model
        return {
            "from": self.source,
            "pairs": self.pairs,
            "translators": {
                target: {**each.facts.as_dict(), "settings": dict(each.settings)}
                for target, each in self.translators.items()
            },
            "language model": None if model is None else dict(name_and_bytes(model)),
        }

    def require(self, data: PreparedData) -> None:
        if data.data_set() != MRS.name:
            raise InputError(
                f"{data.name}: holds {data.data_set()}, and pairs and response sets of mrs are translated."
            )
        if not data.report().get("configs"):
            raise InputError(f"{data.name}: has no report.json with its files; prepare the folder again.")
        configs = data.configs()
        if self.source not in configs or not data.files(self.source, TRAIN):
            raise InputError(
                f"{data.name}: has no training pairs of {self.source} to translate, only {' '.join(configs)}; pass "
                "--from LANG for another language."
            )
        there = [f"{MT_PREFIX}{target}" for target in self.translators if f"{MT_PREFIX}{target}" in configs]
        if there and not self.replace:
            raise InputError(
                f"{data.name}: has {' '.join(there)} already; pass --replace to translate again, or leave "
                f"{' '.join(name.removeprefix(MT_PREFIX) for name in there)} out."
            )

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        """For each target, ranges of the pairs, then of the response set; each becomes a file of translations."""
        parts = {self.source: PAIR_COLUMNS, responses_config(self.source): REPLY_COLUMN}
        found = []
        for target, translator in self.translators.items():
            for config, columns in parts.items():
                left = self.pairs if columns == PAIR_COLUMNS and self.pairs else sys.maxsize
                for rows in ranges(data, [(config, TRAIN)]):
                    if left <= 0:
                        break
                    rows, left = replace(rows, count=min(rows.count, left)), left - rows.count
                    output = folder / f"{target}.{rows.name}.arrow"
                    work = Translation(rows, columns, self.source, target, translator, self.identifier, output, cache)
                    found.append(Shard(f"{target}.{rows.name}", rows.count, output, work))
        return found

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        assert data.folder is not None
        parts: dict[str, list[tuple[Translation, Counter[str]]]] = {}
        for shard, found in zip(shards, counts, strict=True):
            work = cast(Translation, shard.work)
            config = f"{MT_PREFIX}{work.target}" if work.columns == PAIR_COLUMNS else responses_config(work.target)
            parts.setdefault(config, []).append((work, Counter(cast("dict[str, int]", dict(found)))))
        totals = {config: summed(counted for _, counted in part) for config, part in parts.items()}
        changed: dict[tuple[str, str], Callable[[], Iterator[pa.Table]]] = {}
        for config, part in parts.items():
            works = [work for work, _ in part]
            if config.startswith(MT_PREFIX):
                counted = _counted(totals[config])
                if not counted["kept"]:
                    reasons = ", ".join(f"{name} {n:,}" for name, n in counted.items() if name not in ("in", "kept"))
                    raise InputError(
                        f"{config}: none of {counted['in']:,} pairs is left ({reasons}); check that the translator "
                        f"writes {config.removeprefix(MT_PREFIX)}, or leave it out."
                    )
                changed[config, TRAIN] = partial(_pairs, works)
            else:
                table, doubles = self._response_set(data, config, works)
                totals[config][DUPLICATE] += doubles
                if table.num_rows:
                    changed[config, TRAIN] = partial(iter, [table])
        report = rewrite(data.folder, target, data.report(), data.record(), changed, self._note)
        return report, self._entry(totals)

    def _response_set(self, data: PreparedData, config: str, works: Sequence[Translation]) -> tuple[pa.Table, int]:
        """The merged set of a language, and how many translated replies it had already."""
        own = organic(pa.concat_tables(tables)) if (tables := _read(data, config)) else None
        came = pa.concat_tables(_read(data, responses_config(self.source)))
        replies: list[tuple[str, float | None]] = []
        done = 0
        for work in works:
            table = work.read()
            log_probs = came["log_prob"].slice(done, table.num_rows).to_pylist()
            done += table.num_rows
            rows = zip(table["reply"].to_pylist(), log_probs, table[CODE].to_pylist(), strict=True)
            replies += [(reply, log_prob) for reply, log_prob, code in rows if code == KEPT]
        table = merged(own, replies)
        added = table.num_rows - (0 if own is None else own.num_rows)
        return table, len(replies) - added

    def _note(self, report: PreparedReport) -> None:
        if not any(PROBABILITIES in note for note in report["notes"]):
            report["notes"].append(PROBABILITIES)
        for target, translator in self.translators.items():
            begin = f"{MT_PREFIX}{target} and the replies of {responses_config(target)} with the source `translated`"
            report["notes"] = [note for note in report["notes"] if not note.startswith(begin)]
            facts = translator.facts
            licence = f", licence {facts.licence}" if facts.licence else ""
            report["notes"].append(
                f"{begin} were translated from {self.source} by {facts.name} ({facts.kind} {facts.version}{licence})."
            )

    def _entry(self, totals: Mapping[str, Counter[str]]) -> PassEntry:
        all_parts = summed(totals.values())
        came = all_parts.pop(ROWS, 0)
        dropped = {reason: count for reason, count in sorted(all_parts.items()) if count}
        about: dict[str, Any] = {
            "models": [
                {"for": target, **each.facts.as_dict(), "settings": dict(each.settings)}
                for target, each in self.translators.items()
            ],
            "counts": {config: _counted(total) for config, total in totals.items()},
            "notes": [] if self.identifier else ["The language of translations was not checked: no language model."],
        }
        return {"name": self.name, "in": came, "out": came - sum(dropped.values()), "dropped": dropped, "about": about}


def require_targets(source: str, targets: Sequence[str]) -> None:
    """Refuse, by an InputError, what is not a language, comes twice, or is the language that is translated."""
    require_any_language(source, "--from")
    for number, target in enumerate(targets):
        require_any_language(target, "--to")
        if target == source:
            raise InputError(f"--to {target}: is the language that is translated; name another one.")
        if target in targets[:number]:
            raise InputError(f"--to {target}: is named twice; name each language once.")


@dataclass(frozen=True)
class Translation:
    """Translates one range of rows to one language; picklable if translator and identifier are.

    Attributes:
        columns: the texts of a row; it is dropped if one of them is, for the reason of the first.
        output: of the translated columns, with `CODE` of each row.
    """

    rows: Rows
    columns: tuple[str, ...]
    source: str
    target: str
    translator: Translator
    identifier: LanguageIdentifier | None
    output: Location
    cache: Path

    def __call__(self, advance: Advance) -> ShardCounts:
        """Write the translations; return the number of rows, and of those dropped by reason."""
        table = self.rows.read().select(list(self.columns))
        each = [table.column(name).to_pylist() for name in self.columns]
        texts = list(dict.fromkeys(text for column in each for text in column))
        translations = self._translated(texts, advance)
        found = outcomes(translations, self.translator, self.identifier, self.source, self.target)
        codes = np.zeros(table.num_rows, np.uint8)
        for column in reversed(each):
            own = np.fromiter((found[text] for text in column), np.uint8, len(column))
            codes = np.where(own, own, codes)
        arrays = [pa.array([translations[text] for text in column], pa.string()) for column in each]
        batch = pa.record_batch([*arrays, pa.array(codes, pa.uint8())], self.schema)
        write_batches(self.output, self.schema, [batch])
        dropped = {reason: int((codes == code).sum()) for code, reason in REASONS.items()}
        return {ROWS: table.num_rows, **{reason: count for reason, count in dropped.items() if count}}

    @property
    def schema(self) -> pa.Schema:
        """Of the file that it writes."""
        return pa.schema([*((name, pa.string()) for name in self.columns), (CODE, pa.uint8())])

    def read(self) -> pa.Table:
        """The written translations; InputError if the file is damaged."""
        table = pa.Table.from_batches(read_batches(self.output, self.schema.names), self.schema)
        if table.num_rows != self.rows.count:
            raise damaged(self.output, f"it has {table.num_rows:,} rows, not {self.rows.count:,}")
        return table

    def _translated(self, texts: Sequence[str], advance: Advance) -> dict[str, str]:
        """text -> its translation."""
        about = f"{self.source}-{self.target} {json.dumps(dict(self.translator.settings), sort_keys=True)}"

        def translate(some: list[str]) -> list[str]:
            return [answer.strip() for answer in self.translator.translate(some, self.source, self.target)]

        # Texts of similar length together, the longest first, so that a lack of memory shows immediately. Blocks are
        # made of all texts, known or not: so a resumed run has the same batches, in which a model's rounding may
        # differ, as one that was not interrupted.
        ordered = sorted(texts, key=lambda text: (-len(text), text))
        with TextCache[str](self.cache, self.translator.facts, about) as cache:
            return cached_answers(cache, ordered, BLOCK, translate, self.rows.count, advance)


def is_copy(text: str, translation: str) -> bool:
    """Whether a translation equals its source except for case and punctuation.

    A text is not taken for copied where equal texts are right in both languages: without letters outside `<url>` and
    the like, of a single word, or of capitalised words alone, which are names. In a script without spaces between
    words, a text without spaces counts as one word.

    >>> is_copy("See you later!", "see you later."), is_copy("Harry Potter", "Harry Potter")
    (True, False)
    """
    words = _WORD.findall(_MASK.sub(" ", text))
    if len(words) < 2 or all(word[0].isupper() for word in words):
        return False
    return normalise_reply(text) == normalise_reply(translation)


def outcomes(
    translations: Mapping[str, str],
    translator: Translator,
    identifier: LanguageIdentifier | None,
    source: str,
    target: str,
) -> dict[str, int]:
    """The outcome of each text: `KEPT`, `NONE`, `TOO_LONG`, `COPY` or `OTHER_LANGUAGE` (see `is_other_language`; a
    language that the identifier does not know is not checked)."""
    found = dict.fromkeys(translations, KEPT)
    empty = [text for text, translation in translations.items() if is_blank(translation)]
    for text, fits in zip(empty, translator.fits(empty, source, target) if empty else [], strict=True):
        found[text] = NONE if fits else TOO_LONG
    there = [text for text, code in found.items() if code == KEPT]
    found.update((text, COPY) for text in there if is_copy(text, translations[text]))
    there = [text for text in there if found[text] == KEPT]
    if identifier is not None and there and identifier.knows(target.partition("-")[0]):
        answers = identifier.identify([translations[text] for text in there])
        found.update(
            (text, OTHER_LANGUAGE)
            for text, answer in zip(there, answers, strict=True)
            if is_other_language(answer, target)
        )
    return found


# --- Response sets ----------------------------------------------------------------------------------------------------


def merged(own: pa.Table | None, replies: Iterable[tuple[str, float | None]]) -> pa.Table:
    """The set of a language (or None) followed by the translated replies that it lacks; each once, in their order.

    A translated reply has no `count`, since it was never given. Its `log_prob` is that of a reply that was not seen, by
    the add-one smoothing of the set (`mrs_datasets.prepared.responses.response_table`), or null if the set does not
    have counts with probabilities; so with a language-model score it does not outrank a reply that people gave. If the
    language has no set, it is that of the replies it translates, together, which are given with the translations.
    """
    have = set() if own is None else set(own["reply"].to_pylist())
    new: dict[str, float | None] = {}
    for reply, log_prob in replies:
        if reply in new:
            known = new[reply]
            new[reply] = None if known is None or log_prob is None else float(np.logaddexp(known, log_prob))
        elif reply not in have:
            new[reply] = log_prob
    if own is not None:
        new = dict.fromkeys(new, unseen(own))
    rows = [
        {"reply": reply, "log_prob": log_prob, "cluster": normalise_reply(reply), "source": TRANSLATED}
        for reply, log_prob in new.items()
    ]
    table = pa.Table.from_pylist(rows, RESPONSE_SCHEMA)
    return table if own is None else pa.concat_tables([own, table])


def organic(table: pa.Table) -> pa.Table:
    """A response set without its translated replies."""
    return table.filter(pc.fill_null(pc.not_equal(table["source"], TRANSLATED), True))


def unseen(table: pa.Table) -> float | None:
    """`log(1 / (pairs + distinct replies))`, the `log_prob` of a reply that was not seen, from a counted set."""
    counted = table.filter(pc.and_(pc.is_valid(table["count"]), pc.is_valid(table["log_prob"])))
    if not counted.num_rows:
        return None
    return float(counted["log_prob"][0].as_py() - math.log(counted["count"][0].as_py() + 1))


def _counted(total: Counter[str]) -> dict[str, int]:
    dropped = {reason: count for reason, count in sorted(total.items()) if count and reason != ROWS}
    return {"in": total[ROWS], "kept": total[ROWS] - sum(dropped.values()), **dropped}


def _pairs(works: Sequence[Translation]) -> Iterator[pa.Table]:
    for work in works:
        table = work.read()
        kept = table.filter(pc.equal(table[CODE], KEPT))
        yield kept.select(PAIR_SCHEMA.names).cast(PAIR_SCHEMA)


def _read(data: PreparedData, config: str) -> list[pa.Table]:
    return [pq.read_table(path).cast(RESPONSE_SCHEMA) for path in data.files(config, TRAIN)]
