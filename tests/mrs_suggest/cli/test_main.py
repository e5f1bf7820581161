"""`mrs` without a verb, and `mrs --version`: what they print, and their exit codes."""

import json

import pytest

from mrs_suggest.cli import main


def test_the_version_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    from mrs_suggest.common import __version__

    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mrs-suggest {__version__}\n"
    assert main.main(["--version", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [*record] == ["version", "python", "platform", "commit", "libraries"]
    assert record["version"] == __version__
    assert record["libraries"]["numpy"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("serve --prot 8000", "mrs serve: unknown option '--prot' (did you mean --port?); `mrs serve --help` "),
        ("score x.tsv --langauge=en", "mrs score: unknown option '--langauge' (did you mean --language?)"),
        ("models index --langauge en", "mrs models index: unknown option '--langauge' (did you mean --language?)"),
        ("metrics publish ORG --private --foo", "mrs metrics publish: unknown option '--foo'; "),
        ("--versoin", "mrs: unknown option '--versoin' (did you mean --version?); `mrs --help` lists the options."),
        ("data list -- --foo", "mrs data list: unrecognized arguments"),
        ("suggest --count abc", "mrs suggest: argument --count: invalid int value: 'abc'; `mrs suggest --help` "),
    ],
)
def test_a_misspelt_option_is_one_line_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(words.split())
    assert capsys.readouterr().err.startswith(says)


@pytest.mark.parametrize(
    ("words", "says"), [([], "arguments are required: verb"), (["--json", "data"], "--json requires")]
)
def test_no_verb_and_a_lost_option_are_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(words)
    assert says in capsys.readouterr().err
