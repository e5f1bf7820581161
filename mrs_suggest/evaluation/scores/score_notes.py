"""Notes below a table of scores: what was skipped, what was unusual, how the figures were computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mrs_suggest.evaluation.scores.metric_record import ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import MetricSpec
from mrs_suggest.evaluation.scores.scoring import ScoredSystem


def score_notes(systems: Sequence[ScoredSystem], spec: MetricSpec) -> list[str]:
    """The notes of systems, then the methods of their intervals, then their signatures."""
    records = [system.record for system in systems]
    notes = [f"{system.system}: {text}" for system in systems for text in _counted(system.record, spec)]
    methods = {record.interval_method for record in records if record.interval}
    notes += [f"in brackets: 95 % interval, {method}" for method in sorted(methods)]
    if methods:
        notes += [note for one in systems for note in repeated_messages(len(one.examples), one.messages)]
    return notes + [signature for record in records for signature in record.signatures.values()]


def repeated_messages(examples: int, messages: int) -> list[str]:
    """A warning where examples share messages: intervals and tests resample examples as if they were independent.

    Args:
        messages: how many different ones the examples have; 0 where that is not known.

    >>> repeated_messages(3, 2)[0][:53]
    'warning: 3 examples have only 2 distinct messages, bu'
    """
    if not 0 < messages < examples:
        return []
    many = "message" if messages == 1 else "messages"
    return [
        f"warning: {examples:,} examples have only {messages:,} distinct {many}, but intervals and tests treat "
        "examples as independent: the intervals are too narrow and the p-values too small"
    ]


def _counted(record: ScoreRecord, spec: MetricSpec) -> Iterator[str]:
    for reason, n in (record.skipped or {}).items():
        if n:
            yield f"skipped {n:,} {reason.replace('_', ' ')}"
    for key, what in spec.counts:
        if count := record.figures.get(key):
            yield what if count is True else f"{count:,} {what}"
    if record.tasks is None:
        return
    for task, by_language in record.tasks.notes.items():
        for code, counts in by_language.items():
            yield from (f"{task} {code}: {n:,} {what.replace('_', ' ')}" for what, n in counts.items() if n)
    if record.tasks.missing:
        missing = ", ".join(f"{task} ({' '.join(codes)})" for task, codes in record.tasks.missing.items())
        yield f"averages lack {missing}, and cannot be compared with published ones"
