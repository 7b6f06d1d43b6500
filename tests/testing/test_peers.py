"""A peer in memory and a peer of a process: the same to a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet import Context, DeclarationError, Identity, OperationError, Service
from discreet.client import ConnectionFailed, InsufficientPermissions, InternalError, OperationFailed, Peer
from discreet.daemon.settings import UsageError
from discreet.testing import in_memory, spawned
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

APP = '''
from collections.abc import AsyncIterator

from discreet import Context, OperationError, Service

app = Service("app")


class Empty(OperationError, code="EMPTY", http_status=404):
    """There is nothing."""
    name: str


@app.query(errors=[Empty])
def take(name: str) -> str:
    """Take something."""
    if not name:
        raise Empty(name=name)
    return name.upper()


@app.query(scopes=["secret"])
async def guarded(ctx: Context) -> str | None:
    """Only for some."""
    return ctx.identity.subject if ctx.identity else None


@app.subscription()
async def count(to: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(to):
        yield number
'''

Opening = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["in memory", "spawned"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    (tmp_path / "app.py").write_text(APP)
    if request.param == "spawned":
        return lambda **settings: spawned("./app.py:app", cwd=tmp_path, stderr="collect", **settings)
    namespace: dict[str, Any] = {"__name__": "app"}
    exec(APP, namespace)
    return lambda **settings: in_memory(namespace["app"], **settings)


async def test_calls_errors_and_streams_are_the_same_in_memory_and_in_a_process(opening: Opening) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with opening() as peer:
            assert await peer.call("app/take", {"name": "it"}, type=str) == "IT"
            with pytest.raises(OperationFailed) as failed:
                await peer.call("app/take", {"name": ""})
            assert failed.value.code == "EMPTY"
            assert [number async for number in peer.subscribe("app/count", {"to": 3}, type=int)] == [0, 1, 2]


async def test_settings_reach_both(opening: Opening) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with opening(scopes=["other"], framing="content-length", request_timeout=None, ordered=False) as peer:
            with pytest.raises(InsufficientPermissions):
                await peer.call("app/guarded")
        async with opening(scopes=("secret",), framing="newline", ordered=True) as peer:
            assert await peer.call("app/guarded") == "parent"
        async with opening(scopes=[], framing="auto") as peer:
            with pytest.raises(InsufficientPermissions):
                await peer.call("app/guarded")


async def test_what_leaves_the_block_leaves_as_it_is(opening: Opening) -> None:
    with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(ZeroDivisionError):
        async with opening():
            raise ZeroDivisionError


async def test_services_that_declare_a_name_twice_are_refused() -> None:
    one, other = Service("a"), Service("a")
    for service in (one, other):
        service.query(name="b")(lambda: None)
    with pytest.raises(DeclarationError):
        async with in_memory(one, other, timeout=None):
            pass


async def test_an_app_that_there_is_not_fails_the_first_call(tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with spawned("nowhere:app", cwd=tmp_path, stderr="collect") as peer:
            with pytest.raises(ConnectionFailed) as failed:
                await peer.call("version")
    assert failed.value.loss.status == 2


class Passes:
    """Knows one credential."""

    schemes = ("pass",)
    realm = "tests"

    def resolve(self, authorization: str) -> Identity | None:
        return Identity("ann", frozenset({"go"})) if authorization == "pass ann" else None


async def test_a_provider_and_credentials_are_given_as_objects() -> None:
    service = Service("who", credentials=["token"])

    @service.query(scopes=["go"])
    async def am_i(ctx: Context) -> str:
        assert ctx.identity is not None
        return f"{ctx.identity.subject} {ctx.credentials['token']}"

    async with in_memory(service, provider=Passes(), credentials={"token": "t-123"}) as peer:
        assert await peer.call("who/am_i", service_params={"authorization": "pass ann"}) == "ann t-123"


async def test_the_traceback_of_a_failed_handler_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service("bad")

    @service.query()
    async def fail(password: str) -> None:
        raise ValueError("cannot be done")

    async with in_memory(service) as peer:
        with pytest.raises(InternalError):
            await peer.call("bad/fail", {"password": "x"})
        await peer.call("version")
    shown = capsys.readouterr().err
    assert "handler.failed" in shown
    assert "cannot be done" in shown
    assert "daemon.serving" not in shown


async def test_what_still_runs_at_the_end_has_the_drain_window() -> None:
    service = Service("slow")
    ended: list[str] = []
    begun = anyio.Event()

    @service.mutation()
    async def work() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("work")

    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(service, drain_timeout=0.05) as peer:
            await peer.notify("slow/work")
            await begun.wait()
    assert ended == ["work"]


async def test_what_was_begun_is_finished_before_the_block_ends() -> None:
    service = Service("slow")
    ended: list[str] = []

    @service.mutation()
    async def work() -> None:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        ended.append("work")

    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(service) as peer:
            await peer.notify("slow/work")
    assert ended == ["work"]


async def test_a_stream_that_is_left_half_way_does_not_hold_up_the_end() -> None:
    service = Service("long")

    @service.subscription()
    async def ever() -> AsyncIterator[int]:
        yield 1
        await anyio.sleep_forever()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with (
            in_memory(service, drain_timeout=DEADLINE_SECONDS * 2) as peer,
            peer.subscribe("long/ever") as events,
        ):
            assert await anext(events) == 1


@pytest.mark.parametrize("hosted", ["./x.py:s", None, 5])
async def test_only_services_and_agents_are_hosted_in_memory(hosted: Any) -> None:
    with pytest.raises(TypeError, match="spawned" if isinstance(hosted, str) else "services"):
        async with in_memory(hosted):
            pass


@pytest.mark.parametrize("hosted", [None, 5, Service("s")])
async def test_only_apps_by_their_names_are_spawned(hosted: Any) -> None:
    with pytest.raises(TypeError, match="in_memory"):
        async with spawned(hosted):
            pass


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"scope": ["a"]}, "scopes"),
        ({"token": ["a"]}, "tokens"),
        ({"max_thread": 3}, "max_threads"),
        ({"scopes": "abc"}, "list"),
        ({"tokens": "abc"}, "list"),
    ],
)
async def test_wrong_settings_are_refused_with_what_is_meant(settings: dict[str, Any], hint: str) -> None:
    for opened in (in_memory(**settings), spawned(**settings)):
        with pytest.raises(TypeError, match=hint):
            async with opened:
                pass


@pytest.mark.parametrize("options", [{"provider": 5}, {"credentials": {"A": 1}}])
async def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        async with in_memory(**options):
            pass


async def test_params_that_are_no_object_or_array_are_not_sent_to_a_client(capfd: pytest.CaptureFixture[str]) -> None:
    service = Service("s")

    @service.mutation()
    async def tell(ctx: Context) -> None:
        """Tell it."""
        await ctx.notify("a/b", 5)

    @service.mutation()
    async def ask(ctx: Context) -> None:
        """Ask for it."""
        await ctx.request("a/b", "text")

    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(service) as peer:
            peer.on_notification("a/b", lambda params: pytest.fail("it was sent"))
            for method in ("s/tell", "s/ask"):
                with pytest.raises(InternalError):
                    await peer.call(method)
    assert capfd.readouterr().err.count("TypeError: params must be an object or an array") == 2


class Undeclared(OperationError, code="UNDECLARED"):
    """It is not in the list."""


async def test_an_error_that_is_not_declared_is_logged_with_its_code_class_and_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    service = Service("s")

    @service.query()
    async def fail() -> None:
        """Fail."""
        raise Undeclared

    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(service) as peer:
            with pytest.raises(InternalError) as failed:
                await peer.call("s/fail")
            assert failed.value.failure.code == "UNDECLARED"
    shown = capfd.readouterr().err
    assert "undeclared=UNDECLARED" in shown
    assert "Undeclared" in shown
    assert "test_peers.py" in shown


@pytest.mark.parametrize("settings", [{"framing": "bogus"}, {"max_concurrency": -1}, {"request_timeout": "soon"}])
async def test_a_wrong_value_of_a_setting_is_refused_before_anything_is_started(
    opening: Opening, settings: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        async with opening(**settings):
            pass
