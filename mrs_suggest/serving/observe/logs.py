"""Log lines as JSON, without the texts of messages."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("mrs_suggest.serving")


class JsonFormatter(logging.Formatter):
    """A line per record: time, level, event, process, and the fields of `extra={"fields": ...}`.

    Of an exception, only type and traceback are logged: its text may contain messages of users.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip().partition("\n")[0],  # libraries print objects on further lines
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["exception"] = record.exc_info[0].__name__
            line["traceback"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False)


def configure_logs(level: str = "info") -> None:
    """Write all records of the process to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOGGER.setLevel(level.upper())


def log(level: int, event: str, **fields: object) -> None:
    """Log one line; `fields` must not hold texts of users."""
    LOGGER.log(level, event, extra={"fields": fields})
