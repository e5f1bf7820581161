"""The card of a finished run, after checking its prediction files against its record."""

from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import predictions_name
from mrs_suggest.evaluation.choice.answers import read_run_answers
from mrs_suggest.evaluation.scores.systems import score_file
from mrs_suggest.models.saved.families import model_card
from mrs_suggest.models.saved.record import Record, read_record
from mrs_suggest.models.starting_points import MULTIPLE_CHOICE
from mrs_suggest.suggest.answering import MODEL


def checked_card(folder: Path, repo_id: str | None, adapter: bool = False) -> str:
    """Render the card of a run.

    Raises:
        InputError: the record cannot be read or lacks a key, or a prediction file gives other figures.
    """
    record = read_record(folder)
    try:
        if "signatures" in record["metrics"]:
            _require_own_predictions(folder, record["metrics"])
        elif record.get("trainer") == MULTIPLE_CHOICE and any(folder.glob("predictions*.tsv")):
            read_run_answers(folder, record)
        return model_card(record, repo_id, adapter)
    except KeyError as error:
        raise InputError(f"{folder / 'run.json'}: the key {error} is missing; train the model again.") from None


def _require_own_predictions(folder: Path, metrics: Record) -> None:
    """Refuse prediction files of a reply model that do not give the figures of its record."""
    figures = metrics["systems"][MODEL]
    for language in metrics["signatures"]:
        path = folder / predictions_name(language)
        if not path.is_file():
            continue
        found, recorded = score_file(path, language)["weighted"], figures[language]["weighted"]
        if abs(found - recorded) > 1e-9:
            raise InputError(
                f"{path}: the predictions give weighted ROUGE {found:.6f}, run.json has {recorded:.6f}; "
                "they belong to different runs."
            )
