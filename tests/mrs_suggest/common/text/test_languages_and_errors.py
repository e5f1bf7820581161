"""What becomes of an error."""

import copy
import pickle
from functools import partial

import pytest

from mrs_suggest.common.errors import ArgumentError, InputError, MissingExtraError, MrsError, run_with_sentence
from mrs_suggest.serving.batcher import QueueFullError
from mrs_suggest.serving.client import ServerError


def test_an_error_of_the_input_is_one_line_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(error: BaseException) -> int:
        raise error

    missing = MissingExtraError("fugashi", "ja", "Japanese")
    for error, code in ((InputError("file x, line 3: bad."), 2), (missing, 2), (KeyboardInterrupt(), 130)):
        assert run_with_sentence("mrs x", partial(fail, error)) == code
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith("mrs x: ")
        assert str(error) in err


OF_EACH_TYPE = [
    MrsError("bad."),
    InputError("file x: bad."),
    ArgumentError("k", "expected a whole number from 1.", 0),
    MissingExtraError("fugashi", "ja", "Japanese"),
    QueueFullError(3),
    ServerError(429, "too_many_waiting", "3 messages wait.", "http://a/v1/suggest", 2.0),
]


@pytest.mark.parametrize("error", OF_EACH_TYPE, ids=lambda error: type(error).__name__)
def test_an_error_of_a_worker_process_arrives_as_it_was_raised(error: MrsError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), other.args) == (type(error), str(error), error.args)


def test_an_argument_is_named_as_the_caller_knows_it() -> None:
    error = ArgumentError("k", "expected a whole number from 1.", "0")
    assert str(error) == "k='0': expected a whole number from 1."
    assert str(error.as_option({"k": "--count"})) == "--count 0: expected a whole number from 1."
    assert error.as_option({"language": "--language"}) is error
    assert str(ArgumentError("messages", "found none.")) == "messages: found none."
    assert str(pickle.loads(pickle.dumps(ArgumentError("messages", "found none.")))) == "messages: found none."


def test_a_bug_keeps_its_traceback() -> None:
    def bug() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_with_sentence("mrs x", bug)
