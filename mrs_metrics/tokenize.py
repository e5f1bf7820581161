"""Tokens and n-grams: the tokenizers of MRS's official evaluation script, and others for languages that MRS lacks.

Every language of MRS but Japanese is tokenized by the Penn Treebank rules of NLTK 3.8.1, which are implemented here,
since later releases treat opening quotes differently; Japanese by MeCab with unidic-lite, as `Tagger("-Owakati")` does.

NLTK's `word_tokenize(text)`, which the script calls, splits the text into sentences first, with its English Punkt model
for every language: `sentences="punkt"`. That needs the model's parameters (`mrs_metrics.punkt`), so the default is
`word_tokenize(text, preserve_line=True)`: the text is one sentence, and a dot inside it stays on its word. The two
differ on texts of several sentences. Japanese is never split into sentences, as in the script.

Other languages with spaces between words are tokenized by the Treebank rules, too. Without spaces, a whole sentence
would count as a word: Chinese is split by jieba (its dictionary and model in rjieba), Thai by PyThaiNLP's newmm, and
the others are refused. A script in the code takes precedence (`zh-Latn` has spaces).

Source: Zhang et al. 2021, "A Dataset and Baselines for Multilingual Reply Suggestion", section 3.3, and its official
evaluation script.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from itertools import chain

from mrs_metrics.punkt import Punkt, find_parameters, open_punkt

# The NLTK release whose behaviour the Treebank rules below reproduce.
TREEBANK_VERSION = "3.8.1"

SENTENCES = ("no", "punkt")
AUTO = "auto"  # `punkt` where its parameters are found, else `no`

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)
_SCRIPT = re.compile(r"-([a-z]{4})(?=-|$)", re.IGNORECASE)
# Languages and scripts (ISO 639, ISO 15924) without spaces between words, without a tokenizer here.
_UNSPACED_LANGUAGES = frozenset(
    ("bo", "cdo", "dz", "gan", "hak", "hsn", "ii", "khb", "km", "lo", "lzh", "my", "nan", "nod", "shn", "wuu", "yue")
)
_UNSPACED_SCRIPTS = frozenset(
    ("hani", "hans", "hant", "hira", "jpan", "kana", "khmr", "lana", "laoo", "mymr", "talu", "thai", "tibt", "yiii")
)


@dataclass(frozen=True)
class Tokenizer:
    """A named tokenizer; call it with a text to get the list of its tokens.

    Attributes:
        version: release of the rules or of the dictionary, for the signature.
        spaced: text -> tokens separated by white space, exactly as the official script sees the tokenized text. It
            is kept apart from the list of tokens because MeCab ends its output with " \\n", which matters for
            MRS's rules.
        split: text -> its tokens, given if `spaced` puts only single spaces between them; it is faster.
        sentences: how texts are split into sentences first, for the signature: `no`, or `punkt-en`.

    >>> get_tokenizer("en")("Isn't it?")
    ['Is', "n't", 'it', '?']
    """

    name: str
    version: str
    spaced: Callable[[str], str]
    split: Callable[[str], list[str]] | None = None
    sentences: str = "no"

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return self.split(text) if self.split else self.spaced(text).split()


@cache
def get_tokenizer(language: str, sentences: str = "no", punkt: str | os.PathLike[str] | None = None) -> Tokenizer:
    """Return the tokenizer for a language; the same object every time.

    Args:
        language: a BCP-47 code such as `en`, `pt` or `ja`.
        sentences: `no`, or `punkt`: split texts into sentences first, as MRS's official script does; only before
            the Treebank rules, so not in Japanese, Chinese and Thai.
        punkt: folder of Punkt's parameters; default: NLTK's English ones, if installed.

    Raises:
        ValueError: the code does not have the form of a language code, the language lacks a tokenizer, or the
            parameters are missing or broken.
        ImportError: the language's tokenizer (Japanese, Chinese, Thai) is not installed.

    >>> get_tokenizer("fr").name
    'treebank'
    """
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise ValueError(f"The language must be a BCP-47 code such as 'en' or 'ja', not {language!r}.")
    if sentences not in SENTENCES:
        raise ValueError(f"The sentence splitting must be one of {list(SENTENCES)}, not {sentences!r}.")
    if punkt is not None and sentences != "punkt":
        raise ValueError("Punkt's parameters need sentences='punkt' (--sentences punkt); pass it too.")
    base = language.lower().split("-")[0]
    script = _SCRIPT.search(language)
    spaced = script is not None and script[1].lower() not in _UNSPACED_SCRIPTS
    if base == "ja":
        return _mecab()
    if base in ("zh", "cmn") and not spaced:
        return _jieba()
    if base == "th" and not spaced:
        return _newmm()
    if not spaced and (script is not None or base in _UNSPACED_LANGUAGES):
        raise ValueError(
            f"{language!r} has no spaces between words and lacks a tokenizer here: score its "
            "characters with reply_bleu (tokenize='char'), or pass your own tokenizer to score_examples."
        )
    if sentences == "no":
        return Tokenizer("treebank", TREEBANK_VERSION, partial(_joined, treebank_tokens), treebank_tokens)
    splitter = open_punkt(punkt)
    split = partial(_tokens_by_sentence, splitter)
    return Tokenizer("treebank", TREEBANK_VERSION, partial(_joined, split), split, splitter.name)


def found_tokenizer(language: str, sentences: str = AUTO, punkt: str | os.PathLike[str] | None = None) -> Tokenizer:
    """Return the tokenizer as `get_tokenizer` does, by default with sentences where Punkt's parameters are found."""
    auto = "punkt" if sentences == AUTO and (punkt is not None or find_parameters()) else "no"
    return get_tokenizer(
        language, auto if sentences == AUTO else sentences, None if punkt is None else os.fspath(punkt)
    )


def rules_name(rules: str, tokenizer: Tokenizer) -> str:
    """Return the name of rules for a signature: `official` only with the tokens of MRS's script, otherwise `mrs`."""
    exact = tokenizer.sentences == "punkt-en" or tokenizer.name == "mecab-unidic-lite"
    return "mrs" if rules == "official" and not exact else rules


def _tokens_by_sentence(splitter: Punkt, text: str) -> list[str]:
    return [token for sentence in splitter.sentences(text) for token in treebank_tokens(sentence)]


def _joined(split: Callable[[str], list[str]], text: str) -> str:
    return " ".join(split(text))


def _mecab() -> Tokenizer:
    try:
        import fugashi
        import unidic_lite
    except ImportError as error:
        raise ImportError(
            "Tokenizing Japanese needs MeCab and its dictionary unidic-lite, which are not installed: "
            "run pip install fugashi unidic-lite."
        ) from error
    # The dictionary is given explicitly: by default fugashi would prefer the full unidic if that is installed.
    folder = unidic_lite.DICDIR
    tagger = fugashi.GenericTagger(f'-r "{folder}/mecabrc" -d "{folder}"')

    def spaced(text: str) -> str:
        # MeCab reads UTF-8, which cannot encode lone surrogates; they become "?".
        text = text.encode("utf-8", "replace").decode("utf-8")
        # MeCab ends a text at NUL, which is a separate token here, as for jieba. fugashi's own `parse` strips its
        # output; this keeps the edges as MeCab's "-Owakati" writes them.
        return "\0 ".join("".join(f"{node.surface} " for node in tagger(part)) for part in text.split("\0")) + "\n"

    return Tokenizer("mecab-unidic-lite", metadata.version("unidic-lite"), spaced)


def _jieba() -> Tokenizer:
    try:
        import rjieba
    except ImportError as error:
        raise ImportError(
            "Tokenizing Chinese needs jieba (the package rjieba), which is not installed: run pip install rjieba."
        ) from error
    words = rjieba.Jieba()  # a separate one: words that a program adds to the shared dictionary would change the scores

    def split(text: str) -> list[str]:
        return " ".join(words.cut(text.encode("utf-8", "replace").decode("utf-8"))).split()

    return Tokenizer("rjieba", metadata.version("rjieba"), partial(_joined, split), split)


def _newmm() -> Tokenizer:
    try:
        from pythainlp.tokenize import word_tokenize
    except ImportError as error:
        raise ImportError(
            "Tokenizing Thai needs PyThaiNLP, which is not installed: run pip install pythainlp."
        ) from error

    def split(text: str) -> list[str]:
        return " ".join(word_tokenize(text, engine="newmm")).split()

    return Tokenizer("pythainlp-newmm", metadata.version("pythainlp"), partial(_joined, split), split)


# --- n-grams ----------------------------------------------------------------------------------------------------


def ngrams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of one token sequence from left to right; none if it is shorter than n.

    Raises:
        ValueError: n is below 1.

    >>> list(ngrams(["a", "b", "c"], 2))
    [('a', 'b'), ('b', 'c')]
    """
    if n < 1:
        raise ValueError(f"The order of an n-gram must be 1 or more, not {n}.")
    if n == 1:
        return zip(tokens)
    return zip(tokens, *[tokens[start:] for start in range(1, n)], strict=False)


def ngram_sets(tokens: Sequence[str], max_order: int) -> tuple[frozenset[tuple[str, ...]], ...]:
    """Return the sets of distinct n-grams of the orders 1 to `max_order`, in that order.

    >>> [len(grams) for grams in ngram_sets(["yes", "yes", "yes"], 3)]
    [1, 1, 1]
    """
    return tuple(frozenset(ngrams(tokens, order)) for order in range(1, max_order + 1))


def numbered(grams: Iterable[tuple[str, ...]]) -> list[tuple[object, ...]]:
    """Make repeated n-grams distinct: each repetition is paired with the number of its earlier occurrences.

    So a multiset becomes a set, and the size of the intersection of two is the sum of ROUGE-N's clipped counts (Lin
    2004): for each n-gram the smaller of its two counts.

    >>> numbered(ngrams(["yes", "no", "yes"], 1))
    [('yes',), ('no',), (('yes',), 1)]
    """
    counts: dict[tuple[str, ...], int] = {}
    members: list[tuple[object, ...]] = []
    for gram in grams:
        before = counts.get(gram, 0)
        counts[gram] = before + 1
        members.append((gram, before) if before else gram)
    return members


# --- Treebank rules -------------------------------------------------------------------------------------------------
#
# The rules are passes over the text that put spaces around tokens; the last step splits at white space.
# A pass may see the spaces of the passes before it, so their order matters. The number of consecutive spaces never
# does. A pass is skipped if its characters do not occur in the text. Patterns that are one group as a whole are
# applied by `_apart`.

_OPENING_QUOTE = re.compile("([«“‘„]|`+)")
_CLOSING_QUOTE = re.compile("([»”’])")
_DOUBLE_QUOTE_AFTER_OPENER = re.compile(r"(?<=[ (\[{<])(?:\"|'')")
# 'x where x is a word of one letter that is not an English clitic ('s, 't, 'm, 'd, 'n).
_QUOTED_LETTER = re.compile(r"'(?=\w\b)(?![stmdn])", re.IGNORECASE)
# What may follow the final dot of the text.
_AFTER_FINAL_DOT = "])}>\"'»”’ "
# The character after the comma is consumed, so that of two commas in a row only the first is set apart.
_COMMA_BEFORE_NON_DIGIT = re.compile(r"([:,])(\D)")
_COMMA_AT_END = re.compile(r"([:,])$")
_DOTS = re.compile(r"(\.\.+)")
_SYMBOL = re.compile(r"([?!;@#$%&])")
_BRACKET_OR_STAR = re.compile(r"([][(){}<>*])")
_QUOTE_BEFORE_SPACE = re.compile(r"('(?<=[^']'))(?= )")
_CLITIC_OF_ONE_LETTER = re.compile(r"('(?<=[^' ]')[sSmMdD]?)(?= )")
_CLITIC_OF_TWO_LETTERS = re.compile(r"(?<=[^' ])('(?:ll|LL|re|RE|ve|VE)|n't|N'T)(?= )")
# Words that fall apart after their third letter: can|not, gim|me, lem|me, gon|na, got|ta, wan|na.
_FUSED = re.compile(r"\b(?:cannot|gimme|lemme|gonna|gotta|wanna(?=\s))\b", re.IGNORECASE)
_FUSED_QUOTE = re.compile(r"\b(d|more)(?:(?<=d)('ye)|(?<=e)('n))\b", re.IGNORECASE)
# Two passes: in 'tis'twas the second word is reached because the first one left a space.
_TIS = re.compile(r" ('t)(is)\b", re.IGNORECASE)
_TWAS = re.compile(r" ('t)(was)\b", re.IGNORECASE)


def treebank_tokens(text: str) -> list[str]:
    """Split a text by the Treebank rules; equal to NLTK 3.8.1's `word_tokenize(text, preserve_line=True)`.

    The whole text counts as one sentence: a dot inside stays on its word, only the last one is set apart.

    >>> treebank_tokens('"I cannot see it. At all," he said.')
    ['``', 'I', 'can', 'not', 'see', 'it.', 'At', 'all', ',', "''", 'he', 'said', '.']
    """
    words = text.split(" ")
    if len(words) == 1:
        return list(_ALONE[text])
    if not words[-1].rstrip().strip(_AFTER_FINAL_DOT):
        return _by_rules(text)  # the final dot may stand in a word before the last
    inner = chain.from_iterable(map(_INNER.__getitem__, words[1:-1]))
    return [*_FIRST[words[0]], *inner, *_LAST[words[-1]]]


def _by_rules(text: str) -> list[str]:
    single, double = "'" in text, '"' in text
    if "`" in text or double or single or not text.isascii():
        text = _set_opening_quotes_apart(text, single, double)
    text = _set_final_dot_apart(text)
    if "," in text or ":" in text:
        text = _COMMA_BEFORE_NON_DIGIT.sub(r" \1 \2", text)
        text = _apart(_COMMA_AT_END, text)
    if ".." in text:
        text = _apart(_DOTS, text)
    text = _apart(_SYMBOL, text)
    if single:
        text = _apart(_QUOTE_BEFORE_SPACE, text)
    text = _apart(_BRACKET_OR_STAR, text)
    if "--" in text:
        text = text.replace("--", " -- ")
    text = f" {text} "
    if not text.isascii():
        text = _apart(_CLOSING_QUOTE, text)
    if single or double:
        text = text.replace("''", " '' ").replace('"', " '' ")
        text = _apart(_CLITIC_OF_TWO_LETTERS, _apart(_CLITIC_OF_ONE_LETTER, text))
    return _split_fused_words(text, single).split()


def _apart(pattern: re.Pattern[str], text: str) -> str:
    """Put spaces around each match; splitting at a group keeps it and is faster than substituting it."""
    return " ".join(pattern.split(text))


def _set_opening_quotes_apart(text: str, single: bool, double: bool) -> str:
    text = _apart(_OPENING_QUOTE, text)
    if text.startswith('"'):
        text = "``" + text[1:]
    if "``" in text:
        text = text.replace("``", " `` ")
    if double or single:
        text = _DOUBLE_QUOTE_AFTER_OPENER.sub(" `` ", text)
    if single:
        text = _QUOTED_LETTER.sub("' ", text)
    return text


def _set_final_dot_apart(text: str) -> str:
    dot = text.rfind(".")
    if dot < 1 or text[dot - 1] == ".":
        return text
    after = text[dot + 1 :].rstrip()
    return text if after.strip(_AFTER_FINAL_DOT) else f"{text[:dot]} . {after} "


def _split_fused_words(text: str, single: bool) -> str:
    if _may_be_fused(text):
        text = _FUSED.sub(lambda match: f" {match[0][:3]} {match[0][3:]} ", text)
    if single:
        text = _FUSED_QUOTE.sub(lambda match: f" {match[1]} {match[2] or match[3]} ", text)
        text = _TWAS.sub(r" \1 \2 ", _TIS.sub(r" \1 \2 ", text))
    return text


def _may_be_fused(text: str) -> bool:
    lowered = text.lower()
    return "nno" in lowered or "mme" in lowered or "nna" in lowered or "tta" in lowered


# --- Cached words ---------------------------------------------------------------------------------------------------
#
# All rules but two look no further than the space next to a word: a quote at the start of the text opens, and the last
# dot of the text is set apart. So a string between two spaces always gives the same tokens at the same place of a text
# (first, inner, last, alone), and words repeat: in 1,900 different English texts, one word in seven was not cached.

_MAX_WORDS = 1 << 15
_MAX_WORD_LENGTH = 40  # longer ones, such as a text in a script without spaces, hardly repeat


class _Words(dict[str, tuple[str, ...]]):
    """A cache of the tokens of words at one place of a text, computed by the rules on first use; at most some 10 MB."""

    def __init__(self, before: str, after: str) -> None:
        super().__init__()
        self._before, self._after = before, after

    def __missing__(self, word: str) -> tuple[str, ...]:
        if word.isalnum() and not _may_be_fused(word):
            tokens: tuple[str, ...] = (word,)
        else:
            found = _by_rules(f"{self._before}{word}{self._after}")
            tokens = tuple(found[len(self._before.split()) : len(found) - len(self._after.split())])
        if len(word) <= _MAX_WORD_LENGTH:
            if len(self) >= _MAX_WORDS:
                self.clear()
            self[word] = tokens
        return tokens


_FIRST, _INNER, _LAST, _ALONE = _Words("", " x"), _Words("x ", " x"), _Words("x ", ""), _Words("", "")


def forget_words() -> None:
    """Empty the word cache, to measure without it or to free its memory."""
    for words in (_FIRST, _INNER, _LAST, _ALONE):
        words.clear()
