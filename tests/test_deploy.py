"""The container and the Slurm recipe: their files are linted, and say what the server says."""

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


def kubernetes(repository: Path) -> list[Any]:
    """The deployment, the service and the scaler."""
    path = repository / "deploy" / "kubernetes" / "mrs-serve.yaml"
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


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


def test_the_health_check_follows_the_port(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from tests.mrs_suggest.serving.server_process import ServerProcess

    dockerfile = (repository / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^ +CMD (\[.*\])$", dockerfile, re.MULTILINE)
    python, *rest = json.loads(check)
    assert python == "python"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ServerProcess("--port", port, folder=tmp_path) as server:
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


def test_each_alert_fires_when_it_should(repository: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool")
    done = subprocess.run([promtool, "test", "rules", repository / "tests" / "alerts_test.yaml"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_first_failed_reload_raises_a_series_that_is_already_there() -> None:
    """Prometheus's `increase` sees no change in a series that starts with 1."""
    pytest.importorskip("fastapi")
    from mrs_suggest.serving.observe.metrics import Metrics

    assert b'mrs_reloads_total{outcome="failed"} 0.0' in Metrics().page()


def test_the_kubernetes_files_start_the_image_as_it_is(repository: Path) -> None:
    from mrs_suggest.cli.serve import make_parser

    deployment, service, scaler = kubernetes(repository)
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


CHART = Path("deploy", "helm", "mrs-serve")


def leaves(values: dict[str, Any], path: str = "") -> list[str]:
    """The dotted paths of all values; an empty mapping is one."""
    found = []
    for key, value in values.items():
        found += leaves(value, f"{path}{key}.") if isinstance(value, dict) and value else [path + key]
    return found


def test_the_charts_templates_use_its_values_and_no_others(repository: Path) -> None:
    values = read(repository / CHART / "values.yaml")
    templates = sorted((repository / CHART / "templates").iterdir())
    used = {path for one in templates for path in re.findall(r"\.Values\.([\w.]+)", one.read_text(encoding="utf-8"))}
    known = leaves(values)
    for path in used:
        assert any(leaf == path or leaf.startswith(f"{path}.") for leaf in known), f"{path} is not in values.yaml"
    for leaf in known:
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in used), f"no template uses {leaf}"
    for one in templates:
        text = one.read_text(encoding="utf-8")
        assert text.count("{{") == text.count("}}"), one.name
        opened = len(re.findall(r"\{\{-? *(?:if|range|with|define)\b", text))
        assert opened == len(re.findall(r"\{\{-? *end\b", text)), one.name
    helpers = (repository / CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    defined = set(re.findall(r'define "([^"]+)"', helpers))
    named = {name for one in templates for name in re.findall(r'include "([^"]+)"', one.read_text(encoding="utf-8"))}
    assert named == defined


def test_the_charts_values_fit_the_server_and_the_image(repository: Path) -> None:
    from mrs_suggest.cli.serve import make_parser

    values = read(repository / CHART / "values.yaml")
    options = make_parser().parse_args(["--port", str(values["port"]), *values["arguments"]])
    assert values["podAnnotations"]["prometheus.io/port"] == "{{ .Values.port }}"
    assert values["terminationGracePeriodSeconds"] > 3 * options.answer_seconds + values["pauseBeforeStop"]
    dockerfile = (repository / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {values['podSecurityContext']['runAsUser']}" in dockerfile
    chart = read(repository / CHART / "Chart.yaml")
    (container,) = kubernetes(repository)[0]["spec"]["template"]["spec"]["containers"]
    assert f"{values['image']['repository']}:{values['image']['tag']}" == container["image"]
    assert str(chart["appVersion"]) == str(values["image"]["tag"])


def test_the_chart_renders(repository: Path) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("needs helm")
    keys = ["--set", "keys.content=0123456789abcdef 600", "--set", "autoscaling.enabled=false"]
    for extra in ([], [*keys, "--set", "port=9000"], [*keys, "--set", "podAnnotations=null"]):
        command = [helm, "template", "chat", repository / CHART, *extra]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
        kinds, pod = set(found), found["Deployment"]["spec"]["template"]
        port = str(pod["spec"]["containers"][0]["ports"][0]["containerPort"])
        assert pod["metadata"]["annotations"].get("prometheus.io/port", port) == port
        assert {"Deployment", "Service", "PodDisruptionBudget"} < kinds
        assert ("Secret" in kinds) is bool(extra)
        assert ("HorizontalPodAutoscaler" in kinds) is not bool(extra)
