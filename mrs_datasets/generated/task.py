"""The description of a product, and the questions that a language model is asked about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mrs_datasets.catalogue import STRICT, read_record
from mrs_datasets.everyday.situations import EVERYDAY
from mrs_suggest.common.errors import InputError, first_problem, reason_of
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import language_name

RECORD = read_record(EVERYDAY)  # whose columns the pairs have
REGISTERS, TAGS = RECORD.columns["register"].values, RECORD.columns["stance"].values
INTENTS, MESSAGES, REPLIES = "intents", "messages", "replies"  # the steps, and the keys of their answers
PROMPTS: dict[str, str] = read_packaged("mrs_datasets.generated", "prompts.yaml")
Texts = tuple[Annotated[str, Field(min_length=1, max_length=300)], ...]
Count = Annotated[int, Field(ge=1, le=200, strict=True)]


@dataclass(frozen=True, config=STRICT)
class Task:
    """A task file.

    Attributes:
        domain: what the product is, who writes to whom, and about what.
        languages: codes of MRS.
        avoid: what must not be said. Texts that contain one of these phrases are dropped, too.
        examples: messages as they are in the product.
        intents: how many to ask for; `messages` of each in each language and register, `replies` in each language.
    """

    name: Annotated[str, Field(min_length=1, max_length=60)]
    domain: Annotated[str, Field(min_length=1, max_length=6000)]
    languages: Annotated[tuple[str, ...], Field(min_length=1)]
    tone: str = ""
    avoid: Texts = ()
    examples: Texts = ()
    registers: Annotated[tuple[str, ...], Field(min_length=1)] = REGISTERS
    intents: Count = 20
    messages: Count = 5
    replies: Count = 8

    def __post_init__(self) -> None:
        for name, allowed in (("languages", tuple(RECORD.languages)), ("registers", REGISTERS)):
            for value in getattr(self, name):
                if value not in allowed:
                    raise ValueError(f"{name}: expected {', '.join(allowed)}, found {value!r}")


class Question(NamedTuple):
    """One question: the two turns of the prompt, and what its texts are.

    Attributes:
        step: one of `INTENTS`, `MESSAGES`, `REPLIES`; also the key of the list in the answer.
        register: of messages alone.
    """

    system: str
    user: str
    step: str
    count: int
    language: str = ""
    intent: str = ""
    register: str = ""


def read_task(path: Path, languages: Sequence[str] = ()) -> Task:
    """Read a task file; `languages` replace its own. InputError if it cannot be read or a key is wrong."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise InputError(f"{path}: expected YAML with `name: ...`, `domain: ...` and `languages: [...]`.")
        return TypeAdapter(Task).validate_python(content | ({"languages": languages} if languages else {}))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason_of(error)}); pass a task file.") from None
    except ValidationError as error:
        raise InputError(f"{path}, {first_problem(error)}; docs/how_to/from_nothing.md shows the keys.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not YAML in UTF-8 ({str(error).splitlines()[0]}); correct it.") from None


def first_question(task: Task) -> Question:
    """The question for the intents of a product."""
    user = {"step": INTENTS, "count": task.intents}
    return Question(_system(task, INTENTS), json.dumps(user), INTENTS, task.intents)


def further_questions(task: Task, intents: dict[str, str]) -> Iterator[Question]:
    """The questions for the texts of every language and intent; `intents` maps ids to what the messages say."""
    for language in dict.fromkeys(task.languages):
        for intent, about in intents.items():
            told = {"language": language_name(language), "intent": intent, "about": about}
            for register in dict.fromkeys(task.registers):
                user = {"step": MESSAGES, "count": task.messages, "register": register, **told}
                yield _question(task, user, language, register)
            yield _question(task, {"step": REPLIES, "count": task.replies, **told}, language)


def _question(task: Task, user: dict[str, Any], language: str, register: str = "") -> Question:
    content = json.dumps(user, ensure_ascii=False)
    step, count, intent = user["step"], user["count"], user["intent"]
    return Question(_system(task, step), content, step, count, language, intent, register)


def _system(task: Task, step: str) -> str:
    told = {name: getattr(task, name) for name in ("name", "domain", "tone", "avoid", "examples")}
    product = json.dumps(told, ensure_ascii=False, indent=1)
    text = PROMPTS["common"] + "\n" + PROMPTS[step].replace("{tags}", " ".join(TAGS))
    return text.replace("{product}", product).strip()
