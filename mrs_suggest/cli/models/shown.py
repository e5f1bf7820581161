"""How often replies are suggested for everyday messages, which shows those that win or lose everywhere."""

from __future__ import annotations

from collections import Counter

from mrs_datasets.everyday.situations import TEXTS, read_situations
from mrs_suggest.common.text.text import visible
from mrs_suggest.suggest.suggester import Suggester

MESSAGES = 200  # of mrs-everyday
ALWAYS, LEAD = 0.5, 1.5  # shares of the messages: at least the first, and so much more than the average reply's
NAMED = 3  # replies that are named in a line


def shown_for_everyday(suggester: Suggester, replies: list[str], language: str) -> list[str]:
    """Lines about the replies that are among the best three for most of the messages, or for none.

    Empty if mrs-everyday lacks the language.

    Args:
        suggester: without a guard.
        replies: all that it has in the language.
    """
    path = TEXTS / f"{language.partition('-')[0]}.txt"
    if not path.is_file():
        return []
    texts = [message for situation in read_situations(path) for message in situation.messages]
    asked = texts[:: len(texts) // MESSAGES][:MESSAGES]
    answers = suggester.suggest(asked, language, min_score=0)
    shown = Counter(reply for answer in answers for reply in answer.replies)
    often = max(ALWAYS, LEAD * shown.total() / len(asked) / len(replies)) * len(asked)
    always = [reply for reply in replies if shown[reply] > often]
    never = [reply for reply in replies if not shown[reply]]
    least = suggester.model.min_score(language) or 0.0
    answered = sum(any(one.score >= least for one in answer) for answer in answers)
    lines = [f"{language}: {answered} of {len(asked)} everyday messages get a suggestion with the default --min-score"]
    for told, some in (("among the best three for most of them", always), ("never among the best three", never)):
        if some:
            named = ", ".join(repr(visible(reply)) for reply in some[:NAMED])
            lines.append(f"{language}: {told}: {len(some):,} replies ({named}{', ...' if len(some) > NAMED else ''})")
    return lines
