"""`from_daemon`, and `from_openapi` of a document that discreet has written: what becomes of another daemon as a service."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from discreet import DeclarationError, Service, from_daemon, from_openapi
from discreet.client.errors import MethodNotFound
from discreet.compatibility.changes import additions, breaking_changes
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.configured import service_of
from discreet.imports.settings import ImportSettings
from discreet.schemas.documents import Snapshot, snapshot
from discreet.testing import in_memory
from support.far_app import far
from support.gateways import http_daemon
from support.generated_services import services
from support.mounts import FAR_APP, serve_command
from support.programs import DISCREET, environment, finished

pytestmark = pytest.mark.anyio


def written(service: Service, url: str = "https://example.org/base") -> bytes:
    about = About(title="Far", version="3.2.1", url=url)
    return document_text(openapi_document(service.operations, about))


def without_prefix(found: Snapshot) -> Snapshot:
    """The operations under the names that they have at home."""
    return Snapshot(1, {name.removeprefix("m/"): each for name, each in found.operations.items()})


@settings(max_examples=40)
@given(services())
def test_what_is_imported_of_a_written_document_is_what_it_was_written_of(service: Service) -> None:
    mounted = from_openapi(written(service), namespace="m", expose=True)
    found, original = without_prefix(snapshot(mounted.operations)), snapshot(service.operations)
    assert breaking_changes(original, found) == additions(original, found) == ()
    assert breaking_changes(found, original) == additions(found, original) == ()
    for name, theirs in original.operations.items():
        ours = found.operations[name]
        assert (ours.kind, ours.description, ours.timeout, ours.numbered) == (
            theirs.kind,
            theirs.description,
            theirs.timeout,
            theirs.numbered,
        )
        assert errors(ours) == errors(theirs)


def errors(operation: object) -> object:
    found = getattr(operation, "error_schemas")  # noqa: B009 - of either
    return sorted((each.code, each.http_status, each.grpc_status, each.retryable, each.message) for each in found)


@settings(max_examples=20)
@given(services())
def test_it_is_written_again_as_it_was(service: Service) -> None:
    once = from_openapi(written(service), namespace="m", expose=True)
    twice = from_openapi(written(once), namespace="m", expose=True)
    found, original = snapshot(twice.operations), snapshot(once.operations)
    assert {name.removeprefix("m/") for name in found.operations} == set(original.operations)
    renamed = without_prefix(found)
    assert breaking_changes(original, renamed) == breaking_changes(renamed, original) == ()


def test_a_command_is_a_service_with_its_own_names_below_the_namespace() -> None:
    command = serve_command()
    service = from_daemon(
        command.words, namespace="m", env=command.env, include=["far/i*", "far/p*"], exclude=["far/pid"]
    )
    assert [(spec.name, spec.kind, spec.visibility) for spec in service.operations] == [
        ("m/far/item", "query", "internal")
    ]
    assert [cls.definition.code for cls in service.operations[0].errors] == ["EMPTY", "LATER", "BARE"]


async def test_what_is_exposed_is_called_and_nothing_else() -> None:
    command = serve_command()
    service = from_daemon(
        command.words, namespace="m", env=command.env, rename={"far/pid": "who"}, expose=["who", "far/item"]
    )
    async with in_memory(service) as peer:
        assert await peer.call("m/who") > 0
        assert await peer.call("m/far/item", {"name": "a"}) == {"name": "a", "points": []}
        with pytest.raises(MethodNotFound):
            await peer.call("m/far/pid")
        with pytest.raises(MethodNotFound):
            await peer.call("m/far/count", {"what": ""})


async def test_a_document_is_called_at_its_server_or_where_it_is_said(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with http_daemon(tmp_path, f"{FAR_APP}:far", "--http-operations") as url:
        of_url = from_openapi(f"{url.rstrip('/')}/openapi.json", namespace="m", expose=True, allow_private=True)
        of_text = from_openapi(written(far), namespace="m", expose=True, base_url=url, allow_private=True)
        by_url = from_daemon(url, namespace="m", expose=True, allow_private=True)
        for service in (of_url, of_text, by_url):
            async with in_memory(service) as peer:
                assert await peer.call("m/far/item", {"name": "a"}) == {"name": "a", "points": []}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rename": {"none": "x"}}, "there is no operation none"),
        ({"rename": {"far/item": "far/store"}}, "two operations would be called far/store"),
        ({"expose": ["nope_*"]}, "expose: no operation is called nope_*"),
        ({"include": ["far/itm"]}, "include: no operation is called far/itm; nearest: far/item"),
        ({"exclude": ["*"]}, "is imported"),
        ({"rename": {"far/item": "a b"}}, "a name consists of"),
        ({"namespace": "a b"}, "a name consists of"),
        ({"base_url": "ftp://x"}, "give base_url"),
        ({"base_url": "http://127.0.0.1:1"}, "allow_private"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: dict[str, object], reason: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        from_openapi(written(far), **{"namespace": "m", **options})  # type: ignore[arg-type]
    assert reason in str(caught.value)


LOCKED = """
from discreet import Context, Service
locked = Service("locked")

@locked.query(scopes=["vault"])
async def who(ctx: Context) -> str:
    return ctx.identity.subject
"""
TOKEN = "abc123abc123"


async def test_a_daemon_that_asks_for_credentials_is_told_the_mounts(tmp_path: Path) -> None:
    app, file = tmp_path / "locked_app.py", tmp_path / "token"
    app.write_text(LOCKED, encoding="utf-8")
    file.write_text(TOKEN, encoding="utf-8")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    command = serve_command(f"{app}:locked", "--token", f"mounter:{digest}:vault")
    with pytest.raises(DeclarationError, match="it offers no operation to this caller"):
        from_daemon(command.words, namespace="m", env=command.env)
    service = from_daemon(command.words, namespace="m", env=command.env, token=TOKEN, expose=True)
    named = from_daemon(command.words, namespace="n", env=command.env, token=TOKEN, credential="far", expose=True)
    table = ImportSettings(name="t", daemon=command.words, credential="far", expose=True)
    configured = service_of(table, {"far": str(file)})
    async with in_memory(service, named, configured, credentials={"far": TOKEN}) as peer:
        for namespace in ("m", "n", "t"):
            sent = {"authorization": "Bearer of-the-caller"}
            assert await peer.call(f"{namespace}/locked/who", service_params=sent) == "mounter"


def test_a_daemon_that_is_not_there_is_one_line_and_status_2(tmp_path: Path) -> None:
    app = tmp_path / "outer_app.py"
    app.write_text("from discreet import from_daemon\nouter = from_daemon(['/none/such'], namespace='m')\n")
    ended = finished([*DISCREET, "serve", f"{app}:outer"], tmp_path, **environment())
    assert ended.returncode == 2
    assert "can't run /none/such: No such file or directory" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_nothing_of_imports_loads_without_one() -> None:
    code = (
        "import sys, discreet.daemon.server, discreet.daemon.hosting, discreet.daemon.connection.connection;"
        "print([name for name in sys.modules if name.startswith(('discreet.imports', 'discreet.client'))])"
    )
    assert finished([sys.executable, "-P", "-c", code]).stdout.strip() == "[]"
