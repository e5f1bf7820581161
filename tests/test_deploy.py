"""The container and the Slurm recipe: their files are linted, and say what the server says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_dockerfile_passes_the_linter(repository: Path) -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("needs hadolint (the extra `test` brings it)")
    done = subprocess.run([linter, repository / "deploy" / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_takes_the_tested_torch_and_all_that_is_packaged(repository: Path) -> None:
    dockerfile = (repository / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    versions = (repository / "constraints.txt").read_text(encoding="utf-8")
    (pinned,) = re.findall(r"^torch==(\S+)$", versions, re.MULTILINE)
    assert f'"torch=={pinned}+cpu"' in dockerfile
    assert re.search(r"^USER 10001$", dockerfile, re.MULTILINE)
    assert "HEALTHCHECK" in dockerfile
    ignored = (repository / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:].replace("*", ".*") for line in ignored if line.startswith("!")]
    named = ("trainers", "model_cards", "integrations", "setup.cfg")
    for path in [*repository.glob("mrs_*"), *(repository / name for name in named)]:
        if path.suffix != ".egg-info":
            assert any(re.fullmatch(pattern, path.name) for pattern in kept), f"{path.name} stays out of the image"


def test_compose_joins_the_server_and_prometheus(repository: Path) -> None:
    from mrs_cli.serve import make_parser

    folder = repository / "deploy"
    services = read(folder / "compose.yaml")["services"]
    server = services["serve"]
    make_parser().parse_args(server["command"])
    assert (folder / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service["ports"])
    (volume,) = services["prometheus"]["volumes"]
    settings = read(folder / volume.split(":")[0])
    (target,) = settings["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"serve:{make_parser().get_default('port')}"


@pytest.mark.parametrize("name", ["submit.sh", "month.sbatch", "finish.sbatch"])
def test_the_slurm_scripts_are_valid(repository: Path, name: str) -> None:
    done = subprocess.run(["bash", "-n", repository / "deploy" / "slurm" / name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
