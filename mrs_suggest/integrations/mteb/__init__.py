"""MRS as tasks of MTEB (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark"), with the extra `mteb`.

`mrs_tasks(DATA)` makes them for `mteb.evaluate`; `python -m mrs_suggest.integrations.mteb run ...` is MTEB's own
command line, which then knows them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from .retrievers import load_retriever
    from .tasks import mrs_tasks

__all__ = ["load_retriever", "mrs_tasks"]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(__name__, {"load_retriever": "retrievers", "mrs_tasks": "tasks"})
