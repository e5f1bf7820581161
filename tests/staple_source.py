"""A small source in the files of STAPLE: translations whose pronoun can be dropped, with two words for each verb."""

import hashlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path

SUBJECTS = {"i": ("eu", "o"), "you": ("você", "a"), "we": ("nós", "amos")}
VERBS = {"eat": ("com", "devor"), "buy": ("compr", "adquir"), "wash": ("lav", "limp"), "see": ("olh", "observ")}
NOUNS = {"bread": "o pão", "fruit": "a fruta", "rice": "o arroz", "meat": "a carne", "fish": "o peixe",
         "cheese": "o queijo", "soup": "a sopa", "cake": "o bolo"}  # fmt: skip
WEIGHTS = (0.5, 0.3, 0.15, 0.05)


def key(prompt: str) -> str:
    return f"prompt_{hashlib.md5(prompt.encode(), usedforsecurity=False).hexdigest()}"


def sentences() -> list[tuple[str, list[tuple[str, float]]]]:
    """Prompts with their accepted translations and weights."""
    found = []
    for (subject, (pronoun, end)), (verb, stems), (noun, named) in product(
        SUBJECTS.items(), VERBS.items(), NOUNS.items()
    ):
        texts = [f"{before}{stem}{end} {named}" for stem, before in product(stems, ("", f"{pronoun} "))]
        found.append((f"{subject} {verb} the {noun}", list(zip(texts, WEIGHTS, strict=True))))
    return found


def write_source(folder: Path, blind: Sequence[str] = ()) -> Path:
    """`en_pt/` with train (68 prompts), dev (14) and test (14); blind splits have no gold."""
    rows = sentences()
    splits: dict[str, list[tuple[str, list[tuple[str, float]]]]] = {"train": [], "dev": [], "test": []}
    for number, row in enumerate(rows):
        splits[{0: "dev", 3: "test"}.get(number % 7, "train")].append(row)
    place = folder / "en_pt"
    place.mkdir(parents=True)
    for split, found in splits.items():
        gold = "\n".join(
            "\n".join([f"{key(prompt)}|{prompt}", *(f"{text}|{weight}" for text, weight in texts), ""])
            for prompt, texts in found
        )
        references = "\n".join(f"{key(prompt)}|{prompt}\n{texts[1][0]}\n" for prompt, texts in found)
        (place / f"{split}.en_pt.toy.aws_baseline.pred.txt").write_text(references, encoding="utf-8")
        if split not in blind:
            (place / f"{split}.en_pt.toy.gold.txt").write_text(gold, encoding="utf-8")
    return folder
