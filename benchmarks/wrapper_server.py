"""The rival of bench_serve.py, what one writes in half an hour: FastAPI around the suggester that ships."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from mrs_suggest import Suggester

app = FastAPI()
suggester = Suggester.from_pretrained("everyday-retriever")
suggester.suggest("?", "en")


class Asked(BaseModel):
    """The body of a request."""

    messages: list[str]
    language: str | None = None
    k: int = 3


@app.post("/v1/suggest")
def suggest(asked: Asked) -> dict[str, Any]:
    """Suggestions for each message, in one of the threads that FastAPI has for such functions."""
    answers = suggester.suggest(asked.messages, asked.language, asked.k)
    shown = [[{"reply": one.reply, "score": one.score} for one in answer] for answer in answers]
    return {"answers": [{"message": m, "suggestions": s} for m, s in zip(asked.messages, shown, strict=True)]}
