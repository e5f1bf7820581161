"""Sections of a reply model's card: when it is silent, how replies are ranked, wrong languages and remedies."""

from collections.abc import Iterator, Mapping, Sequence

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.models.generation.language_tokens import UNTOLD
from mrs_suggest.models.saved.card import card_texts
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import GENERATOR_FOLDER
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.ranking.choice import WIDTH
from mrs_suggest.suggest.ranking.language_ranker import PARTS
from mrs_suggest.suggest.ranking.second_stage import GENERATOR_PART, MEANING

TEXTS = card_texts("reply")
# Everyday messages -> the keys of those that are not answered, and of all.
_CORPORA = {
    "sheet": ("lookalike_alarms", "lookalikes"),
    "sample": ("alarms", "everyday"),
    "mrs-everyday": ("situation_alarms", "situations"),
}


# --- the guard


def guard_paragraph(record: Record) -> str:
    """A paragraph on the guard, with its figures if `run.json` has them."""
    guard, told = record.get("guard"), ""
    if text := record.get("guard_text"):
        sources = ", ".join(f"{count:,} {language} ({source})" for language, source, count in text)
        told = f"\n\nThe guard also learned from everyday sentences: {sources}."
    if guard is None:
        return f"{TEXTS['guard']} {TEXTS['guard_unmeasured']}{told}"
    languages = guard["languages"]
    rows = [_row(code, figures) for code, figures in languages.items()]
    total = {key: sum(figures[key] for figures in languages.values()) for key in next(iter(languages.values()))}
    table = markdown_table(
        ["language", "sensitive", "recall", "right reason", *(f"false silence, {name}" for name in _CORPORA)],
        [*rows, _row("all", total)],
    )
    measured = TEXTS["guard_measured"].format(half=TEXTS["guard_halves"][guard["half"]])
    return f"{TEXTS['guard']} {measured}\n\n{table}{told}"


def _row(name: str, figures: dict[str, int]) -> list[str]:
    return [
        name,
        f"{figures['sensitive']}",
        _share(figures["vetoed"], figures["sensitive"]),
        _share(figures["named"], figures["sensitive"]),
        *(_of(figures.get(alarms, 0), figures.get(messages, 0)) for alarms, messages in _CORPORA.values()),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else ""


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole:,} ({part / whole:.1%})" if whole else ""


# --- the ranker and the response sets


def ranking(figures: Record, asked: Sequence[str] = ()) -> str:
    """How suggestions come about: by a ranker with its weights, or by direct scores.

    Args:
        asked: the option `ranker_parts`, with weights if these were given.
    """
    ranker = figures.get("ranker")
    if ranker is None:
        return str(TEXTS["direct"])
    generator = ranker.get("generator")
    parts = {name: PARTS[name] for name in ranker["names"]} | ({GENERATOR_PART: MEANING} if generator else {})
    rows = [
        [f"`{name}`", meaning, *(_weight(weights.get(name, 0)) for weights in ranker["weights"].values())]
        for name, meaning in parts.items()
    ]
    table = markdown_table(["part", "meaning", *ranker["weights"]], rows)
    origin = "given" if any("=" in part for part in asked) else "chosen on validation"
    told = TEXTS["ranker"].format(origin=origin, choice=TEXTS["choice"][ranker["choice"]])
    return f"{told}{_further_candidates(ranker)}\n\n{table}{_silence(ranker, figures.get('coverage'))}"


def _silence(ranker: Record, on_test: list[list[float]] | None) -> str:
    """How often the suggestions are used when less likely ones are kept back."""
    trigger = ranker.get("trigger")
    if trigger is None:
        return ""
    rows = [[f"{at:.2f}", f"{share:.0%}", f"{reached:.0%}"] for at, share, reached in on_test or []]
    table = markdown_table(["least probability", "messages answered", "of these used"], rows)
    return f"\n\n{TEXTS['silence'].format(used=trigger['used'])}\n\n{table}"


def _further_candidates(ranker: Record) -> str:
    """The generator of a ranker, and the replies that only its memory has; empty if it has neither."""
    told = ""
    if generator := ranker.get("generator"):
        writes = f", and adds up to {generator['generated']} of its own" if generator["generated"] else ""
        known = f" ({generator['license']})" if "license" in generator else ""
        told += f" In {_codes(generator['languages'])}, the generator `{generator['id']}`{known}, a copy of which is "
        told += f"in `{GENERATOR_FOLDER}/`, scores the {WIDTH} best replies once more{writes}."
        if generator["ranked_without"]:
            told += f" It lacks {_codes(generator['ranked_without'])}."
    if "own_replies" in ranker:
        told += " Training replies that the response set lacks are suggested, too."
    return told


def _codes(languages: list[str]) -> str:
    return ", ".join(f"`{code}`" for code in languages)


def _weight(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value else "0"


def response_sets(changes: Mapping[str, list[Record]]) -> Iterator[str]:
    """The changes of the response sets after training: a sentence for each."""
    if not changes:
        return
    told = []
    for language, own in changes.items():
        for change in own:
            tags = ", ".join(f"`{tag}` {count:,}" for tag, count in change["tags"].items())
            told.append(
                f"- `{language}`: {change['change']} from `{change['file']}`, now {change['replies']:,} replies "
                f"({change['new']:,} new, {change['gone']:,} gone{f'; tags: {tags}' if tags else ''}); ranked by "
                f"{change['ranked']}."
                + (f" It no longer answers in {_codes(change['dropped'])}." if change["dropped"] else "")
            )
    yield "\n".join([TEXTS["changed_sets"], "", *told])


def clicks(record: Record) -> Iterator[str]:
    """What `mrs feedback tune` changed."""
    if found := record.get("clicks"):
        for name, one in [("weights", found), ("probability that a suggestion is used", found.get("trigger", {}))]:
            if "gain" in one:
                low, high = one["interval"]
                told = f"{one['answers']:,} answers" if "answers" in one else f"{one['clicks']:,} clicks"
                yield TEXTS["clicks"].format(name=name, told=told, gain=one["gain"], low=low, high=high)


# --- the languages of a generator


def wrong_languages(figures: Record, languages: Sequence[str]) -> str:
    """A table of each language's suggestions in another one; empty if they were not identified."""
    own = figures["systems"][MODEL]
    rows = []
    for code in languages:
        shares = [own[code].get(key) for key in ("wrong_language_first", "wrong_language")]
        if any(share is not None for share in shares):
            rows.append([code, *("" if share is None else f"{share:.3f}" for share in shares)])
    table = markdown_table(["language", "first suggestion", "all three"], rows)
    return f"{TEXTS['wrong_languages']}\n\n{table}" if rows else ""


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
    if (text := record["data"].get("more_text")) and (share := arguments.get("denoising_share")):
        told.append(f"A share of {share:g} of the steps denoised {text['title']} (xDAE; XGLUE, section 4.1).")
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
