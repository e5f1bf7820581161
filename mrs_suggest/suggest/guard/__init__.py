"""The guard: sensitive messages get no suggestions, and unfit replies are not suggested.

Messages about the classes of `REASONS` are not answered. A reply with a slur, private data, or facts that its writer
cannot know is not suggested. The word lists and example messages are YAML files in `lists/` and `prototypes/`, one per
language; files of the same names in a custom folder replace them (docs/guard.md).
"""

from types import MappingProxyType

# Reason codes and their meaning; the first that applies is reported. `hardship` is ours: a model answers "I lost my job
# today" as lightly as a small mishap.
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
# Other reasons for an empty answer.
BLANK, UNCLEAR, UNLIKELY, NO_REPLIES = "blank", "language_unclear", "unlikely", "no_replies"
OWN_MESSAGE, HELD_BACK = "own_message", "held_back"
