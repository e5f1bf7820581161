"""A small prepared folder in two languages, with translated pairs of one, made by the real reader."""

from __future__ import annotations

import pytest

from mrs_datasets.prepare import prepare_mrs
from mrs_datasets.prepared import PreparedData, open_prepared


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("training")
    source = folder / "source"
    source.mkdir()
    for language in ("en", "ja"):
        lines = [f"{language} message {n}\t{language} reply {n % 7}\n" for n in range(80)]
        (source / f"{language}.tsv").write_text("".join(lines), encoding="utf-8")
    lines = [f"translated message {n}\ttranslated reply {n % 5}\n" for n in range(30)]
    (source / "mt-ja.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(source), folder / "data")
    return open_prepared(str(folder / "data"))
