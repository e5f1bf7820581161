"""Sentence boundaries by Punkt, for the tokenization of MRS's official evaluation script.

The script calls NLTK's `word_tokenize(text)`, which splits a text into sentences and applies the Treebank rules to
each. This splitter behaves exactly as NLTK 3.8.1's, also where that departs from the paper. Its parameters are learned
elsewhere and read from a folder.

Source: Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection", Computational Linguistics 32; the
section numbers below are the paper's.

The parameters of NLTK's English model do not come with this package, since their terms are not stated. A folder of
parameters has the layout of NLTK's resource `punkt_tab`: `abbrev_types.txt` and `sent_starters.txt` (a type per line),
`collocations.tab` (two types), `ortho_context.tab` (a type and the sum of its contexts' flags).
"""

from __future__ import annotations

import hashlib
import os
import re
import string
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

RESOURCE = "tokenizers/punkt_tab/english"  # what the official script loads, for texts of any language
FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")

# Parameters with their own name in signatures, by digest. Others are named by folder and digest.
_KNOWN = {"1382107b": "en"}
_LANGUAGES = {
    "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "finnish": "fi", "french": "fr",
    "german": "de", "greek": "el", "italian": "it", "malayalam": "ml", "norwegian": "no", "polish": "pl",
    "portuguese": "pt", "russian": "ru", "slovene": "sl", "spanish": "es", "swedish": "sv", "turkish": "tr",
}  # fmt: skip  # NLTK's folders

# Flags of `ortho_context.tab`: a type occurred with an upper-case first letter at the beginning of a sentence (2),
# inside one (4) or at an unknown place (8), or with a lower-case one (16, 32, 64).
_MID_UC, _ANY_UC, _BEG_LC, _ANY_LC = 4, 2 | 4 | 8, 16, 16 | 32 | 64

_INSIDE = ",:;.?!"  # marks that cannot begin a sentence
_NUMBER = "##number##"
_NUMERIC = re.compile(r"-?[.,]?\d[\d,.-]*\.?")
_INITIAL = re.compile(r"[^\W\d]\.")

# Characters that end a word, and marks that form one token.
_ENDS_WORD = r"[)\";}\]*:@'({\[?!]"
_MARKS = r"-{2,}|\.{2,}|(?:\.\s){2,}\."
_WORD_END = rf"\s|$|{_ENDS_WORD}|{_MARKS}"
_TOKEN = re.compile(rf"{_MARKS}|[^\s(\"`{{\[:;&#*@)}}\]\-,]\S*?(?={_WORD_END}|,(?:{_WORD_END}))|\S")
# A mark that may end a sentence, with what follows: another mark immediately, or a word after white space.
_CANDIDATE = re.compile(rf"[.?!](?=(?P<after>{_ENDS_WORD}|\s+(?P<word>\S+)))")
# What belongs to a sentence although it follows its final mark.
_CLOSING = re.compile(r"[\"')\]}]+?(?:\s+|(?=--)|$)", re.MULTILINE)

_MAX_DECISIONS = 1 << 15
_MAX_CONTEXT = 60  # characters; longer ones hardly repeat


class PunktParameters(NamedTuple):
    """What Punkt learned from a corpus; types are lower-cased words, numbers are `##number##`.

    Attributes:
        abbreviations: types that are written with a dot, without it.
        collocations: pairs of types between which a dot does not end a sentence.
        starters: types that often begin a sentence.
        contexts: type -> sum of the flags of the positions and cases in which it occurred.
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    starters: frozenset[str]
    contexts: dict[str, int]

    def digest(self) -> str:
        """Return eight hexadecimal digits that identify the parameters, whatever the order of their files' lines."""
        parts = (self.abbreviations, self.collocations, self.starters, self.contexts.items())
        return hashlib.sha256(repr([sorted(part) for part in parts]).encode("utf-8", "replace")).hexdigest()[:8]


class Punkt:
    """A sentence splitter; it caches its decisions, since the contexts of dots repeat.

    >>> parameters = PunktParameters(frozenset({"mr"}), frozenset(), frozenset(), {})
    >>> Punkt(parameters, "mine").sentences('"I saw Mr. Smith there!" he said. Well.')
    ['"I saw Mr. Smith there!"', 'he said.', 'Well.']
    """

    def __init__(self, parameters: PunktParameters, name: str) -> None:
        self.name = name
        self._parameters = parameters
        self._decisions: dict[str, bool] = {}

    def __reduce__(self) -> tuple[type[Punkt], tuple[PunktParameters, str]]:
        return Punkt, (self._parameters, self.name)  # pickled without the cached decisions

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, without the white space between them; none if the text is empty."""
        if "." not in text and "?" not in text and "!" not in text:
            whole = text.rstrip()
            return [whole] if whole else []
        return [text[start:end] for start, end in _with_closing_marks(text, list(self._spans(text)))]

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        start = 0
        for match, before in _candidates(text):
            # A question or exclamation mark always ends a sentence.
            if match[0] != "." or self._decide(text[before : match.end("after")]):
                yield start, match.end()
                start = match.start("word") if match["word"] else match.end()
        yield start, len(text.rstrip())

    def _decide(self, context: str) -> bool:
        """Whether a sentence ends inside the context: the word before a dot, the dot, and what follows."""
        decided = self._decisions.get(context)
        if decided is None:
            tokens = [token for line in context.split("\n") for token in _TOKEN.findall(line)]
            decided = any(self._ends_sentence(token, following) for token, following in pairwise(tokens))
            if len(context) <= _MAX_CONTEXT:
                if len(self._decisions) >= _MAX_DECISIONS:
                    self._decisions.clear()
                self._decisions[context] = decided
        return decided

    def _ends_sentence(self, token: str, following: str) -> bool:
        if not token.endswith("."):
            return token in ("?", "!")
        first_guess = self._by_type(token)
        abbreviation_or_ellipsis = not first_guess
        kind, next_kind = _without_dot(_type(token)), _type(following)
        if self._by_type(following):
            next_kind = _without_dot(next_kind)
        if (kind, next_kind) in self._parameters.collocations:  # 4.1.2
            return False
        initial = _INITIAL.fullmatch(token) is not None
        if abbreviation_or_ellipsis and not initial:  # 4.2
            begins = self._begins_sentence(following, next_kind)
            return begins is True or (following[0].isupper() and next_kind in self._parameters.starters)
        if initial or kind == _NUMBER:  # 4.3
            begins = self._begins_sentence(following, next_kind)
            always_upper = following[0].isupper() and not self._parameters.contexts.get(next_kind, 0) & _ANY_LC
            if begins is False or (begins is None and initial and always_upper):
                return False
        return first_guess

    def _by_type(self, token: str) -> bool:
        """The first guess, by the token alone (section 3): a mark, or a word with a dot that is not an abbreviation."""
        if token in (".", "?", "!"):
            return True
        if not token.endswith(".") or token.endswith(".."):
            return False
        word = token[:-1].lower()
        known = self._parameters.abbreviations
        return word not in known and word.split("-")[-1] not in known

    def _begins_sentence(self, token: str, kind: str) -> bool | None:
        """The orthographic heuristic (4.1.1); None if it cannot decide."""
        if token in _INSIDE:
            return False
        seen = self._parameters.contexts.get(kind, 0)
        if token[0].isupper() and seen & _ANY_LC and not seen & _MID_UC:
            return True
        if token[0].islower() and (seen & _ANY_UC or not seen & _BEG_LC):
            return False
        return None


def _candidates(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Marks that may end a sentence, each with the start of the word that it ends; the last of several in a row."""
    start = stop = 0  # of the word before the pending mark
    waiting: re.Match[str] | None = None
    for match in _CANDIDATE.finditer(text):
        space = max(text.rfind(character, stop, match.start()) for character in string.whitespace)
        before = space + 1 if space > stop else start
        if waiting is not None and stop <= before:
            yield waiting, start
        waiting, start, stop = match, before, match.start()
    if waiting is not None:
        yield waiting, start


def _with_closing_marks(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Move quotes and brackets at the start of a sentence to the one before, which they close."""
    moved = 0
    for (start, end), (next_start, next_end) in pairwise(spans):
        start += moved
        closing = _CLOSING.match(text[next_start:next_end])
        moved = closing.end() if closing else 0
        if closing:
            yield start, next_start + len(closing[0].rstrip())
        elif text[start:end]:
            yield start, end
    start, end = spans[-1]
    if text[start + moved : end]:
        yield start + moved, end


def _type(token: str) -> str:
    lowered = token.lower()
    return _NUMBER if _NUMERIC.fullmatch(lowered) else lowered


def _without_dot(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind.endswith(".") else kind


# --- Parameters -----------------------------------------------------------------------------------------------------


def open_punkt(folder: str | os.PathLike[str] | None = None) -> Punkt:
    """Return the splitter with the parameters of a folder, or with those of an installed NLTK resource.

    Args:
        folder: in the layout of NLTK's `punkt_tab`; None searches NLTK's data folders.

    Raises:
        ValueError: the parameters are not installed, or one of their files is missing or broken.
    """
    found = find_parameters() if folder is None else Path(folder)
    if found is None:
        raise ValueError(
            f"Sentences cannot be split: no folder of NLTK's data has {RESOURCE}. Run pip install nltk and then "
            "python -m nltk.downloader punkt_tab, or name the folder that has its files (punkt=FOLDER, --punkt FOLDER)."
        )
    parameters = read_parameters(found)
    digest = parameters.digest()
    language = _LANGUAGES.get(found.resolve().name)
    known = _KNOWN.get(digest)
    return Punkt(parameters, f"punkt-{known}" if known else "-".join(filter(None, ("punkt", language, digest))))


def find_parameters() -> Path | None:
    """Return the folder of NLTK's English parameters if they are installed; NLTK itself is not required."""
    for folder in _nltk_folders():
        found = folder / RESOURCE
        if all((found / name).is_file() for name in FILES):
            return found
    return None


def _nltk_folders() -> Iterator[Path]:
    """Where NLTK looks for its data, in its order."""
    yield from (Path(folder) for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder)
    yield Path(os.path.expanduser("~/nltk_data"))
    yield from (Path(sys.prefix, *place, "nltk_data") for place in ((), ("share",), ("lib",)))
    if sys.platform == "win32":
        yield Path(os.environ.get("APPDATA", "C:\\"), "nltk_data")
        yield from (Path(f"{drive}:\\nltk_data") for drive in "CDE")
    else:
        prefixes = ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
        yield from (Path(prefix, "nltk_data") for prefix in prefixes)


def read_parameters(folder: Path) -> PunktParameters:
    """Read the parameters of a folder in the layout of NLTK's `punkt_tab`.

    Raises:
        ValueError: a file is missing, not UTF-8, or has a malformed line; the sentence names file and line.
    """
    pairs = [fields for _, fields in _rows(folder / "collocations.tab", 2)]
    contexts = {}
    for number, (kind, flags) in _rows(folder / "ortho_context.tab", 2):
        if not (flags.isascii() and flags.isdigit()):
            where = f"{folder / 'ortho_context.tab'}, line {number}"
            raise ValueError(f"{where}: expected a type and a whole number, found {flags!r:.60}.")
        contexts[kind] = int(flags)
    return PunktParameters(
        frozenset(kind for _, (kind,) in _rows(folder / "abbrev_types.txt", 1)),
        frozenset((first, second) for first, second in pairs),
        frozenset(kind for _, (kind,) in _rows(folder / "sent_starters.txt", 1)),
        contexts,
    )


def _rows(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file with their numbers; white space is part of a type (". . " is an abbreviation)."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(
            f"{path}: cannot read the file ({error.strerror}); a folder of Punkt's parameters has {', '.join(FILES)}, "
            "as NLTK's punkt_tab has them for each language."
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 at byte {error.start}; take the file as NLTK publishes it.") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
        fields = line.split("\t")
        if len(fields) != columns or not all(fields):
            raise ValueError(
                f"{path}, line {number}: expected {columns} column{'s' * (columns > 1)}, separated by tabs, "
                f"found {line!r:.60}."
            )
        yield number, fields
