"""Spans of a real process: what goes where, exporters that fail or hang, and what is said at the start where they can't be had."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.programs import DISCREET, finished

pytest.importorskip("opentelemetry.sdk.trace")

Spawn = Callable[..., Any]

HOSTILE = """
import threading
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from discreet import Service

class Hangs(SpanExporter):
    def export(self, spans):
        threading.Event().wait()

class Fails(SpanExporter):
    def export(self, spans):
        raise OSError("no collector")

provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(BatchSpanProcessor(Hangs(), schedule_delay_millis=1))
provider.add_span_processor(SimpleSpanProcessor(Fails()))
trace.set_tracer_provider(provider)
app = Service("app")

@app.query(inline=True)
def echo(**params: object) -> dict[str, object]:
    return params
"""

LOADED = """
import sys
from discreet import Service
app = Service("app")

@app.query
async def loaded() -> list[str]:
    return [name for name in sys.modules if "opentelemetry" in name or name.startswith("discreet.gateway")]
"""

WITHOUT_EXTRA = (
    "import sys; sys.modules['opentelemetry'] = None; from discreet.__main__ import main; raise SystemExit(main())"
)


def test_what_an_exporter_prints_is_logged_and_names_the_service(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--otel", "--log-level=info", env={"OTEL_TRACES_EXPORTER": "console"})
    assert child.call(1, "app/echo", {"a": 1})["result"] == {"a": 1}
    child.close_stdin()
    assert (child.read_all(), child.wait()) == ([], 0)
    logged = child.stderr()
    assert "stdout.stray" in logged
    for expected in ("app/echo", "SpanKind.SERVER", r"\"service.name\": \"app\""):
        assert expected in logged


def test_exporters_that_fail_and_hang_hold_up_neither_requests_nor_the_end(spawn: Spawn, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(HOSTILE)
    child = spawn("serve", "./app.py:app", "--otel", "--log-format=json")
    for number in range(30):
        assert child.call(number, "app/echo", {"n": number})["result"] == {"n": number}
    assert child.end() == 0
    logged = child.stderr()
    assert [logged.count(f'"event": "{name}"') for name in ("otel.problem", "otel.unsent", "python.log")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "nowhere"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeons"}, "http/protobuf or grpc"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"}, "OTEL_EXPORTER_OTLP_ENDPOINT is an address"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:port"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is an"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "OTEL_"),
    ],
)
def test_what_can_not_be_recorded_is_one_line_at_the_start(variables: dict[str, str], said: str) -> None:
    done = finished([*DISCREET, "serve", "--otel"], **variables)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("discreet: --otel") and said in done.stderr


def test_without_the_extra_the_start_is_refused_in_one_line() -> None:
    done = finished([sys.executable, "-P", "-c", WITHOUT_EXTRA, "serve", "--otel"])
    line = "discreet: --otel needs opentelemetry-sdk: pip install 'discreet[otel]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_without_the_setting_nothing_of_it_is_loaded(spawn: Spawn, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOADED)
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "app/loaded")["result"] == []
    assert child.end() == 0
