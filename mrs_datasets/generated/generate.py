"""From a task to a prepared folder: a teacher's answers, each asked for once, and the texts in them that are kept.

    FOLDER/answers.jsonl   every prompt with its answer, in the order of arrival
    FOLDER/review.jsonl    what a person decided about a text (`mrs data review`), the last decision counts
    FOLDER/data, ...       the prepared folder, made from these two
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from mrs_datasets.everyday.situations import Situation
from mrs_datasets.generated.task import (
    INTENTS,
    MESSAGES,
    RECORD,
    REPLIES,
    TAGS,
    Question,
    Task,
    first_question,
    further_questions,
)
from mrs_datasets.prepared.report import REPORT, PreparedReport, Report
from mrs_datasets.prepared.writer import write_prepared
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.everyday import situation_chunks
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, require_replaceable, writing
from mrs_suggest.common.text.text import is_blank, normalise_reply

ANSWERS, REVIEW = "answers.jsonl", "review.jsonl"
READER = "generated"  # the variant of the record
LONGEST = {MESSAGES: 300, REPLIES: 100}  # characters; a reply as from `mrs_suggest.suggest.language_model`
_INTENT = re.compile(r"([\w -]{2,40}?)\s*:\s*(\S.{2,299})")
_TAGGED = re.compile(r"\[(\w+)\]\s*(\S.*)")
# A teacher that speaks of its prompt, or repeats an instruction to ignore one.
_PROMPT = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instructions?|prompts?|rules)\b|\bsystem prompt\b"
    r"|\bas an ai\b|\blanguage model\b|<\|",
    re.I,
)
ABOUT_PROMPT, REPEATED, MORE = "about the prompt", "repeated", "more than asked for"  # reasons
DECISIONS = ACCEPT, EDIT, DROP = "accept", "edit", "drop"


class Teacher(NamedTuple):
    """A language model, and what is needed to read its answers.

    Attributes:
        name: of the model.
        licence: of its answers, as the user states it.
        items: the text of an answer -> the texts in its list, also of broken JSON.
        fault: (text, language, step) -> the reason to drop a text; "" for none.
        ask: question -> the text of the answer, "" for a refusal; called from `at_once` threads.
    """

    name: str
    licence: str
    items: Callable[[str], list[str]]
    fault: Callable[[str, str, str], str]
    ask: Callable[[Question], str]
    at_once: int = 1


class Text(NamedTuple):
    """One text of a teacher; `tag` is a reply's tag, or the register of a message."""

    language: str
    intent: str
    step: str
    tag: str
    text: str


def generate(task: Task, teacher: Teacher, out: Path, progress: Callable[[Any], Any]) -> PreparedReport:
    """Ask the teacher what it was not asked yet, and write the prepared folder `out`; return its report.

    Raises:
        InputError: `out` is another folder, the teacher fails, or no language has usable texts. Answers are kept.
    """
    require_replaceable(out, True, ANSWERS)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / ANSWERS).touch()
    (first,) = _ask([first_question(task)], teacher, out, iter)
    questions = list(further_questions(task, intents_of(first, task, teacher, Report(READER))))
    _ask(questions, teacher, out, progress)
    return write_generated(out, task, teacher)


def _ask(questions: Sequence[Question], teacher: Teacher, out: Path, progress: Callable[[Any], Any]) -> list[str]:
    """The answers; each new one is on the disk before the next question of its thread."""
    known, lock = read_answers(out / ANSWERS, teacher.name), Lock()
    with writing(out / ANSWERS), (out / ANSWERS).open("a", encoding="utf-8", newline="\n") as file:

        def answer(question: Question) -> str:
            key = question.system, question.user
            if key not in known:
                found = teacher.ask(question)
                line = {"teacher": teacher.name, "system": question.system, "user": question.user, "answer": found}
                with lock:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    file.flush()
                    known[key] = found
            return known[key]

        pool = ThreadPoolExecutor(teacher.at_once, thread_name_prefix="teacher")
        try:
            return list(progress(pool.map(answer, questions)))
        finally:
            pool.shutdown(cancel_futures=True)


def read_answers(path: Path, teacher: str) -> dict[tuple[str, str], str]:
    """(system, user) -> answer of a teacher; a line that an interruption cut off is removed from the file."""
    found: dict[tuple[str, str], str] = {}
    for line in read_json_lines(path):
        if line["teacher"] == teacher:
            found[line["system"], line["user"]] = line["answer"]
    return found


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


def intents_of(answer: str, task: Task, teacher: Teacher, report: Report) -> dict[str, str]:
    """Id -> what the messages say, as many as the task asks for.

    Raises:
        InputError: the answer has none.
    """
    found: dict[str, str] = {}
    for item in teacher.items(answer):
        parts = _INTENT.fullmatch(item.strip())
        name = "-".join(parts[1].lower().split()) if parts else ""
        if parts is None:
            report.drop(INTENTS, "no id and description")
        elif _PROMPT.search(item):
            report.drop(INTENTS, ABOUT_PROMPT)
        elif name in found or len(found) == task.intents:
            report.drop(INTENTS, REPEATED if name in found else MORE)
        else:
            found[name] = parts[2]
    if not found:
        raise InputError(
            f"the teacher names no intents; its answer begins with {answer[:60]!r}. Delete {ANSWERS} to ask again, or "
            "choose another teacher."
        )
    return found


def written_texts(out: Path, task: Task, teacher: Teacher, report: Report) -> Iterator[Text]:
    """The teacher's texts without those that must not or cannot be used, which `report` counts."""
    answers, first = read_answers(out / ANSWERS, teacher.name), first_question(task)
    intents = intents_of(answers.get((first.system, first.user), ""), task, teacher, report)
    for question in further_questions(task, intents):
        items, part = teacher.items(answers.get((question.system, question.user), "")), _part(question)
        if not items:
            report.drop(part, "answer without a list")
        for number, item in enumerate(items):
            tagged = _TAGGED.fullmatch(item.strip())
            tag, text = (question.register, item.strip()) if question.register else tagged.groups() if tagged else ("", item)
            found = Text(question.language, question.intent, question.step, tag.lower(), text)
            problem = MORE if number >= question.count else _problem(found, task, teacher)
            if problem:
                report.drop(part, problem)
            else:
                yield found


def _problem(found: Text, task: Task, teacher: Teacher) -> str:
    text = found.text
    if found.tag not in (*task.registers, *TAGS):
        return "no known tag"
    if is_blank(text) or len(text) > LONGEST[found.step]:
        return "blank or too long"
    if _PROMPT.search(text):
        return ABOUT_PROMPT
    if any(phrase.casefold() in text.casefold() for phrase in task.avoid):
        return "must not be said"
    return teacher.fault(text, found.language, found.step)


def different(texts: Iterable[Text], report: Report) -> Iterator[Text]:
    """A message counts once in a language, a reply once in an intent; case and punctuation do not matter."""
    seen = set()
    for one in texts:
        form = one.language, one.step, one.intent * (one.step == REPLIES), normalise_reply(one.text)
        if form in seen:
            report.drop(_part(one), REPEATED)
        else:
            seen.add(form)
            yield one


def read_decisions(out: Path) -> dict[Text, tuple[str, str]]:
    """Text -> (one of `DECISIONS`, the text in its place), as a person decided."""
    return {Text(*line["text"]): (line["decision"], line["new"]) for line in read_json_lines(out / REVIEW)}


def _reviewed(texts: Iterable[Text], decisions: Mapping[Text, tuple[str, str]], report: Report) -> Iterator[Text]:
    for one in texts:
        decision, new = decisions.get(one, ("", ""))
        if decision == DROP:
            report.drop(_part(one), "dropped by a reviewer")
        else:
            yield one._replace(text=new) if decision == EDIT else one


def write_generated(out: Path, task: Task, teacher: Teacher) -> PreparedReport:
    """Write the prepared folder from the answers and decisions that it has; return its report."""
    settings = {"split": "by message; some intents as a whole", "teacher": teacher.name, "licence": teacher.licence}
    report = Report(READER, {**settings, "task": asdict(task)}, partial=True)
    decisions, texts = read_decisions(out), different(written_texts(out, task, teacher, report), report)
    texts = different(_reviewed(texts, decisions, report), report)
    counts = Counter(decision for decision, _ in decisions.values())
    report.notes += [f"{task.name}: written by {teacher.name}; licence of its answers, as stated by the user: {teacher.licence}."]
    if counts:
        told = ", ".join(f"{decision} {counts[decision]:,}" for decision in DECISIONS)
        report.notes.append(f"A person decided about {counts.total():,} texts: {told}.")
    with atomic_folder(out, overwrite=True, marker=ANSWERS) as folder:
        for name in (ANSWERS, REVIEW):
            if (out / name).is_file():
                shutil.copy2(out / name, folder / name)
        return write_prepared(folder, _chunks(list(texts), task, report), report, RECORD, str(out / ANSWERS))


def _chunks(texts: Sequence[Text], task: Task, report: Report) -> Chunks:
    intents = dict.fromkeys(one.intent for one in texts)
    for language in dict.fromkeys(task.languages):
        own = [one for one in texts if one.language == language]
        found = []
        for intent in intents:
            replies = [(one.tag, one.text) for one in own if (one.intent, one.step) == (intent, REPLIES)]
            for register in task.registers if replies else ():
                said = [one.text for one in own if (one.intent, one.step, one.tag) == (intent, MESSAGES, register)]
                found.append(Situation(intent, task.name, register, {}, said, replies))
        usable = [one for one in found if one.messages]
        missing = [intent for intent in intents if intent not in {one.name for one in usable}]
        tags = dict.fromkeys(tag for one in usable for tag, _ in one.replies)
        report.notes.append(
            f"{language}: {len(intents) - len(missing)} of {len(intents)} intents have messages and replies"
            + f" (without: {', '.join(missing)})" * bool(missing) + f"; tags of replies: {', '.join(tags) or 'none'}."
        )
        if usable:
            yield from situation_chunks(language, usable)


def _part(one: Question | Text) -> str:
    return f"{one.language}/{one.step}"
