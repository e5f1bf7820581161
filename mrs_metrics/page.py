"""The pages of the metrics' Spaces: boxes for the inputs, the figures and their signature.

Needs gradio 6, which Spaces have (here: `pip install '.[spaces]'`). A page imports none of the topics: it scores by the
`evaluate` module in its folder.
"""

import inspect
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
FILE = "pages.json"  # next to this module, here and in a Space


@dataclass(frozen=True)
class Page:
    """The page of a metric.

    Attributes:
        score: (the loaded metric, a value for each box) -> figures with their `signature`; the message of a ValueError
            or ImportError is shown on the page. The names of its arguments are those of the API.
        boxes: argument of `score` -> gradio's settings for its box; one with `choices` is a list to choose from.
        examples: a value for each box, filled in by a click.
    """

    title: str
    description: str
    score: Callable[..., Figures]
    boxes: dict[str, dict[str, Any]]
    examples: list[list[str]]


def score_mrs_rouge(metric: Any, suggestions: str, reply: str, language: str) -> Figures:
    """The weighted ROUGE of the best suggestion first, then its ceiling and what it consists of."""
    texts = _lines(suggestions)
    result = metric.compute(predictions=[texts], references=[_reply(reply)], language=language, per_example=True)
    best = texts[result["per_example"]["chosen"][0]]
    first = {name: result[name] for name in ("weighted", "ceiling")}
    figures = {name: value for name, value in result.items() if isinstance(value, float) or name == "empty_suggestions"}
    return {**first, **figures, "best_suggestion": best, "signature": result["signature"]}


def score_dist_n(metric: Any, suggestions: str, reply: str, language: str) -> Figures:
    """Dist-1 and Dist-2 of all suggestions or, if a reply is given, of the best one."""
    given = {"references": [reply.strip()], "chosen": "best"} if reply.strip() else {}
    return dict(metric.compute(predictions=[_lines(suggestions)], language=language, **given))


def score_self_rouge(metric: Any, suggestions: str, language: str) -> Figures:
    """How similar the suggestions are."""
    texts = _lines(suggestions)
    if len(texts) < 2:
        raise ValueError("Type at least two suggestions to compare with each other.")
    result = metric.compute(predictions=[texts], language=language)
    return {name: result[name] for name in ("normalised", "self_rouge", "signature")}


def score_simulated_clicks(metric: Any, suggestions: str, reply: str) -> Figures:
    """The suggestion that would be clicked, and the characters that this saves."""
    texts = _lines(suggestions)
    result = metric.compute(predictions=[texts], references=[_reply(reply)], per_example=True)
    place = result["per_example"]["place"][0]
    clicked = {"clicked": "" if place < 0 else texts[place]}
    return {**clicked, **{name: result[name] for name in ("exact", "saved", "signature")}}


def score_reply_bleu(metric: Any, suggestions: str, reply: str, language: str) -> Figures:
    """The BLEU of the best suggestion, as a sentence first, then as a corpus of one."""
    texts = _lines(suggestions)
    result = metric.compute(predictions=[texts], references=[_reply(reply)], language=language, per_example=True)
    best = texts[result["per_example"]["chosen"][0]]
    figures = {name: result[name] for name in ("sentence_bleu", "bleu", "brevity_penalty", "length_ratio")}
    return {**figures, "best_suggestion": best, "signature": result["signature"]}


def score_wrong_language(metric: Any, suggestions: str, language: str) -> Figures:
    """The share of wrong suggestions and the language of each, by the model that `MRS_LANGUAGE_MODEL` names, or by
    lid.176.ftz in the page's folder."""
    texts = _lines(suggestions)
    model = os.environ.get("MRS_LANGUAGE_MODEL") or str(Path(__file__).resolve().with_name("lid.176.ftz"))
    result = metric.compute(predictions=[texts], language=language, language_model=model, per_suggestion=True)
    found = result.pop("per_suggestion")["identified"]
    return {**result, "identified": dict(zip(texts, found, strict=True))}


def score_reply_perplexity(metric: Any, losses: str) -> Figures:
    """The figures of replies, from the losses of their tokens."""
    lines = [line.split() for line in losses.splitlines() if line.strip()]
    if not lines:
        raise ValueError("Type the losses of at least one reply.")
    try:
        rows = [[float(word) for word in line] for line in lines]
    except ValueError as error:
        raise ValueError(f"The losses must be numbers separated by white space: {error}.") from error
    return dict(metric.compute(predictions=rows))


def score_response_ranking(metric: Any, candidates: str, reply: str) -> Figures:
    """The rank of the real reply among the candidates, and the figures of this one example."""
    scores, texts = [], []
    for line in filter(None, map(str.strip, candidates.splitlines())):
        number, _, candidate = line.partition(" ")
        try:
            scores.append(float(number))
        except ValueError:
            raise ValueError(f"Each line must be a score, a space and a candidate, not {line!r:.80}.") from None
        texts.append(candidate.strip())
    if not scores:
        raise ValueError("Type at least one candidate with its score.")
    if texts.count(reply.strip()) != 1:
        raise ValueError("The real reply must be among the candidates exactly once.")
    result = metric.compute(predictions=[scores], references=[texts.index(reply.strip())], k=(1, 3), per_example=True)
    rank = result["per_example"]["rank"][0]
    return {"rank": rank, **{name: result[name] for name in ("mrr", "p@1", "p@3", "signature")}}


def score_weighted_f1(metric: Any, predicted: str, accepted: str, rules: str) -> Figures:
    """The figures of one prompt."""
    rows = []
    for line in filter(None, map(str.strip, accepted.splitlines())):
        translation, _, weight = line.rpartition("|")
        try:
            rows.append({"text": translation, "weight": float(weight)})
        except ValueError:
            raise ValueError(f"Each accepted translation must be text|weight, not {line!r:.80}.") from None
    if not rows:
        raise ValueError("Type at least one accepted translation with its weight.")
    texts = [line for line in map(str.strip, predicted.splitlines()) if line]
    result = metric.compute(predictions=[texts], references=[rows], rules=rules)
    figures = {"weighted_f1": result["weighted_macro_f1"], "f1": result["macro_f1"]}
    return figures | {name: result[name] for name in ("precision", "recall", "weighted_recall", "signature")}


def score_xglue_score(metric: Any, task: str, language: str, predictions: str, references: str) -> Figures:
    """The figures of a task, from examples one per line: tags with spaces between them (NER, POS), else one text."""

    def examples(lines: str) -> list[Any]:
        rows = lines.rstrip("\n").split("\n")
        return [row.split() if task in ("NER", "POS") else row.strip() for row in rows]

    ours, theirs = examples(predictions), examples(references)
    if len(ours) != len(theirs):
        raise ValueError(f"There are {len(ours)} predictions for {len(theirs)} right answers: type one for each.")
    if task == "MLQA":
        theirs = [[answer] for answer in theirs]
    queries = ["the one query"] * len(theirs) if task == "WPR" else None
    return dict(metric.compute(predictions=ours, references=theirs, task=task, language=language, queries=queries))


def _lines(suggestions: str) -> list[str]:
    texts = [line.strip() for line in suggestions.splitlines() if line.strip()]
    if not texts:
        raise ValueError("Type at least one suggestion.")
    return texts


def _reply(reply: str) -> str:
    if not reply.strip():
        raise ValueError("Type the real reply to compare the suggestions with.")
    return reply.strip()


def read_pages() -> dict[str, Page]:
    """The pages by metric; their texts are in `pages.json`, with the boxes that several pages have."""
    content = json.loads(Path(__file__).resolve().with_name(FILE).read_text(encoding="utf-8"))
    found = {}
    for name, about in content["pages"].items():
        score = globals()[f"score_{name}"]
        _, *arguments = inspect.signature(score).parameters
        boxes = {**content["boxes"], **about.pop("boxes", {})}
        found[name] = Page(score=score, boxes={argument: boxes[argument] for argument in arguments}, **about)
    return found


def make_page(module: Path) -> Any:
    """Return the `gradio.Interface` of the `evaluate` module in a file."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page sends no telemetry
    import evaluate
    import gradio

    page = read_pages()[module.stem]

    def answer(*values: object) -> tuple[Figures, str]:
        # Loaded each time, from the cache: evaluate 0.4 cannot reuse a metric after an error in `compute`.
        metric = evaluate.load(str(module), keep_in_memory=True)
        try:
            figures = page.score(metric, *values)
        except (ValueError, ImportError) as error:
            raise gradio.Error(str(error), print_exception=False) from error
        return figures, str(figures.pop("signature"))

    _, *named = inspect.signature(page.score).parameters.values()
    answer.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # the API's names for the boxes
    return gradio.Interface(
        answer,
        inputs=[
            (gradio.Dropdown if "choices" in options else gradio.Textbox)(elem_id=name, **options)
            for name, options in page.boxes.items()
        ],
        outputs=[
            gradio.JSON(label="Figures", elem_id="figures"),
            gradio.Textbox(label="Signature: print it with the figures", lines=2, elem_id="signature"),
        ],
        title=page.title,
        description=page.description,
        examples=page.examples,
        cache_examples=False,
        preload_example=False,
        flagging_mode="never",
        submit_btn=gradio.Button("Score", variant="primary", elem_id="score"),
        api_name="score",
        deep_link=False,
        analytics_enabled=False,
    )


def serve(module: Path) -> None:
    """Serve a page until interrupted; address and port come from gradio's environment variables."""
    make_page(module).launch(share=False, ssr_mode=False, footer_links=["api"])


if __name__ == "__main__":  # from a checkout: python -m mrs_metrics.page NAME
    serve(Path(__file__).resolve().parent / "modules" / f"{sys.argv[1]}.py")
