"""Publishing and downloading: what is sent, what is refused, and with which words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from mrs_core import hub as ours
from mrs_core.errors import InputError
from mrs_datasets.prepare import prepare_mrs
from tests.hub.server import LoopbackHub

Mrs = Callable[..., "subprocess.CompletedProcess[str]"]


# --- what is sent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.txt", "a/x.txt", "a/checkpoint-1/y.txt", "checkpoint-1/z.txt", ".git/config", "a/.hidden", "R.md"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "tree"


def test_the_files_of_a_publication(tree: Path) -> None:
    what = ours.Publication("model", "org/m", tree, ("checkpoint-*",), {"R.md": b"other", "new/n.txt": b"n"})
    files = what.files()
    assert list(files) == ["R.md", "a/checkpoint-1/y.txt", "a/x.txt", "b.txt", "new/n.txt"]
    assert (files["R.md"], files["b.txt"]) == (b"other", tree / "b.txt")
    assert what.sizes() == {"R.md": 5, "a/checkpoint-1/y.txt": 20, "a/x.txt": 7, "b.txt": 5, "new/n.txt": 1}


def test_contents_need_no_folder() -> None:
    assert ours.Publication("space", "org/s", None, instead={"app.py": b"x"}).files() == {"app.py": b"x"}


def test_a_description_lists_files_and_card(tree: Path) -> None:
    text = ours.describe(
        ours.Publication("model", "org/m", tree, ("a", "check*"), {"README.md": "# ¡Hola!\n".encode()})
    )
    assert text.startswith("model org/m: 3 files, 19 bytes\n")
    assert [line.split() for line in text.splitlines()[1:4]] == [["4", "R.md"], ["10", "README.md"], ["5", "b.txt"]]
    assert text.endswith("\n\nREADME.md:\n\n# ¡Hola!\n")


# --- names


@pytest.mark.parametrize("name", ["org/mrs", "Org-1/mrs_v1.0", "a/b"])
def test_repository_names(name: str) -> None:
    ours.require_repo_id(name)


@pytest.mark.parametrize(
    "name",
    ["mrs", "a/b/c", "org/", "/mrs", "", "org/na me", "../mrs", "org/-x", "org/x.git", "org/a--b", "org/é", "a/b\n"],
)
def test_what_is_no_repository_name(name: str) -> None:
    with pytest.raises(InputError, match="ORG/NAME") as caught:
        ours.require_repo_id(name)
    assert "\n" not in str(caught.value)


# --- an answer that comes too late


class SlowApi:
    """A hub whose first commit takes effect only after the client has given up on it."""

    def __init__(self, foreign: bool) -> None:
        self.head, self.tries, self.foreign = "a" * 40, 0, foreign
        self.added: dict[str, bytes] = {}

    def create_repo(self, *_: Any, **__: Any) -> None:
        pass

    def repo_info(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(sha=self.head)

    def list_repo_files(self, *_: Any, **__: Any) -> list[str]:
        return []

    def create_commit(self, name: str, operations: list[Any], **__: Any) -> Any:
        self.tries += 1
        if self.tries == 1:
            self.added = {operation.path_in_repo: operation.path_or_fileobj for operation in operations}
            raise failure(504)
        self.head = "b" * 40  # the first one, after all
        raise failure(412)

    def list_repo_commits(self, *_: Any, **__: Any) -> list[Any]:
        return [SimpleNamespace(title="Another" if self.foreign else "Publish")]

    def list_repo_tree(self, *_: Any, **__: Any) -> list[Any]:
        from huggingface_hub.hf_api import RepoFile

        return [RepoFile(path=path, size=len(data), oid="0") for path, data in self.added.items()]


def failure(status: int) -> HfHubHTTPError:
    """What the client raises for an answer of the hub."""
    request = SimpleNamespace(method="POST", url="http://hub/commit", headers={})
    response: Any = SimpleNamespace(status_code=status, headers={}, request=request, text="", content=b"")
    return HfHubHTTPError(f"{status} from the hub", response=response)


@pytest.mark.parametrize("foreign", [False, True], ids=["ours", "another's"])
def test_a_commit_that_landed_late_is_recognised(foreign: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway gives up, the commit lands while we wait, and the second try finds its parent stale: by our own."""
    api = SlowApi(foreign)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda **_: api)
    monkeypatch.setattr(ours, "SECONDS_BETWEEN_TRIES", 0)
    what = ours.Publication("model", "org/m", None, instead={"a.txt": b"a"})
    if foreign:
        with pytest.raises(InputError, match="org/m: somebody else published there meanwhile"):
            ours.publish(what, "Publish")
        return
    assert ours.publish(what, "Publish") == "b" * 40


def test_nothing_to_publish(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to publish"):
        ours.publish(ours.Publication("model", "org/m", tmp_path), "Publish")


# --- the commands


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small prepared folder."""
    base = tmp_path_factory.mktemp("hub-data")
    (base / "source").mkdir()
    (base / "source" / "es.tsv").write_text("".join(f"mensaje {n}\tsí\n" for n in range(30)), encoding="utf-8")
    prepare_mrs(str(base / "source"), base / "data")
    return base / "data"


@pytest.fixture
def client(hub: LoopbackHub, tmp_path: Path) -> Mrs:
    """A function that runs `mrs` against the hub in a fresh process; no output shows the token or a traceback."""

    def run(*arguments: object, token: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**hub.env(tmp_path / "home", token=token), **environment}
        command = [sys.executable, "-m", "mrs_cli.main", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, encoding="utf-8", timeout=60
        )
        assert env.get("HF_TOKEN", hub.token) not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def refused(done: subprocess.CompletedProcess[str], *named: str) -> None:
    """Exit code 2, and one sentence with these words."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in named:
        assert word in done.stderr


def test_a_dry_run_sends_nothing(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    done = client("data", "publish", data, "--repo", "org/mrs", "--dry-run", token=False)
    assert done.returncode == 0, done.stderr
    assert hub.log == []
    files = sorted(path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    listed, _, card = done.stdout.partition("\nREADME.md:\n\n")
    assert [line.split()[-1] for line in listed.strip().splitlines()[1:]] == files
    assert card.startswith("---\npretty_name:")
    assert 'load_dataset("org/mrs", "es")' in card


def test_a_private_repository_stays_private(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    assert client("data", "publish", data, "--repo", "org/mrs", "--private").returncode == 0
    repo = hub.repo("dataset", "org/mrs")
    assert repo.private
    assert client("data", "publish", data, "--repo", "org/mrs").returncode == 0
    assert repo.private
    assert len(repo.commits()) == 2


def test_publishing_is_refused_in_one_sentence(client: Mrs, hub: LoopbackHub, data: Path, tmp_path: Path) -> None:
    publish = ("data", "publish", data, "--repo")
    refused(client(*publish, "mrs"), "'mrs': the organisation is missing; pass ORG/NAME.")
    refused(client(*publish, "org/mrs", token=False), "org/mrs: no token", "HF_TOKEN")
    refused(client(*publish, "org/mrs", HF_TOKEN="hf_notTheRightOne"), "org/mrs", "401", "check its rights")
    refused(client(*publish, "org/mrs", HF_HUB_OFFLINE="1"), "org/mrs", "HF_HUB_OFFLINE")
    hub.forbidden.add("taken")
    refused(client(*publish, "taken/mrs"), "taken/mrs", "403", "check its rights")
    (tmp_path / "empty").mkdir()
    refused(client("data", "publish", "empty", "--repo", "org/mrs"), "empty: not a prepared folder")
    assert hub.repositories == {}


def test_a_card_that_a_person_broke_is_refused(client: Mrs, hub: LoopbackHub, data: Path, tmp_path: Path) -> None:
    """Its YAML is the person's to mend; nothing of the old revision changes."""
    folder = tmp_path / "edited"
    (folder / "data").mkdir(parents=True)
    (folder / "report.json").write_text((data / "report.json").read_text(encoding="utf-8"), encoding="utf-8")
    refused(client("data", "publish", folder, "--repo", "org/mrs"), "not a prepared folder")
    (folder / "README.md").write_text("---\nlanguage: [Spanish!]\n---\n# Mine\n", encoding="utf-8")
    refused(client("data", "publish", folder, "--repo", "org/mrs"), "org/mrs", "README.md")
    assert [commit.title for commit in hub.repo("dataset", "org/mrs").commits()] == ["initial commit"]


def test_what_a_person_wrote_into_a_card_stays(client: Mrs, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "edited"
    (folder / "data").mkdir(parents=True)
    (folder / "report.json").write_text("{}", encoding="utf-8")
    (folder / "README.md").write_text('Set PATH. `load_dataset("PATH", "es")`\n', encoding="utf-8")
    done = client("data", "publish", folder, "--repo", "org/mrs", "--dry-run")
    assert done.stdout.endswith('Set PATH. `load_dataset("org/mrs", "es")`\n\n')


def test_a_file_that_is_no_longer_there_leaves_the_repository(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    repo = hub.create("dataset", "org/mrs")
    repo.write("data/de/train-00000-of-00001.parquet", "old")
    repo.write("report.json", "{}")
    assert client("data", "publish", data, "--repo", "org/mrs").returncode == 0
    files = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert set(repo.files()) == {*files, ".gitattributes"}
    assert len(repo.commits()) == 4


def test_downloading_is_refused_in_one_sentence(client: Mrs, hub: LoopbackHub) -> None:
    refused(client("models", "download", "org/none"), "org/none: no such model on the hub")
    refused(client("models", "download", "none"), "mrs models list")
    refused(client("models", "download", "org/none", HF_HUB_OFFLINE="1"), "HF_HUB_OFFLINE")
    done = client("models", "download", "org/none", token=False)
    refused(done, "org/none", "no such model", "token")  # without a token the hub hides what is private


def test_a_model_of_the_hub_is_downloaded(client: Mrs, hub: LoopbackHub) -> None:
    repo = hub.create("model", "other/sample")
    repo.write("run.json", json.dumps({"a": 1}))
    done = client("models", "download", "other/sample", token=False)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert (folder.name, json.loads((folder / "run.json").read_text())) == (repo.sha(), {"a": 1})
