"""The ten languages, and what becomes of an error."""

from __future__ import annotations

import pytest

from mrs_core.errors import InputError, MissingExtraError, run_with_sentence
from mrs_core.languages import LANGUAGES, require_language


def test_the_languages_are_those_of_table_1_in_its_order() -> None:
    assert list(LANGUAGES) == ["en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru"]
    assert all(language.code == code for code, language in LANGUAGES.items())


@pytest.mark.parametrize("code", ["xx", "EN", "en-US", "", "zh"])
def test_an_unknown_language_is_named_with_the_known_ones(code: str) -> None:
    with pytest.raises(InputError, match=rf"^--lang: unknown language '{code}'; .*en es de pt fr ja sv it nl ru"):
        require_language(code, "--lang")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("file x, line 3: bad."), 2),
        (MissingExtraError("fugashi", "ja", "Japanese"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_of_the_input_is_one_line_and_an_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert run_with_sentence("mrs x", fail) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("mrs x: ")
    assert str(error) in err


def test_a_bug_keeps_its_traceback() -> None:
    def bug() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_with_sentence("mrs x", bug)


def test_a_command_without_a_result_ends_well() -> None:
    assert run_with_sentence("mrs x", lambda: None) == 0
