"""Finds the provider that spans go to: the one that the program has set, else one that OpenTelemetry's variables describe
(`OTEL_*`).

The provider is the process's. It is set once and never shut down, since several daemons may follow each other in one process.
"""

from __future__ import annotations

import os
import threading
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from opentelemetry import trace

from ...daemon.apps import AppError
from ...daemon.logs import log
from ...daemon.logs.hooks import owns_log
from ...errors.printable import printable
from .problems import note_fault, take_over_log

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

INSTALL: Final = "pip install 'discreet[otel]'"

_EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
_GROUP: Final = "opentelemetry_traces_exporter"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_UNNAMED: Final = "unknown_service"


def ensure_provider(name: str, version: str) -> None:
    """Set a provider, unless there is one, or no exporter is wanted. Raises `AppError`, one line for the operator.

    Spans say this name and version of their process, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` does.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        if owns_log():
            take_over_log()
        return
    names = _wanted()
    if not names:
        return
    if find_spec("opentelemetry.sdk") is None:
        raise AppError(f"--otel needs opentelemetry-sdk: {INSTALL}")
    take_over_log()
    from opentelemetry.sdk.trace import TracerProvider  # late: a program may have a provider of its own, and no SDK
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    makers = [_exporter(name) for name in names]
    try:
        provider = TracerProvider(resource=_resource(name, version), shutdown_on_exit=False)
        for make in makers:
            provider.add_span_processor(BatchSpanProcessor(make()))
    except Exception as exc:  # whatever the libraries make of the variables
        raise AppError(f"--otel: the variables OTEL_… can't be used: {_first_line(exc)}") from exc
    trace.set_tracer_provider(provider)


def _wanted() -> list[str]:
    """The exporters that are asked for, by the names of their entry points."""
    names = [name.strip() for name in os.environ.get(_EXPORTERS, "otlp").split(",")]
    return [_otlp() if name == "otlp" else name for name in names if name not in ("", "none")]


def _otlp() -> str:
    protocol = next((text for name in _PROTOCOLS if (text := os.environ.get(name, "").strip())), "http/protobuf")
    if protocol not in _OTLP:
        raise AppError(f"--otel: {_PROTOCOLS[1]} is {' or '.join(_OTLP)}, not {protocol!r}")
    if protocol == "http/protobuf":
        _check_endpoint()
    return _OTLP[protocol]


def _check_endpoint() -> None:
    """The library takes any text, and then loses every span."""
    for name in _ENDPOINTS:
        if text := os.environ.get(name, "").strip():
            try:
                parts = urlsplit(text)
                fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            except ValueError:  # its port is none
                fits = False
            if not fits:
                raise AppError(f"--otel: {name} is an address such as http://localhost:4318, not {printable(text)}")
            return


def _exporter(name: str) -> Any:  # Any: what the library of another project calls its exporter
    """Makes the exporter of this name. Raises `AppError` where it is not installed."""
    for found in entry_points(group=_GROUP, name=name):
        try:
            return found.load()
        except ImportError as exc:
            raise AppError(f"--otel: {_EXPORTERS}={name} can't be loaded: {_first_line(exc)}") from exc
    known = sorted({"none", "otlp", *(each.name for each in entry_points(group=_GROUP))} - {*_OTLP.values()})
    raise AppError(f"--otel: {_EXPORTERS} names {name!r}, which is not installed; there are {', '.join(known)}")


def _resource(name: str, version: str) -> Resource:
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    found = Resource.create()
    if not str(found.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        return found
    return found.merge(Resource({SERVICE_NAME: name, SERVICE_VERSION: version}))


def _first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]


def flush(seconds: float) -> None:
    """Have the provider export all that has ended, and wait for that, for at most so long. Blocks.

    In a thread, since the SDK's own time limit bounds nothing, and one that no end of the process waits for.
    """
    export = getattr(trace.get_tracer_provider(), "force_flush", None)
    if export is None:
        return

    def run() -> None:
        try:
            export()
        except Exception as exc:  # noqa: BLE001 - an exporter of the program's own
            note_fault(exc)

    thread = threading.Thread(target=run, name="discreet-spans", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has none left
        return
    thread.join(max(0.0, seconds))
    if thread.is_alive():
        log.warning("otel.unsent", seconds=round(seconds, 3))
