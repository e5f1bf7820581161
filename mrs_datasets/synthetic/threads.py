"""Synthetic threads, comment by comment, as the lines of a dump; and the results that a reader must get."""

import calendar
import json
from bisect import bisect
from collections import Counter, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from mrs_datasets.builders.reddit import months as rules
from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.read import COMMENT_PREFIX, POST_PREFIX
from mrs_datasets.synthetic.speech import SHARES, WORDS, Speech, speeches
from mrs_suggest.common.io.packaged import read_packaged

CHUNK = 4096  # comments drawn at a time
RECENT = 1 << 13  # comments of a language that may still be answered
TAIL_WORDS = 26  # on average
RAW_FROM = 2020  # from this year on non-ASCII characters are unescaped, and lines have fields that make 2 to 4 KB
NEWER_FROM = calendar.timegm((RAW_FROM, 1, 1, 0, 0, 0))
_FIELDS = read_packaged("mrs_datasets.synthetic", "newer_fields.yaml")
NEWER, AWARD = (json.dumps(_FIELDS[part], separators=(",", ":")) for part in ("comment", "award"))
TEXT_TIMES_UNTIL, FLOAT_TIMES_FROM = 2012, 2023  # created_utc; whole numbers between

# Not allowed in a data set: names and ids in any profile; names in bodies if these are cleaned.
NAMES = {
    "author": "SynthUser",
    "comment id": "zzc",
    "post id": "zzp",
    "author id": "zzu",
    "subreddit": "synth_sub_",
    "mention": "u/SynthMention_",
    "address": "https://synth.example/",
    "mail": "@synth.example",
}
AUTHORS, SUBREDDITS = 200_000, 400
BOT_AUTHORS = ("AutoModerator", "TotesMessenger", "SynthUser_weather_bot", "SynthUserHelperBot")
BOT_BODY = "I am a bot, and this action was performed automatically."
SCORES = (1,) * 30 + (2,) * 14 + (3,) * 7 + (4,) * 4 + (5, 6, 7, 8, 11, 15, 23, 64, 512)

# Shares of the lines. Faults are rare, but a month of some length has one of each kind.
REJECTED = {read.BROKEN: 1e-4, read.SURROGATE: 1e-4, read.WRONG_TYPE: 3e-5, read.MISSING: 3e-5, read.BLANK: 3e-5}
EACH_FAULT_FROM = 100  # lines of a month
NO_TEXT = {rules.REMOVED: 0.03, rules.DELETED: 0.04, rules.EMPTY: 0.005}
NULL_SCORE, LOW_SCORE, DELETED_LATER, BOTS = 0.005, 0.07, 0.01, 0.02
SEAM = 5e-4  # repeated lines, as at the joints of concatenated real dumps
# Shares of the comments: the first under a new post, others that answer a post, answers to a missing comment, answers
# to one that is listed under another post.
NEW_POST, TOP_LEVEL, ORPHAN, OTHER_LINK = 0.08, 0.22, 0.01, 0.002
BARE, OPENS = 0.35, 0.35  # a phrase and nothing else; a phrase, then one that opens another exchange
SPECIALS = {
    "mention": 0.01, "address": 0.02, "mail": 0.003, "markdown": 0.02, "quote": 0.02, "emoji": 0.01, "toxic": 0.01,
}  # fmt: skip

# Why a kept comment gives no pair.
TWICE = "comment twice"
POST = "parent is a post"
PARENT_DROPPED = "parent dropped"
PARENT_MISSING = "parent not in the data"
OTHER_POST = "parent under another post"
_LANGUAGES = tuple(SHARES)
_ENDS = list(accumulate(SHARES.values()))[:-1]  # the last language has the rest


@dataclass
class _Counts:
    def as_dict(self) -> dict[str, object]:
        """All values, for JSON, the most frequent of a kind first (`asdict` breaks counters before 3.12)."""
        return {
            name: dict(value.most_common()) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }


@dataclass
class Totals(_Counts):
    """Counts of a month: `lines` is `comments` plus the sum of `rejected`; `twice` of the comments are repeated."""

    lines: int = 0
    comments: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    twice: int = 0
    null_scores: int = 0
    specials: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


@dataclass
class Expected(_Counts):
    """A profile's outcomes: comments dropped or kept, and of these the pairs, or `unmatched` by the reason."""

    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    pairs_by_language: Counter[str] = field(default_factory=Counter)
    unmatched: Counter[str] = field(default_factory=Counter)


# Uniform random numbers, one for each decision about a comment.
_Draw = namedtuple(
    "_Draw", "seam reject language where recency stray pick shape special text score value later bot who"
)


class _Written(NamedTuple):
    """The facts about a comment that its answers and the counts need."""

    number: int
    link: int
    speech: int
    exchange: int  # its answers are replies of this exchange
    phrase: str
    dropped: str  # why the profile `paper` drops it; empty if it does not
    bot: bool
    read: bool  # false for a line that readers reject


class Threads:
    """Threads that continue from month to month.

    Args:
        long_thread: the first comments, which are all in one thread.

    Attributes:
        totals: of the lines since it was last reset.
    """

    def __init__(self, rng: np.random.Generator, long_thread: int = 0) -> None:
        self._long = long_thread
        self.totals = Totals()
        self._outcomes: Counter[tuple[str, bool, str, str, bool, int]] = Counter()
        self._rng = rng
        self._recent = _no_comments()
        self._written = 0
        self._posts = int(long_thread > 0)
        self._last: tuple[str, _Written] | None = None

    def month(self, year: int, start: int, seconds: int, lines: int) -> Iterator[list[str]]:
        """The lines of a month in chunks; `start` and `seconds` give its time span."""
        spoken = speeches(ascii_only=year < RAW_FROM)
        step = lines // (len(REJECTED) + 1)
        faults = {i * step: fault for i, fault in enumerate(REJECTED, 1)} if lines >= EACH_FAULT_FROM else {}
        for begin in range(0, lines, CHUNK):
            number = min(CHUNK, lines - begin)
            lengths = self._rng.geometric(1 / TAIL_WORDS, number)
            ends = np.cumsum(lengths)
            words = self._rng.integers(0, WORDS, int(ends[-1])).tolist()
            draws = zip(*self._rng.random((len(_Draw._fields), number)).tolist(), strict=True)
            created = (start + np.arange(begin, begin + number) * seconds // lines).tolist()
            starts = (ends - lengths).tolist()
            chunk = []
            drawn = zip(map(_Draw._make, draws), starts, ends.tolist(), created, strict=True)
            for i, (draw, first, end, second) in enumerate(drawn, begin):
                fault = faults.get(i) or _picked(REJECTED, draw.reject)
                chunk.append(self._line(draw, fault, spoken, words[first:end], _time(second, year), second))
            yield chunk

    def expected(self, drop_bots: bool) -> Expected:
        """The results that the filter and the join must get from all lines so far."""
        result = Expected()
        for (dropped, bot, unmatched, source_dropped, source_bot, speech), count in self._outcomes.items():
            if dropped or (bot and drop_bots):
                result.dropped[dropped or rules.BOT] += count
                continue
            result.kept += count
            if unmatched or source_dropped or (source_bot and drop_bots):
                result.unmatched[unmatched or PARENT_DROPPED] += count
            else:
                result.pairs += count
                result.pairs_by_language[_LANGUAGES[speech]] += count
        return result

    def _line(self, draw: _Draw, fault: str, spoken: list[Speech], words: list[int], time: str, second: int) -> str:
        """The next line, of any kind; it is counted."""
        self.totals.lines += 1
        if self._last and draw.seam < SEAM and not fault:
            line, written = self._last
            self.totals.twice += 1
            self._count(written, None, TWICE)
            return line
        speech = bisect(_ENDS, draw.language)
        source, link, parent, unmatched = self._place(draw, speech)
        body, phrase, exchange = self._say(draw, spoken[speech], source, words)
        bot = draw.bot < BOTS
        author = f"SynthUser_{int(draw.who**2 * AUTHORS):05x}"
        if bot:
            author, body = BOT_AUTHORS[int(draw.who * len(BOT_AUTHORS))], f"{BOT_BODY} {body}"
        dropped = _picked(NO_TEXT, draw.text)
        if dropped:
            body, author, bot = _no_text(dropped, author, bot, draw.value)
        if fault == read.SURROGATE:
            body += r"\ud83d"
        score, low = self._score(draw)
        later = draw.later < DELETED_LATER
        if dropped not in (rules.REMOVED, rules.DELETED):
            dropped = rules.DELETED_LATER if later else rules.LOW_SCORE if low else dropped
        written = _Written(self._written, link, speech, exchange, phrase, dropped, bot, not fault)
        line = _render(written, parent, author, body, time, second, score, draw, fault)
        self._recent[speech].append(written)
        self._written += 1
        if fault:
            self.totals.rejected[fault] += 1
            return line
        self.totals.languages[spoken[speech].language] += 1
        self._count(written, source, unmatched)
        self._last = line, written
        return line

    def _place(self, draw: _Draw, speech: int) -> tuple[_Written | None, int, str, str]:
        """The comment that this one answers, its post, its `parent_id`, and why it gives no pair."""
        if self._written == self._long:  # nobody answers the long thread from now on
            self._recent = _no_comments()
        recent = self._recent[speech]
        back = int(draw.recency**3 * len(recent))  # most answers come soon
        source = recent[-1 - back] if recent else None
        long = self._written < self._long
        if source is None or draw.where < NEW_POST:
            self._posts += not long
            return None, self._posts, _post_id(self._posts), POST
        if draw.where < NEW_POST + TOP_LEVEL:
            return None, source.link, _post_id(source.link), POST
        parent = f"{COMMENT_PREFIX}zzc{source.number:06x}"
        if draw.stray < ORPHAN:
            return source, source.link, f"{COMMENT_PREFIX}zzcx{source.number:x}", PARENT_MISSING
        if draw.stray < ORPHAN + OTHER_LINK and not long:
            self._posts += 1
            return source, self._posts, parent, OTHER_POST if source.read else PARENT_MISSING
        return source, source.link, parent, "" if source.read else PARENT_MISSING

    def _say(self, draw: _Draw, speech: Speech, source: _Written | None, words: list[int]) -> tuple[str, str, int]:
        """The body, the phrase at its start, and the exchange of its answers."""
        openings = speech.openings
        if source is None:
            phrase, exchange = openings[int(draw.pick * len(openings))]
            body = phrase
        else:
            replies = speech.replies[source.exchange]
            body = phrase = replies[int(draw.pick * len(replies))]
            opening, exchange = openings[int(draw.stray * len(openings))]
            if draw.shape > 1 - OPENS:
                body = f"{phrase} {opening}"
        if draw.shape > BARE:
            body = f"{body} {speech.space.join(map(speech.words.__getitem__, words))}."
        special = _picked(SPECIALS, draw.special)
        if special and not (special == "quote" and source is None):
            self.totals.specials[special] += 1
            body = _with_special(special, body, phrase, speech.toxic, source, self._written)
        return body, phrase, exchange

    def _score(self, draw: _Draw) -> tuple[str, bool]:
        """The score as JSON, and whether it is below one."""
        if draw.score < NULL_SCORE:
            self.totals.null_scores += 1
            return "null", False
        if draw.score < NULL_SCORE + LOW_SCORE:
            return str(-int(draw.value * 20)), True
        return str(SCORES[int(draw.value * len(SCORES))]), False

    def _count(self, written: _Written, source: _Written | None, unmatched: str) -> None:
        self.totals.comments += 1
        why, bot = (source.dropped, source.bot) if source else ("", False)
        self._outcomes[written.dropped, written.bot, unmatched, why, bot, written.speech] += 1


def _no_comments() -> list[deque[_Written]]:
    """The latest comments, by language."""
    return [deque(maxlen=RECENT) for _ in SHARES]


def _picked(shares: dict[str, float], draw: float) -> str:
    """The entry whose share of [0, 1] a random number is in; empty beyond their sum."""
    end = 0.0
    for name, share in shares.items():
        end += share
        if draw < end:
            return name
    return ""


def _post_id(number: int) -> str:
    return f"{POST_PREFIX}zzp{number:05x}"


def _time(second: int, year: int) -> str:
    if year <= TEXT_TIMES_UNTIL:
        return f'"{second}"'
    return f"{second}.0" if year >= FLOAT_TIMES_FROM else str(second)


def _no_text(reason: str, author: str, bot: bool, draw: float) -> tuple[str, str, bool]:
    """Body, author, and whether it is a bot, of a comment without text."""
    if reason == rules.REMOVED:
        return "[removed]" if draw < 0.9 else "[removed] by the moderators", author, bot
    if reason == rules.DELETED:
        return "[deleted]", "[deleted]", False
    return "" if draw < 0.5 else r" \n\u3000", author, bot


def _with_special(special: str, body: str, phrase: str, toxic: str, source: _Written | None, number: int) -> str:
    """The body with something that should not be in a data set; escaped for JSON."""
    if special == "mention":
        return f"u/SynthMention_{number:x} {body}"
    if special == "address":
        return f"{body} [here](https://synth.example/{number:x}) https://synth.example/r/{number:x}?a=1&amp;b=2"
    if special == "mail":
        return f"{body} synth{number:x}@synth.example"
    if special == "toxic":
        return f"{body} {toxic}"
    if special == "markdown":
        return rf"**{phrase}**{body.removeprefix(phrase)}\n\n* ~~no~~\n* *yes*"
    if special == "quote" and source:
        return rf"&gt; {source.phrase}\n\n{body}"
    return rf"{body} \ud83d\ude00"


def _render(
    written: _Written, parent: str, author: str, body: str, time: str, second: int, score: str, draw: _Draw, fault: str
) -> str:
    """The line, with the fields of its year in their order; `fault` is its fault, if any."""
    if fault == read.BLANK:
        return ""
    number = int(draw.who**2 * AUTHORS)
    comment, post = f"zzc{written.number:06x}", _post_id(written.link)
    in_sub = written.link % SUBREDDITS
    sub = f"synth_sub_{in_sub}"
    later = ""
    if draw.later < DELETED_LATER:
        later = ',"_meta":{"was_deleted_later":true,"note":"gone"}'
    elif draw.later > 1 - DELETED_LATER:
        later = ',"_meta":{"was_deleted_later":false}'
    text = f'"body":"{body}",'
    if fault:
        text = {read.WRONG_TYPE: '"body":null,', read.MISSING: ""}.get(fault, text)
    line = (
        f'{{"archived":false,"author":"{author}","author_created_utc":{1136073600 + number * 2003},'
        '"author_flair_background_color":"","author_flair_css_class":null,"author_flair_richtext":[],'
        '"author_flair_template_id":null,"author_flair_text":null,"author_flair_text_color":"dark",'
        f'"author_flair_type":"text","author_fullname":"t2_zzu{number:x}",{text}"can_gild":true,"can_mod_post":false,'
        '"collapsed":false,"collapsed_reason":null,'
        f'"controversiality":0,"created_utc":{time},"distinguished":null,"edited":false,"gilded":0,'
        f'"gildings":{{"gid_1":0,"gid_2":0,"gid_3":0}},"id":"{comment}","is_submitter":false,"link_id":"{post}",'
        f'"no_follow":true,"parent_id":"{parent}","permalink":"/r/{sub}/comments/{post[3:]}/_/{comment}/",'
        f'"retrieved_on":{second + 1_300_000 + number % 997},"score":{score},"send_replies":true,"stickied":false,'
        f'"subreddit":"{sub}","subreddit_id":"t5_zzs{in_sub:x}","subreddit_type":"public"{later}'
    )
    if second >= NEWER_FROM:
        line += f',"body_html":"<p>{body}</p>","name":"{COMMENT_PREFIX}{comment}"'
        line += f',"all_awardings":[{",".join([AWARD] * (number % 3))}],{NEWER[1:-1]}'
    line += "}"
    return line[: 1 + int(draw.value * (len(line) - 2))] if fault == read.BROKEN else line
