"""The pages of the metrics' Spaces: boxes for the inputs, the figures and their signature.

Needs gradio 6, which Spaces have (here: `pip install '.[spaces]'`). A page imports none of the topics: it scores by the
`evaluate` module in its folder.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
Box = tuple[str, dict[str, Any]]  # a component of gradio and its arguments

# The ten languages of MRS, in the order of its Table 1.
LANGUAGES = (
    ("English", "en"), ("Spanish", "es"), ("German", "de"), ("Portuguese", "pt"), ("French", "fr"), ("Japanese", "ja"),
    ("Swedish", "sv"), ("Italian", "it"), ("Dutch", "nl"), ("Russian", "ru"),
)  # fmt: skip
XGLUE_TASKS = ("NER", "POS", "NC", "MLQA", "XNLI", "PAWSX", "QADSM", "WPR", "QAM", "QG", "NTG")
XGLUE_LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "it", "nl", "pl", "pt", "ru", "sw", "th", "tr", "ur",
                   "vi", "zh")  # fmt: skip


@dataclass(frozen=True)
class Page:
    """The page of a metric.

    Attributes:
        score: (the loaded metric, a value for each box) -> figures with their `signature`; the message of a ValueError
            or ImportError is shown on the page. The names of its arguments are those of the API.
        examples: a value for each box, filled in by a click.
    """

    title: str
    description: str
    score: Callable[..., Figures]
    boxes: tuple[Box, ...]
    examples: list[list[str]]


def text(name: str, label: str, lines: int = 1) -> Box:
    """A box for texts."""
    return "Textbox", {"label": label, "lines": lines, "elem_id": name}


def choice(name: str, label: str, choices: tuple[Any, ...], value: str) -> Box:
    """A list to choose from."""
    return "Dropdown", {"label": label, "choices": list(choices), "value": value, "elem_id": name}


SUGGESTIONS = text("suggestions", "Suggestions, one per line", 3)
REPLY = text("reply", "The real reply", 2)
LANGUAGE = choice("language", "Language", LANGUAGES, "en")


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


PAGES = {
    "mrs_rouge": Page(
        "Weighted ROUGE for reply suggestion",
        "How close is the best suggestion to the reply that was really given? ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2 (F1), "
        "from 0 to 1, by the rules of MRS's official script (its scores, if texts are split into sentences by Punkt).",
        score_mrs_rouge,
        (SUGGESTIONS, REPLY, LANGUAGE),
        [
            ["Thanks a lot!\nSee you tomorrow!\nNo problem.", "Thank you, see you tomorrow!", "en"],
            ["Mañana no puedo.\nSí, ¿a qué hora?", "Sí, ¿a qué hora quedamos?", "es"],
            ["確認してご連絡します。\nありがとうございます。", "どうもありがとうございます。", "ja"],
        ],
    ),
    "dist_n": Page(
        "Dist-n for reply suggestion",
        "How many different words (Dist-1) and pairs of words (Dist-2) do the suggestions have, relative to their "
        "length? From 0 to 1.",
        score_dist_n,
        (
            SUGGESTIONS,
            text("reply", "The real reply (if you type it, only the suggestion closest to it counts)", 2),
            LANGUAGE,
        ),
        [
            ["I don't know.\nI don't think so.\nI don't care.", "", "en"],
            ["Yes, at eight!\nSorry, I can't tonight.\nWhere do we meet?", "", "en"],
            ["Vielen Dank!\nGern geschehen!", "Sehr gern geschehen!", "de"],
        ],
    ),
    "self_rouge": Page(
        "Self-ROUGE for reply suggestion",
        "How similar are the suggestions? From 0, no word in common, to 1, the same words in the same order "
        "(`normalised`).",
        score_self_rouge,
        (SUGGESTIONS, LANGUAGE),
        [
            ["Thanks a lot!\nThanks so much!\nThanks!", "en"],
            ["Yes, at eight!\nSorry, I can't tonight.\nWhere do we meet?", "en"],
            ["Vielen Dank!\nVielen Dank!\nGern geschehen!", "de"],
        ],
    ),
    "simulated_clicks": Page(
        "Simulated clicks for reply suggestion",
        "Which suggestion would somebody click who wants to send this reply, and which share of its characters does "
        "that save?",
        score_simulated_clicks,
        (SUGGESTIONS, REPLY),
        [
            ["Yes, at eight!\nSorry, I can't tonight.\nWhere do we meet?", "Yes, at seven!"],
            ["Vielen Dank!\nGern geschehen!", "Sehr gern geschehen!"],
        ],
    ),
    "reply_bleu": Page(
        "BLEU for reply suggestion",
        "How close is the best suggestion to the reply that was really given? BLEU by sacreBLEU, from 0 to 100. Corpus "
        "BLEU (`bleu`) is 0 for texts of fewer than four tokens; over a whole test set it is the figure to report.",
        score_reply_bleu,
        (SUGGESTIONS, REPLY, LANGUAGE),
        [
            ["Thanks a lot!\nSee you tomorrow then!\nNo problem.", "Thank you, see you tomorrow then!", "en"],
            ["Mañana no puedo.\nSí, ¿a qué hora?", "Sí, ¿a qué hora quedamos?", "es"],
        ],
    ),
    "wrong_language": Page(
        "Suggestions in a wrong language",
        "Which of the suggestions are not in the language of the message? Short texts, and those whose language is "
        "uncertain, are left undecided (`und`).",
        score_wrong_language,
        (SUGGESTIONS, LANGUAGE),
        [
            ["Das weiß ich leider nicht.\nI don't know, sorry.\nOk", "de"],
            ["No lo sé, lo siento.\nNão sei, desculpa.", "es"],
        ],
    ),
    "reply_perplexity": Page(
        "Perplexity of real replies",
        "How surprised is a model by the replies that were really given? exp of the mean loss over all tokens: 1 for a "
        "model that knows each token, V for one that guesses among V.",
        score_reply_perplexity,
        (text("losses", "Losses of the tokens in nats, one reply per line", 3),),
        [["0.693147 1.386294 0.693147\n2.079442"]],
    ),
    "response_ranking": Page(
        "Ranking of the real reply",
        "Where does a system rank the reply that was really given? The reciprocal rank is 1 for the first place, 1/2 "
        "for the second; equal scores count against the system.",
        score_response_ranking,
        (
            text("candidates", "Score and candidate, one per line", 4),
            text("reply", "The real reply, one of the candidates"),
        ),
        [["0.9 Yes, at eight!\n0.4 Sorry, I can't tonight.\n-0.2 Where do we meet?", "Where do we meet?"]],
    ),
    "weighted_f1": Page(
        "Weighted F1 of translations",
        "How many of the predicted translations of a prompt are accepted ones (precision), and how much of the "
        "learners' weight do these cover (weighted recall)? Their harmonic mean, from 0 to 1, is STAPLE's score.",
        score_weighted_f1,
        (
            text("predicted", "Predicted translations, one per line", 4),
            text("accepted", "Accepted translations, text|weight, one per line", 4),
            choice("rules", "Rules", ("paper", "official"), "paper"),
        ),
        [["sim, claro\nclaro", "Sim, claro.|0.6\nSim!|0.3\nClaro que sim!|0.1", "paper"]],
    ),
    "xglue_score": Page(
        "Scores of the XGLUE tasks",
        "A line is a sentence's tags with spaces between them (NER, POS), a label, an answer (MLQA), the relevance 0 "
        "to 4 of a page, all of one query (WPR), or a text (QG, NTG). Figures are 0 to 1.",
        score_xglue_score,
        (
            choice("task", "Task", XGLUE_TASKS, "POS"),
            choice("language", "Language", XGLUE_LANGUAGES, "en"),
            text("predictions", "Predictions, one per line", 3),
            text("references", "Right answers, one per line", 3),
        ),
        [
            ["POS", "en", "DET NOUN NOUN VERB\nPRON VERB ADJ", "DET NOUN NOUN VERB\nPRON AUX ADJ"],
            ["NER", "de", "B-PER I-PER O B-LOC", "B-PER I-PER O B-ORG"],
            ["MLQA", "es", "en el año 1900\nMadrid", "año 1900\nBarcelona"],
            ["WPR", "fr", "4\n2\n2", "3\n0\n2"],
        ],
    ),
}


def make_page(module: Path) -> Any:
    """Return the `gradio.Interface` of the `evaluate` module in a file."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page sends no telemetry
    import evaluate
    import gradio

    page = PAGES[module.stem]

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
        inputs=[getattr(gradio, kind)(**options) for kind, options in page.boxes],
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
