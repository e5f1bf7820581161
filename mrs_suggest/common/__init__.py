"""What every package may use: languages, errors, files, arguments, provenance. Imports nothing else of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_suggest.common.errors import ArgumentError, InputError, MissingExtraError, MrsError
    from mrs_suggest.common.hub.baselines import resolve_model
    from mrs_suggest.common.text.language_id import LanguageIdentifier
    from mrs_suggest.common.text.languages import LANGUAGES, Language, find_language, require_language
    from mrs_suggest.common.text.predictions import Prediction, read_predictions, write_predictions

__version__ = "0.1.0"
__all__ = [
    "LANGUAGES",
    "ArgumentError",
    "InputError",
    "Language",
    "LanguageIdentifier",
    "MissingExtraError",
    "MrsError",
    "Prediction",
    "__version__",
    "find_language",
    "read_predictions",
    "require_language",
    "resolve_model",
    "write_predictions",
]
if not TYPE_CHECKING:  # else a type checker would accept any name of the package
    __getattr__, __dir__ = lazy_names(__name__)
