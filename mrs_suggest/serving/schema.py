"""Requests and answers, as the OpenAPI page shows them."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from mrs_suggest.common.suggest_arguments import MOST_SUGGESTIONS
from mrs_suggest.common.text.predictions import SUGGESTIONS

# Codes of an item; the other messages of the request are answered.
EMPTY, TOO_LONG, UNCLEAR, UNKNOWN, MISSING = (
    "empty_message", "too_long", "unclear_language", "unknown_language", "language_required",
)  # fmt: skip
ITEM_CODES = {
    EMPTY: "the message is blank",
    TOO_LONG: "the message has more characters than the server takes",
    UNCLEAR: "no language was given, and that of the message is not clear",
    UNKNOWN: "the model does not answer in the language that was given",
    MISSING: "no language was given, and the model cannot detect it",
}
MOST_TURNS = 100  # of a conversation; ours: more than are read, so that callers need not count
MOST_SESSION = 200  # characters
MOST_TEXT = 10_000  # characters of what a person sent
MOST_TAGS = 32  # of a request; ours: more than a person can distinguish
_SUGGESTION: dict[str, Any] = {"reply": "¿A qué hora?", "score": 0.21}
_ANSWER: dict[str, Any] = {
    "message": "¿Quedamos mañana?",
    "language": "es",
    "model": "everyday-retriever",
    "suggestions": [_SUGGESTION],
}
_UNKNOWN: dict[str, Any] = {"code": UNKNOWN, "message": "the model answers de en es; pass one of these."}
_UNANSWERED: dict[str, Any] = {
    "message": "Tere!",
    "language": "et",
    "model": "everyday-retriever",
    "suggestions": [],
    "error": _UNKNOWN,
}


class TurnItem(BaseModel):
    """A text of a conversation."""

    model_config = ConfigDict(extra="forbid")
    sender: Annotated[Literal["them", "me"], Field(alias="from", description="who wrote it; `me`: who replies")]
    text: StrictStr


class SuggestRequest(BaseModel):
    """Messages or conversations to answer."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"messages": ["¿Quedamos mañana?"], "language": "es", "k": 3},
                {"messages": ["Danke für deine Hilfe gestern!", "See you tomorrow?"]},
                {"conversations": [[{"from": "me", "text": "Lunch?"}, {"from": "them", "text": "Sure, when?"}]]},
            ]
        },
    )
    messages: Annotated[list[StrictStr], Field(min_length=1, description="what to answer, each on its own")] = []
    conversations: Annotated[
        list[Annotated[list[TurnItem], Field(min_length=1, max_length=MOST_TURNS)]],
        Field(
            min_length=1,
            description="in place of `messages`: what to answer with the turns before it, oldest first; the last ten "
            "turns of each count",
        ),
    ] = []
    language: Annotated[
        StrictStr | None, Field(description="the language of all of them, a code of `GET /v1/models`; null: detected")
    ] = None
    k: Annotated[StrictInt, Field(ge=1, description="suggestions per message")] = SUGGESTIONS
    explain: Annotated[StrictBool, Field(description="with the parts of each score, if the model has a ranker")] = False
    allow: Annotated[
        list[StrictStr], Field(max_length=MOST_TAGS, description="only replies with one of these tags; empty: all")
    ] = []
    deny: Annotated[
        list[StrictStr], Field(max_length=MOST_TAGS, description="no reply with one of these tags, even an allowed one")
    ] = []
    min_score: Annotated[
        float | None,
        Field(ge=0, le=1, description="leave out suggestions with a lower score; null: the default of the replies"),
    ] = None
    model: Annotated[StrictStr | None, Field(description="a name of `GET /v1/models`; null: the server decides")] = None
    session: Annotated[
        StrictStr | None,
        Field(
            max_length=MOST_SESSION,
            description="any text that stands for the conversation or its writer, better not a name: a session always "
            "gets the same model, and counts once in reports of clicks; only its hash is kept",
        ),
    ] = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if bool(self.messages) == bool(self.conversations):
            raise PydanticCustomError("one_of", "pass either messages or conversations")
        return self


class SuggestionItem(BaseModel):
    """A reply to click."""

    reply: str
    score: Annotated[float, Field(description="comparable among the suggestions for one message")]
    parts: Annotated[dict[str, float] | None, Field(description="with `explain`")] = None
    source: Annotated[
        str | None, Field(description="with `explain`, of a model with several: set, memory, generated or fallback")
    ] = None


class ItemError(BaseModel):
    """The problem of one message."""

    code: Annotated[str, Field(description="; ".join(f"`{code}`: {text}" for code, text in ITEM_CODES.items()))]
    message: str


class AnswerItem(BaseModel):
    """The answer to one message, with the fields of `mrs suggest --json`."""

    message: Annotated[str, Field(description="of a conversation: the last texts of the others, joined by spaces")]
    language: Annotated[str | None, Field(description="given or detected; null if it is not clear")]
    model: str
    version: Annotated[str | None, Field(description="of the model: the start of a hash of its record")] = None
    id: Annotated[str | None, Field(description="for `/v1/feedback`, if the server accepts it")] = None
    suggestions: Annotated[list[SuggestionItem], Field(description="in the order in which to show them")]
    order: Annotated[
        Literal["choice"] | None,
        Field(description="`choice`: chosen as a set, each adding most to those before; absent: by descending score"),
    ] = None
    reason: Annotated[
        str | None,
        Field(
            description="a code for an empty answer, such as `no_replies`: the model lacks replies in the language, or "
            "replies that fit; `held_back`: the guard removes all; `own_message`: the last turn is from `me`"
        ),
    ] = None
    note: Annotated[
        str | None,
        Field(description="the languages that a short message fits equally: `Accept-Language` decides, else English"),
    ] = None
    used: Annotated[
        float | None, Field(description="probability that a suggestion is used, if the server has a precision")
    ] = None
    error: Annotated[ItemError | None, Field(description="absent if the message is answered")] = None


class SuggestResponse(BaseModel):
    """An answer for each message, in their order."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"examples": [{"answers": [_ANSWER]}, {"answers": [_UNANSWERED]}]}
    )
    answers: list[AnswerItem]


class FeedbackRequest(BaseModel):
    """How a person used the suggestions of an answer."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"id": "0f" * 16, "shown": [1, 2, 3], "chosen": 1}]}
    )
    id: Annotated[StrictStr, Field(max_length=32, description="of the answer")]
    shown: Annotated[
        list[Annotated[StrictInt, Field(ge=1)]] | None,
        Field(max_length=MOST_SUGGESTIONS, description="the places of the displayed suggestions, in order; null: all"),
    ] = None
    chosen: Annotated[StrictInt | None, Field(ge=1, description="1: the first suggestion; null: none")] = None
    edited: Annotated[StrictBool, Field(description="whether the chosen reply was changed before it was sent")] = False
    typed: Annotated[StrictInt | None, Field(ge=0, le=1 << 31, description="characters that the person typed")] = None
    text: Annotated[
        StrictStr | None,
        Field(max_length=MOST_TEXT, description="what the person sent; only kept by a server that keeps texts"),
    ] = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.shown is not None and len(set(self.shown)) < len(self.shown):
            raise PydanticCustomError("shown", "a place in shown is given twice")
        if self.shown is not None and self.chosen is not None and self.chosen not in self.shown:
            raise PydanticCustomError("shown", "chosen must be one of the places in shown")
        return self


class RequestError(BaseModel):
    """The problem of a request."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """A refused request."""

    error: RequestError


class ModelItem(BaseModel):
    """A model that answers."""

    name: str
    version: str
    share: Annotated[float, Field(description="of the sessions that it answers")]
    languages: list[str]
    detects_language: Annotated[bool, Field(description="whether `language` can be left out")]
    tags: Annotated[
        dict[str, list[str]], Field(description="the tags of the replies, of languages with some; for allow and deny")
    ]
    loaded: Annotated[str, Field(description="when this worker loaded it, UTC")]


class ModelsResponse(BaseModel):
    """The models that answer, and the limits of a request."""

    models: list[ModelItem]
    limits: Annotated[dict[str, int], Field(description="max_body (bytes), max_messages, max_characters, max_k")]


class ReloadResponse(BaseModel):
    """The models are new."""

    models: list[ModelItem]
    workers: Annotated[int, Field(description="how many there are; the others follow as soon as they have loaded it")]


class Health(BaseModel):
    """The state of a worker."""

    status: str


def request_schema(max_messages: int, max_characters: int, max_k: int) -> dict[str, Any]:
    """The JSON schema of `SuggestRequest`, with the limits of a server."""
    schema = SuggestRequest.model_json_schema()
    fields = schema["properties"]
    turn = schema.pop("$defs")["TurnItem"]  # in its place: such a reference would not be one of the OpenAPI page
    fields["conversations"]["items"]["items"] = turn
    for name, text in (("messages", fields["messages"]["items"]), ("conversations", turn["properties"]["text"])):
        fields[name]["maxItems"] = max_messages
        text["maxLength"] = max_characters
        text["description"] = f"a longer one gives the error `{TOO_LONG}` in the item of the answer"
    fields["k"]["maximum"] = max_k
    return schema
