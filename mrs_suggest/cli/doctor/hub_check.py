"""Whether the hub answers, and whether there is a token; the token itself is never shown."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from mrs_suggest.cli.doctor.finding import NOTE, OK, Finding

SECONDS = 3.0  # a connection that takes longer is of no use for downloads of gigabytes


def check_hub(timeout: float = SECONDS) -> list[Finding]:
    """Ask the hub (`HF_ENDPOINT`) for its headers, unless `HF_HUB_OFFLINE` is set; timeout: seconds."""
    from huggingface_hub import constants, get_token

    where = shown_endpoint(constants.ENDPOINT)
    there = get_token() is not None
    told = "present" if there else "none; `hf auth login` sets one, for private repositories and for publishing"
    token = Finding("hub", "token", OK, told, {"present": there})
    return [_reached(constants.ENDPOINT, where, constants.HF_HUB_OFFLINE, timeout), token]


def shown_endpoint(url: str) -> str:
    """An address without its credentials.

    >>> shown_endpoint("https://me:secret@hub.example.org:8080/x")
    'https://hub.example.org:8080/x'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _reached(url: str, where: str, offline: bool, timeout: float) -> Finding:
    facts: dict[str, object] = {"endpoint": where, "offline": offline}
    if offline:
        return Finding("hub", "connection", NOTE, f"HF_HUB_OFFLINE is set: {where} is not asked", facts)
    started = time.monotonic()
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "mrs-suggest"})
        with urllib.request.urlopen(request, timeout=timeout):
            pass
    except urllib.error.HTTPError as error:  # it answers; an endpoint's first page may need a login
        error.close()
        if error.code >= 500:
            facts |= {"reachable": False, "status": error.code}
            return Finding("hub", "connection", NOTE, f"{where} answers with error {error.code}; try later", facts)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        facts |= {"reachable": False}
        what = "what is cached still works, HF_HUB_OFFLINE=1 saves the wait"
        return Finding("hub", "connection", NOTE, f"{where} cannot be reached ({reason}); {what}", facts)
    seconds = time.monotonic() - started
    facts |= {"reachable": True, "seconds": round(seconds, 3)}
    return Finding("hub", "connection", OK, f"{where} answers in {seconds:.1f} s", facts)
