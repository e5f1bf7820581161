"""The container and the Slurm recipe: their files are linted, and say what the server says."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
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
    named = ("trainers", "model_cards", "integrations", "setup.cfg", "setup.py")
    for path in [*repository.glob("mrs_*"), *(repository / name for name in named)]:
        if path.suffix != ".egg-info":
            assert any(re.fullmatch(pattern, path.name) for pattern in kept), f"{path.name} stays out of the image"


@pytest.mark.parametrize("form", ["--port {}", "--port={}"])
def test_the_health_check_follows_the_port(repository: Path, tmp_path: Path, form: str) -> None:
    pytest.importorskip("fastapi")
    from tests.mrs_suggest.serving.server_process import ServerProcess

    dockerfile = (repository / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^ +CMD (\[.*\])$", dockerfile, re.MULTILINE)
    python, *rest = json.loads(check)
    assert python == "python"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ServerProcess(*form.format(port).split(), folder=tmp_path) as server:
        server.wait_for_workers()
        command = [sys.executable, *rest, str(server.process.pid)]  # in the container it is process 1
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        server.signal(signal.SIGSTOP)
        done = subprocess.run(command, capture_output=True, text=True)
        server.signal(signal.SIGCONT)
    assert done.returncode == 1
    assert done.stderr == f"http://127.0.0.1:{port}/health/ready: timed out\n"


def test_compose_joins_the_server_and_prometheus(repository: Path) -> None:
    from mrs_suggest.cli.serve import make_parser

    folder = repository / "deploy"
    services = read(folder / "compose.yaml")["services"]
    server = services["serve"]
    make_parser().parse_args(server["command"])
    assert (folder / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service["ports"])
    for service in (services["prometheus"], services["grafana"]):
        for volume in service["volumes"]:
            assert (folder / volume.split(":")[0]).exists(), volume
    settings = read(folder / "prometheus" / "prometheus.yml")
    (target,) = settings["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"serve:{make_parser().get_default('port')}"


def test_dashboard_and_alerts_ask_for_figures_that_the_server_has(repository: Path) -> None:
    """With their labels; `up` and `le` are Prometheus's own."""
    pytest.importorskip("fastapi")
    from mrs_suggest.serving.observe.metrics import Metrics

    known: dict[str, set[str]] = {"up": {"job"}}
    for metric in vars(Metrics()).values():
        if hasattr(metric, "_labelnames"):
            labels = {*metric._labelnames, "le"}
            suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
            known |= {metric._name + suffix: labels for suffix in suffixes[metric._type]}
    rules = read(repository / "deploy" / "prometheus" / "alerts.yml")["groups"][0]["rules"]
    dashboard = json.loads((repository / "deploy/grafana/dashboards/mrs-serve.json").read_text(encoding="utf-8"))
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for text in [*(rule["expr"] for rule in rules), *panels]:
        names = re.findall(r"\b(up|mrs_\w+)(?:\{([^}]*)\})?", text)
        assert names, text
        for name, chosen in names:
            assert {part.split("=")[0].strip(" ~!") for part in chosen.split(",") if part} <= known[name], text
        for grouped in re.findall(r"by \(([^)]*)\)", text):
            assert {*grouped.replace(",", " ").split()} <= set.union(*(known[name] for name, _ in names)), text


def test_the_kubernetes_files_start_the_image_as_it_is(repository: Path) -> None:
    from mrs_suggest.cli.serve import make_parser

    path = repository / "deploy" / "kubernetes" / "mrs-serve.yaml"
    deployment, service, scaler = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    options = make_parser().parse_args(container["args"])
    assert options.port == container["ports"][0]["containerPort"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > 3 * options.answer_seconds
    dockerfile = (repository / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {pod['spec']['securityContext']['runAsUser']}" in dockerfile
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    for probe, route in (("startup", "ready"), ("readiness", "ready"), ("liveness", "live")):
        assert container[f"{probe}Probe"]["httpGet"] == {"path": f"/health/{route}", "port": "http"}


@pytest.mark.parametrize("name", ["submit.sh", "month.sbatch", "finish.sbatch"])
def test_the_slurm_scripts_are_valid(repository: Path, name: str) -> None:
    done = subprocess.run(["bash", "-n", repository / "deploy" / "slurm" / name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
