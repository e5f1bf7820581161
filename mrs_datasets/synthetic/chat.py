"""The data set `synthetic-chat`: messages and replies in English and three invented languages, with MRS's columns.

The grammar (`grammar.conversation`) draws the content; English and the languages qaa, qab and qac (`grammar.surface`)
express it. They share names and numbers; a fifth of the nouns of each invented language are derived from English.
Validation and test have the same messages, row by row, in all languages, and no message of theirs occurs, in any
language, in training or in the text for pretraining. Training draws other messages for each language, since MRS's
pairs are not translations of each other either. `mt-LANG` has the English training pairs translated word by word: in
English order, without endings, some words wrong or left in English. `text-LANG` is text for pretraining.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import NamedTuple

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.responses import count_responses
from mrs_datasets.prepared.schema import MT_PREFIX, responses_config
from mrs_datasets.synthetic import Tables
from mrs_datasets.synthetic.grammar.conversation import Clause, Message, World, draw_message, draw_reply, english
from mrs_datasets.synthetic.grammar.surface import MadeUpSurface, surfaces

LANGUAGES = tuple(read_record("synthetic-chat").languages)
ENGLISH = "en"
SIZES = {"train": 6000, "validation": 300, "test": 500}
TEXT = 20_000  # sentences of each language
Exchange = tuple[Message, Clause]


class Drawn(NamedTuple):
    """The content of a seed.

    Attributes:
        made_up: code -> invented language.
        held_out: split -> messages with a reply, the same in all languages.
        seen: language -> its messages and replies for training.
        text: language -> the sentences for pretraining.
    """

    made_up: dict[str, MadeUpSurface]
    held_out: dict[str, list[Exchange]]
    seen: dict[str, list[Exchange]]
    text: dict[str, list[Clause]]


def tables(seed: int) -> Tables:
    drawn = draw_chat(seed)
    say = {code: english if code == ENGLISH else drawn.made_up[code].sentence for code in LANGUAGES}
    for code in LANGUAGES:
        for split, exchanges in {"train": drawn.seen[code], **drawn.held_out}.items():
            yield code, split, _pairs(exchanges, say[code])
        replies = Counter(say[code](reply) for _, reply in drawn.seen[code])
        yield responses_config(code), "train", count_responses(replies).to_pylist()
    for code, language in drawn.made_up.items():
        random = Random(f"{seed}/translation/{code}")
        translate = partial(language.word_by_word, random=random)
        yield MT_PREFIX + code, "train", _pairs(drawn.seen[ENGLISH], translate)
    for code in LANGUAGES:
        yield f"text-{code}", "train", [{"text": say[code](clause)} for clause in drawn.text[code]]


def _pairs(exchanges: list[Exchange], say: Callable[[Clause], str]) -> list[dict[str, str]]:
    return [{"message": say(message.clause()), "reply": say(reply)} for message, reply in exchanges]


def draw_chat(seed: int) -> Drawn:
    """The content of each split and language."""
    world, random = World(seed), Random(f"{seed}/held out")
    taken: dict[Message, None] = {}
    held_out: dict[str, list[Exchange]] = {"validation": [], "test": []}
    for split, exchanges in held_out.items():
        while len(exchanges) < SIZES[split]:
            message = draw_message(random)
            if message not in taken:
                taken[message] = None
                exchanges.append((message, draw_reply(world, message, random)))
    unseen = {message.clause() for message in taken}
    seen, text = {}, {}
    for code in LANGUAGES:
        seen[code] = list(_exchanges(Random(f"{seed}/pairs/{code}"), world, unseen, SIZES["train"]))
        text[code] = list(_sentences(Random(f"{seed}/text/{code}"), world, unseen))
    return Drawn(surfaces(seed), held_out, seen, text)


def _exchanges(random: Random, world: World, unseen: set[Clause], size: int) -> Iterator[Exchange]:
    """Different pairs whose message is not held out."""
    done: set[Exchange] = set()
    while len(done) < size:
        message = draw_message(random)
        one = message, draw_reply(world, message, random)
        if message.clause() not in unseen and one not in done:
            done.add(one)
            yield one


def _sentences(random: Random, world: World, unseen: set[Clause]) -> Iterator[Clause]:
    """Half messages, half replies, in random order; none is a held-out message."""
    count = 0
    while count < TEXT:
        message = draw_message(random)
        clause = message.clause() if random.random() < 0.5 else draw_reply(world, message, random)
        if message.clause() not in unseen and clause not in unseen:
            count += 1
            yield clause
