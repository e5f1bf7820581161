"""Three replies to each message, by the small model that ships: `python examples/suggest.py ["A message" ...]`.

Needs `pip install .` in a clone alone, no network and no GPU.
"""

from __future__ import annotations

import sys

from mrs_suggest import Suggester

MESSAGES = [
    "¿Quedamos mañana?",
    "Are you coming to dinner tonight?",
    "Danke für deine Hilfe gestern!",
    "I lost my job today",  # the guard suggests nothing here
]


def main(messages: list[str]) -> None:
    suggester = Suggester.from_pretrained("everyday-retriever")  # or the folder of your own run, or ORG/NAME of the hub
    answers = suggester.suggest(messages)  # each message's language is detected; or suggest(messages, "es")
    for message, answer in zip(messages, answers, strict=True):
        print(f"> {message}")
        for place, suggestion in enumerate(answer, 1):
            print(f"  {place}. {suggestion.reply}  ({suggestion.score:.3f})")
        if not answer:
            print(f"  nothing: {answer.reason}")


if __name__ == "__main__":
    main(sys.argv[1:] or MESSAGES)
