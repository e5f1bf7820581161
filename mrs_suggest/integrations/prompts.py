"""The prompts for language models, and how an example's answer looks; the same in every harness.

No paper prompts language models with these data sets, so the wording is ours, in English for all languages; that of
XCOPA's questions is the paper's (`mrs_datasets.tasks.xcopa_views.PROMPTS`). That of
`openai:...` needs a chat template and JSON, and harnesses also score base models, with examples before a prompt.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from mrs_datasets.readers.xcopa import CORRECTED, QUESTION
from mrs_datasets.tasks.xcopa_views import sentence_pairs
from mrs_metrics.translations_f1 import oracle_top_k
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.predictions import SUGGESTIONS

# A base model continues with the next example; the first of these ends its answer.
STOPS = ("\n\nWrite ", "\nMessage:", "\nSentence:")
# The tokens that an answer may take: three replies of 100 tokens would be cut by the metric's rules anyway, and 99 % of
# the sample's replies have at most 20.
REPLY_TOKENS = 96
TRANSLATION_TOKENS = 512  # STAPLE's prompts are short: some 40 translations
SHOWN_TRANSLATIONS = 10  # of an example: as many as the paper's Table 7 has in its longest row
SCANNED_ROWS = 100_000  # of the training split, to find examples
EXAMPLES = 100  # that few-shot prompts draw from
HIDDEN = {"full": (), "nop": ("premise",), "noq": (QUESTION, CORRECTED)}  # view -> columns left out
Row = Mapping[str, Any]


class Question(NamedTuple):
    """A multiple-choice question as a model reads it: the context continues with one of the choices."""

    context: str
    choices: tuple[str, str]
    label: int


def replies_prompt(message: str, language: str) -> str:
    """Asks for three replies in one answer.

    >>> print(replies_prompt("¿Quedamos mañana?", "es"))
    Write three different short replies to the message in Spanish, one on each line and nothing else.
    Message: ¿Quedamos mañana?
    Replies:
    """
    asked = f"Write three different short replies to the message in {language_name(language)}, one on each line"
    return f"{asked} and nothing else.\nMessage: {_one_line(message)}\nReplies:"


def reply_prompt(message: str, language: str) -> str:
    """Asks for one reply; three are sampled."""
    asked = f"Write a short reply to the message in {language_name(language)}, on one line and nothing else."
    return f"{asked}\nMessage: {_one_line(message)}\nReply:"


def translations_prompt(prompt: str, language: str) -> str:
    """Asks for all translations of an English sentence."""
    asked = f"Write all correct translations of the sentence to {language_name(language)}, one on each line"
    return f"{asked}, the most likely first and nothing else.\nSentence: {_one_line(prompt)}\nTranslations:"


def one_a_line(texts: Iterable[str]) -> str:
    """An answer as an example shows it."""
    return "\n".join(map(_one_line, texts))


def shown_translations(row: Row) -> str:
    """The answer to a STAPLE prompt as an example shows it: the translations that most learners give."""
    return one_a_line(oracle_top_k([{"id": "", "translations": row["translations"]}], SHOWN_TRANSLATIONS)[""])


def messages_with_replies(rows: Iterable[Row]) -> Iterator[tuple[str, list[str]]]:
    """The messages of a training split that have several different replies, with the first ones.

    Args:
        rows: pairs of `message` and `reply`; the first `SCANNED_ROWS` are read.
    """
    found: dict[str, dict[str, str]] = {}
    for row in islice(rows, SCANNED_ROWS):
        answers = found.setdefault(row["message"], {})
        key = row["reply"].casefold()
        if len(answers) < SUGGESTIONS and key not in answers:
            answers[key] = row["reply"]
            if len(answers) == SUGGESTIONS:
                yield row["message"], list(answers.values())


def choice_question(row: Row, view: str, question: str = QUESTION) -> Question:
    """A row of XCOPA as a question.

    Args:
        view: `full`, `nop` (without premise) or `noq` (without question).
        question: the column that says whether a cause or an effect is asked for, `question` or `question_corrected`.

    Raises:
        InputError: a column is missing or has another value than XCOPA's.
    """
    table = pa.Table.from_pylist([{name: value for name, value in row.items() if name not in HIDDEN[view]}])
    first, second = sentence_pairs(table, question if view != "noq" else QUESTION).to_pylist()
    return Question(first["text"], (first["text_pair"], second["text_pair"]), int(row["label"]))


def best_choice(log_probabilities: Sequence[float], choices: Sequence[str], per_byte: bool = False) -> int:
    """The choice with the highest log-probability, also by byte of its text; of equal ones the first."""
    scores = [
        value / (len(text.encode()) if per_byte else 1) for value, text in zip(log_probabilities, choices, strict=True)
    ]
    return scores.index(max(scores))


def _one_line(text: str) -> str:
    return " ".join(text.split())
