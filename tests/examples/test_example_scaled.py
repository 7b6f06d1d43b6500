"""The compose file and the manifests are valid, and their flags, ports, probes, secrets and metrics are those of the product."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("prometheus_client")
pytest.importorskip("psycopg")

from discreet.agents.stores.postgres.session import read_address
from discreet.daemon.settings import OPTIONS, Settings
from discreet.gateway.gateway import PROBES
from discreet.gateway.server.protocol import IDLE_SECONDS
from support.command_lines import load_settings
from support.figures import exposed_samples
from support.programs import environment
from support.requirements import missing
from support.scaled import KUBERNETES, SCALED, container, declared, entrypoint, objects, services
from support.waits import DEADLINE_SECONDS

VARIABLES = {"PGPASSWORD": "known", "DISCREET_TOKEN": "ann:" + "0" * 64}
ROLES = ("front", "worker")
MIB = 1024 * 1024
UNITS = {"Mi": MIB, "Gi": 1024 * MIB, "g": 1024 * MIB}


def settings_of(arguments: list[str], variables: dict[str, str], folder: Path) -> Settings:
    """Those of a container with these arguments."""
    _, serve, *flags = entrypoint()
    assert serve == "serve"
    return load_settings([*flags, *arguments], variables, str(folder))


def pod(role: str) -> Any:
    return declared("Deployment")[role]["spec"]["template"]


def daemon(role: str) -> Any:
    (found,) = pod(role)["spec"]["containers"]
    return found


def in_secret(entry: Any) -> str:
    reference = entry["valueFrom"]["secretKeyRef"]
    return str(declared("Secret")[reference["name"]]["stringData"][reference["key"]])


def pod_variables(role: str) -> dict[str, str]:
    return {entry["name"]: entry.get("value") or in_secret(entry) for entry in daemon(role)["env"]}


def kubernetes_settings(role: str, folder: Path) -> Settings:
    return settings_of(daemon(role)["args"], pod_variables(role), folder)


def compose_settings(role: str, folder: Path) -> Settings:
    service = services(VARIABLES)[role]
    return settings_of(service["command"], service["environment"], folder)


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


# -- the schemas of others -----------------------------------------------------------------------------------------


def tool(name: str) -> str:
    """A program of the folder that DISCREET_DEPLOYMENTS names, or of the PATH."""
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("DISCREET_DEPLOYMENTS", ""), os.environ["PATH"])))
    return found or missing(f"{name} is not installed where DISCREET_DEPLOYMENTS says")


def output(*command: str | Path, folder: Path = SCALED, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_docker_compose_reads_the_file_as_the_tests_do() -> None:
    compose = tool("docker-compose")
    read = json.loads(output(compose, "-f", "compose.yaml", "config", "--format", "json", **VARIABLES))["services"]
    ours = services(VARIABLES)
    assert read.keys() == ours.keys()
    for role in ROLES:
        for member in ("command", "environment"):
            assert read[role][member] == ours[role][member]


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_manifests_are_valid_strictly(version: str) -> None:
    files = [KUBERNETES / name for name in yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]]
    said = output(tool("kubernetes-validate"), "--strict", "--kubernetes-version", version, *files)
    assert said.count(" passed for resource ") == len([*objects()])


def test_the_commands_of_the_readme_make_the_variables_that_compose_needs(tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        missing("openssl is not installed")
    page = (SCALED / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```sh\n(TOKEN=.*?)docker compose up --build -d\n```$", page, re.MULTILINE | re.DOTALL)
    output("sh", "-e", "-c", script, folder=tmp_path)
    made = dict(line.partition("=")[::2] for line in (tmp_path / ".env").read_text().splitlines())
    assert made.keys() == VARIABLES.keys()
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    service = services(made)["front"]
    assert settings_of(service["command"], service["environment"], tmp_path).tokens == (made["DISCREET_TOKEN"],)


# -- what the product takes and offers -----------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [compose_settings, kubernetes_settings])
@pytest.mark.parametrize("role", ROLES)
def test_the_command_line_and_the_variables_are_accepted(settings: Any, role: str, tmp_path: Path) -> None:
    chosen = settings(role, tmp_path)
    assert (chosen.role, chosen.no_stdio, chosen.http_metrics) == (role, True, True)
    assert chosen.apps
    assert chosen.tokens
    assert "password" not in read_address(chosen.store).parameters


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_a_setting_or_one_of_libpq(role: str) -> None:
    settings = {option.variable for option in OPTIONS}
    assert {*pod_variables(role), *services(VARIABLES)[role]["environment"]} - settings == {"PGPASSWORD"}


def test_a_scraper_of_the_secret_may_see_all_methods(tmp_path: Path) -> None:
    chosen = kubernetes_settings("front", tmp_path)
    assert any(token.startswith("prometheus:") and token.endswith(":metrics") for token in chosen.tokens or ())


@pytest.mark.parametrize("role", ROLES)
def test_ports_and_probes_lead_to_what_the_daemon_serves(role: str, tmp_path: Path) -> None:
    container_ = daemon(role)
    port = int(entrypoint()[entrypoint().index("--http") + 1].rpartition(":")[2])
    assert [(each["name"], each["containerPort"]) for each in container_["ports"]] == [("http", port)]
    for name, path in (("startupProbe", "healthz"), ("livenessProbe", "healthz"), ("readinessProbe", "readyz")):
        assert path in PROBES
        assert container_[name]["httpGet"] == {"path": f"/{path}", "port": "http"}
    assert f"EXPOSE {port}\n" in container()
    assert f":{port}/readyz" in container()


def test_the_service_leads_to_the_fronts_alone() -> None:
    (service,) = declared("Service").values()
    selector = service["spec"]["selector"].items()
    assert selector <= pod("front")["metadata"]["labels"].items()
    assert not selector <= pod("worker")["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] == daemon("front")["ports"][0]["name"]
    assert service["spec"]["sessionAffinity"] == "None"


@pytest.mark.parametrize("role", ROLES)
def test_nobody_kills_a_daemon_before_its_drain_is_over(role: str, tmp_path: Path) -> None:
    pause = daemon(role).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    assert pause[0] == "sleep"
    grace = pod(role)["spec"]["terminationGracePeriodSeconds"]
    assert grace >= float(pause[1]) + kubernetes_settings(role, tmp_path).drain_timeout + 5
    grace = seconds(services(VARIABLES)[role]["stop_grace_period"])
    assert grace >= compose_settings(role, tmp_path).drain_timeout + 5


@pytest.mark.parametrize("role", ROLES)
def test_the_process_may_take_more_than_the_memory_of_its_clients(role: str, tmp_path: Path) -> None:
    needed = kubernetes_settings(role, tmp_path).max_memory + 256 * MIB
    assert size(daemon(role)["resources"]["limits"]["memory"]) >= needed
    assert size(services(VARIABLES)[role]["mem_limit"]) >= needed


@pytest.mark.parametrize("role", ROLES)
def test_containers_have_no_rights(role: str) -> None:
    for_all = pod(role)["spec"]["securityContext"]
    user, group = re.findall(r"^USER (\d+):(\d+)$", container(), re.MULTILINE)[0]
    assert (for_all["runAsUser"], for_all["runAsGroup"], for_all["runAsNonRoot"]) == (int(user), int(group), True)
    own = daemon(role)["securityContext"]
    assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
    service = services(VARIABLES)[role]
    assert own["capabilities"]["drop"] == service["cap_drop"] == ["ALL"]
    assert service["read_only"] and service["security_opt"] == ["no-new-privileges:true"]


def test_nginx_has_the_limits_of_the_daemon() -> None:
    text = (SCALED / "nginx.conf").read_text(encoding="utf-8")
    (idle,) = re.findall(r"keepalive_timeout (\d+)s;", text)
    assert int(idle) < IDLE_SECONDS
    assert f"client_max_body_size {Settings().max_message_bytes // MIB}m;" in text
    assert not re.search(r"ip_hash|\bhash\b|sticky", text)


# -- metrics -------------------------------------------------------------------------------------------------------


def rules() -> Iterator[Any]:
    yield from yaml.safe_load((KUBERNETES / "prometheus-adapter.yaml").read_text(encoding="utf-8"))["rules"]["external"]


def test_the_autoscaler_asks_for_metrics_that_the_adapter_has() -> None:
    (scaler,) = declared("HorizontalPodAutoscaler").values()
    asked = {each["external"]["metric"]["name"] for each in scaler["spec"]["metrics"]}
    assert asked == {rule["name"]["as"] for rule in rules()}
    assert "discreet_tasks_queued" in asked


def test_the_adapter_asks_for_metrics_that_daemons_have() -> None:
    samples = exposed_samples()
    for rule in rules():
        series = re.match(r"\w+", rule["seriesQuery"])
        assert series is not None
        assert set(re.findall(r"\bdiscreet_\w+", rule["metricsQuery"])) == {series[0]}
        assert series[0] in samples
        states = {labels.get("state") for labels in samples[series[0]]}
        for named in re.findall(r'state=~"([^"]*)"', rule["metricsQuery"]):
            assert set(named.split("|")) <= states


def test_prometheus_takes_the_configuration_and_finds_the_pods(tmp_path: Path) -> None:
    text = (KUBERNETES / "prometheus.yaml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    first = job["relabel_configs"][0]
    named = pod("front")["metadata"]["labels"]["app.kubernetes.io/name"], daemon("front")["ports"][0]["name"]
    assert first["regex"] == ";".join(named)
    assert [*declared("Namespace")] == job["kubernetes_sd_configs"][0]["namespaces"]["names"]
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    del job["kubernetes_sd_configs"]  # Debian's build does not know it
    (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
    (tmp_path / "discreet.token").write_text("token")
    output("promtool", "check", "config", "prometheus.yml", folder=tmp_path)


def test_a_worker_has_room_when_another_one_is_asked_for(tmp_path: Path) -> None:
    (scaler,) = declared("HorizontalPodAutoscaler").values()
    target = scaler["spec"]["scaleTargetRef"]
    assert "replicas" not in declared(target["kind"])[target["name"]]["spec"], (
        "kubectl apply would undo what it has set"
    )
    wanted = {
        each["external"]["metric"]["name"]: int(each["external"]["target"]["averageValue"])
        for each in scaler["spec"]["metrics"]
    }
    runs = kubernetes_settings("worker", tmp_path).max_runs
    assert wanted["discreet_tasks_unfinished"] < runs
    # A store in which all workers are busy and nothing waits loses none of them.
    busy = 3 * runs
    assert math.ceil(busy / wanted["discreet_tasks_unfinished"]) > 3


@pytest.mark.skipif(sys.platform == "win32", reason="paths of the container are POSIX")
def test_the_app_of_the_image_is_the_example() -> None:
    (app,) = [part for part in entrypoint() if ".py:" in part]
    path, _, name = app.partition(":")
    assert f"COPY {Path(path).name} {path}\n" in container()
    assert f"\n{name} = Agent(" in (SCALED / Path(path).name).read_text(encoding="utf-8")
