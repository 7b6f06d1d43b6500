"""The trace of a request goes on in the daemon behind a mount."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from discreet import from_daemon
from discreet.testing import in_memory
from support.far_app import far
from support.gateways import http_daemon
from support.mounts import FAR_APP, by_pipe

if TYPE_CHECKING:
    from support.spans import Spans

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans() -> Iterator[Spans]:
    from support.spans import recorded

    with recorded() as found:
        yield found


def ids(traceparent: str) -> tuple[str, str]:
    _, trace, span, _ = traceparent.split("-")
    return trace, span


async def test_a_call_by_pipes_is_a_span_of_the_request_here_and_that_there_is_its_child(spans: Spans) -> None:
    async with in_memory(by_pipe(far), otel=True) as peer:
        came = await peer.call("far/carried")
    kinds = [line.strip().partition(" ")[0] for line in spans.tree()[:3]]
    assert kinds == ["CLIENT", "SERVER", "CLIENT"]  # ours to the mount, the mount's request, its call
    assert [len(line) - len(line.lstrip()) for line in spans.tree()[:3]] == [0, 2, 4]
    assert ids(came["traceparent"])[1] in {f"{span.context.span_id:016x}" for span in spans.all() if span.context}


async def test_a_call_by_http_is_a_span_too(spans: Spans, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with http_daemon(tmp_path, f"{FAR_APP}:far", "--http-operations") as url:
        mount = from_daemon(url, namespace="m", expose=True, allow_private=True)
        async with in_memory(mount, otel=True) as peer:
            came = await peer.call("m/far/carried")
    calls = {f"{span.context.span_id:016x}" for span in spans.all() if span.name == "far/carried" and span.context}
    assert ids(came["traceparent"])[1] in calls
