"""Chunks of a tagged sentence, by the rules of CoNLL's `conlleval` as implemented by the package seqeval.

Sources: Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task" (precision, recall and F1 of
entities, right only where both ends and the kind are); seqeval in its default mode; all versions from 0.0.12 to 1.2.2
agree on the tags of NER.

A tag is read as a mark, its first letter, and a kind, what follows its last hyphen. A chunk is a run of words of one
kind. B and S always begin one, E and S end one, words marked O are outside; an I that does not follow a chunk of its
kind begins one, so that IOB1 and IOB2 give the same entities if no two of one kind are adjacent.

UPOS tags have no marks, but the rules are applied to them too: `NOUN` has the mark N and the kind NOUN, so that two
nouns in a row are *one* chunk, right only if both are, while `SCONJ` and `SYM` begin with an S and are chunks of their
own. The precision of these chunks is what XGLUE publishes as POS accuracy. The rules are those of seqeval 0.0.12 (June
2019, the newest when XGLUE appeared) and 0.0.13; 0.0.15 to 0.0.17 refuse such tags; from 0.0.18 on they lose their
first letter, which makes CCONJ and SCONJ the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence

OUTSIDE = "O"


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the chunks of a sentence: kind, index of the first and of the last word.

    Raises:
        ValueError: a tag is empty.

    >>> chunks(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 1), ('LOC', 3, 3), ('LOC', 4, 4)]
    >>> chunks(["DET", "NOUN", "NOUN", "SCONJ", "SCONJ"])
    [('DET', 0, 0), ('NOUN', 1, 2), ('SCONJ', 3, 3), ('SCONJ', 4, 4)]
    """
    found = []
    before, kind_before, begin = OUTSIDE, "", 0
    for index, tag in enumerate([*tags, OUTSIDE]):
        if not tag:
            raise ValueError(f"A tag must not be empty, but that of word {index} is.")
        mark, kind = tag[0], tag.rsplit("-", 1)[-1]
        changed = kind != kind_before
        if _ends(before, mark, changed):
            found.append((kind_before, begin, index - 1))
        if _begins(before, mark, changed):
            begin = index
        before, kind_before = mark, kind
    return found


def count_tags(predicted: Sequence[str], labelled: Sequence[str]) -> tuple[int, int, int, int, int]:
    """Count what the scores of a sentence need; missing tags at its end count as O, as in the official script.

    Returns:
        tags that are right, tags, chunks that are right, chunks predicted, chunks labelled.

    Raises:
        ValueError: there are more predicted tags than words, or a tag is empty.

    >>> count_tags(["DET", "NOUN", "VERB"], ["DET", "NOUN", "NOUN", "PUNCT"])
    (2, 4, 1, 3, 3)
    """
    if len(predicted) > len(labelled):
        raise ValueError(f"there are {len(predicted)} predicted tags for {len(labelled)} words")
    padded = [*predicted, *[OUTSIDE] * (len(labelled) - len(predicted))]
    right = sum(ours == theirs for ours, theirs in zip(padded, labelled, strict=True))
    ours, theirs = set(chunks(padded)), set(chunks(labelled))
    return right, len(labelled), len(ours & theirs), len(ours), len(theirs)


def _ends(before: str, mark: str, changed: bool) -> bool:
    """Whether a chunk ends before this word; the mark `.` of old parse files is outside, like O."""
    return before in "ES" or (before in "BI" and mark in "BSO") or (before not in "O." and changed)


def _begins(before: str, mark: str, changed: bool) -> bool:
    return mark in "BS" or (before in "ESO" and mark in "EI") or (mark not in "O." and changed)
