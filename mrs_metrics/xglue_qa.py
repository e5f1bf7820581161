"""F1 and exact match of an answer, by the rules of MLQA's official script.

Source: Lewis et al. 2020, "MLQA: Evaluating Cross-lingual Extractive Question Answering" (section 5.2), and
`mlqa_evaluation_v1.py` (facebookresearch/MLQA), which XGLUE's official script calls. An answer is read so:

1. lower case;
2. without punctuation: Unicode's categories P, and the ASCII symbols ``$+<=>^`|~``;
3. articles of the language become a space. The official list for Vietnamese has words that are not articles. Arabic's
   is removed wherever its two letters occur, also inside a word: an anchor in the official pattern is misplaced;
4. tokens are separated by white space; for Chinese, each character from U+4E00 to U+9FA5 is one too.

F1 counts tokens, each as often as both have it; it is 0 if they have none in common, also for two texts that are both
read as empty, which match exactly. Of several right answers the best counts, for each figure separately.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

LANGUAGES = ("ar", "de", "en", "es", "hi", "vi", "zh")
_WORDS = {
    "de": "ein eine einen einem eines einer der die das den dem des",
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "vi": "của là cái chiếc những",
}
_ARTICLES = {code: re.compile(rf"\b(?:{'|'.join(words.split())})\b") for code, words in _WORDS.items()}
_ARTICLES["ar"] = re.compile("ال")
_HAN = re.compile("([\u4e00-\u9fa5])")


def read_answer(text: str, language: str) -> list[str]:
    """Return the tokens of an answer as they are compared.

    Raises:
        ValueError: the language is not one of MLQA's.

    >>> read_answer("The U.S. Army", "en"), read_answer("约 1900年", "zh")
    (['us', 'army'], ['约', '1900', '年'])
    """
    if language not in LANGUAGES:
        raise ValueError(f"MLQA has rules for {', '.join(LANGUAGES)}, not for {language!r}.")
    bare = "".join(character for character in text.lower() if not _is_punctuation(character))
    if language in _ARTICLES:
        bare = _ARTICLES[language].sub(" ", bare)
    return (_HAN.sub(r" \1 ", bare) if language == "zh" else bare).split()


def score_answer(prediction: str, answers: Sequence[str], language: str) -> tuple[float, float]:
    """Return the F1 and the exact match (1 or 0) of a predicted answer, each against the right answer that is best.

    Raises:
        ValueError: there is no right answer, or the language is not one of MLQA's.

    >>> score_answer("in the year 1900", ["1900", "year 1900"], "en")
    (0.8, 0.0)
    """
    if not answers:
        raise ValueError("there is no right answer to compare with")
    ours = read_answer(prediction, language)
    theirs = [read_answer(answer, language) for answer in answers]
    return max(_f1(ours, answer) for answer in theirs), float(ours in theirs)


def _f1(ours: list[str], theirs: list[str]) -> float:
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")
