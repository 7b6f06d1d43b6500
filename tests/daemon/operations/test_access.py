"""Who may call what, who is told of it, and whom a credential names. No credential is ever said again."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Identity, Service
from discreet.daemon.apps import AppError
from discreet.daemon.hosting import access_of, credentials_of
from discreet.daemon.operations.access import PARENT, Access
from discreet.daemon.settings import Settings
from discreet.errors.redaction import scrub
from support.daemon_wire import Serving
from support.vault import ALL, LACKING, NOT_FOUND, SECRET, UNKNOWN, digest, tokens, vault

pytestmark = pytest.mark.anyio


CASES = [
    (None, {"open_", "both", "either", "mixed"}),
    ((), {"open_"}),
    (("read",), {"open_", "either"}),
    (("list",), {"open_"}),
    (("read", "list"), {"open_", "both", "either", "mixed"}),
    (("admin",), {"open_", "either"}),
    (("admin", "read"), {"open_", "either", "mixed"}),
]


@pytest.mark.parametrize(("scopes", "allowed"), CASES)
async def test_the_parent_has_the_scopes_that_the_setting_gives(
    scopes: tuple[str, ...] | None, allowed: set[str], serving: Serving
) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        for name in ("open_", "both", "either", "mixed"):
            reply = await wire.call(f"vault/{name}")
            assert ("result" in reply) == (name in allowed), name
            assert "result" in reply or reply["error"] == LACKING


async def test_access_is_checked_after_lookup_and_before_input(serving: Serving) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=()))) as wire:
        wrong = {"n": "no number", "surplus": 1}
        assert (await wire.call("vault/none", wrong))["error"] == NOT_FOUND
        assert (await wire.call("vault/hidden", wrong))["error"] == NOT_FOUND
        for name in ("both", "either", "mixed"):
            assert (await wire.call(f"vault/{name}", wrong))["error"] == LACKING
        assert (await wire.call("vault/open_", wrong))["error"]["code"] == -32602
    async with serving(vault(), access=access_of(Settings(scopes=("read", "list")))) as wire:
        for name in ("both", "either", "mixed"):
            assert (await wire.call(f"vault/{name}", wrong))["error"]["code"] == -32602


async def test_a_refused_notification_does_not_run(serving: Serving) -> None:
    service = Service("side")
    ran: list[str] = []

    @service.mutation(inline=True, scopes=["write"])
    def effect() -> None:
        ran.append("effect")

    async with serving(service, access=access_of(Settings(scopes=()))) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "side/effect"})
        await wire.nothing_more()
        assert ran == []


async def test_internal_operations_are_not_found_under_any_spelling_even_for_who_may_do_everything(
    serving: Serving,
) -> None:
    async with serving(vault()) as wire:
        for method in ("vault/hidden", "/vault/hidden"):
            assert (await wire.call(method))["error"] == NOT_FOUND
            assert (await wire.call("services/call", {"operationId": method}))["error"] == NOT_FOUND
            assert (await wire.call("services/schema", {"name": method}))["error"] == NOT_FOUND
        for listing in ("services/list", "listMethods", "describeMethods"):
            assert "hidden" not in str((await wire.call(listing))["result"])


@pytest.mark.parametrize(("scopes", "allowed"), CASES)
async def test_callers_are_told_of_exactly_what_they_may_call(
    scopes: tuple[str, ...] | None, allowed: set[str], serving: Serving
) -> None:
    expected = [name for name in ALL if name.split("/")[1] in allowed | ({"watch"} if scopes is None else set())]
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        listed = (await wire.call("services/list"))["result"]
        assert [entry["name"] for entry in listed] == expected
        for method in ("listMethods", "describeMethods"):
            names = {entry["name"] for entry in (await wire.call(method))["result"]}
            assert (names & {*ALL}, "initialize" in names) == ({*expected}, True)
        for name in ALL:
            reply = await wire.call("services/schema", {"name": name})
            if name in expected:
                assert reply["result"]["name"] == name
            else:
                assert reply["error"] == NOT_FOUND


async def test_the_list_can_be_narrowed(serving: Serving) -> None:
    other = Service("vault/deep")
    other.query(inline=True, name="look")(lambda: None)
    async with serving(vault(), other) as wire:

        async def names(**params: Any) -> list[str]:
            return [entry["name"] for entry in (await wire.call("services/list", params))["result"]]

        assert await names() == [*ALL, "vault/deep/look"]
        assert await names(namespace="vault") == ALL
        assert await names(namespace="vault/deep") == ["vault/deep/look"]
        assert await names(namespace="none") == []
        assert await names(query="NEEDS BOTH") == ["vault/both"]
        assert await names(query="look", namespace="vault") == []
        entry = (await wire.call("services/list", {"query": "watch"}))["result"]
        assert entry == [{"name": "vault/watch", "namespace": "vault", "kind": "subscription", "description": ""}]


INTERNAL = {"code": -32603, "message": "Internal error"}


@pytest.mark.parametrize(
    ("authorization", "subject"),
    [
        (f"Bearer {SECRET}", "ada"),
        (f"bearer {SECRET}", "ada"),
        (f"BEARER   {SECRET}  ", "ada"),
        ("Bearer other-token", "bob"),
        (f"Basic {SECRET}", None),
        (f"Bearer{SECRET}", None),
        (SECRET, None),
        (f"Bearer {SECRET.lower()}", None),
        (f"Bearer {SECRET}x", None),
        (f"Bearer {digest(SECRET)}", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("", None),
        ("Bearer \ud800", None),
    ],
)
def test_a_bearer_token_is_known_by_its_digest_only(authorization: str, subject: str | None) -> None:
    identity = tokens().resolve(authorization)
    assert (identity.subject if isinstance(identity, Identity) else None) == subject


@pytest.mark.parametrize(
    "text", ["", "ada:", f"ada:{SECRET}", f":{digest('x')}", f"ada:{digest('x')[:-1]}", f"ada:{'é' * 64}"]
)
def test_a_token_of_another_form_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(AppError) as caught:
        access_of(Settings(tokens=(text,)))
    assert SECRET not in str(caught.value)
    assert "SUBJECT:SHA256" in str(caught.value)


async def test_each_request_carries_its_own_credentials(serving: Serving) -> None:
    async with serving(vault(), access=Access(PARENT, tokens())) as wire:
        ada = {"serviceParams": {"authorization": f"Bearer {SECRET}"}}
        loud = {"serviceParams": {"AUTHORIZATION": f"BEARER {SECRET}"}}
        bob = {"serviceParams": {"authorization": "Bearer other-token"}}
        wrong = {"serviceParams": {"authorization": "Bearer guessed"}}
        for members in (ada, loud):
            for method in ("vault/both", "vault/open_"):
                assert (await wire.call(method, **members))["result"] == "ada"
        assert (await wire.call("vault/both", **bob))["error"] == LACKING
        assert (await wire.call("vault/open_", **bob))["result"] == "bob"
        for members in (wrong, {}):
            assert (await wire.call("vault/both", **members))["error"] == UNKNOWN
            assert (await wire.call("vault/open_", **members))["result"] is None
            assert (await wire.call("vault/hidden", **members))["error"] == NOT_FOUND


async def test_discovery_goes_by_the_callers_own_credentials(serving: Serving) -> None:
    async with serving(vault(), access=Access(PARENT, tokens())) as wire:
        ada = {"serviceParams": {"authorization": f"Bearer {SECRET}"}}
        assert [e["name"] for e in (await wire.call("services/list"))["result"]] == ["vault/open_"]
        assert [e["name"] for e in (await wire.call("services/list", **ada))["result"]] == ALL[:4]
        assert (await wire.call("services/schema", {"name": "vault/both"}))["error"] == NOT_FOUND
        schema = (await wire.call("services/schema", {"name": "vault/mixed"}, **ada))["result"]
        assert schema["access"] == {"allOf": ["read"], "anyOf": ["admin", "list"]}
        forwarded = await wire.call("services/call", {"operationId": "vault/both"}, **ada)
        assert forwarded["result"] == "ada"


class Provider:
    """Takes the credential for the subject, and does what the subject says."""

    schemes = ("custom", "basic")
    realm = "house"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, authorization: str) -> Any:  # Any: providers are the app's own code, and can be wrong
        self.asked.append(authorization)
        match authorization:
            case "text":
                return "no identity"
            case "list":
                return Identity("list", ["read"])  # type: ignore[arg-type]
            case "nobody":
                return None
            case _:
                return Identity(authorization, frozenset({"read", "list"}))


async def test_a_provider_decides_who_calls(serving: Serving) -> None:
    provider = Provider()
    async with serving(vault(), access=Access(PARENT, provider)) as wire:
        eve = {"serviceParams": {"authorization": "eve"}}
        assert (await wire.call("vault/both", **eve))["result"] == "eve"
        nobody = (await wire.call("vault/both", serviceParams={"authorization": "nobody"}))["error"]
        assert nobody["data"]["details"] == {"authSchemes": ["custom", "basic"], "realm": "house"}


@pytest.mark.parametrize("credential", ["text", "list"])
async def test_a_provider_that_gives_no_identity_is_an_internal_error_of_that_request_alone(
    serving: Serving, credential: str
) -> None:
    async with serving(vault(), access=Access(PARENT, Provider())) as wire:
        members = {"serviceParams": {"authorization": credential}}
        for method in ("vault/both", "vault/either"):
            assert (await wire.call(method, **members))["error"] == INTERNAL
        assert (await wire.call("services/list", **members))["error"] == INTERNAL
        await wire.send({"jsonrpc": "2.0", "method": "vault/both", **members})
        assert (await wire.call("vault/both", serviceParams={"authorization": "eve"}))["result"] == "eve"


class Unfit:
    """What is taken for a provider by mistake."""

    no_resolve = type("NoResolve", (), {"schemes": ("bearer",), "realm": "r"})()
    one_string = type("OneString", (Provider,), {"schemes": "bearer"})()
    no_strings = type("NoStrings", (Provider,), {"schemes": (1, 2)})()
    no_realm = type("NoRealm", (Provider,), {"realm": None})()
    provider_class = Provider
    provider = Provider()


@pytest.mark.parametrize("name", ["no_resolve", "one_string", "no_strings", "no_realm", "provider_class", "none"])
def test_what_is_no_provider_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(AppError) as caught:
        access_of(Settings(identity=f"{__name__}:Unfit.{name}"))
    assert "\n" not in str(caught.value)


def test_a_provider_is_found_by_its_path_and_excludes_tokens() -> None:
    access = access_of(Settings(identity=f"{__name__}:Unfit.provider"))
    assert not access.unrestricted
    with pytest.raises(AppError):
        access_of(Settings(identity=f"{__name__}:Unfit.provider", tokens=(f"a:{digest('x')}",)))


async def test_a_caller_s_credential_of_words_does_not_make_the_log_unreadable() -> None:
    class Anybody:
        schemes = ("bearer",)
        realm = "test"

        def resolve(self, authorization: str) -> Identity | None:
            return Identity("anybody")

    access = Access(PARENT, Anybody())
    for credential in ("request.failed", "q7Zk39xV2mB8n1"):
        assert access.identify({"authorization": f"Bearer {credential}"}) is not None
    assert scrub("event request.failed, q7Zk39xV2mB8n1") == "event request.failed, <redacted>"


async def test_a_service_finds_the_credentials_that_it_declares_and_no_others(serving: Serving, tmp_path: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"  {SECRET}-{name}\n")
    services = []
    for name in ("one", "two"):
        service = Service(name, credentials=[name])

        @service.query(inline=True)
        def lengths(ctx: Context) -> dict[str, int]:
            return {key: len(value) for key, value in ctx.credentials.items()}

        services.append(service)
    settings = Settings(credentials=tuple(f"{name}={tmp_path / name}" for name in ("one", "two")))
    credentials = credentials_of(settings, services)
    async with serving(*services, credentials=credentials) as wire:
        for name in ("one", "two"):
            assert (await wire.call(f"{name}/lengths"))["result"] == {name: len(SECRET) + 4}


@pytest.mark.parametrize("given", [(), ("other=x",), ("one",), ("=x",), ("one=",), ("one=/no/such/file-of-mine",)])
def test_a_missing_credential_is_told_at_the_start_without_its_path(given: tuple[str, ...]) -> None:
    with pytest.raises(AppError) as caught:
        credentials_of(Settings(credentials=given), [Service("one", credentials=["one"])])
    assert "file-of-mine" not in str(caught.value)


def test_a_credential_is_read_again_when_its_file_changes_and_kept_when_that_goes(tmp_path: Any) -> None:
    file = tmp_path / "one"
    file.write_text("first-secret")
    credentials = credentials_of(Settings(credentials=(f"one={file}",)), [Service("one", credentials=["one"])])
    assert dict(credentials) == {"one": "first-secret"}
    (tmp_path / "new").write_text("second-secret\n")
    (tmp_path / "new").replace(file)  # as those who rotate secrets do
    assert credentials["one"] == "second-secret"
    assert "second-secret" not in scrub("the value is second-secret")
    for content in (b"", b"\xff\xfe\xfd"):
        file.write_bytes(content)
        assert credentials["one"] == "second-secret"
    file.unlink()
    assert credentials["one"] == "second-secret"
    file.write_text("third")
    assert credentials["one"] == "third"
