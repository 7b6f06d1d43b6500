"""Fetches the card of an agent (A2A 1.0, section 8.2) and finds in it how the agent is called. Calls no agent."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec.structs import replace

from ...a2a.card import AgentCard, AgentInterface
from ...errors.decoders import DECODE_ERRORS, convert, decoder_for
from ..connect import ConnectOptions
from ..errors import ConnectionFailed, ConnectionLoss, InvalidReply, RequestTimeout
from ..http.wire import A2A_VERSION, AUTHORIZATION, parse_address, require_http, status_error
from ..outbound.network import Destination
from ..peer import DEFAULT_TIMEOUT
from ..validation import check_strings, check_timeout

if TYPE_CHECKING:
    from ...a2a.signing import CardKeys

BINDING: Final = "JSONRPC"
VERSION: Final = "1.0"

WELL_KNOWN: Final = ".well-known/agent-card.json"

MAX_CARD_BYTES: Final = 4 * 1024 * 1024

_EMPTY: Final[dict[str, object]] = {"skills": (), "defaultInputModes": (), "defaultOutputModes": (), "capabilities": {}}
"""Required members that ProtoJSON leaves out where they are empty."""


class AgentPlace(msgspec.Struct, frozen=True):
    """The place at which an agent is called. `card` is None for a server that has none."""

    url: str
    card: AgentCard | None = None
    tenant: str | None = None


async def find_agent(url: str, options: ConnectOptions, keys: CardKeys | None = None) -> AgentPlace:
    """The place of the agent at this URL. With `keys` one of them must have signed its card. Raises as `connect_agent` does."""
    timeout, service_params = options.get("timeout", DEFAULT_TIMEOUT), options.get("service_params")
    check_timeout(timeout)
    check_strings("service_params", service_params)
    address = parse_address(url)
    require_http()
    from ..http.a2a import A2A  # late: these load what an extra installs
    from ..http.connection import open_http

    card_address = _card_address(address)
    asked = {A2A_VERSION: VERSION, **(service_params or {})}
    with anyio.move_on_after(timeout):
        async with open_http(address, A2A(), ssl_context=options.get("ssl_context")) as http:
            response, body = await http.get(card_address, asked, limit=MAX_CARD_BYTES)
        if response.status == HTTPStatus.NOT_FOUND and card_address != address and keys is None:
            return AgentPlace(url)
        if response.status != HTTPStatus.OK:
            raise status_error(response, body)
        card = read_card(body, keys)
        sends_token = any(name.lower() == AUTHORIZATION for name in service_params or {})
        interface = _interface(card, address)
        return AgentPlace(_called_at(interface, address, url, sends_token=sends_token), card, interface.tenant)
    assert timeout is not None  # without a limit, the block only ends by returning or raising
    raise RequestTimeout("the agent card", timeout)


def _card_address(address: Destination) -> Destination:
    path, mark, query = address.request_target.partition("?")
    if path.endswith(".json"):
        return address
    return replace(address, request_target=f"{path.rstrip('/')}/{WELL_KNOWN}{mark}{query}")


def read_card(body: bytes, keys: CardKeys | None) -> AgentCard:
    """Read a card that one of the keys, if there are any, must have signed. Raises `InvalidReply`."""
    try:
        members = decoder_for(dict[str, Any])(body)  # Any: JSON
        card: AgentCard = convert({**_EMPTY, **members}, AgentCard)
    except DECODE_ERRORS:
        raise InvalidReply("the agent card is none of A2A 1.0") from None
    if keys is not None and not keys.verify(members):
        raise InvalidReply("the agent card has no signature of a trusted key")
    return card


def _interface(card: AgentCard, address: Destination) -> AgentInterface:
    """The first interface that this client speaks: the card's order is the agent's preference (section 8.3.1)."""
    for interface in card.supported_interfaces:
        if interface.protocol_binding == BINDING and f"{interface.protocol_version}.".startswith(f"{VERSION}."):
            return interface
    offered = ", ".join(f"{each.protocol_binding} {each.protocol_version}" for each in card.supported_interfaces)
    reason = f"{address.shown}: the agent speaks {offered or 'nothing'}, and not {BINDING} {VERSION}"
    raise ConnectionFailed(ConnectionLoss(reason, gave_up=True), sent=False)


def _called_at(interface: AgentInterface, address: Destination, url: str, *, sends_token: bool) -> str:
    """The URL of the interface. Credentials go to the server only that the caller has named."""
    if address.socket:  # what the card says leads past the socket
        return url
    try:
        target = parse_address(interface.url)
    except ValueError:
        raise InvalidReply("the agent card holds a URL that is none") from None
    if sends_token and target.origin != address.origin:
        reason = f"{address.shown}: the card leads to another server, {target.shown}, which would get the credentials"
        raise ConnectionFailed(ConnectionLoss(reason, gave_up=True), sent=False)
    return interface.url
