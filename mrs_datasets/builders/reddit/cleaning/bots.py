"""Which authors are bots: a list of names, and one rule."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# Some people have such names (Abbot, IAmARobot): the price of a rule that needs no list. The profile `paper`
# keeps every bot.
BOT_SUFFIX = "bot"

# AutoModerator, the moderation account of nearly every subreddit, and well-known bots whose names do not end in "bot".
# In lower case, since Reddit's names are case-insensitive.
BOT_NAMES = (
    "automoderator", "autotldr", "b0trank", "changetip", "convertstometric", "decronym", "gfy_mirror",
    "haiku-detector", "haikubot-1337", "helperbot_", "imagesofnetwork", "imgurtranscriber", "linkfixerbotsnr",
    "mentioned_videos", "metric_units", "mnemosyne-0001", "mnemosyne-0002", "morejpeg_auto", "movieguide",
    "mtgcardfetcher", "pricezombie", "qkme_transcriber", "redditcareresources", "roboragi", "savevideo",
    "sodogetip", "stabbot_crop", "the-paranoid-android", "tippr", "totesmessenger", "tweetposter",
    "user_simulator", "vredditdownloader", "xkcd_transcriber", "_youtubot_",
)  # fmt: skip
_NAMES = pa.array(BOT_NAMES, pa.string())


def is_bot(authors: pa.Array) -> pa.Array:
    """Whether each author name is a bot's.

    Args:
        authors: strings; null if the dump has no name.

    Returns:
        Booleans of the same length, without nulls; a missing name is not a bot's.

    >>> is_bot(pa.array(["AutoModerator", "weather_bot", "Bottle", "[deleted]", None])).to_pylist()
    [True, True, False, False, False]
    """
    names = pc.ascii_lower(authors)
    known = pc.is_in(names, value_set=_NAMES)
    return pc.fill_null(pc.or_(known, pc.ends_with(names, BOT_SUFFIX)), False)
