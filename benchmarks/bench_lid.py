"""Language identification: `LanguageIdentifier` against the package fasttext, on lid.176, in labels and in time.

Workload: a million different texts. Lines of the dialogues, replies and choices in ../shared/data (chat, 14 languages),
each as it is, then in capitals, cut, joined with another one and with characters exchanged (letters of other scripts,
emojis, controls, NUL, white space, halves of surrogate pairs, `</s>`, `__label__en`); empty ones, and lines of 100,000
characters. The rival gets the same lines, prepared as it needs them outside of the time (newlines and halves of pairs
as spaces, no `</s>`), 1,024 a call. Time: CPU-seconds of the real texts alone, in turns, the best of three rounds each.

Run: python benchmarks/bench_lid.py [--texts N] [--data DIR]  (the model: MRS_LANGUAGE_MODEL, or the installed lid.176)
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from timing import write_result

from mrs_suggest.common.text.language_id import BATCH, LanguageIdentifier, open_identifier

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
TARGET, MOST_DIFFERENCE = 5.0, 1e-4
PIECES = (
    *"aeßñжф日中한ع\u05d0\u0e01🎉👍\u200d\u0301\0\n\t\r\u00a0\u3000<>_",
    "</s>",
    " </s> ",
    " __label__en",
    "\ud83d",
    "\udc4d",
    "  ",
)
STOPS = re.compile(r"(?<![^ \r\t\v\f\0])</s>(?![^ \r\t\v\f\0])")


def real_texts(folder: Path) -> list[str]:
    """The different texts of the dialogues, replies and choices."""
    texts = []
    for path in [*sorted((folder / "dialogues").rglob("*.tsv")), *sorted((folder / "replies").glob("*.tsv"))]:
        texts += [part for line in path.read_text(encoding="utf-8").splitlines() for part in line.split("\t")]
    for path in sorted((folder / "xcopa").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            texts += [value for value in json.loads(line).values() if isinstance(value, str)]
    return list(dict.fromkeys(texts))


def changed(texts: list[str], seed: int = 39) -> Iterator[str]:
    """Texts made from `texts`, without end."""
    draw = random.Random(seed)
    yield from ("", " ", "\n", "\0", "\u3000", "</s>", "\ud800", "🎉", "__label__en", "HELLO", "a" * 100_000)
    yield from (" ".join(draw.choices(texts, k=2500))[:100_000] for _ in range(20))
    while True:
        letters = list(draw.choice(texts))
        kind = draw.randrange(5)
        if kind == 0:
            letters = list("".join(letters).upper())
        elif kind == 1:
            letters += [draw.choice((" ", "\n", "")), *draw.choice(texts)]
        elif kind == 2:
            start = draw.randrange(len(letters) + 1)
            letters = letters[start : start + draw.randint(0, 12)]
        for _ in range(draw.choice((0, 1, 2, 5)) if kind != 4 else len(letters) // 2):
            place = draw.randrange(len(letters) + 1)
            letters[place : place + draw.randrange(2)] = draw.choice(PIECES)
        yield "".join(letters)


def prepared(text: str) -> str:
    """The line that fastText takes: it refuses newlines and halves of surrogate pairs, and stops at `</s>`."""
    line = "".join(" " if "\ud800" <= letter <= "\udfff" else letter for letter in text.replace("\n", " "))
    return STOPS.sub(" ", line)


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(identifier: LanguageIdentifier, model: Any, texts: list[str]) -> dict[str, Any]:
    """Count other labels, and find the largest difference of a probability."""
    (nothing,), (least,) = model.predict([""])
    other, undetermined, most = [], 0, 0.0
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        answers = zip(
            batch, identifier.identify(batch), *model.predict([prepared(text) for text in batch]), strict=True
        )
        for text, (language, probability), label, shares in answers:
            if language == "und" and (not text.strip() or (label[0], shares[0]) == (nothing[0], least[0])):
                undetermined += 1
            elif label[0] != f"__label__{language}":
                other.append(text)
            else:
                most = max(most, abs(probability - min(float(shares[0]), 1.0)))
    for text in other[:5]:
        print(f"another label: {text!r:.100}", file=sys.stderr)
    return {"texts": len(texts), "other_labels": len(other), "undetermined": undetermined, "largest_difference": most}


def main() -> int:
    """Compare, measure, print, write; 1 where a target is missed."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=1_000_000, help="that are compared (default 1,000,000)")
    parser.add_argument("--data", type=Path, default=SHARED, help="real texts (default ../shared/data)")
    options = parser.parse_args()
    identifier = open_identifier(None)
    if identifier is None or not identifier.path.name.startswith("lid.176") or not options.data.is_dir():
        print(f"bench_lid: skipped, for it needs lid.176 (set MRS_LANGUAGE_MODEL) and real texts in {options.data}.")
        return 0
    import fasttext

    model = fasttext.load_model(str(identifier.path))
    real = real_texts(options.data)
    lines = [prepared(text) for text in real]
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: identifier.identify(real),
        "fasttext": lambda: [model.predict(lines[start : start + BATCH]) for start in range(0, len(lines), BATCH)],
    }
    rounds = [{name: cpu_seconds(call) for name, call in calls.items()} for _ in range(3)]
    best = {name: min(times[name] for times in rounds) for name in calls}
    different = dict.fromkeys(real)
    for text in changed(real):
        different.setdefault(text)
        if len(different) >= options.texts:
            break
    found = compare(identifier, model, list(islice(different, options.texts)))
    ratio = best["fasttext"] / best["ours"]
    figures = {
        "model": identifier.name,
        "real_texts": len(real),
        "characters_per_text": round(sum(map(len, real)) / len(real), 1),
        "microseconds_per_text": {name: round(seconds / len(real) * 1e6, 2) for name, seconds in best.items()},
        "ratio": round(ratio, 2),
        "rounds": [round(times["fasttext"] / times["ours"], 2) for times in rounds],
        "comparison": found,
    }
    met = ratio >= TARGET and not found["other_labels"] and found["largest_difference"] <= MOST_DIFFERENCE
    print(json.dumps(figures, indent=2), "targets met" if met else f"missed: {TARGET} times as fast, with equal labels")
    write_result(__file__, __doc__, figures | {"at least": TARGET, "met": met}, ("fasttext",))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
