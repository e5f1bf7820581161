"""Decoding for STAPLE: the 50 best of 50 beams through CTranslate2, and through ours on torch, against `generate()`.

Workload: 32 prompts of two to eight words, translated by a Transformer that is made and trained here for a minute, and
translates poorly: a vocabulary of 4,000, two layers on each side, 128 wide, at most 16 tokens. Each system gives the
texts of 50 hypotheses a prompt, and ours their log-probabilities, too. `generate()` of transformers gets the batch size
of 4, 8, 16 and 32 with which it is fastest. The systems take turns for three rounds, the best round of each counts, a
prompt. Beside it: the share of `generate()`'s texts that each system gives, too, and the time to score the texts
(weighted F1) as a share of decoding.

Run: python benchmarks/bench_staple_decoding.py [--width N] [--layers N] [--vocabulary N]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from timing import best_in_turns, write_result

from mrs_metrics.translations_f1 import score_translations
from mrs_suggest.models.generation.architectures.unicoder import unicoder_config
from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.decoding.nbest import fitting_batch, n_best
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.reply_writer import ReplyWriter
from mrs_suggest.models.generation.tiny_generator import initialize, tiny_tokenizer

SEED, PROMPTS, BEAMS, TOKENS = 20200709, 32, 50, 16
PAIRS, STEPS, BATCH = 4_000, 150, 32
LANGUAGE = "pt"


def make_pairs(count: int) -> list[tuple[str, str]]:
    """Sentences of made-up words, and a word-for-word translation with two words for each."""
    draw = random.Random(SEED)
    syllables = [one + two for one in "bcdfgklmnprstv" for two in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(900)]
    senses = {word: [f"{word[::-1]}{end}" for end in ("o", "es")] for word in words}
    found = []
    for _ in range(count):
        prompt = draw.choices(words, k=draw.randint(2, 8))
        found.append((" ".join(prompt), " ".join(draw.choice(senses[word]) for word in prompt)))
    return found


def make_generator(folder: Path, pairs: Sequence[tuple[str, str]], width: int, layers: int, vocabulary: int) -> None:
    """Write a generator to `folder`, trained on the pairs."""
    from transformers import BartForConditionalGeneration

    tokenizer = tiny_tokenizer((text for pair in pairs for text in pair), [LANGUAGE], vocabulary)
    config = unicoder_config(
        vocab_size=len(tokenizer), d_model=width, layers=layers, heads=4, ffn=4 * width, positions=64, dropout=0.1
    )
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    config.bos_token_id = config.forced_eos_token_id = config.decoder_start_token_id = None
    torch.manual_seed(SEED)
    model = BartForConditionalGeneration(config)
    initialize(model, "model.shared")
    start = folder.parent / "start"
    model.save_pretrained(start)
    tokenizer.save_pretrained(start)
    decoding = Decoding(beams=BEAMS, max_tokens=TOKENS)
    generator = Generator.build(str(start), [LANGUAGE], message_tokens=32, reply_tokens=TOKENS, decoding=decoding)
    train(generator, pairs)
    folder.mkdir()
    generator.save(folder)


def train(generator: Generator, pairs: Sequence[tuple[str, str]]) -> None:
    coder, collate, draw = generator.coder, PairCollator(generator.pad), random.Random(SEED)
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    columns = (coder.messages(sources, LANGUAGE), coder.replies(targets))
    prompt = coder.prompt(LANGUAGE)
    rows = [{"input_ids": one, "labels": two, "prompt": prompt} for one, two in zip(*columns, strict=True)]
    optimizer = torch.optim.Adam(generator.model.parameters(), lr=2e-3)
    generator.model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        generator.model(**collate(draw.sample(rows, BATCH))).loss.backward()
        optimizer.step()
    generator.model.eval()


def plain_generate(generator: Generator, texts: Sequence[str], batch: int) -> list[list[str]]:
    """The rival: transformers alone."""
    model, tokenizer, prompt = generator.model, generator.coder.tokenizer, generator.coder.prompt(LANGUAGE)
    inputs = generator.coder.messages(texts, LANGUAGE)
    order = sorted(range(len(inputs)), key=lambda number: -len(inputs[number]))
    found: list[list[str]] = [[] for _ in texts]
    for begin in range(0, len(order), batch):
        numbers = order[begin : begin + batch]
        rows = tokenizer.pad({"input_ids": [inputs[n] for n in numbers]}, return_tensors="pt")
        with torch.inference_mode():
            output = model.generate(
                input_ids=rows["input_ids"], attention_mask=rows["attention_mask"],
                decoder_input_ids=torch.tensor([prompt] * len(numbers)), decoder_start_token_id=prompt[0],
                num_beams=BEAMS, num_return_sequences=BEAMS, max_new_tokens=TOKENS + 1, do_sample=False,
                length_penalty=1.0, early_stopping=False, bos_token_id=None, forced_eos_token_id=None,
            )  # fmt: skip
        decoded = [text.strip() for text in tokenizer.batch_decode(output, skip_special_tokens=True)]
        for place, number in enumerate(numbers):
            found[number] = decoded[place * BEAMS : (place + 1) * BEAMS]
    return found


def best_batch(generator: Generator, texts: Sequence[str]) -> int:
    """The batch size with which the rival is fastest."""
    times = {}
    for batch in (4, 8, 16, 32):
        begin = time.perf_counter()
        plain_generate(generator, texts, batch)
        times[batch] = time.perf_counter() - begin
    return min(times, key=lambda batch: times[batch])


def ours(writer: ReplyWriter, texts: Sequence[str]) -> list[list[str]]:
    settings = replace(writer.decoding, batch_size=fitting_batch(writer.coder.config, BEAMS, 32))
    return [[text.text for text in row] for row in n_best(writer, texts, LANGUAGE, BEAMS, settings)]


def shared(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> float:
    """The share of the first's texts that the second has, too."""
    pairs = [(set(left) - {""}, set(right)) for left, right in zip(one, other, strict=True)]
    return sum(len(left & right) for left, right in pairs) / sum(len(left) for left, _ in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=4_000)
    options = parser.parse_args()
    pairs = make_pairs(PAIRS + PROMPTS)
    texts = [prompt for prompt, _ in pairs[PAIRS:]]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run")
        make_generator(folder, pairs[:PAIRS], options.width, options.layers, options.vocabulary)
        generator = Generator.load(folder)
        batch = best_batch(generator, texts)
        writers: dict[str, ReplyWriter] = {"torch": generator}
        for kind in ("fp32", "int8"):
            Path(place, kind).mkdir()
            write_ctranslate2(Generator.load(folder), folder, Path(place, kind), kind == "int8")
            made = ExportedGenerator.load(folder, Path(place, kind))
            assert made is not None
            writers[f"ctranslate2, {kind}"] = made
        calls: dict[str, Callable[[], object]] = {"generate": lambda: plain_generate(generator, texts, batch)}
        for name, writer in writers.items():
            calls[name] = lambda writer=writer: ours(writer, texts)  # type: ignore[misc]
        times = best_in_turns(calls, PROMPTS)
        rival = plain_generate(generator, texts, batch)
        found = {name: ours(writer, texts) for name, writer in writers.items()}
    gold = [{"id": text, "translations": [{"text": one, "weight": 1.0}]} for text, one in pairs[PAIRS:]]
    begin = time.perf_counter()
    score_translations(gold, dict(zip(texts, found["torch"], strict=True)))
    scoring = (time.perf_counter() - begin) / PROMPTS
    figures = {}
    for name in writers:
        figures[name] = {
            "ratio": round(times["generate"] / times[name], 2),
            "same_texts": round(shared(rival, found[name]), 4),
            "scoring_share": round(scoring / times[name], 4),
        }
        print(
            f"{name}: {1 / times[name]:.1f} prompts/s, generate() {1 / times['generate']:.1f} with batches of {batch}, "
            f"ratio {figures[name]['ratio']:.2f}; {100 * figures[name]['same_texts']:.1f} % of its texts; scoring "
            f"takes {100 * figures[name]['scoring_share']:.1f} % of decoding"
        )
    result = {
        "width": options.width,
        "layers": options.layers,
        "vocabulary": options.vocabulary,
        "prompts": PROMPTS,
        "beams": BEAMS,
        "generate_batch": batch,
        "seconds": times,
        **figures,
        "threads": torch.get_num_threads(),
    }
    write_result(__file__, __doc__, result, ("torch", "transformers", "ctranslate2"))


if __name__ == "__main__":
    main()
