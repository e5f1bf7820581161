"""Changes the response set of a trained retriever without training: index, tags, ranker, record and card together."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.hub.provenance import versions
from mrs_suggest.common.io.files import atomic_folder, atomic_write, file_sha256
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.saved.families import family_of, write_record
from mrs_suggest.models.saved.record import CARD, CURVES, RECORD, Record, read_record
from mrs_suggest.models.starting_points import DETECTOR, EXAMPLES, RANKER_FOLDER, RETRIEVAL
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.own_replies.checks import (
    UNUSABLE,
    ResponseFinding,
    check_removed,
    check_replies,
    toxic_by_lists,
)
from mrs_suggest.suggest.own_replies.file import ResponseRow
from mrs_suggest.suggest.ranking.changed_replies import with_replies
from mrs_suggest.suggest.ranking.own_ranker import OwnRanker, OwnRankers
from mrs_suggest.suggest.ranking.rankers import SETTINGS, Rankers, save_rankers, settings_and_weights
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.suggest.retrieval_suggester import reply_encoder, weights_encoder

MOST_FOREIGN = 600  # messages on which a user's own replies are measured; each of the ten languages has about 500
KEY = "response_sets"  # of run.json: language -> its changes, the oldest first
OWN, REMEMBERED, DIRECT = "texts and examples", "remembered messages", "direct scores"  # what ranks the replies
BUILT, ADDED, REMOVED = "built", "added", "removed"


@dataclass(frozen=True)
class Replies:
    """The replies of an index with what is stored of each, without their vectors.

    Attributes:
        clusters: names.
        log_probs: None where nothing is known of any.
        examples: messages that each answers, as the user gave them.
        own: the first so many are the response set's, the others only the memory's; None: all are the set's.
    """

    texts: list[str]
    clusters: list[str]
    log_probs: list[float] | None
    tags: list[list[str]]
    examples: list[list[str]]
    own: int | None = None


class ResponseSets:
    """The response sets of a run's folder.

    Args:
        folder: of a finished run of the retriever.

    Raises:
        InputError: it is none, or its files are damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.record = folder, read_record(folder)
        if self.record["trainer"] != RETRIEVAL:
            raise InputError(f"{folder}: a {self.record['trainer']} model has no response set; pass a retriever's run.")
        open_model_folder(folder)
        self.indexes = ResponseIndexes(folder)
        self.rankers = Rankers(folder, self.indexes)
        self._own = OwnRankers(folder, self.indexes)

    def language(self, given: str | None) -> str:
        """The language of the replies.

        Raises:
            InputError: none is given, and the model has several; or it is not a language code.
        """
        if given is None and len(self.indexes) != 1:
            raise InputError(f"--language: name the language of the replies; the model has {' '.join(self.indexes)}.")
        if given is not None and find_language(given) is None:
            raise InputError(f"--language {given}: not a language code; pass one such as en or pt-BR.")
        return given or next(iter(self.indexes))

    def known(self, language: str) -> dict[str, int]:
        """Normalised form -> row of each reply of the index; none where the language has no index yet."""
        if language not in self.indexes:
            return {}
        return {normalise_reply(reply): row for row, reply in enumerate(self.indexes[language].replies)}

    def rows(self, language: str) -> list[ResponseRow]:
        """The replies of an index as rows, to be checked.

        Raises:
            InputError: the model has no index of the language.
        """
        return [ResponseRow(row, reply) for row, reply in enumerate(self._index(language).replies, start=1)]

    def check(
        self, rows: Sequence[ResponseRow], language: str, action: str = BUILT, lists: Path | None = None
    ) -> list[ResponseFinding]:
        """Problems of rows that are to become the set, or to be added or removed; see `check_replies`.

        Args:
            lists: a folder with custom word lists, as for the guard; None: the package's.
        """
        if action == REMOVED:
            self._index(language)
            return list(check_removed(rows, self.known(language)))
        path = self.folder / DETECTOR
        detector = LanguageDetector.load(path) if path.is_file() else None
        known = self.known(language) if action == ADDED else {}
        toxic = toxic_by_lists(GuardData(lists), language)
        return list(check_replies(rows, language, detector, known, toxic))

    def _index(self, language: str) -> ResponseIndex:
        if language not in self.indexes:
            raise InputError(f"--language {language}: the model has replies in {' '.join(self.indexes)}.")
        return self.indexes[language]

    # --- changes

    def change(
        self,
        rows: Sequence[ResponseRow],
        language: str,
        action: str,
        file: Path,
        out: Path | None = None,
        overwrite: bool = False,
        keep_others: bool = False,
    ) -> Record:
        """Write the run with another response set; return the change as its record has it.

        Args:
            rows: without those that are left out for a finding; unusable ones may be among them and are left out.
            action: `BUILT` (these and no others), `ADDED` or `REMOVED`.
            file: where the rows come from, for the record.
            out: a folder for a copy of the model; None: the run itself is replaced.
            overwrite: replace `out`, if it holds a run.
            keep_others: keep the languages without given replies; default: what is built answers only in
                the languages of given replies.

        Raises:
            InputError: no reply would be left, added replies have examples and the others are the model's own, or the
                language's tokenizer or the disk space is missing. Then nothing has changed.
        """
        if out is not None and self.folder.resolve() in (out.resolve(), *out.resolve().parents):
            raise InputError(f"--out {out}: is in {self.folder}; choose another folder, or leave it out.")
        known = {} if action == BUILT else self.known(language)
        unusable = {f.row for f in check_replies(rows, language, known=known) if f.kind in UNUSABLE}
        usable = rows if action == REMOVED else [row for row in rows if row.number not in unusable]
        replies, origin = self._changed(usable, language, action)
        if not replies.texts:
            raise InputError(f"{file}: no reply would be left in {language}; nothing has been changed.")
        own_ranker = self._needs_own_ranker(replies, language, action)
        if not own_ranker and any(replies.examples):
            raise InputError(
                f"{file}: examples only work in a custom set, and --add would mix them with the model's replies; "
                "leave out --add or the examples."
            )
        index = self._built(language, replies, origin)
        others = [code for code in self.indexes if code != language and not self._is_own(code)]
        dropped = others if action == BUILT and not keep_others else []
        ranked = OWN if own_ranker else REMEMBERED if language in self.rankers else DIRECT
        told = {**self._told(language, action, file, index, replies), "ranked": ranked, "dropped": dropped}
        changes = {code: rows for code, rows in self.record.get(KEY, {}).items() if code not in dropped}
        record = {**self.record, KEY: {**changes, language: [*changes.get(language, []), told]}}
        with copied(self.folder, [language, *dropped], out, overwrite) as partial:
            place = partial / ResponseIndexes.FOLDER / language
            index.save(place)
            ReplyTags.of(replies.tags).save(place)
            if own_ranker:
                self._save_own_ranker(index, replies.examples, language, place)
                dropped = [*dropped, language]
            self._save_ranker(index, replies.own, language, partial, dropped, approved=action == BUILT)
            write_record(partial, record, family_of(record))
        return told

    def _is_own(self, language: str) -> bool:
        """Whether all replies of a language were given by a user: none is left of the set that training made."""
        changes = self.record.get(KEY, {}).get(language, [])
        return any(change["change"] == BUILT or change["new"] == change["replies"] for change in changes)

    def _changed(self, rows: Sequence[ResponseRow], language: str, action: str) -> tuple[Replies, list[int]]:
        """The replies of the new index, and for each the row of the old one, or -1."""
        old = self.indexes.get(language)
        texts, weights = [row.reply for row in rows], [row.weight for row in rows]
        tags, examples = [list(row.tags) for row in rows], [list(row.examples) for row in rows]
        if action == BUILT or old is None:
            return Replies(texts, [""] * len(rows), log_probs([], weights), tags, examples), [-1] * len(rows)
        gone = {normalise_reply(text) for text in texts} if action == REMOVED else set()
        kept = [row for form, row in self.known(language).items() if form not in gone]
        if action == REMOVED:
            texts, weights, tags, examples = [], [], [], []
        place = self.folder / ResponseIndexes.FOLDER / language
        stored, given = ReplyTags.load(place, len(old.replies)).by_reply(), _examples(place, len(old.replies))
        # Replies that only the memory has stay behind those of the set.
        limit = self.rankers[language].own if language in self.rankers else None
        first = [row for row in kept if limit is None or row < limit]
        last = kept[len(first) :]
        new = [(text, "", own, some, -1) for text, own, some in zip(texts, tags, examples, strict=True)]
        before, behind = (
            [(old.replies[row], f"#{int(old.clusters[row])}", stored[row], given[row], row) for row in rows_kept]
            for rows_kept in (first, last)
        )
        parts = [*before, *new, *behind]
        known = log_probs(old.log_probs[kept].tolist(), weights)
        if known is not None:
            known = [*known[: len(first)], *known[len(kept) :], *known[len(first) : len(kept)]]
        columns = [part[0] for part in parts], [part[1] for part in parts], known, [part[2] for part in parts]
        messages = [part[3] for part in parts]
        return Replies(*columns, messages, len(first) + len(new) if last else None), [part[4] for part in parts]

    def _needs_own_ranker(self, replies: Replies, language: str, action: str) -> bool:
        """Whether the replies are ranked as a user's own: most are not among those that training remembers."""
        if language in self._own:
            return True
        if action != BUILT and language in self.indexes:
            return False
        if language not in self.rankers or any(replies.examples):
            return True
        ranker, known = self.rankers[language], self.known(language)
        rows = [known.get(normalise_reply(text), -1) for text in replies.texts]
        return 2 * sum(row >= 0 and bool(ranker.share[row] == 1) for row in rows) < len(rows)

    def _save_own_ranker(
        self, index: ResponseIndex, examples: Sequence[Sequence[str]], language: str, place: Path
    ) -> None:
        prototypes = GuardData().prototypes_for([language.partition("-")[0]])
        foreign = [text for of_reason in prototypes.values() for texts in of_reason.values() for text in texts]
        step = -(-len(foreign) // MOST_FOREIGN)
        OwnRanker.build(index, examples, weights_encoder(self.folder), foreign[::step]).save(place)
        if any(examples):
            text = json.dumps({"examples": examples}, ensure_ascii=False)
            atomic_write(place / EXAMPLES, text + "\n")

    def _built(self, language: str, replies: Replies, origin: list[int]) -> ResponseIndex:
        old = self.indexes.get(language)
        alpha = old.alpha if old is not None else float(self.record["metrics"].get("alpha") or 0.0)

        def encode(texts: list[str]) -> NDArray[np.float32]:
            new = [text for text, row in zip(texts, origin, strict=True) if row < 0]
            found = reply_encoder(self.folder)(new) if new else np.zeros((0, 0), np.float32)
            if old is None or len(new) == len(texts):
                return found
            rows = np.array(origin)
            vectors = old.vectors[np.maximum(rows, 0)].astype(np.float32)
            vectors[rows < 0] = found if new else vectors[:0]
            return vectors

        known = replies.log_probs
        if alpha and known is None:
            known = [-math.log(len(replies.texts))] * len(replies.texts)
        return ResponseIndex.build(encode, replies.texts, replies.clusters, known, alpha)

    def _save_ranker(
        self, index: ResponseIndex, own: int | None, language: str, folder: Path, dropped: Sequence[str], approved: bool
    ) -> None:
        """Write the ranker of the language, if it has one, and the settings, if they change.

        Args:
            approved: the replies of the index and no others may be suggested, so a generator must not write any.
        """
        rankers = {code: self.rankers[code] for code in self.rankers if code not in dropped}
        changed = bool(dropped)
        if language in rankers:
            old = rankers[language]
            with metric_errors(f"--language {language}"):
                tokenizer = get_tokenizer(language)
            ranker = with_replies(old, index, ReplyNgrams.build(index.replies, tokenizer), own)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                save_rankers({language: ranker}, Path(scratch))
                name = f"{RANKER_FOLDER}/{language}.safetensors"
                (Path(scratch) / name).replace(folder / name)
            if approved and ranker.second is not None and ranker.second.generated:
                ranker = replace(ranker, second=None)
            rankers[language] = ranker
            changed = changed or (old.own, old.second) != (ranker.own, ranker.second)
        settings = folder / RANKER_FOLDER / SETTINGS
        if not rankers:
            shutil.rmtree(folder / RANKER_FOLDER, ignore_errors=True)
        elif changed:
            atomic_write(settings, json.dumps(settings_and_weights(rankers), indent=2, sort_keys=True) + "\n")

    def _told(self, language: str, action: str, file: Path, index: ResponseIndex, replies: Replies) -> Record:
        before, now = set(self.known(language)), {normalise_reply(reply) for reply in index.replies}
        tags = ReplyTags.of(replies.tags).rows
        return {
            "change": action,
            "file": file.name,
            "sha256": file_sha256(file),
            "replies": len(index.replies),
            "new": len(now - before),
            "gone": len(before - now),
            "weights": bool(np.ptp(index.log_probs)),
            "tags": {tag: len(rows) for tag, rows in tags.items()},
            "examples": sum(map(len, replies.examples)),
            "version": versions()["mrs-suggest"],
        }


def _examples(place: Path, size: int) -> list[list[str]]:
    """The example messages of each of the `size` replies of an index; none without a file.

    Raises:
        InputError: the file is damaged, or belongs to another index.
    """
    path = place / EXAMPLES
    if not path.is_file():
        return [[] for _ in range(size)]
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["examples"]
        fits = len(found) == size and all(isinstance(text, str) for row in found for text in row)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits:
        raise InputError(f"{path}: made for another response index; {again(place)}.")
    return list(map(list, found))


def log_probs(before: Sequence[float], weights: Sequence[float | None]) -> list[float] | None:
    """Natural log-probabilities of stored replies and of new ones; None where nothing is known of any.

    New ones are add-one smoothed, as in response sets that are counted
    (`mrs_datasets.prepared.responses.response_table`). Both kinds share the probability by their numbers, so that a new
    reply of average weight counts like a stored one of average probability. Without weights, new ones get the lowest
    probability of the stored ones.

    Args:
        before: of the stored replies; all 0: unknown, taken as equal.
        weights: of the new ones; None: unknown.

    >>> [round(math.exp(value), 3) for value in log_probs([], [7, 2, 0])]
    [0.667, 0.25, 0.083]
    >>> [round(math.exp(value), 3) for value in log_probs([math.log(0.75), math.log(0.25)], [1, 1])]
    [0.375, 0.125, 0.25, 0.25]
    >>> log_probs([0.0], [None])
    """
    stored, total = any(before), len(before) + len(weights)
    counts = [weight for weight in weights if weight is not None]
    if not stored and not counts:
        return None
    if not counts:
        return [*before, *([min(before)] * len(weights))]
    smoothed = math.log(sum(counts) + len(counts)) - math.log(len(counts) / total)
    mass = math.log(sum(map(math.exp, before))) if stored else math.log(len(before) or 1)
    shift = math.log(len(before) / total) - mass if before else 0.0
    return [*((value if stored else 0.0) + shift for value in before), *(math.log(c + 1) - smoothed for c in counts)]


@contextmanager
def copied(run: Path, languages: Sequence[str], out: Path | None, overwrite: bool) -> Iterator[Path]:
    """A copy of a run that becomes `out`, or replaces the run, when the block ends; without the files to be changed.

    The copy that replaces the run has all its files, as hard links if the disk supports them; another has what
    would be published of it.
    """
    changed = {RECORD, CARD}
    for language in languages:
        changed |= {f"{ResponseIndexes.FOLDER}/{language}", f"{RANKER_FOLDER}/{language}.safetensors"}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if (Path(folder) / name).relative_to(run).as_posix() in changed}

    with atomic_folder(out or run, overwrite or out is None, RECORD) as partial:
        if out is None:
            shutil.copytree(run, partial, symlinks=True, dirs_exist_ok=True, copy_function=_link, ignore=ignored)
        else:
            published = (*family_of(read_record(run)).model_files(run), *run.glob(CURVES))
            for source in published:  # links in the hub's cache
                name = source.relative_to(run)
                if not changed & {name.as_posix(), name.parent.as_posix()}:
                    (partial / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, partial / name)
        yield partial


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
