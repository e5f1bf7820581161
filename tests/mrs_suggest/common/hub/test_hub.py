"""Publishing and downloading: what is sent, what is refused, and with which words."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub as ours
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.common.hub.publishing import Change, Published, publish
from tests import warm_python
from tests.cases import cases
from tests.hub.server import LoopbackHub

Mrs = Callable[..., "subprocess.CompletedProcess[str]"]


# --- names


@pytest.mark.parametrize("name", ["mrs", "a/b/c", "org/", "", "org/na me", "../mrs", "org/x.git", "org/é", "a/b\n"])
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
    what = Publication("model", "org/m", None, instead={"a.txt": b"a"})
    if foreign:
        with pytest.raises(InputError, match="org/m: another commit was published meanwhile"):
            publish(what, Change("Publish"))
        return
    assert publish(what, Change("Publish")) == Published("b" * 40)


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
        done = warm_python.run([sys.executable, "-m", "mrs_suggest.cli.main", *arguments], cwd=tmp_path, env=env)
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


def test_a_dry_run_sends_nothing(client: Mrs, hub: LoopbackHub, data: Path, tmp_path: Path) -> None:
    done = client("data", "publish", data, "--repo", "org/mrs", "--dry-run", token=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "--dry-run: nothing was uploaded"
    assert hub.log == []
    files = sorted(path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    listed, _, card = done.stdout.partition("\nREADME.md:\n\n")
    assert [line.split()[-1] for line in listed.strip().splitlines()[1:]] == files
    assert card.startswith("---\npretty_name:")
    assert 'load_dataset("org/mrs", "es")' in card
    folder = shutil.copytree(data, tmp_path / "edited")
    (folder / "README.md").write_text('Set PATH. `load_dataset("PATH", "es")`\n', encoding="utf-8")
    done = client("data", "publish", folder, "--repo", "org/mrs", "--dry-run")
    assert done.stdout.endswith('Set PATH. `load_dataset("org/mrs", "es")`\n\n')


def test_a_repository_stays_private_or_public(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    assert client("data", "publish", data, "--repo", "org/mrs", "--private").returncode == 0
    repo = hub.repo("dataset", "org/mrs")
    assert repo.private
    assert client("data", "publish", data, "--repo", "org/mrs").returncode == 0
    assert repo.private
    assert len(repo.commits()) == 2
    repo = hub.create("dataset", "org/public")
    refused(client("data", "publish", data, "--repo", "org/public", "--private"), "org/public: exists and is public")
    assert repo.files() == [".gitattributes"]


def test_a_message_and_a_tag(client: Mrs, hub: LoopbackHub, data: Path, tmp_path: Path) -> None:
    options = ("data", "publish", data, "--repo", "org/mrs", "--tag", "v1.0")
    done = client(*options, "--commit-message", "Add Spanish\n\nThirty messages.")
    repo = hub.repo("dataset", "org/mrs")
    assert (repo.commits()[0].title, repo.tags) == ("Add Spanish", {"v1.0": repo.sha()})
    assert "Thirty messages." in repo.commits()[0].message
    assert f"published org/mrs at {repo.sha()[:12]} (tag v1.0)" in done.stdout
    assert client(*options).returncode == 0, "the same again: no commit, and the tag is right"
    folder = shutil.copytree(data, tmp_path / "edited")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Other\n", encoding="utf-8")
    before = repo.sha()
    done = client("data", "publish", folder, "--repo", "org/mrs", "--tag", "v1.0")
    refused(done, "published at", f"the tag v1.0 names revision {before[:12]}; choose another one")
    done = client("data", "publish", data, "--repo", "org/mrs", "--tag", "v1.0")
    refused(done, f"the tag v1.0 names revision {before[:12]} already; choose another one")
    assert repo.tags == {"v1.0": before}


@pytest.mark.parametrize(("options", "named"), cases(__file__, "test_what_is_no_message_or_tag"))
def test_what_is_no_message_or_tag(
    client: Mrs, hub: LoopbackHub, data: Path, options: tuple[str, ...], named: str
) -> None:
    refused(client("data", "publish", data, "--repo", "org/mrs", *options), named)
    assert hub.log == []


def test_a_pull_request_leaves_main_as_it_is(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    """Opened without a right to write, as by somebody who is not of the organisation."""
    publish = ("data", "publish", data, "--repo", "org/mrs", "--create-pr")
    refused(client(*publish), "org/mrs: no such dataset on the hub")
    repo = hub.create("dataset", "org/mrs")
    head = repo.write("README.md", "# Theirs\n")
    hub.forbidden.add("org")
    done = client(*publish)
    assert done.returncode == 0, done.stderr
    assert (repo.sha(), repo.files()) == (head, [".gitattributes", "README.md"])
    tip = repo.heads["refs/pr/1"]
    assert f"opened {hub.url}/datasets/org/mrs/discussions/1 at {tip[:12]}" in done.stdout
    files = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert set(repo.files(tip)) == {*files, ".gitattributes"}


def test_a_pull_request_whose_answer_is_lost_is_not_opened_twice(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    repo = hub.create("dataset", "org/mrs")
    hub.faults.add("POST", "/commit/main", drop_response=0)
    done = client("data", "publish", data, "--repo", "org/mrs", "--create-pr")
    assert done.returncode == 0, done.stderr
    assert [name for name in repo.heads if name.startswith("refs/pr/")] == ["refs/pr/1"]
    assert f"opened {hub.url}/datasets/org/mrs/discussions/1 at {repo.heads['refs/pr/1'][:12]}" in done.stdout


def test_a_tag_that_could_not_be_made_is_made_by_the_same_command(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    hub.faults.add("POST", "/tag/", status=400)
    options = ("data", "publish", data, "--repo", "org/mrs", "--tag", "v1")
    done = client(*options)
    repo = hub.repo("dataset", "org/mrs")
    refused(done, "org/mrs", f"The files are published at {repo.sha()[:12]}")
    assert client(*options).returncode == 0
    assert (repo.tags, len(repo.commits())) == ({"v1": repo.sha()}, 2)


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
    folder = shutil.copytree(data, tmp_path / "edited")
    (folder / "README.md").unlink()
    refused(client("data", "publish", folder, "--repo", "org/mrs"), "not a prepared folder")
    (folder / "README.md").write_text("---\nlanguage: [Spanish!]\n---\n# Mine\n", encoding="utf-8")
    refused(client("data", "publish", folder, "--repo", "org/mrs"), "org/mrs", "README.md")
    assert [commit.title for commit in hub.repo("dataset", "org/mrs").commits()] == ["initial commit"]


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


def test_revisions_of_a_model(client: Mrs, hub: LoopbackHub, tmp_path: Path) -> None:
    repo = hub.create("model", "org/m")
    old = repo.write("run.json", '{"run": "old"}')
    repo.tags["v1"] = old
    repo.write("run.json", '{"run": "new"}')
    for words in (["org/m@v1"], ["org/m", "--revision", "v1"], [f"org/m@{old}"], ["org/m@v1", "--revision", "v1"]):
        done = client("models", "download", *words)
        assert done.returncode == 0, done.stderr
        assert (Path(done.stdout.strip()) / "run.json").read_text() == '{"run": "old"}'
    refused(client("models", "download", "org/m@v9"), "org/m", "no such revision")
    refused(client("models", "download", "org/m@v1", "--revision", "v2"), "pass only one")
    refused(client("models", "download", "org/m@"), "nothing follows the @")
    (tmp_path / "folder").mkdir()
    refused(client("models", "download", "folder", "--revision", "v1"), "folder: is a folder")
    refused(client("models", "download", "everyday-retriever@v1"), "everyday-retriever: is in the package")


def test_a_model_answers_as_it_did_at_a_revision(client: Mrs, hub: LoopbackHub) -> None:
    """The embedded baseline as v1, and a later revision that no longer loads; its card, too."""
    from mrs_suggest.common.hub.baselines import resolve_model

    folder = resolve_model("everyday-retriever")
    repo = hub.create("model", "org/m")
    repo.write_folder(folder)
    repo.tags["v1"] = repo.sha()
    repo.write("response_index/es/replies.json", "{}")
    ask = ("suggest", "--language", "es", "--json", "¿Quedamos mañana?", "--model")
    here, there = client(*ask, "everyday-retriever"), client(*ask, "org/m@v1")
    assert there.returncode == 0, there.stderr
    answers = [json.loads(done.stdout)["suggestions"] for done in (here, there)]
    assert answers[0] == answers[1]
    assert client(*ask, "org/m", "--revision", "v1").stdout.replace("org/m", "org/m@v1") == there.stdout
    refused(client(*ask, "org/m"), "response_index/es/replies.json", "bytes, found 2")
    card = client("models", "card", "org/m@v1")
    assert card.returncode == 0, card.stderr
    assert 'Suggester.from_pretrained("org/m")' in card.stdout


def test_revisions_of_a_data_set(client: Mrs, hub: LoopbackHub, data: Path) -> None:
    assert client("data", "publish", data, "--repo", "org/mrs", "--tag", "v1").returncode == 0
    repo = hub.repo("dataset", "org/mrs")
    repo.write("README.md", "# Nothing to load any more\n")
    stats = client("data", "stats", "org/mrs@v1", "--json")
    assert stats.returncode == 0, stats.stderr
    assert sum(row["examples"] for row in json.loads(stats.stdout)["splits"]) == 30
    check = client("data", "check", "org/mrs@v1", "--json")
    assert check.returncode == 0, check.stderr
    assert json.loads(check.stdout)["errors"] == 0
    refused(client("data", "stats", "org/mrs@v9"), "org/mrs: no revision v9 on the hub")
