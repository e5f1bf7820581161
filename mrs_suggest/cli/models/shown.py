"""How often replies are suggested for everyday messages, which shows those that win or lose everywhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import mrs_datasets
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import visible
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.suggester import Suggester

MESSAGES = 200  # of mrs-everyday
ALWAYS, LEAD = 0.5, 1.5  # shares of the messages: at least the first, and so much more than the average reply's
NAMED = 3  # replies that are named in a line


def shown_for_everyday(model: Path, language: str) -> list[str]:
    """Lines about the replies that are among the best three for most of the messages, or for none.

    Empty if mrs-everyday lacks the language.
    """
    path = Path(mrs_datasets.__file__).parent / "everyday" / f"{language.partition('-')[0]}.txt"
    if not path.is_file():
        return []
    texts = [line.removeprefix("> ") for _, line in read_lines(path) if line.startswith("> ")]
    asked = texts[:: len(texts) // MESSAGES][:MESSAGES]
    suggester = Suggester.from_pretrained(model, guard=False)
    answers = suggester.suggest(asked, language, min_score=0)
    shown = Counter(reply for answer in answers for reply in answer.replies)
    replies = ResponseIndexes(model)[language].replies
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
