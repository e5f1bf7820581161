"""The input check of all metrics of suggestions: each example has a list of texts, and one reference or several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from typing import Any, TypeGuard

# An example's reference: one text, or several texts that are all right.
Reference = str | Sequence[str]


def check_suggestions(
    predictions: Sequence[Sequence[str]], references: Sequence[Reference] | None = None, required: bool = False
) -> None:
    """Check that each example has a list of suggestions and, if references are given, one or several texts.

    Args:
        predictions: for each example its suggestions.
        references: for each example its reference, or a list of its references.
        required: references must be given.

    Raises:
        ValueError: the two differ in length, an entry has the wrong type, or a list is replaced by something that
            can be read only once (a generator, an iterator) or has no order (a set, a dictionary).

    >>> check_suggestions([["Yes!", "No."], []], [["Yes", "Sure"], "Bye"])
    """
    check_lists(predictions, references, required)
    if references is not None and len(predictions) != len(references):
        raise ValueError(
            "Predictions and references must have one entry for each example, "
            f"but there are {len(predictions)} predictions and {len(references)} references.{_turned(references)}"
        )
    for index, reference in enumerate(() if references is None else references):
        check_reference(index, reference)
    for index, texts in enumerate(predictions):
        if not _is_list(texts) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"The predictions of example {index} must be a list of texts, not {_kind(texts)}.")


def check_lists(predictions: object, references: object = None, required: bool = False) -> None:
    """Refuse predictions and references that are not lists, whatever they contain.

    Raises:
        ValueError: they are not lists, or required references are None.
    """
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("Predictions and references must be lists with one entry for each example, not one text.")
    if references is None and required:
        raise ValueError("The references are missing; this metric compares each example's prediction with them.")
    for name, entries in (("predictions", predictions), ("references", references)):
        if not (_is_list(entries) or (entries is None and name == "references")):
            raise ValueError(f"The {name} must be a list with one entry for each example, not {_kind(entries)}.")


def check_encodable(predictions: Iterable[object], references: Iterable[object] | None = None) -> None:
    """Refuse lone surrogates, which UTF-8, and so the files of `evaluate`, cannot hold.

    Raises:
        ValueError: a text has one; the sentence names the example.
    """
    for name, entries in (("predictions", predictions), ("references", references or ())):
        for index, entry in enumerate(entries):
            for text in _texts(entry):
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    start = max(0, error.start - 20)
                    raise ValueError(
                        f"The {name} of example {index} contain a lone surrogate, which is not a character: repair the "
                        f"text {text[start : start + 60]!a}."
                    ) from None


def _texts(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, Mapping):
        yield from _texts(list(entry.values()))
    elif isinstance(entry, list | tuple) and not isinstance(next(iter(entry), None), int | float):
        for one in entry:
            yield from _texts(one)


def check_reference(index: int, reference: object) -> None:
    """Refuse a reference that is neither a text nor a list of texts.

    Raises:
        ValueError: it is neither, or the list is empty.
    """
    if isinstance(reference, str):
        return
    if not _is_list(reference) or not all(isinstance(text, str) for text in reference):
        raise ValueError(f"The reference of example {index} must be a text or a list of texts, not {_kind(reference)}.")
    if not len(reference):
        raise ValueError(f"The references of example {index} are an empty list; give one text or more.")


def as_lists(references: Iterable[Reference]) -> list[list[str]]:
    """Return the references of each example as a list.

    >>> as_lists(["Yes", ["Yes", "Sure"]])
    [['Yes'], ['Yes', 'Sure']]
    """
    return [[reference] if isinstance(reference, str) else list(reference) for reference in references]


def reference_counts(references: Iterable[Reference]) -> frozenset[int]:
    """Return the numbers of references that examples have.

    >>> sorted(reference_counts(["Yes", ["Yes", "Sure"]]))
    [1, 2]
    """
    return frozenset(1 if isinstance(reference, str) else len(reference) for reference in references)


def shown_counts(counts: Iterable[int]) -> int | str:
    """Return the number of references for a signature, as sacreBLEU does: the number, or `var`.

    >>> shown_counts({2}), shown_counts({1, 2}), shown_counts(())
    (2, 'var', 1)
    """
    different = set(counts) or {1}
    return different.pop() if len(different) == 1 else "var"


def _is_list(entries: object) -> TypeGuard[Collection[object]]:
    """Whether it has a length and an order, and can be read again: lists, tuples, arrays, columns of a data set."""
    if isinstance(entries, str | bytes | Mapping | AbstractSet):
        return False
    return isinstance(entries, Sized) and isinstance(entries, Iterable)


def _kind(entries: object) -> str:
    if entries is None:
        return "None"
    if isinstance(entries, Iterable) and not isinstance(entries, Sized):
        return f"{type(entries).__name__}, which can be read only once: make a list of it"
    return f"{type(entries).__name__} ({entries!r:.60})"


def _turned(references: Sequence[Reference]) -> str:
    """A hint if there is a list for each set of references, as sacreBLEU's own functions expect them."""
    if len(references) and not any(isinstance(reference, str) for reference in references):
        return " Several references belong in one list for each example."
    return ""


# --- Inputs of `evaluate` modules -----------------------------------------------------------------------------------
#
# `evaluate` reads its inputs by index and length before a module sees them, with a traceback if they have neither.
# Each of these classes comes before `evaluate.Metric` among the bases of a module.


class Lists:
    """Base of a module that compares predictions with references of any kind."""

    compares = True

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: object) -> None:
        """Add examples."""
        check_lists(predictions, references, self.compares)
        check_encodable(predictions, references)
        super().add_batch(predictions=predictions, references=references, **kwargs)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: object) -> None:
        """Add one example."""
        check_encodable([prediction], [reference])
        super().add(prediction=prediction, reference=reference, **kwargs)  # type: ignore[misc]


class Suggestions(Lists):
    """Base of a module that uses only each example's suggestions."""

    compares = False

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: object) -> None:
        """Add examples."""
        check_suggestions(predictions)
        super().add_batch(predictions=predictions, **kwargs)

    def add(self, *, prediction: Any = None, **kwargs: object) -> None:
        """Add one example."""
        check_suggestions([prediction])
        super().add(prediction=prediction, **kwargs)


class SuggestionsAndReferences(Lists):
    """Base of a module that compares suggestions with one reference or several, which are stored as lists."""

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: object) -> None:
        """Add examples."""
        check_suggestions(predictions, references, required=True)
        super().add_batch(predictions=predictions, references=as_lists(references), **kwargs)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: object) -> None:
        """Add one example."""
        check_suggestions([prediction], [reference])
        super().add(prediction=prediction, reference=as_lists([reference])[0], **kwargs)
