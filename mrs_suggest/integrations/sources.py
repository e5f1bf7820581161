"""Where the tasks' data are: an environment variable for each data set names the place.

| variable | data set | default |
|---|---|---|
| `MRS_DATA` | MRS | the embedded sample |
| `XCOPA_DATA` | XCOPA, or a data set with its columns | none |
| `STAPLE_DATA` | STAPLE, or a data set with its columns | none |

A place is what `mrs_datasets.prepared.prepared.open_prepared` takes: a folder of `mrs data prepare`, its URL, a hub id
(`ORG/NAME@REVISION`) or `sample`; or the name under which `mrs install` put a data set into the cache (`mrs`).
`XCOPA_QUESTION` names XCOPA's column with the kind of question (cause or effect): `question` (as published, default) or
`question_corrected`.
"""

import logging
import os
from pathlib import Path

from mrs_datasets.catalogue import catalogued
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.readers.sample import SAMPLE_SOURCE
from mrs_datasets.readers.xcopa import CORRECTED, QUESTION
from mrs_suggest.common.errors import InputError

VARIABLES = {"mrs": "MRS_DATA", "xcopa": "XCOPA_DATA", "staple": "STAPLE_DATA"}
QUESTION_VARIABLE = "XCOPA_QUESTION"
logger = logging.getLogger(__name__)


def source(data_set: str, place: str | None = None) -> PreparedData:
    """The prepared data of a task.

    Args:
        place: where they are; None takes the environment variable's.

    Raises:
        InputError: no place is named, or it holds no prepared data.
    """
    place = place or os.environ.get(VARIABLES[data_set])
    if place is None and data_set == "mrs":
        logger.warning(
            "MRS_DATA is not set: the tasks run on the embedded sample (written for tests and examples), not on MRS."
        )
        place = SAMPLE_SOURCE
    if place is None:
        raise InputError(
            f"{VARIABLES[data_set]} is not set; set it to a folder that `mrs data prepare {data_set}` made, or to a "
            "hub id such as ORG/NAME."
        )
    if place in catalogued() and not Path(place).exists():  # `mrs install` put it into the cache of `datasets`
        return PreparedData(place, None, None)
    return open_prepared(place)


def question_column() -> str:
    """The column of XCOPA that says whether a cause or an effect is asked for; InputError for other columns."""
    column = os.environ.get(QUESTION_VARIABLE) or QUESTION
    if column not in (QUESTION, CORRECTED):
        raise InputError(f"{QUESTION_VARIABLE}: expected {QUESTION} or {CORRECTED}, not {column!r}.")
    return column
