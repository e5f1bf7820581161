"""Made-up texts in three languages with every kind of dirt, and what must become of each line."""

import gzip
import lzma
import random
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from mrs_suggest.suggest.language_detector import LanguageDetector

LETTERS = {"en": "abcdefgh", "de": "ijklmnop", "ru": "абвгдежз"}
GOOD, GARBLED = 40, 20  # garbled lines are a third: the tail
OPTIONS = ("--max-characters", 300, "--min-language-score", 0.9)
DROPPED = {
    "not UTF-8": 2, "empty": 3, "too short": 4, "too long": 1, "mostly not letters": 5, "duplicate": 7,
    "no language found": 1, "language uncertain": 2, "other language": 6,
}  # fmt: skip
LINES = GOOD + GARBLED + sum(DROPPED.values())


@dataclass
class Texts:
    """Paths, and the good lines of each language in their order.

    Attributes:
        options: `--text` and `--reference` of en and de; ru has no reference.
    """

    folder: Path
    good: dict[str, list[str]] = field(default_factory=dict)
    garbled: dict[str, list[str]] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)


def write_texts(folder: Path, seed: int = 0) -> Texts:
    """Write texts of each language, one or more files; references; and a language detector."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, texts = random.Random(seed), Texts(folder)
    words: dict[str, list[str]] = {}
    sentences: dict[str, list[str]] = {}
    for language, letters in LETTERS.items():
        words[language] = ["".join(rng.choices(letters, k=rng.randint(3, 6))) for _ in range(25)]
        sentences[language] = list(dict.fromkeys(_sentence(rng, words[language]) for _ in range(300)))
    detector = LanguageDetector.train({language: own[100:] for language, own in sentences.items()})
    detector.save(folder)
    languages = list(LETTERS)
    for number, (language, own) in enumerate(sentences.items()):
        other = languages[(number + 1) % len(languages)]
        good = own[:GOOD]
        garbled = [_garbled(rng, text) for text in own[GOOD : GOOD + GARBLED]]
        mixed: list[str] = []
        while len(mixed) < DROPPED["language uncertain"]:
            text = " ".join(rng.choice(words[each]) for _ in range(4) for each in (language, other))
            mixed += [text] if detector.identify([text])[0][1] < 0.8 else []
        lines = [text.encode() for text in good + garbled]
        lines[10:10] = [b"", b" \t\xc2\xa0", "\ufeff".encode(), b"\xff\xfe nonsense", b"half \xc3"]
        lines[20:20] = [text[:7].encode() for text in good[:4]]  # too short
        lines[30:30] = [(good[0] * 20).encode(), *(f"{n}{n}:17 +49 89 {good[n][:5]}".encode() for n in range(5))]
        lines += [text.upper().replace(".", "!").encode() for text in good[5:9]]
        lines += [f"  {text} ".encode() for text in good[9:12]]
        lines += [text.encode() for text in (*sentences[other][90:96], *mixed, "שלום לכל העולם")]
        texts.good[language], texts.garbled[language] = good, garbled
        _write(folder, language, lines)
        if language != "ru":
            (folder / f"reference.{language}.txt").write_text("\n".join(own[100:]) + "\n", encoding="utf-8")
    texts.options = [
        "--text", f"en={folder / 'en'}", f"de={folder / 'de.txt.zst'}", f"ru={folder / 'ru.txt'}",
        "--reference", f"en={folder / 'reference.en.txt'}", f"de={folder / 'reference.de.txt'}",
        "--language-model", str(folder), *map(str, OPTIONS),
    ]  # fmt: skip
    return texts


def _sentence(rng: random.Random, words: list[str]) -> str:
    return " ".join(rng.choices(words, k=rng.randint(5, 8))).capitalize() + "."


def _garbled(rng: random.Random, text: str) -> str:
    letters = [c for c in text if c.isalpha()]
    rng.shuffle(letters)
    return "".join(letters.pop() if c.isalpha() else c for c in text)


def _write(folder: Path, language: str, lines: list[bytes]) -> None:
    """A folder of two packed files, a zstd file, or a plain one with a byte-order mark and line ends of Windows."""
    if language == "en":
        (folder / "en").mkdir()
        (folder / "en" / "a.txt.gz").write_bytes(gzip.compress(b"\n".join(lines[:50])))
        (folder / "en" / "b.txt.xz").write_bytes(lzma.compress(b"\n".join(lines[50:]) + b"\n"))
        (folder / "en" / "notes.md").write_text("not a text")
    elif language == "de":
        (folder / "de.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(b"\n".join(lines) + b"\n"))
    else:
        (folder / "ru.txt").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lines_of(folder: Path) -> dict[str, list[str]]:
    """The lines of each bucket of a language's folder."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.txt.gz")):
        found.setdefault(path.name.split("-")[0], []).extend(gzip.decompress(path.read_bytes()).decode().splitlines())
    return found
