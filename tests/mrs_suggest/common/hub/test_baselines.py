"""The list of baselines, where a model's name leads, and the baseline that ships with the package."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.common.hub.baselines import Baseline, read_baselines, resolve_model
from mrs_suggest.common.text.languages import LANGUAGES
from tests import warm_python

NAME = "everyday-retriever"


@pytest.fixture(autouse=True)
def no_organisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRS_ORGANISATION", raising=False)


def test_the_organisation_is_one_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRS_ORGANISATION", "mine")
    assert read_baselines()[NAME].repo_id == f"mine/{NAME}"


# --- where a name leads


def test_names_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_suggest.common.hub import baselines

    asked: list[tuple[str, str | None]] = []

    def download(repo_id: str, revision: str | None = None, **_: bool) -> Path:
        asked.append((repo_id, revision))
        return tmp_path / "downloaded"

    monkeypatch.setattr(hub, "download", download)
    monkeypatch.chdir(tmp_path)
    assert resolve_model(str(tmp_path)) == tmp_path
    assert resolve_model(NAME) == read_baselines()[NAME].folder
    assert resolve_model("org/m") == tmp_path / "downloaded"
    assert asked == [("org/m", None)]
    (tmp_path / "org" / "m").mkdir(parents=True)
    assert resolve_model("org/m") == Path("org/m"), "a folder comes first"
    with pytest.raises(InputError, match="org/n: no such folder"):
        resolve_model("org/n")  # next to one that is there
    assert len(asked) == 1
    # A baseline that does not ship is downloaded at its revision.
    known = {"one": Baseline("one", "org/one", "v1", "retrieval", "multilingual", ("en",), "MRS", {})}
    monkeypatch.setattr(baselines, "read_baselines", lambda: known)
    monkeypatch.setattr(hub, "download", lambda *arguments, **_: tmp_path / "-".join(arguments).replace("/", "-"))
    assert resolve_model("one") == tmp_path / "org-one-v1"


@pytest.mark.parametrize("name", ["nonsense", "a/b/c", "./run/x", "/no/such", "~/m", "../m", "./m", "/m"])
def test_what_is_no_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(InputError, match="mrs models list"):
        resolve_model(name)


# --- the one in the package


@pytest.fixture(scope="module")
def folder() -> Path:
    return read_baselines()[NAME].folder


def test_every_embedded_baseline_is_small_and_safe(tmp_path: Path) -> None:
    for baseline in read_baselines().values():
        if not baseline.embedded:
            continue
        files = [path for path in baseline.folder.rglob("*") if path.is_file()]
        packed = tmp_path / f"{baseline.name}.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
            for path in files:
                wheel.write(path, path.relative_to(baseline.folder))
        assert packed.stat().st_size < 20_000_000  # what the wheel may grow by
        assert {path.suffix for path in files} <= {".json", ".md", ".safetensors"}, "no pickles, no checkpoints"
        assert not [path for path in files if path.name.startswith("predictions")]
        assert {"README.md", "run.json", "modules.json"} <= {path.name for path in files}


def test_its_figures_and_its_card_are_those_of_its_record(folder: Path) -> None:
    from mrs_suggest.models.saved.families import model_card

    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    pooled = record["metrics"]["systems"]["Model"]["pooled"]
    shipped = read_baselines()[NAME]
    assert shipped.metrics == {name: round(pooled[name], 6) for name in shipped.metrics}
    assert {"weighted", "mrr"} <= shipped.metrics.keys()
    assert set(shipped.languages) == set(LANGUAGES)
    assert sorted(path.name for path in (folder / "response_index").iterdir()) == sorted(LANGUAGES)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "curves.png" not in card, "a picture that was left behind"
    assert card == model_card(record), "run `mrs models card` on it"


@pytest.mark.integration
def test_the_snippets_of_its_card_run_as_printed(folder: Path, tmp_path: Path) -> None:
    """Every line of Python in the card, with the model's place for PATH."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    snippets = [part.split("```")[0] for part in card.split("```python\n")[1:]]
    assert len(snippets) == 2
    source = "\n".join(snippets).replace("PATH", str(folder)) + "\nassert scores.shape == (1, 1), scores\n"
    done = warm_python.run([sys.executable, "-c", source], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3 + 1, "three suggestions, and what `print(scores)` prints"
