"""README.md of a corpus, from its report alone."""

from __future__ import annotations

from typing import Any

from mrs_datasets.builders.reddit.cleaning.language import LOW_SCORE, UNKNOWN_LANGUAGE
from mrs_datasets.corpus.lines import EMPTY, FEW_LETTERS, NOT_UTF8, TOO_LONG, TOO_SHORT
from mrs_datasets.corpus.settings import BUCKETS
from mrs_datasets.corpus.shards import DUPLICATE, OTHER_LANGUAGE
from mrs_datasets.corpus.write import LEFT_OUT
from mrs_suggest.common.report.cards import markdown_table, render_card

HERE = "PATH"  # stands for the folder
REASONS = (  # in the order in which they apply
    NOT_UTF8, EMPTY, TOO_SHORT, TOO_LONG, FEW_LETTERS, DUPLICATE, UNKNOWN_LANGUAGE, LOW_SCORE, OTHER_LANGUAGE,
    *(LEFT_OUT.format(bucket) for bucket in BUCKETS),
)  # fmt: skip


def corpus_card(report: dict[str, Any]) -> str:
    """The card; equal reports give equal bytes."""
    languages = {code: facts for code, facts in report["languages"].items() if facts["kept"]}
    configs = [
        {"config_name": code, "data_files": [{"split": "train", "path": f"{code}/*.txt.gz"}]} for code in languages
    ]
    return render_card("corpus.md", {"language": list(languages), "configs": configs}, _values(report, languages))


def _values(report: dict[str, Any], languages: dict[str, dict[str, Any]]) -> dict[str, str]:
    everything = report["languages"]
    return {
        "kept": f"{sum(facts['kept'] for facts in languages.values()):,}",
        "languages": ", ".join(languages),
        "lines": f"{sum(facts['lines'] for facts in everything.values()):,}",
        "here": HERE,
        "config": next(iter(languages)),
        "options": " ".join(f"--text {code}={HERE}/{code}" for code in languages),
        "lines_table": markdown_table(
            ["language", "lines", "kept", "share"],
            [
                [code, f"{facts['lines']:,}", f"{facts['kept']:,}", f"{facts['kept'] / max(facts['lines'], 1):.1%}"]
                for code, facts in everything.items()
            ],
        ),
        "perplexity": _perplexity(everything),
        "dropped_table": dropped_table(report),
        "other_languages": "".join(
            f" Other languages among `{code}`: {_counts(facts['other_languages'])}."
            for code, facts in everything.items()
            if facts["other_languages"]
        ),
        "texts": "\n".join(
            f"- `{text['language']}`: {text['name']}, {text['lines']:,} lines, SHA-256 `{text['sha256'][:16]}`"
            for text in report["texts"]
        ),
        "masked": "; links, names and addresses of the known forms are masked"
        if report["settings"]["rules"]["mask"]
        else "",
    }


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def dropped_table(report: dict[str, Any]) -> str:
    """Lines dropped by reason and language."""
    languages = report["languages"]
    reasons = [reason for reason in REASONS if any(reason in facts["dropped"] for facts in languages.values())]
    rows = [
        [code, *(f"{facts['dropped'].get(reason, 0):,}" for reason in reasons)] for code, facts in languages.items()
    ]
    return markdown_table(["language", *reasons], rows)


def _perplexity(languages: dict[str, dict[str, Any]]) -> str:
    """The thirds of the languages with a model."""
    rows = [
        [
            code,
            f"{facts['perplexity']['quantiles']['0.5']:.3f}",
            f"{facts['perplexity']['head']:.3f}",
            f"{facts['perplexity']['middle']:.3f}",
            *(f"{facts['thirds'][bucket]:,}" for bucket in BUCKETS),
        ]
        for code, facts in languages.items()
        if "thirds" in facts
    ]
    if not rows:
        return "No language had a model, so perplexity was not computed."
    header = ["language", "median", "head up to", "middle up to", *(f"{bucket}, lines" for bucket in BUCKETS)]
    return "Perplexity per character, before any third is left out:\n\n" + markdown_table(header, rows)
