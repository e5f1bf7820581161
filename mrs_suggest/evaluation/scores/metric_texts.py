"""What the metrics of suggested texts share: the prediction file, its language, how texts become tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.metric_errors import metric_errors
from mrs_suggest.common.text.languages import KNOWN, LANGUAGES
from mrs_suggest.common.text.predictions import SUGGESTIONS, read_predictions
from mrs_suggest.evaluation.scores.metric_spec import Input, Metric, Option

if TYPE_CHECKING:
    from mrs_metrics.tokenize import Tokenizer

PREDICTION_FILE = Input("message, reference, suggestions; separated by tabs, a header line is left out")
EMPTY_SUGGESTIONS = "empty suggestions"
_LANGUAGES = f"MRS has {' '.join(LANGUAGES)}, known are {' '.join(sorted(KNOWN))}"


class Texts(NamedTuple):
    """Suggestions and references of n examples, and what identifies these: message and reference."""

    suggestions: list[tuple[str, ...]]
    references: list[str]
    examples: list[str]


@dataclass(frozen=True, kw_only=True)
class TextMetric(Metric):
    """A metric that reads prediction files."""

    language: Annotated[str, Option("the language of the texts", metavar="CODE", flag="lang", known=_LANGUAGES)]
    nbest: Annotated[int, Option("suggestions a line at most", source="from section 3.3 of MRS")] = SUGGESTIONS

    def check(self) -> None:
        if self.language not in KNOWN:
            raise InputError(f"--lang: unknown language {self.language!r}; {_LANGUAGES}.")
        if self.nbest < 1:
            raise InputError(f"--nbest {self.nbest}: expected 1 or more.")

    def read(self, path: Path) -> Texts:
        """Read a prediction file.

        Raises:
            InputError: the file is missing or broken.
        """
        predictions = read_predictions(path, self.nbest)
        return Texts(
            [prediction.suggestions for prediction in predictions],
            [prediction.reference for prediction in predictions],
            [f"{prediction.message}\t{prediction.reference}" for prediction in predictions],
        )


@dataclass(frozen=True, kw_only=True)
class TokenMetric(TextMetric):
    """A metric that reads texts as MRS's official script does."""

    sentences: Annotated[
        str, Option("split texts into sentences first, as the official script does", choices=("no", "punkt"))
    ] = "no"
    punkt: Annotated[
        str | None,
        Option(
            "parameters of --sentences punkt, in the layout of NLTK's punkt_tab",
            metavar="FOLDER",
            unset="NLTK's, where installed",
        ),
    ] = None

    def check(self) -> None:
        super().check()
        if self.sentences == "punkt":
            with metric_errors("--sentences punkt"):
                self.tokenizer()
        elif self.punkt is not None:
            raise InputError("--punkt: applies only to --sentences punkt; add that option.")

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the language.

        Raises:
            ValueError: Punkt's parameters cannot be read.
            ImportError: a library of the language, or NLTK's parameters, are not installed.
        """
        from mrs_metrics.tokenize import get_tokenizer

        return get_tokenizer(self.language, self.sentences, self.punkt)
