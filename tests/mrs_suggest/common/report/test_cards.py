"""Cards from templates and values alone."""

from importlib import resources
from string import Template

import pytest
import yaml

from mrs_suggest.common.report.cards import TEMPLATES, markdown_table, render_card

TEMPLATE = "retrieval.md"


def template() -> Template:
    return Template(resources.files(TEMPLATES).joinpath(TEMPLATE).read_text(encoding="utf-8"))


def values() -> dict[str, str]:
    return {name: f"<{name}>" for name in template().get_identifiers()}


def test_every_value_lands_in_the_card_as_it_is() -> None:
    card = render_card(TEMPLATE, {"language": ["es"]}, values())
    assert [name for name in values() if f"<{name}>" not in card] == []
    assert "$" not in card
    card = render_card(TEMPLATE, {}, {**values(), "limits": "costs $5 and $title\\1"})
    assert "costs $5 and $title\\1" in card
    given = values()
    del given["limits"]
    with pytest.raises(KeyError, match="limits"):
        render_card(TEMPLATE, {}, given)


def test_front_matter_keeps_order_and_letters() -> None:
    front = {"pretty_name": "Réponses: ¿sí? 返事", "language": ["no", "es"], "b": 1, "a": {"z": True}}
    card = render_card(TEMPLATE, front, values())
    text = card.split("---\n")[1]
    assert "Réponses" in text
    assert "返事" in text
    assert list(yaml.safe_load(text)) == list(front)
    assert yaml.safe_load(text) == front, "`no` is a language, not false"


def test_tables() -> None:
    table = markdown_table(["name", "n", "m"], [["a", "1", "2"], ["b", "3", "4"]])
    assert table == "| name | n | m |\n| --- | ---: | ---: |\n| a | 1 | 2 |\n| b | 3 | 4 |"
