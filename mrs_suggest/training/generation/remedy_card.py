"""What a generator's card says of languages: shares of wrong ones, and what was done against forgetting."""

from __future__ import annotations

from collections.abc import Sequence

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.models.generation.language_tokens import UNTOLD
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.training.export.card import Record


def wrong_languages(figures: Record, languages: Sequence[str]) -> str:
    """A table of each language's suggestions in another one; empty where they were not identified."""
    own = figures["systems"][MODEL]
    rows = []
    for code in languages:
        shares = [own[code].get(key) for key in ("wrong_language_first", "wrong_language")]
        if any(share is not None for share in shares):
            rows.append([code, *("" if share is None else f"{share:.3f}" for share in shares)])
    if not rows:
        return ""
    head = "Share of the suggestions in another language than the message's, among those whose language can be told:"
    return f"{head}\n\n{markdown_table(['language', 'first suggestion', 'all three'], rows)}"


def remedies(record: Record) -> str:
    """A sentence for each option against forgetting that the run had; empty without any."""
    arguments, told = record["arguments"], []
    tokens = str(record["metrics"].get("language_tokens", ""))
    if tokens.endswith(UNTOLD):
        told.append("The decoder is not given the token of the language.")
    elif arguments.get("force_language_token"):
        told.append("The decoder starts with the token of the language to write.")
    if layers := arguments.get("freeze_decoder_layers"):
        told.append(f"The decoder's lowest {layers} layer{'s' * (layers > 1)} stayed as they were.")
    if text := record["data"].get("denoising"):
        share = arguments["denoising_share"]
        told.append(f"Of the steps {share:g} were denoising of {text['title']} (xDAE; XGLUE, section 4.1).")
    if watched := record["metrics"].get("watched"):
        told.append(_watched(watched))
    if mixed := record["metrics"].get("interpolation"):
        told.append(
            f"The weights are {mixed['kept']:g} of the trained weights plus {1 - mixed['kept']:g} of those at the "
            "start (Wortsman et al. 2022)."
        )
    return " ".join(told)


def _watched(watched: Record) -> str:
    where, limit = " ".join(watched["languages"]), f"{watched['limit']:g}"
    if watched["stopped_at"] is None:
        return f"Of the replies to {where} on validation at most {limit} were in another language at each evaluation."
    return (
        f"Training stopped at step {watched['stopped_at']:,}, when more than {limit} of the replies to {where} on "
        "validation were in another language."
    )
