"""A language model behind any OpenAI-compatible server as a model that answers messages."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
from mrs_suggest.common.suggest_arguments import MOST_SUGGESTIONS, require_count
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.conversation import ME, THEM, Conversation, read_conversations
from mrs_suggest.suggest.guard.guard import LINK, PRIVATE, unfit
from mrs_suggest.suggest.language_detector import SURE, LanguageDetector
from mrs_suggest.suggest.language_model.chat import LONGEST, Chat, Endpoint, read_replies
from mrs_suggest.suggest.remembering import remembering
from mrs_suggest.suggest.retrieval_suggester import weights_encoder
from mrs_suggest.suggest.short_messages import fitting_languages


class LanguageModelSuggester(ServedModel):
    """Asks a language model for replies; a score is 1 / rank. InputError if the URL or the key cannot be used."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.parts, self.chat = endpoint, resolve_model(SHIPPED), Chat(endpoint)
        self._detector = LanguageDetector.load(self.parts / DETECTOR)
        self._encode = remembering(weights_encoder(self.parts))
        self.service = self.chat.signature(endpoint.prompt)

    @property
    def languages(self) -> list[str]:
        return list(self.endpoint.languages)

    def most(self, k: int) -> int:
        """Three: more replies in place of those that the guard removes would cost a second request."""
        return min(k, SUGGESTIONS)

    def message_vectors(self, messages: Sequence[str]) -> Any:
        return self._encode(list(messages))

    def suggest(self, messages: Sequence[Any], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """As `ServedModel.suggest`, also for conversations; InputError if the server fails or refuses."""
        self.require_language(language)
        asked, count = read_conversations(messages), require_count(k, MOST_SUGGESTIONS)
        rows = self.chat.map(partial(self._replies, language=language, count=count), asked)
        return [[Suggestion(reply, 1 / rank) for rank, reply in enumerate(row, 1)] for row in rows]

    def usage(self) -> dict[str, float]:
        return self.chat.usage()

    def _replies(self, asked: Conversation, language: str, count: int) -> list[str]:
        if not asked.message.strip():
            return []
        turns = [{"from": ME if one.mine else THEM, "text": one.text} for one in asked.turns[: len(asked.context)]]
        data = {"earlier": turns, "message": asked.message} if turns else {"message": asked.message}
        prompt = self.endpoint.prompt.replace("{count}", str(max(count, SUGGESTIONS)))
        system = prompt.replace("{language}", language_name(language))
        text = self.chat.complete(system, json.dumps(data, ensure_ascii=False), "replies")
        return fitting_replies(read_replies(text), asked.message, language, self._detector)[:count]


def fitting_replies(replies: Iterable[str], message: str, language: str, detector: LanguageDetector) -> list[str]:
    """Different short replies, not surely in another language, and without links and unknown private data."""
    found: dict[str, str] = {}
    for reply in replies:
        contact = unfit(reply, message, None) in (LINK, PRIVATE)
        if len(reply) <= LONGEST and not (is_blank(reply) or contact or in_other_language(reply, language, detector)):
            found.setdefault(normalise_reply(reply), reply)
    return list(found.values())


def in_other_language(text: str, language: str, detector: LanguageDetector) -> bool:
    """Whether a text is surely in another language than the one named."""
    code, known = language.partition("-")[0], detector.languages
    best, share = detector.rank(text)[0]
    return code in known and best != code and share >= SURE and code not in fitting_languages(text, known)
