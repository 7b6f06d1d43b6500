"""Whom a credential names: tokens, and providers of the app's own. No credential is ever said again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import Identity
from discreet.daemon.apps import AppError
from discreet.daemon.hosting import access_of
from discreet.daemon.operations.access import PARENT, Access
from discreet.daemon.settings import Settings
from discreet.errors.redaction import scrub
from support.vault import ALL, LACKING, NOT_FOUND, SECRET, UNKNOWN, digest, tokens, vault

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


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
    "text",
    [
        "",
        "ada",
        "ada:",
        f"ada:{SECRET}",
        f":{digest('x')}",
        f"ada:{digest('x')[:-1]}",
        f"ada:{'g' * 64}",
        f"ada:{'é' * 64}",
    ],
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
        for members, both, open_ in ((ada, "ada", "ada"), (loud, "ada", "ada")):
            assert (await wire.call("vault/both", **members))["result"] == both
            assert (await wire.call("vault/open_", **members))["result"] == open_
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
            case "raise":
                raise ValueError(f"can't read {authorization} {SECRET}")
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


@pytest.mark.parametrize("credential", ["raise", "text", "list"])
async def test_a_provider_that_fails_is_an_internal_error_of_that_request_alone(
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
