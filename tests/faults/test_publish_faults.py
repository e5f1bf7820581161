"""Publishing a data set while the hub fails: every fault of the loopback hub's switch, at every request in turn.

Each publish ends well, with the right files in one commit, or with one sentence and exit code 2 while the old revision
is as it was. The publishes run one after the other in one process, through the command's own `main`; waiting between
tries is cut short there, and nothing else is changed.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from tests.hub.server import LoopbackHub

pytestmark = pytest.mark.faults

REPO = "org/mrs"
OLD = {"README.md": "# Old\n", "data/es/train-00000-of-00001.parquet": "PAR1 old PAR1", "left-over.txt": "old\n"}
ALWAYS = 10**6
ONCE: dict[str, dict[str, Any]] = {
    "500 once": {"status": 500}, "429, Retry-After 0": {"status": 429, "retry_after": 0},
    "429, Retry-After 1": {"status": 429, "retry_after": 1}, "dropped before": {"drop_request": True},
    "dropped after": {"drop_response": 0}, "answer cut in its head": {"drop_response": 20},
    "answer cut in its body": {"drop_body": 3},
}  # fmt: skip
FOR_EVER: dict[str, dict[str, Any]] = {
    "500 for ever": {"status": 500, "times": ALWAYS},
    "429 for ever": {"status": 429, "retry_after": 0, "times": ALWAYS},
    "dropped before, for ever": {"drop_request": True, "times": ALWAYS},
    "dropped after, for ever": {"drop_response": 0, "times": ALWAYS},
}
DRIVER = """
import contextlib, io, json, sys, time, traceback
sleep = time.sleep
time.sleep = lambda seconds: sleep(min(seconds, 0.002))
import mrs_suggest.common.hub.hub
mrs_suggest.common.hub.hub.SECONDS_BETWEEN_TRIES = 0.002
from mrs_suggest.cli.main import main
real = sys.stdout
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(json.loads(line))
        except BaseException:
            code = traceback.format_exc()
    print(json.dumps([code, out.getvalue(), err.getvalue()]), file=real, flush=True)
"""
Publish = Callable[..., "tuple[Any, str, str]"]
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder: the card and the report as text, Parquet that goes through LFS."""
    base = tmp_path_factory.mktemp("faulty")
    (base / "source").mkdir()
    lines = [f"mensaje {n}\trespuesta {n % 3}\n" for n in range(40)]
    (base / "source" / "es.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(base / "source"), base / "data")
    return base / "data"


@pytest.fixture(scope="module")
def wanted(folder: Path) -> Files:
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {**files, "README.md": files["README.md"].replace(b'"PATH"', f'"{REPO}"'.encode())}


@pytest.fixture(scope="module")
def publish(hub_server: LoopbackHub, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publish]:
    """A function that publishes the folder: (exit code or traceback, output, errors). The token is in neither."""
    base = tmp_path_factory.mktemp("publisher")
    with (base / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            cwd=base, env=hub_server.env(base / "home"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True, encoding="utf-8",
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def call(*options: str) -> tuple[Any, str, str]:
            stdin.write(json.dumps(["data", "publish", str(folder), "--repo", REPO, *options]) + "\n")
            stdin.flush()
            code, out, err = json.loads(stdout.readline())
            assert hub_server.token not in out + err
            return code, out, err

        yield call
        stdin.close()
        process.wait(timeout=30)
    assert hub_server.token not in (base / "stderr").read_text()


def content(hub: LoopbackHub, revision: str = "main") -> Files:
    """The files of a revision, without those that the hub itself adds."""
    repo = hub.repo("dataset", REPO)
    return {path: repo.read(path, revision) for path in repo.files(revision) if path != ".gitattributes"}


def begin(hub: LoopbackHub) -> str:
    """A hub with an old revision; its id."""
    hub.reset()
    repo = hub.create("dataset", REPO)
    for path, text in OLD.items():
        repo.write(path, text)
    return repo.sha()


@pytest.fixture(scope="module")
def requests(hub_server: LoopbackHub, publish: Publish, wanted: Files) -> int:
    """How many requests an undisturbed publish makes."""
    begin(hub_server)
    code, _, err = publish()
    assert code == 0, err
    assert content(hub_server) == wanted
    count = len(hub_server.log)
    assert len(hub_server.requests("PUT", "/_objects/")) == 4, "Parquet goes through LFS"
    hub_server.reset()
    return count


def landed(hub: LoopbackHub, old: str, wanted: Files, out: str) -> None:
    """One new commit after `old`, with the right files, and its id was printed."""
    head, *others = hub.repo("dataset", REPO).commits()
    assert content(hub) == wanted
    assert [commit.sha for commit in others][:1] == [old], "not one commit"
    assert out.startswith(f"published {REPO} at {head.sha[:12]}")


def one_sentence(code: Any, out: str, err: str) -> None:
    assert code == 2, code
    assert out == ""
    line = err.strip().splitlines()[-1]
    ours = [text for text in err.splitlines() if text.startswith("mrs data: ")]
    assert ours == [line], err
    assert REPO in line
    assert line.endswith(".")
    assert "Traceback" not in err
    assert any(word in line for word in ("again", "check", "look")), f"it does not say what to do: {line}"


@pytest.mark.parametrize("kind", ONCE)
def test_a_fault_that_passes_does_not_stop_a_publish(
    kind: str, hub: LoopbackHub, publish: Publish, requests: int, wanted: Files
) -> None:
    for k in range(1, requests + 1):
        old = begin(hub)
        fault = hub.faults.add(at=k, **ONCE[kind])
        code, out, err = publish()
        assert fault.fired == 1, f"request {k} was never made"
        assert code == 0, f"{kind}, request {k} ({hub.log[k - 1]}): {code} {err}"
        landed(hub, old, wanted, out)


@pytest.mark.parametrize("kind", FOR_EVER)
def test_a_fault_that_stays_ends_in_one_sentence_and_leaves_the_old_revision(
    kind: str, hub: LoopbackHub, publish: Publish, requests: int, wanted: Files
) -> None:
    for k in range(1, requests + 1):
        old = begin(hub)
        before = content(hub)
        hub.faults.add(at=k, **FOR_EVER[kind])
        code, out, err = publish()
        where = f"{kind}, from request {k} ({hub.log[k - 1]})"
        if code == 0:  # what fails now was not needed
            landed(hub, old, wanted, out)
            continue
        assert code == 2, f"{where}: {code}"
        one_sentence(code, out, err)
        if hub.repo("dataset", REPO).sha() == old:
            assert content(hub) == before, where
            continue
        # The commit took effect and no answer came through, nor to any question after it: nobody can know.
        assert hub.requests("POST", "/commit/main"), where
        assert content(hub) == wanted, where
        assert "nothing was changed" not in err, f"{where}: not true: {err}"
        assert "as it was" not in err, f"{where}: not true: {err}"


def test_another_writer_is_not_overwritten(hub: LoopbackHub, publish: Publish, requests: int, wanted: Files) -> None:
    refused = 0
    for k in range(1, requests + 1):
        old = begin(hub)
        hub.faults.add(at=k, stale=True)
        code, out, err = publish()
        commits = hub.repo("dataset", REPO).commits()
        foreign = next((commit for commit in reversed(commits) if "FOREIGN.txt" in commit.files), None)
        if foreign is None:  # the request was about no repository
            assert hub.log[k - 1].path.startswith(("/api/repos/create", "/api/validate-yaml")), hub.log[k - 1]
            landed(hub, old, wanted, out)
            continue
        assert foreign.parent == old
        if code == 0:  # it came before we looked at the old revision, so ours is made from it
            assert k <= 3, hub.log[k - 1]
            landed(hub, foreign.sha, wanted, out)
            continue
        refused += 1
        one_sentence(code, out, err)
        assert "another commit was published" in err
        assert commits[0] == foreign
        assert content(hub).keys() == {*OLD, "FOREIGN.txt"}
    assert refused >= requests - 5


def test_publishing_the_same_again_makes_no_commit(hub: LoopbackHub, publish: Publish) -> None:
    hub.reset()
    assert publish()[0] == 0
    repo = hub.repo("dataset", REPO)
    head = repo.sha()
    code, out, _ = publish()
    assert (code, repo.sha(), len(repo.commits())) == (0, head, 2)
    assert out.startswith(f"published {REPO} at {head[:12]}")


@pytest.mark.parametrize("times", [1, ALWAYS], ids=["once", "for ever"])
@pytest.mark.parametrize("path", ["/commits/", "/tree/", f"/api/datasets/{REPO}$"])
def test_the_questions_after_a_lost_answer_may_fail_too(
    path: str, times: int, hub: LoopbackHub, publish: Publish, wanted: Files
) -> None:
    """The commit took effect, its answer was lost, and so is what we ask then."""
    old = begin(hub)
    hub.faults.add("POST", "/commit/main", drop_response=0)
    asked = len(publish_and_forget(hub, publish, path))
    old = begin(hub)
    hub.faults.add("POST", "/commit/main", drop_response=0)
    hub.faults.add("GET", path, at=asked, times=times, status=500)
    code, out, err = publish()
    if code == 0:
        landed(hub, old, wanted, out)
        return
    assert times == ALWAYS, f"{path}: {code} {err}"
    one_sentence(code, out, err)
    assert content(hub) == wanted
    assert "nothing was changed" not in err
    assert "as it was" not in err
    assert "another commit" not in err


def publish_and_forget(hub: LoopbackHub, publish: Publish, path: str) -> list[Any]:
    """The requests of one kind that a publish with a lost answer makes; the last is the one after the loss."""
    assert publish()[0] == 0
    return hub.requests("GET", path)


def test_a_new_repository_appears_whole_or_empty(hub: LoopbackHub, publish: Publish, wanted: Files) -> None:
    hub.reset()
    assert publish()[0] == 0
    count = len(hub.log)
    for faults in ({"status": 500}, {"status": 500, "times": ALWAYS}, {"drop_response": 0}):
        for k in range(1, count + 1):
            hub.reset()
            hub.faults.add(at=k, **faults)
            code, out, err = publish("--private")
            if code == 0:
                assert content(hub) == wanted
                assert hub.repo("dataset", REPO).private
                continue
            assert faults.get("times"), f"{faults}, request {k}: {code} {err}"
            one_sentence(code, out, err)
            if hub.repositories:
                assert content(hub) == {}
                assert hub.repo("dataset", REPO).private


def test_going_on_after_a_cut_sends_nothing_twice(hub: LoopbackHub, publish: Publish, wanted: Files) -> None:
    begin(hub)
    hub.faults.add("POST", "/commit/main", status=500, times=ALWAYS)
    code, out, err = publish()
    one_sentence(code, out, err)
    assert "Run the same command again" in err
    assert len(hub.requests("PUT", "/_objects/")) == 4
    hub.faults.clear()
    hub.log.clear()
    assert publish()[0] == 0
    assert hub.requests("PUT", "/_objects/") == []
    assert content(hub) == wanted
