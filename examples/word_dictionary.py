"""A word dictionary from a multilingual encoder, where no translation system is available.

    python examples/word_dictionary.py intfloat/multilingual-e5-small build/persona fr --out build/words.en-fr.tsv
    mrs data translate build/persona --to fr --translator fr=dictionary:build/words.en-fr.tsv --out build/persona-mt

Each English word of the training split is paired with the word of the other language that is nearest by CSLS, a cosine
that is lower for words that are near to many (Conneau et al. 2018, "Word translation without parallel data", section
2.3). What such a dictionary writes is far below a translation system's: words in English order, uninflected.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.io.files import atomic_write

PROMPT = "query: "  # on both sides, as e5's card says for similarity
NEIGHBOURS = 10  # of CSLS (Conneau et al. 2018)
WORDS = 20_000  # the most frequent ones of each language


def shares_of(data: Path, language: str) -> dict[str, float]:
    """The words of the training split with their shares, most frequent first."""
    tokens = get_tokenizer(language)
    train = open_prepared(str(data)).load(language, "train")
    counts = Counter(word for row in train for key in ("message", "reply") for word in tokens(row[key].lower()))
    words = [(word, count) for word, count in counts.most_common() if word.isalpha()][:WORDS]
    return {word: count / counts.total() for word, count in words}


def nearest(model: SentenceTransformer, sources: list[str], targets: list[str]) -> list[tuple[str, str, float]]:
    """(source, target, CSLS) of each source."""
    one, other = (
        model.encode([PROMPT + word for word in words], batch_size=256, convert_to_tensor=True, show_progress_bar=True)
        for words in (sources, targets)
    )
    cosines = one @ other.T
    near_targets = cosines.topk(NEIGHBOURS, dim=1).values.mean(dim=1, keepdim=True)
    near_sources = cosines.topk(NEIGHBOURS, dim=0).values.mean(dim=0, keepdim=True)
    best = torch.max(2 * cosines - near_targets - near_sources, dim=1)
    return [
        (source, targets[at], value)
        for source, at, value in zip(sources, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", help="a hub id or a folder")
    parser.add_argument("data", type=Path, help="a prepared folder with English and the language")
    parser.add_argument("language")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    body = Transformer(options.encoder)
    model = SentenceTransformer(modules=[body, Pooling(body.get_word_embedding_dimension(), "mean"), Normalize()])
    english, other = (shares_of(options.data, language) for language in ("en", options.language))
    own = [word for word, share in other.items() if share > english.get(word, 0)]  # without quoted English
    pairs = nearest(model, list(english), own)
    atomic_write(options.out, "".join(f"{source}\t{target}\t{value:.4f}\n" for source, target, value in pairs))
    print(f"wrote {options.out}: {len(pairs):,} words")


if __name__ == "__main__":
    main()
