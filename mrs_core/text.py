"""Comparison forms of short texts."""

from __future__ import annotations

import unicodedata

_ASCII_DROPPED = {c: None for c in range(128) if unicodedata.category(chr(c))[0] in "PZC"}


def normalise_reply(text: str) -> str:
    """The form in which two replies count as the same one: NFKC, case folded, letters, marks, digits and symbols only.

    Punctuation and separators go (Unicode categories P, Z, C), so that "Thanks!", "thanks" and " Thanks. " are one
    reply. A text with nothing else in it ("?!") keeps its folded characters, so that it does not fall together with
    the empty text. Response sets use this form as the cluster of a reply, retrieval to drop repeated suggestions.

    >>> normalise_reply(" Thanks!") == normalise_reply("thanks")
    True
    >>> normalise_reply("?!"), normalise_reply("C’est ça.")
    ('?!', 'cestça')
    """
    if text.isascii():  # most replies, and several times faster
        return text.lower().translate(_ASCII_DROPPED) or "".join(text.lower().split())
    form = unicodedata.normalize("NFKC", text)
    while True:  # what is dropped can bring characters together that compose: again, until nothing changes
        folded = unicodedata.normalize("NFKC", form.casefold())
        kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC") or "".join(folded.split())
        if kept == form:
            return form
        form = kept
