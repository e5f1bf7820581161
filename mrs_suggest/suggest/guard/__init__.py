"""When to say nothing: word lists and example messages per language, and what is read with them.

Messages about the classes of `REASONS` are not answered, and a reply with a slur, private data, or something that the
writer cannot know is not suggested. The lists are YAML files in `lists/` and `prototypes/`, one per language, which can
be edited: a folder of one's own with files of the same names takes their place (docs/guard.md).
"""

from __future__ import annotations

from types import MappingProxyType

# Reason codes, and what each says of a message; where a message has several, the first of these is told. `hardship` is
# ours: a model answers "I lost my job today" as lightly as it answers a small mishap.
REASONS = MappingProxyType(
    {
        "self_harm": "suicide or self-harm",
        "exploitation": "the sexual exploitation or grooming of a minor",
        "extortion": "blackmail with intimate pictures",
        "threat": "a threat of violence",
        "abuse": "abuse, violence or insults",
        "medical": "a serious illness, an injury or medical advice",
        "grief": "a death or the loss of a loved one",
        "war": "shelling, bombing or war",
        "legal": "crime, police or a court",
        "hardship": "the loss of work, home, money or a partner",
    }
)
SENSITIVE = tuple(REASONS)
EVERYDAY = "everyday"
# Reasons why there is no answer that are not the guard's.
BLANK, UNCLEAR, UNLIKELY, NO_REPLIES = "blank", "language_unclear", "unlikely", "no_replies"
