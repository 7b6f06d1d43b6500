"""docs/monitoring.md tells the truth: its tables are what a daemon exposes and answers with."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

from discreet.daemon.host import Host
from discreet.daemon.memory import MemoryBudget
from discreet.daemon.settings import Settings
from discreet.gateway.figures import BOUNDS, Figures
from discreet.gateway.metrics import exposed
from support.figures import some_figures
from support.pages import Page
from support.waits import DEADLINE_SECONDS

DOCUMENT = Page("docs/monitoring.md")
PAGE, rows = DOCUMENT.text, DOCUMENT.rows


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_table_of_metrics_is_what_is_exposed() -> None:
    text, _ = exposed(some_figures(), "text/plain")
    exposed_ = {
        family.name if family.type != "counter" else f"{family.name}_total": (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for family in text_string_to_metric_families(text.decode())
        if family.name.startswith("discreet_")
    }
    told = {code(name)[0]: (kind, set(code(labels))) for name, kind, labels, _ in rows("The metrics")}
    assert told == exposed_


def test_the_values_of_labels_are_named() -> None:
    meant = {code(name)[0]: code(meaning) for name, _, _, meaning in rows("The metrics")}
    assert meant["discreet_memory_used_bytes"] == [*MemoryBudget(1).by_kind()]
    assert "from 0.12 ms to 32 s" in PAGE
    assert (round(BOUNDS[0] * 1000, 2), BOUNDS[-1]) == (0.12, 32)


@pytest.mark.anyio
async def test_the_states_of_tasks_are_those_of_the_table(anyio_backend: str) -> None:
    meant = {code(name)[0]: code(meaning) for name, _, _, meaning in rows("The metrics")}
    assert set(meant["discreet_tasks"]) <= set(some_figures().tasks)
    assert [*await Host((), Settings(), version="1").agent.count_tasks()] == [*some_figures().tasks]


def test_the_members_of_the_answer_are_those_of_the_struct() -> None:
    told = [name for names, _ in rows("Over stdin and stdout") for name in code(names)]
    assert sorted(told) == sorted(field.encode_name for field in msgspec.structs.fields(Figures))
    nested = {code(names)[0]: meaning for names, meaning in rows("Over stdin and stdout")}
    whole = msgspec.to_builtins(some_figures())
    for name in ("backlog", "memory", "store", "loop"):
        shape = re.search(r"`(\{.*?\})`", nested[name])
        assert shape is not None
        assert re.findall(r"[{,] ?(\w+)", re.sub(r": \{[^}]*\}", "", shape[1])) == [*whole[name]]


def test_prometheus_takes_the_configuration_that_is_shown(tmp_path: Path) -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    (config,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE, re.DOTALL)
    (tmp_path / "prometheus.yml").write_text(config)
    (tmp_path / "scraper.token").write_text("token")
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
