"""Comparison of systems: scores on the same examples, tables, prediction files, human evaluation.

Names are imported from their modules on first use, so that `import mrs_suggest.evaluation` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_suggest.evaluation.annotation import summarize as summarize_annotations
    from mrs_suggest.evaluation.annotation_files import make_annotation_files, read_annotation_files, read_key
    from mrs_suggest.evaluation.comparison import Comparison, compare_on_test
    from mrs_suggest.evaluation.language_data import LanguageData, load_language
    from mrs_suggest.evaluation.results import EvaluationConfig, SystemResult, evaluate_system, summary

__all__ = [
    "Comparison",
    "EvaluationConfig",
    "LanguageData",
    "SystemResult",
    "compare_on_test",
    "evaluate_system",
    "load_language",
    "make_annotation_files",
    "read_annotation_files",
    "read_key",
    "summarize_annotations",
    "summary",
]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(["Comparison", "compare_on_test"], "comparison"),
            **dict.fromkeys(["EvaluationConfig", "SystemResult", "evaluate_system", "summary"], "results"),
            **dict.fromkeys(["LanguageData", "load_language"], "language_data"),
            **dict.fromkeys(["make_annotation_files", "read_annotation_files", "read_key"], "annotation_files"),
            "summarize_annotations": "annotation:summarize",
        },
    )
