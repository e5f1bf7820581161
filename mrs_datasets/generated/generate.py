"""From a description of a product to a prepared folder that a language model writes, the teacher.

FOLDER/answers.jsonl   every prompt with its answer, in the order of arrival; none is asked for twice
FOLDER/review.jsonl    what a person decided about a text (`mrs data review`); the last decision counts
FOLDER/data, ...       the prepared folder, made from these two
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mrs_datasets.audit.questions import DROP, EDIT
from mrs_datasets.catalogue import STRICT, read_record
from mrs_datasets.everyday.situations import EVERYDAY, Situation
from mrs_datasets.prepared.report import PreparedReport, Report
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.everyday import situation_chunks
from mrs_suggest.common.errors import InputError, first_line, first_problem
from mrs_suggest.common.io.files import atomic_folder, require_replaceable, writing
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.text import is_blank, normalise_reply

RECORD = read_record(EVERYDAY)  # whose columns the pairs have
REGISTERS, TAGS = RECORD.columns["register"].values, RECORD.columns["stance"].values
STEPS = INTENTS, MESSAGES, REPLIES = "intents", "messages", "replies"  # also the keys of the lists in answers
PROMPTS: dict[str, str] = read_packaged("mrs_datasets.generated", "prompts.yaml")
Texts = tuple[Annotated[str, Field(min_length=1, max_length=300)], ...]
Count = Annotated[int, Field(ge=1, le=200, strict=True)]
ANSWERS, REVIEW = "answers.jsonl", "review.jsonl"
READER = "generated"  # the variant of the record
LONGEST = {MESSAGES: 300, REPLIES: 100}  # characters; ours
_INTENT = re.compile(r"([\w -]{2,40}?)\s*:\s*(\S.{2,299})")
_TAGGED = re.compile(r"\[(\w+)\]\s*(\S.*)")
# A teacher that speaks of its prompt, or repeats an instruction to ignore one.
_PROMPT = re.compile(
    r"(?i)\b(ignore|disregard|forget)\b.{0,60}\b(instructions?|prompts?|rules)\b|system prompt|as an ai\b|<\|"
)
Decisions = Mapping["Text", tuple[str, str]]
Progress = Callable[[Iterable[None]], Iterable[None]]


@dataclass(frozen=True, config=STRICT)
class Task:
    """A task file.

    Attributes:
        domain: what the product is, who writes to whom, and about what.
        avoid: what must not be said. Texts that contain one of these phrases are dropped, too.
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
            if unknown := [value for value in getattr(self, name) if value not in allowed]:
                raise ValueError(f"{name}: expected {', '.join(allowed)}, found {unknown[0]!r}")


class Question(NamedTuple):
    """The two turns of a prompt; the second one is sent as JSON. `language` is the code of its language."""

    system: str
    user: dict[str, Any]
    language: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.system, json.dumps(self.user, ensure_ascii=False)


class Teacher(NamedTuple):
    """A language model, and what is needed to read its answers.

    Attributes:
        items: the text of an answer -> the texts in its list, also of broken JSON.
        fault: (text, language, step) -> the reason to drop a text; "" for none.
        ask: question -> the text of the answer, "" for a refusal.
        map: as the function; may ask several questions at a time.
    """

    name: str
    licence: str
    items: Callable[[str], list[str]]
    fault: Callable[[str, str, str], str]
    ask: Callable[[Question], str]
    map: Callable[[Callable[[Question], None], Iterable[Question]], Iterable[None]] = map


class Text(NamedTuple):
    """One text of a teacher; `tag` is a reply's tag, or the register of a message."""

    language: str
    intent: str
    step: str
    tag: str
    text: str


def read_task(path: Path, languages: Sequence[str] = ()) -> Task:
    """Read a task file; `languages` replace its own. InputError if it is not YAML or a key is wrong."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if languages and isinstance(content, dict):
            content["languages"] = languages
        return TypeAdapter(Task).validate_python(content)
    except (yaml.YAMLError, ValueError) as error:  # pydantic's error is one, too
        problem = first_problem(error) if isinstance(error, ValidationError) else first_line(error)
        raise InputError(f"{path}: {problem}; docs/how_to/from_nothing.md shows the keys.") from None


def questions(task: Task, intents: Mapping[str, str] | None = None) -> Iterator[Question]:
    """The question for the intents; with `intents`, id -> what the messages say, those for all texts."""
    told = {name: getattr(task, name) for name in ("name", "domain", "tone", "avoid", "examples")}
    common = PROMPTS["common"].replace("{product}", json.dumps(told, ensure_ascii=False, indent=1))
    system = {step: f"{common}\n{PROMPTS[step]}".replace("{tags}", " ".join(TAGS)).strip() for step in STEPS}
    if intents is None:
        yield Question(system[INTENTS], {"step": INTENTS, "count": task.intents})
    for language, (intent, about) in product(dict.fromkeys(task.languages), (intents or {}).items()):
        user = {"language": language_name(language), "intent": intent, "about": about}
        for register in dict.fromkeys(task.registers):
            asked = {"step": MESSAGES, "count": task.messages, "register": register}
            yield Question(system[MESSAGES], asked | user, language)
        yield Question(system[REPLIES], {"step": REPLIES, "count": task.replies} | user, language)


def generate(task: Task, teacher: Teacher, out: Path, progress: Progress = iter) -> PreparedReport:
    """Ask the teacher what it was not asked yet, write the prepared folder `out`, and return its report; InputError if
    `out` is another folder, the teacher fails, or nothing is usable: answers are kept."""
    require_replaceable(out, True, ANSWERS)
    out.mkdir(parents=True, exist_ok=True)
    _ask(questions(task), teacher, out, iter)
    _ask(questions(task, read_intents(out, task, teacher, Report(READER))), teacher, out, progress)
    return write_generated(out, task, teacher)


def _ask(asked: Iterable[Question], teacher: Teacher, out: Path, progress: Progress) -> None:
    """Ask what is not in the file; each new one is in the file before its thread asks the next question."""
    known, lock, path = read_answers(out, teacher), Lock(), out / ANSWERS
    with writing(path), path.open("a", encoding="utf-8", newline="\n") as file:

        def ask(question: Question) -> None:
            line = {"teacher": teacher.name, "system": question.key[0], "user": question.key[1]}
            line["answer"] = teacher.ask(question)
            with lock:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()

        list(progress(teacher.map(ask, [question for question in asked if question.key not in known])))


def read_answers(out: Path, teacher: Teacher) -> dict[tuple[str, str], str]:
    lines = read_json_lines(out / ANSWERS)
    return {(line["system"], line["user"]): line["answer"] for line in lines if line["teacher"] == teacher.name}


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that lines are added to; one at the end that was cut off is removed from the file."""
    content = path.read_bytes() if path.is_file() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError:
        raise InputError(f"{path}: a line is not JSON; restore the file, or choose another folder.") from None


def read_intents(out: Path, task: Task, teacher: Teacher, report: Report) -> dict[str, str]:
    """Id -> what the messages say, as many as the task asks for; InputError if the teacher's answer has none."""
    found: dict[str, str] = {}
    answer = read_answers(out, teacher).get(next(questions(task)).key, "")
    for item in teacher.items(answer):
        parts = _INTENT.fullmatch(item.strip())
        if parts is None or _PROMPT.search(item) or len(found) == task.intents:
            report.drop(INTENTS, "more than asked for" if parts else "no id and description")
        else:
            found.setdefault("-".join(parts[1].lower().split()), parts[2])
    if not found:
        told = f"the teacher's answer {answer[:60]!r} names no intents"
        raise InputError(f"{out}: {told}; delete {ANSWERS} to ask again, or choose another teacher.")
    return found


def written_texts(out: Path, task: Task, teacher: Teacher, report: Report, decisions: Decisions) -> Iterator[Text]:
    """The teacher's texts without those that cannot or must not be used, which `report` counts.

    A message counts once in a language, a reply once in an intent; case and punctuation do not matter.
    """
    answers, seen = read_answers(out, teacher), set[tuple[str, ...]]()
    for question in questions(task, read_intents(out, task, teacher, report)):
        step, intent, register = (question.user.get(name, "") for name in ("step", "intent", "register"))
        part, items = f"{question.language}/{step}", teacher.items(answers.get(question.key, ""))
        if not items:
            report.drop(part, "answer without a list")
        for number, item in enumerate(items):
            tagged = None if register else _TAGGED.fullmatch(item.strip())
            tag, text = tagged.groups() if tagged else (register, item.strip())
            found = Text(question.language, intent, step, tag.lower(), text)
            decision, new = decisions.get(found, ("", ""))
            kept = found._replace(text=new) if decision == EDIT else found
            forms = {(part, intent * (step == REPLIES), normalise_reply(one.text)) for one in (found, kept)}
            problem = "more than asked for" * (number >= question.user["count"]) or _problem(found, task, teacher)
            problem = problem or "repeated" * bool(forms & seen) or "dropped by a reviewer" * (decision == DROP)
            if problem:
                report.drop(part, problem)
            else:
                seen |= forms
                yield kept


def _problem(found: Text, task: Task, teacher: Teacher) -> str:
    if found.step == REPLIES and found.tag not in TAGS:
        return "no known tag"
    if is_blank(found.text) or len(found.text) > LONGEST[found.step]:
        return "blank or too long"
    if _PROMPT.search(found.text):
        return "about the prompt"
    if any(phrase.casefold() in found.text.casefold() for phrase in task.avoid):
        return "must not be said"
    return teacher.fault(found.text, found.language, found.step)


def read_decisions(out: Path) -> Decisions:
    """Text -> (the decision, or "" where it was taken back; the text in its place)."""
    return {Text(*line["text"]): (line["decision"], line["new"]) for line in read_json_lines(out / REVIEW)}


def write_generated(out: Path, task: Task, teacher: Teacher) -> PreparedReport:
    """Write the prepared folder from the answers and decisions that are in it; return its report."""
    settings = {"split": "by message; some intents as a whole", "teacher": teacher.name, "licence": teacher.licence}
    report = Report(READER, {**settings, "task": asdict(task)}, partial=True)
    decisions = read_decisions(out)
    texts = list(written_texts(out, task, teacher, report, decisions))
    counts = Counter(decision for decision, _ in decisions.values() if decision)
    reviewed = ", ".join(f"{decision} {count:,}" for decision, count in counts.items()) or "none so far"
    report.notes += [
        f"{task.name}: written by {teacher.name}; licence of its answers, as stated by the user: {teacher.licence}.",
        f"Texts that a person reviewed: {reviewed}.",
    ]
    with atomic_folder(out, overwrite=True, marker=ANSWERS) as folder:
        for path in filter(Path.is_file, (out / ANSWERS, out / REVIEW)):
            shutil.copy2(path, folder)
        chunks = _chunks(texts, task, read_intents(out, task, teacher, Report(READER)), report)
        return write_prepared(folder, chunks, report, RECORD, str(out / ANSWERS))


def _chunks(texts: Sequence[Text], task: Task, intents: Collection[str], report: Report) -> Chunks:
    for language in dict.fromkeys(task.languages):
        usable: list[Situation] = []
        for intent in intents:
            own = [one for one in texts if (one.language, one.intent) == (language, intent)]
            replies = [(one.tag, one.text) for one in own if one.step == REPLIES]
            for register in dict.fromkeys(one.tag for one in own if one.step == MESSAGES and replies):
                said = [one.text for one in own if (one.step, one.tag) == (MESSAGES, register)]
                usable.append(Situation(intent, task.name, register, {}, said, replies))
        missing = ", ".join(sorted(set(intents) - {one.name for one in usable})) or "none"
        tags = ", ".join(dict.fromkeys(tag for one in usable for tag, _ in one.replies))
        report.notes.append(f"{language}: intents without messages or replies: {missing}; tags of replies: {tags}.")
        if usable:
            yield from situation_chunks(language, usable)
