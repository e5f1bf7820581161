"""Messages and replies in English and three made-up languages, with MRS's columns; nothing is read.

    mrs data prepare synthetic-chat --source synthetic[:SEED] --out DIR

A grammar (`mrs_datasets.synthetic.grammar.exchanges`) draws what is said; English and the languages qaa, qab and qac
(`mrs_datasets.synthetic.grammar.surface`) say it. They share names and numbers; of each made-up language a fifth of the
nouns are made of the English ones. Validation and test have the same messages, row by row, in all languages, and no
message that is said there, in whatever language, is in training or in the text for pretraining; training draws other
messages for each language, as MRS's pairs are no translations of each other. `mt-LANG` has the English training pairs
translated word by word: in English order, without endings, some words wrong or left in English. `text-LANG` is text for
pretraining.

A fastText model that names these languages, `language_model.ftz`, is written beside them where fastText is installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import count_responses
from mrs_datasets.prepared.schema import MT_PREFIX, SPLITS, responses_config
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pairs import Pair, pair_chunk
from mrs_datasets.synthetic.grammar.clauses import Clause, english
from mrs_datasets.synthetic.grammar.exchanges import Message, World, draw_message, draw_reply, known_pairs
from mrs_datasets.synthetic.grammar.surface import MadeUpSurface, surfaces
from mrs_datasets.synthetic.language_models import can_train, train_language_model

RECORD = read_record("synthetic-chat")
ENGLISH = "en"
TEXT_PREFIX = "text-"
SIZES = {"train": 6000, "validation": 300, "test": 500}
TEXT = 20_000  # sentences of each language
LANGUAGE_MODEL = "language_model.ftz"
IDENTIFIED, BUCKETS = 5000, 5000  # sentences of each language that the model learns from; 0.4 MB


class Drawn(NamedTuple):
    """What a seed gives.

    Attributes:
        made_up: code -> language.
        held_out: split -> messages with a reply, the same in all languages.
        seen: language -> its messages and replies for training.
        text: language -> what the sentences for pretraining say.
    """

    made_up: dict[str, MadeUpSurface]
    held_out: dict[str, list[tuple[Message, Clause]]]
    seen: dict[str, list[tuple[Message, Clause]]]
    text: dict[str, list[Clause]]


def read_synthetic_chat(seed: int, report: Report) -> Chunks:
    """The data set of a seed; equal seeds give equal rows."""
    report.settings["seed"] = seed
    if not can_train():
        report.notes.append(f"{LANGUAGE_MODEL} was not written: install fastText (extra langid), and prepare again.")
    drawn = draw_chat(seed)
    for code in RECORD.languages:
        say = speaker(code, drawn.made_up)
        for split in SPLITS:
            exchanges = drawn.seen[code] if split == "train" else drawn.held_out[split]
            yield pair_chunk(code, split, [_said(one, say) for one in exchanges])
        replies = Counter(say(reply) for _, reply in drawn.seen[code])
        yield responses_config(code), "train", count_responses(replies)
    for code, language in drawn.made_up.items():
        yield pair_chunk(MT_PREFIX + code, "train", list(_translated(language, drawn.seen[ENGLISH], seed, code)))
    for code in RECORD.languages:
        say, config = speaker(code, drawn.made_up), TEXT_PREFIX + code
        rows = {"text": [say(clause) for clause in drawn.text[code]]}
        yield config, "train", pa.table(rows, RECORD.schema(config))


def write_language_model(folder: Path, seed: int) -> None:
    """Train `language_model.ftz` on the text of a prepared folder, and write it there; nothing without fastText."""
    if can_train():
        path = folder / LANGUAGE_MODEL
        train_language_model(_identified(folder), path, seed, str(path), BUCKETS)


def _identified(folder: Path) -> Iterator[tuple[str, str]]:
    for code in RECORD.languages:
        rows = pq.read_table(folder / "data" / f"{TEXT_PREFIX}{code}", columns=["text"])
        for text in rows["text"].slice(0, IDENTIFIED).to_pylist():
            yield code, text


def draw_chat(seed: int) -> Drawn:
    """What is said in each split and language."""
    world, known = World(seed), known_pairs()
    random = Random(f"{seed}/held out")
    taken: dict[Message, None] = {}
    held_out: dict[str, list[tuple[Message, Clause]]] = {}
    for split in SPLITS[1:]:
        held_out[split] = []
        while len(held_out[split]) < SIZES[split]:
            message = draw_message(random, known)
            if message not in taken:
                taken[message] = None
                held_out[split].append((message, draw_reply(world, message, random)))
    unseen = {message.clause() for message in taken}
    seen, text = {}, {}
    for code in RECORD.languages:
        seen[code] = list(_exchanges(Random(f"{seed}/pairs/{code}"), world, unseen, SIZES["train"]))
        text[code] = list(_sentences(Random(f"{seed}/text/{code}"), world, unseen))
    return Drawn(surfaces(seed), held_out, seen, text)


def speaker(code: str, made_up: dict[str, MadeUpSurface]) -> Callable[[Clause], str]:
    """How a language says a clause."""
    return english if code == ENGLISH else made_up[code].sentence


def _exchanges(random: Random, world: World, unseen: set[Clause], size: int) -> Iterator[tuple[Message, Clause]]:
    """Different pairs of messages that are not held out."""
    known = known_pairs()
    done: set[tuple[Message, Clause]] = set()
    while len(done) < size:
        message = draw_message(random, known)
        one = message, draw_reply(world, message, random)
        if message.clause() not in unseen and one not in done:
            done.add(one)
            yield one


def _sentences(random: Random, world: World, unseen: set[Clause]) -> Iterator[Clause]:
    """Half messages, half replies, in random order; none is a held-out message."""
    known, count = known_pairs(), 0
    while count < TEXT:
        message = draw_message(random, known)
        clause = message.clause() if random.random() < 0.5 else draw_reply(world, message, random)
        if message.clause() not in unseen and clause not in unseen:
            count += 1
            yield clause


def _said(exchange: tuple[Message, Clause], say: Callable[[Clause], str]) -> Pair:
    return say(exchange[0].clause()), say(exchange[1])


def _translated(
    language: MadeUpSurface, exchanges: list[tuple[Message, Clause]], seed: int, code: str
) -> Iterator[Pair]:
    random = Random(f"{seed}/translation/{code}")
    for exchange in exchanges:
        message, reply = _said(exchange, lambda clause: language.word_by_word(clause, random))
        yield message, reply
