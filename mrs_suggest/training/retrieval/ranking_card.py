"""How suggestions come about, for the model card: the ranker with its weights, and when it keeps silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.models.starting_points import GENERATOR_FOLDER
from mrs_suggest.suggest.ranking.choice import WIDTH
from mrs_suggest.suggest.ranking.language_ranker import PARTS
from mrs_suggest.suggest.ranking.second_stage import GENERATOR_PART, MEANING
from mrs_suggest.training.export.card import Record

CHOICE_TOLD = {
    "expected": "Three are chosen together, so that the best of them is expected to be nearest to the real reply.",
    "top": "The three with the best scores are suggested.",
}


def ranking(figures: Record) -> str:
    """How suggestions come about: by a ranker with its weights, or by direct scores."""
    ranker = figures.get("ranker")
    if ranker is None:
        return "Suggestions are the replies with the best direct scores: message vector . reply vector."
    generator = ranker.get("generator")
    parts = {name: PARTS[name] for name in ranker["names"]} | ({GENERATOR_PART: MEANING} if generator else {})
    rows = [
        [f"`{name}`", meaning, *(_weight(weights.get(name, 0)) for weights in ranker["weights"].values())]
        for name, meaning in parts.items()
    ]
    table = markdown_table(["part", "meaning", *ranker["weights"]], rows)
    return (
        "Replies are ranked by a mixture of scores, each standardised per message; the weights were chosen on "
        f"validation. {CHOICE_TOLD[ranker['choice']]} `mrs suggest --explain` shows the parts of each suggestion. The "
        "memory, in `ranker/`, holds vectors (and hashed character n-grams) of training messages, not their texts."
        f"{_further_candidates(ranker)}\n\n{table}{_silence(ranker, figures.get('coverage'))}"
    )


def _silence(ranker: Record, on_test: list[list[float]] | None) -> str:
    """How often the suggestions are used when less likely ones are kept back."""
    trigger = ranker.get("trigger")
    if trigger is None:
        return ""
    rows = [[f"{at:.2f}", f"{share:.0%}", f"{reached:.0%}"] for at, share, reached in on_test or []]
    return (
        f"\n\nA suggestion counts as used if its weighted ROUGE against the real reply is {trigger['used']:g} or more. "
        "How likely that is for the best of three was calibrated on validation. With `mrs suggest --precision P` (off "
        "by default) nothing is suggested where fewer than a share P of the answers would be used. This holds for "
        "messages like those of the model's own data only: on 1,800 real pairs the shipped model with a precision of "
        "0.7 answered 11% of the messages, and 1.5% of these answers were used. Measure it on your own data first. "
        "On the test split:\n\n" + markdown_table(["least probability", "messages answered", "of these used"], rows)
    )


def _further_candidates(ranker: Record) -> str:
    """The generator of a ranker, and the replies that only its memory has; empty where it has neither."""
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
    """What became of the response sets after training: a sentence for each change."""
    if not changes:
        return
    told = []
    for language, own in changes.items():
        for change in own:
            ranked = "" if change["ranked"] else "; without a memory, so ranked by direct scores"
            tags = ", ".join(f"`{tag}` {count:,}" for tag, count in change["tags"].items())
            told.append(
                f"- `{language}`: {change['change']} from `{change['file']}`, now {change['replies']:,} replies "
                f"({change['new']:,} new, {change['gone']:,} gone{f'; tags: {tags}' if tags else ''}){ranked}."
                + (f" It no longer answers in {_codes(change['dropped'])}." if change["dropped"] else "")
            )
    yield (
        "The response set was changed after training (`mrs models index`); the figures above were measured before "
        "that:\n\n" + "\n".join(told)
    )
