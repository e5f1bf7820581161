"""Cards are rendered from templates and values alone: the same values give the same bytes."""

from collections.abc import Mapping
from importlib import resources
from string import Template

import yaml

TEMPLATES = "mrs_model_cards"


def render_card(template: str, front_matter: Mapping[str, object], values: dict[str, str]) -> str:
    """Fill a template of `model_cards/` and put the YAML front matter before it; KeyError if a value is missing."""
    text = read_template(template)
    front = yaml.safe_dump(front_matter, sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{front}---\n\n{Template(text).substitute(values).strip()}\n"


def read_template(name: str) -> str:
    return resources.files(TEMPLATES).joinpath(name).read_text(encoding="utf-8")


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    align = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, align, *rows])
