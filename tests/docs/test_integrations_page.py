"""The Python of docs/integrations.md runs as it stands there, on the shipped retriever and the sample."""

import re
import shutil
from pathlib import Path

import pytest

from mrs_datasets.readers.sample import SAMPLE
from mrs_suggest.common.hub.baselines import read_baselines

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
# What each block needs, and a pattern of what it prints.
BLOCKS = {
    "mteb": r"0\.2752\d*\n",
    "torchmetrics": r"tensor\(0\.1143, dtype=torch.float64\) mrs_rouge\|rules:mrs.*\n.*'mrr': 1\.0.*\n",
    "transformers": r"\[\{'reply': '[^']+', 'score': [^}]*\}, \{'reply'.*\n\['.*\]\n\[None\]\n\S.*\n",
}


@pytest.mark.integration
@pytest.mark.parametrize(("number", "needs"), enumerate(BLOCKS), ids=list(BLOCKS))
def test_the_python_of_the_page_runs(
    number: int, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(needs)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(BLOCKS)
    shutil.copytree(read_baselines()["everyday-retriever"].folder, tmp_path / "build" / "first" / "retriever")
    shutil.copytree(SAMPLE, tmp_path / "build" / "first" / "mrs")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[number], str(PAGE), "exec"), {})
    assert re.fullmatch(BLOCKS[needs], capsys.readouterr().out)
