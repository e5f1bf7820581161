"""A help desk's own replies without training: our suggester against cosines between message and reply.

Workload: `benchmarks/desk/`, 30 replies of a web shop and software company in English and in German, each with two
example messages, and the held-out half of 60 messages as customers write them, with the ids of the acceptable replies
(one to three). Counted are messages with an acceptable reply among the first three. Ours: the model that ships with
these replies, without and with the examples, no guard and no least score. The rivals: character TF-IDF and the cosine
of the shipped encoder between message and reply, and, if `../shared/models/e5-small` exists, multilingual-e5-small
("query: " and "passage: ", mean pooling). Chance: the expected hits of three random replies.

Run: python benchmarks/bench_desk.py [MODEL] [--part build]  (another retriever; the half on which settings are chosen)
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timing import write_result

from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.suggest.own_replies.file import ResponseRow, read_response_file
from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf
from mrs_suggest.suggest.retrieval_suggester import reply_encoder, weights_encoder
from mrs_suggest.suggest.suggester import Suggester

DESK = Path(__file__).resolve().parent / "desk"
SHARED = Path(os.environ.get("MRS_SHARED_MODELS", Path(__file__).resolve().parents[2] / "shared" / "models"))
E5 = SHARED / "e5-small"
LANGUAGES = ("en", "de")
PARTS = BUILD, HELD_OUT = "build", "held_out"
K = 3
Messages = Sequence[tuple[str, set[str]]]  # a message and its acceptable replies
Scores = NDArray[np.floating]


def read_messages(language: str, part: str, rows: Sequence[ResponseRow]) -> Messages:
    """The messages of a part; a reply's only tag is its id."""
    replies = {row.tags[0]: row.reply for row in rows}
    lines = (DESK / f"messages.{language}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    found = [line.split("\t") for line in lines]
    return [(text, {replies[name] for name in names.split(" ")}) for own, text, names in found if own == part]


def of_best(rows: Sequence[ResponseRow], scores: Scores) -> list[list[str]]:
    """The best replies of each message, from (n, replies) scores."""
    return [[rows[number].reply for number in row[:K]] for row in np.argsort(-scores, axis=1, kind="stable")]


def ours(
    model: Path, language: str, rows: Sequence[ResponseRow], examples: bool, messages: Messages
) -> list[list[str]]:
    given = [{"reply": row.reply, **({"examples": list(row.examples)} if examples else {})} for row in rows]
    suggester = Suggester.from_pretrained(model, guard=False).set_replies(given, language)
    return [answer.replies for answer in suggester.suggest([text for text, _ in messages], language, K, min_score=0)]


def e5_encoder() -> Callable[[list[str]], Scores] | None:
    """Mean-pooled vectors of norm 1; None without the checkpoint."""
    if not E5.is_dir():
        return None
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(E5), AutoModel.from_pretrained(E5, dtype=torch.float32).eval()

    def encode(texts: list[str]) -> Scores:
        batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        vectors = (hidden * mask).sum(1) / mask.sum(1)
        return np.asarray(torch.nn.functional.normalize(vectors, dim=1).numpy())

    return encode


def measure(model: Path, language: str, part: str) -> dict[str, Any]:
    """Hits of each system on one language, printed too."""
    rows = read_response_file(DESK / f"replies.{language}.csv")
    messages = read_messages(language, part, rows)
    texts, replies = [text for text, _ in messages], [row.reply for row in rows]
    tfidf = CharTfidf.build(replies)
    vectors = weights_encoder(model)(texts)
    found = {
        "ours": ours(model, language, rows, False, messages),
        "ours, with examples": ours(model, language, rows, True, messages),
        "TF-IDF": of_best(rows, np.stack([tfidf.cosines(text) for text in texts])),
        "shipped encoder": of_best(rows, vectors @ reply_encoder(model)(replies).T),
    }
    if (e5 := e5_encoder()) is not None:
        products = e5([f"query: {text}" for text in texts]) @ e5([f"passage: {reply}" for reply in replies]).T
        found["e5-small"] = of_best(rows, products)
    hits = {
        name: sum(bool(accepted.intersection(best)) for (_, accepted), best in zip(messages, some, strict=True))
        for name, some in found.items()
    }
    size = len(rows)
    chance = sum(1 - math.comb(size - len(accepted), K) / math.comb(size, K) for _, accepted in messages)
    most = {name: max(sum(reply in best for best in some) for reply in replies) for name, some in found.items()}
    print(f"{language}, {part}: " + ", ".join(f"{name} {count}" for name, count in hits.items()))
    return {"messages": len(messages), "hits": {**hits, "chance": round(chance, 1)}, "most shown reply": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="everyday-retriever")
    parser.add_argument("--part", choices=PARTS, default=HELD_OUT)
    options = parser.parse_args()
    model = resolve_model(options.model)
    figures = {language: measure(model, language, options.part) for language in LANGUAGES}
    if options.part == HELD_OUT and options.model == "everyday-retriever":
        write_result(__file__, __doc__, figures, ("numpy",), model)


if __name__ == "__main__":
    main()
