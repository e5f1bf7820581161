"""`mrs feedback` on what a real server kept."""

import json
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from mrs_suggest.serving import Client
from tests.command import refused, shown
from tests.conftest import Mrs
from tests.mrs_suggest.serving.server_process import ServerProcess


def test_two_models_their_clicks_and_a_comparison(tmp_path: Path, mrs: Mrs) -> None:
    """People choose the first suggestion of `good`, but of its first answer, and nothing of `bad`."""
    path = tmp_path / "clicks.sqlite"
    models = ("--model", "good=everyday-retriever", "--model", "bad=everyday-retriever", "--traffic", "good=1")
    with ServerProcess(*models, "--traffic", "bad=1", "--feedback", path, folder=tmp_path) as server:
        server.wait_for_workers()
        with Client(server.url) as client:
            chosen = False  # the first answer of `good` is not
            for number in range(160):
                (answer,) = client.suggest(["Are you coming to dinner tonight?"], "en", session=str(number))
                assert answer.id
                assert len(answer.version or "") == 12
                client.feedback(answer, 1 if chosen and answer.model == "good" else None)
                chosen |= answer.model == "good"
            (line,) = [line for line in server.log if "/v1/feedback" in line][:1]
            assert "dinner" not in "".join(server.log)
            assert json.loads(line)["status"] == 204
    done = mrs("feedback", "report", path, cwd=tmp_path)
    printed = shown((done.returncode, done.stdout, done.stderr))
    assert "one chosen" in printed
    compared = mrs("feedback", "compare", path, "good", "bad", "--json", cwd=tmp_path)
    found = json.loads(shown((compared.returncode, compared.stdout, compared.stderr)))
    assert found["difference"] > 0.95
    assert found["p"] < 0.001
    wrong = mrs("feedback", "compare", path, "good", "best", cwd=tmp_path)
    assert "best: 0 sessions" in refused((wrong.returncode, wrong.stdout, wrong.stderr))
    tuned = mrs("feedback", "tune", path, "--model", "everyday-retriever", "--out", tmp_path / "tuned", cwd=tmp_path)
    told = refused((tuned.returncode, tuned.stdout, tuned.stderr))
    assert "clicks on its answers" in told, "people of `good` gave some 80, and those of `bad` none"
    assert not (tmp_path / "tuned").exists()
