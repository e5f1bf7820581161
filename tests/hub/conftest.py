"""The hub's fixtures, unless tests/conftest.py has brought them already (`pytest_plugins = ["tests.hub.fixtures"]`)."""

from __future__ import annotations

import sys

if "tests.hub.fixtures" not in sys.modules:
    from .fixtures import hub, hub_client, hub_server  # noqa: F401
