"""Nobody is advised to install this project's name from an index.

The name is not ours on the package index: whoever registers it could run code on the machines of those who follow such
advice. That is why this test reads the repository's text: advice may stand in any message, page, card or template.
"""

import re
from pathlib import Path

# An installer, then the name, perhaps on the next line; not a path to a wheel. Or the name with an extra or a version.
ADVICE = re.compile(
    r"\b(?:pip3?|pipx|uvx?|poetry|conda)\b[^`\n]*\b(?:install|add|run|--from)\b[^`\n]*(?:\n[^`\n$]*)?(?<![\w/-])mrs[-_]suggest\b"
    r"|(?<![\w/-])mrs[-_]suggest(?:\[|[=<>~!]=)"
)
# Its extras name each other in setup.cfg, which pip satisfies from the clone; tests read and imitate that.
OWN = {"setup.cfg", "CHANGELOG.md", "tests/test_base_install.py", "tests/test_install_advice.py"}


def test_no_file_advises_to_install_the_name_from_an_index(repository: Path, tracked: list[str]) -> None:
    found = []
    for name in set(tracked) - OWN:
        content = (repository / name).read_bytes()
        if b"\0" not in content and (hit := ADVICE.search(content.decode("utf-8", "replace"))):
            found.append(f"{name}: {hit[0]}")
    assert found == []
