"""Serving suggestions: over HTTP (`mrs serve`) with a client for Python, and on a page (`mrs demo`).

Names are imported from their modules on first use, so that `import mrs_suggest.serving` costs nothing.
"""

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_suggest.serving.app import create_app
    from mrs_suggest.serving.client import AsyncClient, Client, ServerError
    from mrs_suggest.serving.settings import Settings

__all__ = ["AsyncClient", "Client", "ServerError", "Settings", "create_app"]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(__name__)
