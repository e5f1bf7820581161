"""The schema of MRS, from its record in the catalogue (Zhang et al. 2021, section 2; Table 1).

- `LANG`: message, reply; splits train, validation, test
- `LANG-responses`: reply, count, log_prob, cluster, source; split train
- `mt-LANG`: message, reply; split train
"""

from mrs_datasets.catalogue import read_record

MRS = read_record("mrs")
SPLITS = MRS.kinds["pairs"].splits
RESPONSES_SUFFIX = "-responses"
MT_PREFIX = "mt-"
PAIR_SCHEMA = MRS.schema("en")
RESPONSE_SCHEMA = MRS.schema(f"en{RESPONSES_SUFFIX}")


def responses_config(language: str) -> str:
    """The config with the response set of a language."""
    return language + RESPONSES_SUFFIX
