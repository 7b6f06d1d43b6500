"""`--dialect auto` serves every dialect: what one of them can't serve is found at the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet import DeclarationError, OperationError, Service
from discreet.daemon.connection.session import open_session
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.dialects.acp.session import OWN_METHODS
from discreet.dialects.lsp.capabilities import OWN_METHODS as LSP_METHODS
from discreet.dialects.lsp.capabilities import RUN_COMMAND
from discreet.framing.transports.memory import memory_pair


class SignIn(OperationError, code="SIGN_IN", number=-32000):
    """ACP has another meaning for this number"""


class Own(OperationError, code="OWN", number=-32042):
    """MCP keeps this number"""


class Taken(OperationError, code="TAKEN", number=-32050):
    """LSP allows no new numbers here"""


def with_error(error: type[OperationError]) -> Service:
    service = Service("shop")

    @service.query(errors=[error])
    def price() -> int:
        return 1

    return service


def with_methods(*names: str) -> Service:
    service = Service()
    for name in names:
        service.query(name=name)(lambda: 1)
    return service


REFUSED: list[tuple[str, Callable[[], Service]]] = [
    ("lsp", lambda: with_error(Taken)),
    ("lsp", lambda: with_methods("textDocument/semanticTokens/full")),
    ("lsp", lambda: with_methods("textDocument/didOpen")),
    *(("lsp", lambda name=name: with_methods(name)) for name in sorted({*LSP_METHODS, RUN_COMMAND})),
    ("mcp", lambda: with_error(Own)),
    ("mcp", lambda: with_methods("shop/price", "shop_price")),
    ("acp", lambda: with_error(SignIn)),
    *(("acp", lambda name=name: with_methods(name)) for name in sorted(OWN_METHODS)),
]


def start(service: Service, dialect: Any) -> Daemon:
    return Daemon(Host([service], Settings(dialect=dialect), version="1"), memory_pair()[0])


@pytest.mark.parametrize(("dialect", "make"), REFUSED)
def test_what_one_dialect_refuses_at_the_start_auto_refuses_too(dialect: str, make: Callable[[], Service]) -> None:
    with pytest.raises(DeclarationError):
        start(make(), dialect)
    with pytest.raises(DeclarationError, match=r"dialect auto speaks \w+, too") as refused:
        start(make(), "auto")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dialect", ["plain", "lsp", "mcp", "acp"])
def test_what_auto_takes_every_dialect_takes(dialect: str) -> None:
    def make() -> Service:
        return with_methods("shop/price", "textDocument/hover", "logout")

    assert start(make(), "auto")
    assert start(make(), dialect)


def test_the_methods_that_no_service_may_declare_are_those_of_the_session() -> None:
    daemon = start(Service("shop"), "acp")
    session = open_session("acp", daemon.connection, daemon)
    assert session.registry().names == OWN_METHODS


def test_a_handshake_of_its_own_is_for_the_plain_dialect_alone() -> None:
    assert start(with_methods("initialize", "shutdown"), "plain")
    for dialect in ("lsp", "acp", "auto"):
        with pytest.raises(DeclarationError):
            start(with_methods("initialize", "shutdown"), dialect)
