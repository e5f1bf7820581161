"""Translating training pairs: the texts a second of the pass beside those of the bare model, on torch and CTranslate2.

Workload: 160 pairs of 2 to 16 made-up words, translated by a Marian that is made here and trained for a moment, to
answer any text with the same nine words, so that its search ends as that of a real one does: three layers on each side,
256 wide, a vocabulary of 3,700 words; 5 beams. The pass reads the pairs from Parquet, looks each text up in the cache
and stores its translation there, looks for copies and other languages (a small fastText model of synthetic texts, not
lid.176), and writes the translated pairs. The bare model gets the distinct texts in the same batches by length: tokens,
`generate()` of transformers or `translate_batch()` of CTranslate2 (int8), and texts from tokens. They take turns for
three rounds; the round with the least CPU time of each counts, a distinct text: one thread, the process's own time.

Run: python benchmarks/bench_translate.py [--pairs N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from timing import write_result

from mrs_datasets.builders.passes import Rows
from mrs_datasets.builders.translation import Translation
from mrs_datasets.synthetic.language_models import write_language_model
from mrs_suggest.common.batches import by_length
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.text_services import Translator
from mrs_suggest.services.translators.opening import open_translator
from mrs_suggest.services.translators.seq2seq import CheckpointTranslator, Search

SEED, WORDS, STEPS, BATCH = 20210801, 1_900, 50, 32
ANSWER = 9  # words
SEARCH = Search(beams=5, max_tokens=32)


def make_words() -> list[str]:
    """Made-up words."""
    draw = random.Random(SEED)
    syllables = [one + two for one in "bcdfgklmnprstv" for two in "aeiou"]
    return sorted({"".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(WORDS)})


def make_checkpoint(folder: Path, words: list[str]) -> None:
    """Write a Marian that was trained for a moment."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    parts = folder.with_name("parts")
    parts.mkdir()
    (parts / "texts").write_text("\n".join([*words, *(word[::-1] for word in words)]), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(parts / "texts"), model_prefix=str(parts / "pieces"), vocab_size=8_000, minloglevel=2,
        hard_vocab_limit=False, model_type="word",
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(parts / "pieces.model"))
    names = [pieces.id_to_piece(number) for number in range(pieces.get_piece_size())]
    vocabulary = {"</s>": 0, "<unk>": 1}
    for name in [*(name for name in names if name not in ("<s>", "</s>", "<unk>")), "<pad>"]:
        vocabulary[name] = len(vocabulary)
    (parts / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    model_file = str(parts / "pieces.model")
    tokenizer = MarianTokenizer(model_file, model_file, str(parts / "vocab.json"), source_lang="en", target_lang="de")
    torch.manual_seed(SEED)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary), d_model=256, encoder_layers=3, decoder_layers=3, encoder_ffn_dim=1024,
            decoder_ffn_dim=1024, encoder_attention_heads=8, decoder_attention_heads=8, max_position_embeddings=512,
            pad_token_id=vocabulary["<pad>"], eos_token_id=0, decoder_start_token_id=vocabulary["<pad>"],
            forced_eos_token_id=None, scale_embedding=True, activation_function="swish",
        )
    )  # fmt: skip
    train(model, tokenizer, words)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def train(model: Any, tokenizer: Any, words: list[str]) -> None:
    """A few steps, with the same answer to each text."""
    draw, answer = random.Random(SEED), " ".join(word[::-1] for word in words[:ANSWER])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = 1e-3 * min(1.0, (step + 1) / 20)
        texts = [draw.choices(words, k=draw.randint(2, 16)) for _ in range(BATCH)]
        given = tokenizer([" ".join(text) for text in texts], padding=True, return_tensors="pt")
        labels = tokenizer([answer] * BATCH, padding=True, return_tensors="pt").input_ids
        labels = labels.masked_fill(labels == tokenizer.pad_token_id, -100)
        loss = model(**given, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():  # as in Marian, whose decoder starts from zeros
            model.model.shared.weight[tokenizer.pad_token_id] = 0.0
    model.eval()


def bare(translator: CheckpointTranslator, texts: list[str]) -> Callable[[], int]:
    """A call that translates the texts with the library alone, and says how many translations have a text."""
    tokenizer: Any = translator._tokenizer
    model: Any = translator.model  # type: ignore[attr-defined]

    def by_generate(part: list[str]) -> list[str]:
        given = tokenizer(part, padding=True, return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**given, num_beams=SEARCH.beams, max_new_tokens=SEARCH.max_tokens)
        return list(tokenizer.batch_decode(ids, skip_special_tokens=True))

    def by_ctranslate2(part: list[str]) -> list[str]:
        tokens = [[str(number) for number in ids] for ids in tokenizer(part)["input_ids"]]
        results = model.translate_batch(
            tokens, max_batch_size=0, beam_size=SEARCH.beams, max_decoding_length=SEARCH.max_tokens
        )
        return [tokenizer.decode([int(name) for name in result.hypotheses[0]]) for result in results]

    write = by_generate if hasattr(model, "generate") else by_ctranslate2

    def call() -> int:
        lengths = [len(ids) for ids in tokenizer(texts)["input_ids"]]
        found: list[str] = []
        for numbers in by_length(lengths, len(lengths), SEARCH.batch_tokens):
            found += write([texts[number] for number in numbers])
        return sum(bool(text) for text in found)

    return call


def by_pass(translator: Translator, rows: Rows, folder: Path, identifier: LanguageIdentifier) -> Callable[[], int]:
    """A call that runs one shard of the pass with a new cache, and says how many pairs it kept."""
    rounds = 0

    def call() -> int:
        nonlocal rounds
        rounds += 1
        place = folder / f"{id(translator)}-{rounds}"
        place.mkdir()
        columns = ("message", "reply")
        work = Translation(rows, columns, "en", "de", translator, identifier, place / "shard", place / "cache")
        counts = work(lambda _: None)
        return 2 * rows.count - sum(int(str(count)) for count in counts.values())

    return call


def least_in_turns(calls: dict[str, Callable[[], object]], items: int) -> dict[str, float]:
    """CPU seconds an item, by name: the least of three rounds in which the calls take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(3):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            least[name] = min(least[name], (time.process_time() - begin) / items)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--pairs", type=int, default=160)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        words, draw = make_words(), random.Random(SEED + 1)
        make_checkpoint(folder / "marian", words)
        write_language_model(folder / "languages.bin")
        replies = [" ".join(draw.choices(words, k=draw.randint(2, 16))) for _ in range(options.pairs * 2 // 3)]
        messages = [" ".join(draw.choices(words, k=draw.randint(2, 16))) for _ in range(options.pairs)]
        table = pa.table({"message": messages, "reply": draw.choices(replies, k=options.pairs)})
        pq.write_table(table, folder / "pairs.parquet")
        rows = Rows("en", "train", 0, folder / "pairs.parquet", 0, options.pairs)
        texts = sorted({*table["message"].to_pylist(), *table["reply"].to_pylist()})
        identifier = LanguageIdentifier.open(folder / "languages.bin")
        calls: dict[str, Callable[[], object]] = {}
        for name, quantization in (("torch", None), ("ctranslate2", "int8")):
            translator = open_translator(str(folder / "marian"), SEARCH, quantization)
            assert isinstance(translator, CheckpointTranslator)
            calls[f"bare {name}"] = bare(translator, texts)
            calls[f"pass, {name}"] = by_pass(translator, rows, folder, identifier)
        for name, call in calls.items():
            call()  # loads the model
            print(f"{name}: ready")
        spent = least_in_turns(calls, len(texts))
    rates = {name: round(1 / seconds, 1) for name, seconds in spent.items()}
    ratios = {name: round(rates[f"pass, {name}"] / rates[f"bare {name}"], 3) for name in ("torch", "ctranslate2")}
    faster = round(rates["pass, ctranslate2"] / rates["pass, torch"], 2)
    print(f"texts a CPU second: {rates}")
    print(f"the pass over the bare model: {ratios} (goal .9); CTranslate2 over torch, in the pass: {faster}")
    figures = {
        "distinct texts": len(texts),
        "texts a CPU second": rates,
        "pass over bare": ratios,
        "ctranslate2": faster,
    }
    write_result(__file__, __doc__, figures, ["torch", "transformers", "ctranslate2", "sentencepiece"])


if __name__ == "__main__":
    main()
