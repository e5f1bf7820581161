"""How often replies are suggested for everyday messages, which shows those that win or lose everywhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mrs_datasets.readers.everyday import TEXTS, read_situations
from mrs_suggest.common.text.text import visible
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.suggester import Suggester

MESSAGES = 200  # of mrs-everyday
ALWAYS = 0.5  # share of the messages for which a reply is among the best three
NAMED = 3  # replies that are named in a line


def shown_for_everyday(model: Path, language: str) -> list[str]:
    """Lines about the replies that are among the best three for most of the messages, or for none.

    Empty if mrs-everyday lacks the language.
    """
    path = TEXTS / f"{language.partition('-')[0]}.txt"
    if not path.is_file():
        return []
    texts = [message for situation in read_situations(path) for message in situation.messages]
    asked = texts[:: len(texts) // MESSAGES][:MESSAGES]
    suggester = Suggester.from_pretrained(model, guard=False)
    answers = suggester.suggest(asked, language, min_score=0)
    shown = Counter(reply for answer in answers for reply in answer.replies)
    replies = ResponseIndexes(model)[language].replies
    always = [reply for reply in replies if shown[reply] > ALWAYS * len(asked)]
    never = [reply for reply in replies if not shown[reply]]
    least = suggester.model.min_score(language) or 0.0
    answered = sum(any(one.score >= least for one in answer) for answer in answers)
    lines = [f"{language}: {answered} of {len(asked)} everyday messages get a suggestion with the default --min-score"]
    for told, some in (("among the best three for most of them", always), ("never among the best three", never)):
        if some:
            named = ", ".join(repr(visible(reply)) for reply in some[:NAMED])
            lines.append(f"{language}: {told}: {len(some):,} replies ({named}{', ...' if len(some) > NAMED else ''})")
    return lines
