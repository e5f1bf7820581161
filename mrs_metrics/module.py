"""Shared by the `evaluate` modules: their descriptions, and the check of their inputs.

A module's docstring is the description that `evaluate` shows, its class's docstring that of the inputs and figures.
`evaluate` reads its inputs by index and length before a module sees them, with a traceback if they have neither: each
of these classes comes before `evaluate.Metric` among the bases of a module.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mrs_metrics.signature import as_lists, check_lists, check_suggestions

MRS = """\
@inproceedings{zhang-etal-2021-dataset, title = "A Dataset and Baselines for Multilingual Reply Suggestion",
author = "Zhang, Mozhi and Wang, Wei and Deb, Budhaditya and Zheng, Guoqing and Shokouhi, Milad and Awadallah, Ahmed
Hassan", booktitle = "Proceedings of ACL-IJCNLP 2021", year = "2021"}
"""

INTERVAL = """With `interval=True`, results also have `interval` and `interval_method`: both ends and how they were
    computed, or None and the reason. It keeps `units` whole: for each example what it belongs to, such as its message.
"""


class Lists:
    """Base of a module that compares predictions with references of any kind.

    Attributes:
        citation: BibTeX.
        inputs: their types, as `datasets.Features`, or several of which the first that fits counts.
        compares: whether references are required.
    """

    citation = MRS
    urls: tuple[str, ...] = ()
    inputs: Any = None
    compares = True

    def _info(self) -> Any:
        import evaluate

        return evaluate.MetricInfo(
            description=sys.modules[type(self).__module__].__doc__,
            citation=self.citation,
            inputs_description=f"{type(self).__doc__}{INTERVAL}",
            features=list(self.inputs) if isinstance(self.inputs, tuple) else self.inputs,
            reference_urls=list(self.urls),
        )

    def checked(self, predictions: Any, references: Any) -> tuple[Any, Any]:
        """Refuse inputs that `evaluate` cannot store, and return them as it stores them."""
        check_lists(predictions, references, self.compares)
        _check_encodable(predictions, references)
        return predictions, references

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: object) -> None:
        """Add examples."""
        predictions, references = self.checked(predictions, references)
        super().add_batch(predictions=predictions, references=references, **kwargs)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: object) -> None:
        """Add one example."""
        given = [reference] if reference is not None or self.compares else None
        predictions, references = self.checked([prediction], given)
        one = references[0] if references else None
        super().add(prediction=predictions[0], reference=one, **kwargs)  # type: ignore[misc]


class Suggestions(Lists):
    """Base of a module that uses only each example's suggestions."""

    compares = False

    @property
    def inputs(self) -> Any:
        """A list of texts for each example."""
        import datasets

        return datasets.Features({"predictions": datasets.Sequence(datasets.Value("string"))})

    def checked(self, predictions: Any, references: Any) -> tuple[Any, Any]:
        """See `Lists`."""
        check_suggestions(predictions)
        return super().checked(predictions, None)


class SuggestionsAndReferences(Lists):
    """Base of a module that compares suggestions with one reference or several, which are stored as lists.

    `evaluate` has no optional inputs: where references are not required, a missing one is stored as an empty text.
    """

    @property
    def inputs(self) -> Any:
        """Two lists of texts for each example."""
        import datasets

        texts = datasets.Sequence(datasets.Value("string"))
        return datasets.Features({"predictions": texts, "references": texts})

    def checked(self, predictions: Any, references: Any) -> tuple[Any, Any]:
        """See `Lists`."""
        check_suggestions(predictions, references, required=self.compares)
        given = [""] * len(predictions) if references is None else references
        return super().checked(predictions, as_lists(given))


def _check_encodable(predictions: Iterable[object], references: Iterable[object] | None) -> None:
    """Refuse lone surrogates, which UTF-8, and so the files of `evaluate`, cannot represent."""
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
