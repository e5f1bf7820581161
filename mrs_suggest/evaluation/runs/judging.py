"""A judge in a comparison of runs: how often it prefers a row's suggestions to those that leads are taken over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import predictions_name, read_predictions
from mrs_suggest.evaluation.runs.comparing import RunsTable
from mrs_suggest.evaluation.scores.judge import judge_pairs
from mrs_suggest.suggest.language_model.chat import Chat, read_endpoint


def judged(table: RunsTable, judge: str) -> RunsTable:
    """The table with the judge's wins, wherever it has a lead; of several seeds, each row's first is judged.

    Each message counts once, so that intervals are by message.

    Raises:
        InputError: `judge` is not an endpoint, its server fails, or no answer is clear.
    """
    chat, rows = Chat(read_endpoint(judge)), {row.name: row for row in table.rows}
    wins, signatures = [], []
    for (part, code), lead in ((lead.scope, lead) for lead in table.leads):
        folders = [rows[name].tested(lead.scope)[0].folder for name in (lead.row, lead.over)]
        files = [read_predictions(folder / predictions_name(code)) for folder in folders if folder]
        ours, theirs = ({one.message: one.suggestions for one in file} for file in files)
        others = [theirs[message] for message in ours]
        found, signature = judge_pairs(chat, list(ours), list(ours.values()), others, code)
        if not (clear := [one for one in found if one is not None]):
            raise InputError(f"--judge {judge}: no clear answer; see docs/metrics/judge.md for its prompt.")
        figures = {"share": float(np.mean(clear)), "interval": bootstrap_interval(clear, shares=False).ends}
        wins.append({"row": lead.row, "part": part, "language": code, **figures, "n": len(clear)})
        signatures.append(signature)
    told = ", ".join(f"{key} {value:g}" for key, value in chat.usage().items())
    return replace(table, wins=tuple(wins), judge=(f"judge: {told}", *signatures))
