"""Options from YAML and the command line: what a person wrote is what the run gets, or it is refused by name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from mrs_suggest.common.arguments import as_plain, make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import InputError
from tests.cases import cases


@dataclass
class Options:
    """One field a kind."""

    name: str = field(default="x", metadata={"help": "100%% plain"})
    rate: float = 1e-3
    steps: int = 5
    flag: bool = False
    language: list[str] = field(default_factory=lambda: ["en"])
    rates: list[float] = field(default_factory=list)
    loss: Literal["eq4", "sm"] = "eq4"
    limit: int | None = 10
    reply_tokens: int = 30
    hub_token: str | None = None


@dataclass
class Needy:
    """An option without a default."""

    output_dir: str


Parse = Callable[..., Options]


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """Return a function that parses a YAML text and further arguments."""

    def run(text: str | bytes, *arguments: str, options: type = Options) -> Options:
        config = tmp_path / "config.yaml"
        config.write_bytes(text if isinstance(text, bytes) else text.encode())
        parser = make_dataclass_parser([options], "prog", "what it does")
        return parse_with_config(parser, ["--config", str(config), *arguments])[0]

    return run


def test_of_several_configs_the_last_wins(parse: Parse, tmp_path: Path) -> None:
    second, third = tmp_path / "second.yaml", tmp_path / "third.yaml"
    second.write_text("steps: 6\nrate: 0.5\nlimit: null\n")
    third.write_text("steps: 7\n")
    words = ["--config", str(second), f"--config={third}", "--name", "last"]
    options = parse("steps: 5\nloss: sm\nlimit: 3\n", *words)
    assert (options.steps, options.rate, options.loss, options.limit) == (7, 0.5, "sm", None)
    assert parse("limit: null\n", "--config", str(third), "--steps", "9").steps == 9
    assert parse("language: [es, ja]", "--language", "de").language == ["de"], "the command line wins"
    third.write_text("stepz: 7\n")
    with pytest.raises(InputError, match=r"--config \S*third\.yaml: unknown key 'stepz'"):
        parse("steps: 5\n", "--config", str(third))


def test_without_a_config_the_defaults_and_the_command_line_count() -> None:
    parser = make_dataclass_parser([Options], "prog", "what it does")
    (options,) = parse_with_config(parser, ["--steps", "7", "--language", "es", "ja", "--flag", "true"])
    assert (options.steps, options.language, options.flag, options.rate) == (7, ["es", "ja"], True, 1e-3)


@pytest.mark.parametrize(
    ("text", "key", "value"), cases(__file__, "test_a_value_of_the_config_has_the_type_of_its_option")
)
def test_a_value_of_the_config_has_the_type_of_its_option(parse: Parse, text: str, key: str, value: object) -> None:
    found = getattr(parse(text), key)
    assert found == value
    assert type(found) is type(value)
    if isinstance(found, list):
        assert list(map(type, found)) == list(map(type, value))


@pytest.mark.parametrize(("text", "sentence"), cases(__file__, "test_a_wrong_config_is_refused_in_one_sentence"))
def test_a_wrong_config_is_refused_in_one_sentence(parse: Parse, text: str | bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_a_config_must_be_utf_8_and_can_give_an_option_without_a_default(parse: Parse) -> None:
    with pytest.raises(InputError, match=r"config\.yaml.*YAML"):
        parse(b"name: \xff")
    assert parse("output_dir: here", options=Needy).output_dir == "here"
    with pytest.raises(InputError, match="--output_dir"):
        parse("{}", options=Needy)


@pytest.mark.parametrize(("arguments", "sentence"), cases(__file__, "test_a_wrong_command_line_is_refused_by_name"))
def test_a_wrong_command_line_is_refused_by_name(arguments: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_with_config(make_dataclass_parser([Options], "prog", "what it does"), arguments)


def test_a_record_of_the_options_holds_everything_but_secrets() -> None:
    plain = as_plain(Options(hub_token="hf_secret", steps=7))
    assert "hf_secret" not in str(plain)
    assert "hub_token" not in plain
    assert (plain["steps"], plain["language"], plain["limit"]) == (7, ["en"], 10)
    assert plain["reply_tokens"] == 30, "a count of tokens is no secret, and run.json needs it"


@dataclass
class Library:
    """Settings of a library, of which the help shows one."""

    seed: int = 1
    optim: str = "adam"
    betas: list[float] = field(default_factory=lambda: [0.9])


@dataclass
class Ours:
    advanced: ClassVar[tuple[str, ...]] = ("rare",)
    common: int = 1
    rare: int = 2


@pytest.fixture
def two(tmp_path: Path) -> Callable[..., tuple[Ours, Library]]:
    """Return a function that parses a YAML text and further arguments into ours and the library's settings."""

    def run(text: str, *arguments: str) -> tuple[Ours, Library]:
        (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
        parser = make_dataclass_parser([Ours, Library], "prog", "what it does", ["seed"])
        ours, library = parse_with_config(parser, ["--config", str(tmp_path / "config.yaml"), *arguments])
        return ours, library

    return run


def test_the_help_shows_what_most_runs_need() -> None:
    text = make_dataclass_parser([Ours, Library], "prog", "what it does", ["seed"]).format_help()
    assert all(f"\n  --{name} " in text for name in ("common", "seed", "config", "set"))
    assert not any(f"\n  --{name} " in text for name in ("rare", "optim", "betas"))
    assert "--rare" in text.splitlines()[-1], "named in one line"


def test_settings_of_the_library_come_from_set_and_from_trainer(two: Callable[..., Any], tmp_path: Path) -> None:
    ours, library = two("common: 5\ntrainer:\n  optim: sgd\n  seed: 3\n", "--set", "betas=0.5 0.6", "--set=seed=7")
    assert (ours.common, library.optim, library.betas, library.seed) == (5, "sgd", [0.5, 0.6], 7)
    second = tmp_path / "second.yaml"
    second.write_text("optim: adam\ntrainer:\n  betas: [0.5, 0.6]\n")
    _, library = two("trainer:\n  optim: sgd\n  seed: 3\n", "--config", str(second))
    assert (library.optim, library.betas, library.seed) == ("adam", [0.5, 0.6], 3)


@pytest.mark.parametrize(("text", "arguments", "sentence"), cases(__file__, "test_a_wrong_setting_is_refused"))
def test_a_wrong_setting_is_refused(two: Callable[..., Any], text: str, arguments: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as found:
        two(text, *arguments)
    assert sentence in str(found.value)
