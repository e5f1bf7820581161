"""Scorers by name."""

from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import is_repo_id
from mrs_suggest.common.text.text_services import Scorer
from mrs_suggest.services.scorers import service

WORDS = "words"
PERSPECTIVE = "perspective"


def open_scorer(
    name: str,
    *,
    label: str | None = None,
    batch_size: int | None = None,
    per_second: float | None = None,
    key_variable: str = "MRS_TOXICITY_KEY",
    option: str = "--toxicity",
) -> Scorer:
    """Open a scorer by name.

    Args:
        name: `words` (the package's lists), `words:FOLDER` or `words:LANG.txt`, the address of a service (`http://`,
            `https://`), `perspective` (`perspective:URL` for a compatible service), or a checkpoint for text
            classification (a folder, or a hub id).
    """
    if name == WORDS:
        from mrs_suggest.services.scorers.words import own_words

        return own_words()
    if name.startswith(f"{WORDS}:"):
        from mrs_suggest.services.scorers.words import read_words

        return read_words(Path(name.removeprefix(f"{WORDS}:")), option)
    if name == PERSPECTIVE or name.startswith(f"{PERSPECTIVE}:"):
        url = name.removeprefix(PERSPECTIVE).removeprefix(":") or service.PERSPECTIVE_URL
        rate = per_second or service.PERSPECTIVE_PER_SECOND
        return service.PerspectiveScorer(service.Poster(url, key_variable, ("x-goog-api-key", ""), rate, option))
    if name.startswith(("http://", "https://")):
        poster = service.Poster(name, key_variable, per_second=per_second, option=option)
        return service.HttpScorer(poster, batch_size)
    if Path(name).is_dir() or (is_repo_id(name) and ":" not in name):
        from mrs_suggest.services.scorers.classifier import ClassifierScorer

        return ClassifierScorer(name, label, batch_size, option)
    raise InputError(
        f"{option} {name}: unknown scorer; pass `{WORDS}`, {WORDS}:FOLDER, the address of a service (http://...), "
        f"`{PERSPECTIVE}`, a folder with a checkpoint, or a hub id such as ORG/NAME."
    )
