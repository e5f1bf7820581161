"""What tests of the command share."""

import re

Result = tuple[int, str, str]  # exit code, standard output, standard error


def refused(result: Result) -> str:
    """The sentence of a refusal: exit code 2, one line on standard error, nothing on standard output."""
    code, out, err = result
    assert (code, out) == (2, "")
    lines = err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(".")
    return lines[0]


def shown(result: Result) -> str:
    """What a command printed that succeeded."""
    code, out, err = result
    assert code == 0, err
    return out


def released(text: str) -> str:
    """A text with signatures as a release writes them: without the commit of the clone."""
    return re.sub(r"\+g[0-9a-f]+", "", text)
