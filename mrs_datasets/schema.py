"""The final shape of MRS: configs, splits, columns and their types (Zhang et al. 2021, section 2; Table 1).

| config           | columns                                                | splits                  |
|------------------|--------------------------------------------------------|-------------------------|
| `LANG`           | message, reply (string)                                | train, validation, test |
| `LANG-responses` | reply (string), count (int64), log_prob (float64), cluster, source (string) | train |
| `mt-LANG`        | message, reply (string)                                | train                   |
"""

from __future__ import annotations

import pyarrow as pa

from mrs_core.languages import LANGUAGES

SPLITS = ("train", "validation", "test")
RESPONSES_SUFFIX = "-responses"
MT_PREFIX = "mt-"
SOURCES = ("organic", "translated")

PAIR_SCHEMA = pa.schema([("message", pa.string()), ("reply", pa.string())])
RESPONSE_SCHEMA = pa.schema(
    [
        ("reply", pa.string()),
        ("count", pa.int64()),
        ("log_prob", pa.float64()),
        ("cluster", pa.string()),
        ("source", pa.string()),
    ]
)
COLUMN_DOCS = {
    "message": "the message to answer",
    "reply": "the reply that was given (in `LANG-responses`: a reply that may be suggested)",
    "count": "how often the reply was seen in the training split; null where the source does not tell",
    "log_prob": "natural logarithm of the reply's probability; null where the source does not tell",
    "cluster": "replies of one cluster say the same; at most one of them is suggested",
    "source": "`organic` (seen as a reply) or `translated` (from the English response set); null where not told",
}


def responses_config(language: str) -> str:
    """The config that holds the response set of a language."""
    return language + RESPONSES_SUFFIX


def config_language(config: str) -> str:
    """The language of any config name."""
    return config.removeprefix(MT_PREFIX).removesuffix(RESPONSES_SUFFIX)


def config_schema(config: str) -> pa.Schema:
    """The Arrow schema of a config."""
    return RESPONSE_SCHEMA if config.endswith(RESPONSES_SUFFIX) else PAIR_SCHEMA


def config_splits(config: str) -> tuple[str, ...]:
    """The splits a config must have, in order."""
    return SPLITS if config in LANGUAGES else ("train",)


def config_order(config: str) -> tuple[int, int]:
    """Sort key: pairs first, then response sets, then machine-translated pairs; languages as in Table 1."""
    kind = 1 if config.endswith(RESPONSES_SUFFIX) else 2 if config.startswith(MT_PREFIX) else 0
    return kind, list(LANGUAGES).index(config_language(config))
