"""The dashboard and the alert rules name metrics that there are, and the tools that read them find nothing wrong."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from discreet.daemon.settings.table import OPTIONS
from support.figures import exposed_samples
from support.waits import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "http"
DASHBOARD: dict[str, Any] = json.loads((EXAMPLE / "grafana.json").read_text(encoding="utf-8"))
ALERTS = (EXAMPLE / "alerts.yml").read_text(encoding="utf-8")
TESTED = (EXAMPLE / "alerts_test.yml").read_text(encoding="utf-8")

NAME = re.compile(r"\b(?:discreet|process)_\w+|\bup\b")
OF_PROMETHEUS = {"up"}
OF_LINUX = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"}


def queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_the_dashboard_and_the_rules_name_metrics_and_labels_that_there_are() -> None:
    there = exposed_samples()
    named = set(NAME.findall(" ".join([*queries(), ALERTS, TESTED])))
    assert named - OF_PROMETHEUS - OF_LINUX <= there.keys()
    assert {"discreet_requests_total", "discreet_request_duration_seconds_bucket"} <= named
    labels = {"job", "instance", "le", *(label for each in there.values() for labels in each for label in labels)}
    for query in [*queries(), *re.findall(r"expr: (.*(?:\n {10}.*)*)", ALERTS)]:
        inside = re.findall(r"\{([^{}]*)\}", query)
        used = {label for each in inside for label in re.findall(r"(\w+)[!=]~?=?\"", each)}
        used |= {
            label.strip() for each in re.findall(r"\b(?:by|without) \(([^)]*)\)", query) for label in each.split(",")
        }
        assert used <= labels, query


def test_every_metric_of_the_daemon_is_on_the_dashboard() -> None:
    shown = set(NAME.findall(" ".join(queries())))
    bases = {
        re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exposed_samples() if name.startswith("discreet_")
    }
    assert bases == {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown if name.startswith("discreet_")}


def test_the_panels_stand_side_by_side_and_each_asks_the_chosen_source() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        grid = panel["gridPos"]
        assert 0 <= grid["x"] <= grid["x"] + grid["w"] <= 24
        cells = set(itertools.product(range(grid["x"], grid["x"] + grid["w"]), range(grid["y"], grid["y"] + grid["h"])))
        assert not cells & taken, panel["title"]
        taken |= cells
        for target in panel.get("targets", ()):
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert '{job=~"$job", instance=~"$instance"' in target["expr"]


LOST = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()

def lost(given, kept, path="$"):
    if isinstance(given, dict) and isinstance(kept, dict):
        return [each for name in given for each in lost(given[name], kept.get(name), f"{path}.{name}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [each for n, pair in enumerate(zip(given, kept)) for each in lost(*pair, f"{path}[{n}]")]
    return [] if given == kept else [path]

given = json.load(sys.stdin)
print(json.dumps(lost(given, json.loads(JSONEncoder().encode(Dashboard.from_json(given))))))
"""


def test_grafana_knows_every_member_of_the_dashboard() -> None:
    python = os.environ.get("DISCREET_INTEROP_PYTHON")
    if (
        python is None
        or subprocess.run([python, "-P", "-c", "import grafana_foundation_sdk"], capture_output=True).returncode
    ):
        pytest.skip("grafana-foundation-sdk is not installed")
    done = subprocess.run(
        [python, "-P", "-c", LOST],
        input=json.dumps(DASHBOARD),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_SECONDS,
    )
    assert json.loads(done.stdout) == []


def promtool(*arguments: str, cwd: Path) -> str:
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_pass_their_own_tests() -> None:
    rules = re.findall(r"alert: (\w+)", ALERTS)
    assert f"{len(rules)} rules found" in promtool("check", "rules", "alerts.yml", cwd=EXAMPLE)
    promtool("test", "rules", "alerts_test.yml", cwd=EXAMPLE)


def test_each_rule_is_tested_quiet_and_firing() -> None:
    rules = re.findall(r"alert: (\w+)", ALERTS)
    quiet, _, firing = TESTED.partition("each trouble raises its alert")
    assert rules == re.findall(r"alertname: (\w+)", quiet) == re.findall(r'alertname="(\w+)"', firing)


def test_the_queries_of_the_dashboard_are_promql(tmp_path: Path) -> None:
    variables = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}
    rules = []
    for number, query in enumerate(each for each in queries() if not each.startswith("label_values")):
        for name, value in variables.items():
            query = query.replace(name, value)
        rules.append({"record": f"query_{number}", "expr": query})
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    promtool("check", "rules", "rules.yml", cwd=tmp_path)


def test_what_the_rules_advise_is_there() -> None:
    flags = {option.flag for option in OPTIONS}
    assert set(re.findall(r"--[a-z-]+", ALERTS)) <= flags
    logged = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
    for event in re.findall(r"\b(?:handler|agent|daemon|store|loop)\.[a-z_]+", ALERTS):
        assert f"`{event}`" in logged
