"""Message and language in, three suggestions out."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast, overload

import numpy as np

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import require_count, require_messages, require_score
from mrs_suggest.common.text.predictions import PASSED_ON, SUGGESTIONS
from mrs_suggest.models.starting_points import ADAPTER_RECORD, DETECTOR
from mrs_suggest.suggest.answering import Answer, ServedModel, Tags
from mrs_suggest.suggest.conversation import Chat, Conversation, fitting, guard_reasons, read_conversations, read_single
from mrs_suggest.suggest.fallback import WithFallback, load_model
from mrs_suggest.suggest.guard import BLANK, HELD_BACK, NO_REPLIES, OWN_MESSAGE, UNCLEAR, UNLIKELY
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.language_detector import SURE, LanguageDetector
from mrs_suggest.suggest.ranking.trigger import choose_threshold
from mrs_suggest.suggest.remembering import encode_together, read_texts
from mrs_suggest.suggest.short_messages import fitting_languages, has_table, kind_of, preferred_language

# The probability from which an unclear message may be in the language of the turns before it; ours, chosen on one to
# three words of the sample's messages: it avoids half of the errors after a change of language.
POSSIBLE = 0.01


class Suggester:
    """Answers messages with a trained model of any family.

    A message takes three steps: `suggest` finds its language, the guard keeps silent about sensitive messages, and
    `model.suggest` ranks the replies.

    Attributes:
        model: what answers; on its own, it answers every message.
        folder: of the model, with its language detector, if it has one.
        guard: suppresses suggestions that would hurt; None: nothing is suppressed.

    Args:
        guard: True: with the package's lists; a folder: with custom lists; False: no guard, as published figures are
            measured.
        precision: suppress suggestions unless the share of answers that are used is at least this, as calibrated on
            validation (Kannan et al. 2016, section 5); None: answer every message, as for published figures.

    Raises:
        InputError: the precision is not a share, or the model was not calibrated.

    Example:
        >>> suggester = Suggester.from_pretrained("build/retriever")    # doctest: +SKIP
        >>> suggester.suggest("¿Quedamos mañana?").replies              # doctest: +SKIP
        ['Sí, perfecto.', 'Vale, ¿a qué hora?', 'Mañana no puedo, lo siento.']
    """

    def __init__(
        self, model: ServedModel, folder: Path | None = None, guard: bool | Path = True, precision: float | None = None
    ) -> None:
        self.model, self.folder, self._guarded_by, self._precision = model, folder, guard, precision
        try:
            self._least = choose_threshold(model.trigger, precision) if precision is not None else 0.0
        except ValueError as error:
            raise InputError(f"--precision {precision:g}: {error}.") from None
        self.guard = Guard(GuardData(None if guard is True else guard), model, folder or model.parts) if guard else None

    @staticmethod
    def from_pretrained(
        folder: str | Path,
        revision: str | None = None,
        verify: bool = False,
        guard: bool | str | Path = True,
        precision: float | None = None,
        fallback: str | None = None,
        fallback_share: float = PASSED_ON,
    ) -> Suggester:
        """Load a model: the folder of a run, a baseline, `ORG/NAME[@REVISION]`, `openai:URL#MODEL`, `openai:FILE.yaml`.

        Args:
            revision: of a model on the hub: a branch, a tag or a commit.
            verify: compare the SHA-256 of large files, too, see `mrs_suggest.common.io.manifest`.
            guard, precision: as for the class.
            fallback: another model, which answers the messages of which this one is unsure.
            fallback_share: of the messages that are passed on at most, as calibrated on validation.

        Raises:
            InputError: there is no such model, or its files or those of the guard are damaged.
        """
        if isinstance(guard, str) and not (guard and Path(guard).is_dir()):
            raise ArgumentError("guard", "expected True, False or a folder of lists.", guard)
        model, path = load_model(str(folder), revision, verify)
        if fallback is not None and precision is not None:
            raise InputError("--precision and --fallback: both are for unsure messages; leave one of them out.")
        if fallback is not None:
            model = cast(ServedModel, WithFallback.load(model, fallback, fallback_share))
        return Suggester(model, path, Path(guard) if isinstance(guard, str) else guard, precision)

    @property
    def languages(self) -> list[str]:
        """The languages that the model answers."""
        return self.model.languages

    @property
    def silent_languages(self) -> list[str]:
        """The languages that the model detects but has no replies in; messages in them get no suggestions."""
        return [code for code in self._detector.languages if not self._answers(code)] if self._may_detect else []

    def detect(self, message: str) -> tuple[str, float]:
        """The most probable language of a message among `languages`, and its probability; see `rank_languages`."""
        return self.rank_languages(message)[0]

    def rank_languages(self, message: str) -> list[tuple[str, float]]:
        """All languages of the model with their probabilities for a message, most probable first.

        For a short message, such as a greeting, only the languages that it fits have a probability.

        Raises:
            ArgumentError: the message is not a text, or the model has several languages and no detector.
            InputError: the detector's file is damaged.
        """
        (text,) = require_messages([message])
        if len(self.languages) == 1 and not self._may_detect:
            return [(self.languages[0], 1.0)]
        ranked = self._detector.rank(text)
        fits = fitting_languages(text, self._detector.languages)
        if not fits:
            return ranked
        total = sum(probability for code, probability in ranked if code in fits)
        shares = [(code, probability / total if code in fits else 0.0) for code, probability in ranked]
        return sorted(shares, key=lambda share: -share[1])

    def sure_language(self, message: str, prefer: Sequence[str] | None = None) -> str | None:
        """The language of a message, or None if it is not clear; errors as `detect`, arguments as `suggest`."""
        return self._find_language(message, prefer)[0]

    def _find_language(self, message: str, prefer: Sequence[str] | None = None) -> tuple[str | None, list[str]]:
        """As `sure_language`, with the languages that a short message fits equally, if there are several."""
        ranked = self.rank_languages(message)
        fits = fitting_languages(message, [code for code, _ in ranked])
        if fits:
            among = [own for code in fits if (own := self._answers(code))] or fits
            return preferred_language(among, prefer), (among if len(among) > 1 else [])
        best, probability = ranked[0]
        silent = sum(p for code, p in ranked if not self._answers(code))
        if probability >= SURE or (silent >= SURE and not self._answers(best) and probability > ranked[-1][1]):
            return self._answers(best) or best, []
        return (self.languages[0] if len(self.languages) == 1 else None), []

    def _language_in(self, asked: Conversation, prefer: Sequence[str] | None) -> tuple[str | None, list[str]]:
        """As `_find_language`; if the message fits several languages or none is clear, that of the turns before it."""
        found, among = self._find_language(asked.message, prefer)
        if not asked.before:
            return found, among
        ranked = self.rank_languages(asked.message)
        fits = fitting_languages(asked.message, [code for code, _ in ranked])
        if not any(map(str.isalpha, asked.message)):  # a number or "?" may be in any language
            fits = fits or [code for code, _ in ranked]
        if found is None or len(fits) > 1:
            told, several = self._find_language(asked.before)
            possible = fits or [code for code, share in ranked if share >= POSSIBLE]
            if not several and told in [self._answers(code) or code for code in possible]:
                return told, []
        return found, among

    def _answers(self, code: str) -> str | None:
        """The model's language for a detected one: the same, or one of its regions (`de-AT`)."""
        regions = [own for own in self.languages if own.partition("-")[0] == code.partition("-")[0]]
        return code if code in self.languages else next(iter(regions), None)

    @cached_property
    def _detector(self) -> LanguageDetector:
        parts, known = self.folder or self.model.parts, " ".join(self.languages)
        path = parts / DETECTOR if parts else Path(DETECTOR)
        if parts and not path.is_file() and (parts / ADAPTER_RECORD).is_file():
            path = parts.parent / DETECTOR  # the adapter's folder within that of its run
        if not parts or not path.is_file():
            raise ArgumentError(
                "language", f"the model has no {DETECTOR} to detect it; it answers {known}, pass one of these."
            )
        return LanguageDetector.load(path)

    @property
    def tags(self) -> Mapping[str, list[str]]:
        """The tags of the replies by language; languages without tags are left out."""
        return self.model.tag_names

    def __repr__(self) -> str:
        return f"Suggester({str(self.folder or type(self.model).__name__)!r}, languages={self.languages})"

    def __call__(self, messages: str | Chat | Sequence[str | Chat], language: str | None = None, **options: Any) -> Any:
        return self.suggest(messages, language, **options)

    @overload
    def suggest(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
        self,
        messages: str | Conversation | Chat,
        language: str | None = None,
        k: int = SUGGESTIONS,
        allow: Collection[str] = (),
        deny: Collection[str] = (),
        prefer: Sequence[str] | None = None,
        min_score: float | None = None,
    ) -> Answer: ...

    @overload
    def suggest(
        self,
        messages: Sequence[str | Conversation | Chat],
        language: str | None = None,
        k: int = SUGGESTIONS,
        allow: Collection[str] = (),
        deny: Collection[str] = (),
        prefer: Sequence[str] | None = None,
        min_score: float | None = None,
    ) -> list[Answer]: ...

    def suggest(
        self,
        messages: str | Conversation | Chat | Sequence[str | Conversation | Chat],
        language: str | None = None,
        k: int = SUGGESTIONS,
        allow: Collection[str] = (),
        deny: Collection[str] = (),
        prefer: Sequence[str] | None = None,
        min_score: float | None = None,
    ) -> Answer | list[Answer]:
        """Up to k different suggestions for a message, or for each of a list of messages.

        A conversation may stand for a message: `[{"from": "them", "text": "Lunch at noon?"}, ...]`, oldest turn first,
        with `"from": "me"` for the user's own. Of its last ten turns, the last ones of the others are answered as one
        message, replies that the user already sent are left out, and the guard reads all turns of the others.

        Greetings, thanks, emojis and other short messages get only those replies of the set that fit them
        (`mrs_suggest.suggest.short_messages`); with `guard=False`, the model ranks all of its replies for them, too.

        Args:
            messages: a text, a conversation, or a list of these. Blank texts (only white space) get an empty answer.
            language: one of `languages`; None: the one that `sure_language` finds for each message, or else for the
                turns before it, and an empty list if it finds none.
            k: number of suggestions, from 1.
            allow: suggest only replies with one of these tags; empty: all replies.
            deny: suggest no reply with one of these tags, not even an allowed one.
            prefer: languages that the caller reads, best first: the one to answer in if a short message, such as "ok",
                fits several; None: that of the locale. English comes next.
            min_score: leave out suggestions with a lower score, 0 to 1; None: `own_ranker.MIN_SCORE` for custom
                replies, and no limit for those that a model was trained with. The score of a custom reply is the share
                of foreign messages whose best reply fits worse.

        Returns:
            The answer, or an answer for each message of a list. If it is empty, its `reason` says why: `blank`,
            `own_message` (the last turn is the user's), `language_unclear`, `unlikely`, `no_replies` (none in the
            language, none that fits, or none that was not sent), `held_back` (the guard removes all of them), or a
            reason of the guard. The next best replies take the places of those that the guard removes.

        Raises:
            ArgumentError: an InputError and a ValueError: the model does not answer in the language, or cannot detect
                it, the messages are not a list of texts, one of them holds a lone surrogate, a turn of a conversation
                is not as above, k is not a whole number from 1, or no reply of the model has one of the tags.
        """
        if (single := read_single(messages)) is not None:
            return self.suggest([single], language, k, allow, deny, prefer, min_score)[0]
        tags = self.model.parse_tags(allow, deny)
        if language is not None and language not in self.silent_languages:
            self.model.require_language(language)
        asked, count = read_conversations(cast(Iterable[Any], messages)), require_count(k)
        require_score(min_score)
        answers = []
        for one in asked:
            answer = Answer(reason=OWN_MESSAGE if one.mine else UNCLEAR if one.message.strip() else BLANK)
            if language is not None or answer.reason != UNCLEAR:
                answer.language = language
            else:
                answer.language, answer.among = self._language_in(one, prefer)
            answers.append(answer)
        codes = [answer.language if answer.reason == UNCLEAR else None for answer in answers]
        answered = [one for one, code in zip(asked, codes, strict=True) if code in self.languages]
        encode_together(self.model, self.guard, answered)
        for code in dict.fromkeys(code for code in codes if code) or ([language] if language else []):
            numbers = [number for number, other in enumerate(codes) if other == code]
            rows = self._answer([asked[number] for number in numbers], code, count, tags, given=language is not None)
            least = self.model.min_score(code) if min_score is None else min_score
            for number, row in zip(numbers, rows, strict=True):
                row.keep(least, NO_REPLIES)
                row.language, row.among = answers[number].language, answers[number].among
                answers[number] = row
        return answers

    def set_replies(
        self,
        replies: Iterable[str | Mapping[str, Any]] | Path,
        language: str | None = None,
        keep_other_languages: bool = False,
    ) -> Suggester:
        """Suggest these replies and no others from now on, without training, as `mrs models index` does.

        Args:
            replies: texts; or rows with `reply`, and perhaps `weight`, `tags` and `examples`, such as a
                `datasets.Dataset`; or the path of a file that `mrs models index --responses` takes.
            language: of the replies; None: the model's only one.
            keep_other_languages: keep the model's own replies in other languages, too.

        Returns:
            This suggester.

        Raises:
            InputError: the model is not a retriever's, or a reply is empty, given twice, in another language or toxic.
        """
        from mrs_suggest.suggest.own_replies.file import read_response_file
        from mrs_suggest.suggest.own_replies.sets import BUILT, ResponseSets  # which take a suggester's parts

        if isinstance(self.model, WithFallback):  # own replies have no calibration by which messages are passed on
            raise InputError("set_replies: the model has a fallback; load it without one, and set the replies then.")
        sets = ResponseSets(self._saved())
        code = sets.language(language)
        place = TemporaryDirectory(prefix="mrs-replies-")
        file = replies if isinstance(replies, Path) else Path(place.name) / "replies.jsonl"
        if not isinstance(replies, Path):
            rows = [dict(row) if isinstance(row, Mapping) else {"reply": row} for row in replies]
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        read = read_response_file(file)
        for finding in sets.check(read, code):
            raise InputError(f"replies: row {finding.row}, {finding.reply!r}: {finding.kind} ({finding.told}).")
        made = Path(place.name) / "model"
        sets.change(read, code, BUILT, file, made, keep_others=keep_other_languages)
        changed = Suggester.from_pretrained(made, guard=self._guarded_by, precision=self._precision)
        self.__dict__ = {**vars(changed), "_place": place}  # the folder is removed with this object
        return self

    def save_pretrained(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model with its card and `run.json` into a folder that `from_pretrained` reads.

        Raises:
            InputError: the folder is not empty, or the model was not trained here.
        """
        from mrs_suggest.models.saved.families import family_of, write_record
        from mrs_suggest.models.saved.record import read_record
        from mrs_suggest.suggest.own_replies.sets import copied

        source = self._saved()
        record = read_record(source)
        with copied(source, (), Path(folder), overwrite) as partial:
            write_record(partial, record, family_of(record))

    def push_to_hub(
        self, repo_id: str, private: bool | None = None, commit_message: str | None = None, token: str | None = None
    ) -> str:
        """Publish the model with its card in one commit, as `mrs models publish` does; return the commit.

        Raises:
            InputError: no permission, no hub, the repository holds something else, or the model was not trained here.
        """
        from mrs_suggest.common.hub.publishing import Change, publish
        from mrs_suggest.models.saved.families import model_card, publication
        from mrs_suggest.models.saved.record import read_record

        record = read_record(self._saved())
        change = Change(commit_message or f"A model ({record['trainer']})", private)
        with TemporaryDirectory() as place:  # a copy: the files of a model in the hub's cache are links
            folder = Path(place) / "model"
            self.save_pretrained(folder)
            return publish(publication(folder, record, repo_id, model_card(record, repo_id)), change, token).commit

    def _saved(self) -> Path:
        if self.folder is None:
            raise InputError("this suggester has no folder; load it with Suggester.from_pretrained.")
        return self.folder

    def evaluate(self, dataset: Any, language: str | None = None) -> dict[str, dict[str, Any]]:
        """Figures of three suggestions for each message of a data set, without the guard, as published ones.

        Args:
            dataset: rows with `message` and `reply`, and `language` if they are in several; of a `DatasetDict`, its
                test split.
            language: of rows without a `language` column; None: the model's only one.

        Returns:
            language -> `n` rows, `weighted` ROUGE of the best of three with its 95 % interval, `ceiling`, `dist1`,
            `dist2`.

        Raises:
            InputError: a column is missing, or the model does not answer in a language.
        """
        from mrs_suggest.suggest.figures import figures_of

        return figures_of(Suggester(self.model, self.folder, guard=False), dataset, language)

    def _answer(
        self, asked: list[Conversation], language: str, count: int, tags: tuple[Tags, Tags], given: bool
    ) -> list[Answer]:
        texts = read_texts(self.model, asked)
        if language not in self.model.languages:
            return [Answer(reason=NO_REPLIES) for _ in asked]
        reasons: list[str | None] = [None] * len(asked)
        kinds, answers = list(reasons), [Answer() for _ in asked]
        if (guard := self.guard) is not None:
            reasons = guard_reasons(guard, asked, language, partial(self._other_language, language, given))
            kinds = [kind_of(one.message, language) if has_table(language) else None for one in asked]
            answers = [Answer() if reason is None else guard.silent(reason, language) for reason in reasons]
            for one, answer in zip(asked, answers, strict=True):
                answer[:] = [suggestion for suggestion in answer if not one.repeats(suggestion.reply)]
        for kind in dict.fromkeys(kind for kind, reason in zip(kinds, reasons, strict=True) if reason is None):
            model = self.model.part(language, *tags, kind)
            numbers = [n for n, other in enumerate(kinds) if other == kind and reasons[n] is None]
            some = [texts[number] for number in numbers]
            with np.errstate(over="ignore", invalid="ignore"):  # scores that are not finite are refused below
                rows = model.suggest(some, language, count) if model else [[] for _ in some]
                for number, row in zip(numbers, rows, strict=True):
                    answers[number] = fitting(model, self.guard, asked[number], texts[number], language, row, count)
                    if not answers[number]:
                        unsent = any(not asked[number].repeats(one.reply) for one in row)
                        answers[number].reason = HELD_BACK if unsent else NO_REPLIES
        if not all(math.isfinite(suggestion.score) for answer in answers for suggestion in answer):
            where = self.folder or Path("the model")
            raise InputError(f"{where}: its scores are not finite; {again(where)}.")
        chances = self.model.used(texts, language) if self._precision is not None else None
        return answers if chances is None else list(map(self._likely, answers, chances))

    def _other_language(self, language: str, given: bool, asked: Conversation, text: str) -> str | None:
        """The language that a text is surely in, if it is not the one that the caller gave, or the conversation has."""
        found = self.sure_language(text) if (given or asked.watched) and self._may_detect else language
        return found if found != language else None

    @cached_property
    def _may_detect(self) -> bool:
        try:
            return bool(self._detector)
        except InputError:  # missing or damaged; callers who name the language do not need it
            return False

    def _likely(self, answer: Answer, chance: float) -> Answer:
        """The answer, or an empty one if it is too unlikely that one of its suggestions is used."""
        if answer.reason is None and (self._least is None or chance < self._least):
            return Answer(reason=UNLIKELY, used=chance)
        return Answer(answer, used=chance) if answer.reason is None else answer
