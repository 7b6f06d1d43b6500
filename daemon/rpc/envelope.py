"""Bodies to messages and back. Never runs anything, never logs, and keeps ids and params as the bytes that came.

JSON-RPC 2.0 sections 4 and 5, with these narrowings: no batches but for the dialect that has them, and ids are strings,
numbers or null. An id is echoed byte for byte, so it is never decoded; params wait for the one typed decoder of their
operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.decoders import SURE_LEVELS, json_encoder
from ...errors.failures import EnvelopeMember, InvalidRequest, ParseFailure
from ..operations.request import BACKSLASH, Request

# Checks JSON text where the decoder can't: its encoding, and envelopes that are nested too deeply. Decodes no values.
#
# RFC 8259 section 8.1 requires UTF-8, and section 8.2 warns of unpaired surrogates. The decoder validates neither in values
# that it skips. Everything here takes linear time and does not recurse.


_INVALID_UTF8 = ParseFailure("invalid-utf8")
_INVALID_JSON = ParseFailure("invalid-json")
_EMPTY = ParseFailure("invalid-json", "the body is empty")
NESTED_TOO_DEEPLY: Final = InvalidRequest(
    "malformed-envelope", hint=f"nested too deeply; {SURE_LEVELS} levels are always read"
)
NO_OBJECT: Final = InvalidRequest("malformed-envelope", hint="a message must be an object")

_decode_raw: Final = msgspec.json.Decoder(Raw).decode
"""Judges a text and decodes nothing of it."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]").search
"""The escape of a surrogate. One search with this costs less than one for each notation."""

_ESCAPE = rb"(?s)\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
"""One escape of a JSON string; a surrogate pair counts as one. Group 1 is that of an unpaired surrogate."""

_FLAT_LEVELS = 2
"""Levels of brackets that one match skips. With more, each bracket costs more; with fewer, more of them are left to Python."""


def _skipped(levels: int) -> str:
    """The pattern of what leaves the depth as it is: strings, anything else but brackets, and containers of so few levels."""
    containers = rf"|[\[{{]{_skipped(levels - 1)}[\]}}]" if levels else ""
    return rf'(?:[^"\[\]{{}}]++|"(?:[^"\\]++|\\.)*+"{containers})*+'


_NEXT_BRACKETS = rf"{_skipped(_FLAT_LEVELS)}([\[{{]++|[\]}}]++)".encode()
"""The next brackets that stand side by side and all open or all close. Not compiled before it is needed, for a quick start."""

_OPENING = b"[{"

_SHALLOW = 64
"""Levels that the decoder is given at a time: far fewer than it takes, however deep the call stack is."""


def encoding_failure(body: bytes) -> ParseFailure | None:
    """`invalid-utf8` for bytes that are not UTF-8 and for escapes of unpaired surrogates; None if there are none."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            return _INVALID_UTF8
    if _SURROGATE(body) and any(m[1] for m in re.finditer(_ESCAPE, body)):
        return _INVALID_UTF8
    return None


def without_unpaired(body: bytes) -> bytes | None:
    """The text with the escape of U+FFFD for that of each unpaired surrogate; None if there are none."""
    if not _SURROGATE(body):
        return None
    mended = re.sub(_ESCAPE, lambda m: rb"\ufffd" if m[1] else m[0], body)
    return None if mended == body else mended


def parse_failure(body: bytes) -> ParseFailure:
    """Why the decoder refused a text: its encoding if that is invalid, else its grammar."""
    return encoding_failure(body) or (_INVALID_JSON if body.strip() else _EMPTY)


def json_failure(body: bytes) -> ParseFailure | InvalidRequest | None:
    """Return the failure of a text that should be one JSON value; None if it is. A value that is nested too deeply is refused."""
    failure = encoding_failure(body)
    if failure is None:
        try:
            _decode_raw(body)
        except RecursionError:
            return _INVALID_JSON if flattened(body) is None else NESTED_TOO_DEEPLY
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _INVALID_JSON if body.strip() else _EMPTY
    return failure


def flattened(body: bytes) -> bytes | None:
    """A text that the decoder takes, with `[]` in place of what is nested too deeply for it; None if `body` is no JSON.

    The decoder judges every byte: some levels at a time, the innermost first. A container that it takes is replaced by
    an empty one, which changes neither the grammar of what is around it nor the members of the top object. The result is
    left to the caller to decode, and may still be no JSON.
    """
    outer: list[bytearray] = []  # the texts around the present one, each up to where the next one begins
    text = bytearray()
    depth = at = copied = 0
    next_brackets = re.compile(
        _NEXT_BRACKETS, re.DOTALL
    ).match  # no `search`: one that finds nothing takes quadratic time
    while found := next_brackets(body, at):
        at, end = found.span(1)
        opening = body[at] in _OPENING
        while at < end:
            level = depth % _SHALLOW
            if not opening:
                step = -min(end - at, level or _SHALLOW)
            elif level or not depth:
                step = min(end - at, _SHALLOW - level)
            else:
                text += body[copied:at]
                outer.append(text)
                text, copied = bytearray(), at
                step = min(end - at, _SHALLOW)
            at += abs(step)
            depth += step
            if outer and depth == _SHALLOW * len(outer):
                text += body[copied:at]
                if not _is_json(text):
                    return None
                text, copied = outer.pop(), at
                text += b"[]"
            elif depth < 0:
                return None
    text += body[copied:]
    return None if depth else bytes(text)


def _is_json(text: bytearray) -> bool:
    try:
        _decode_raw(text)
    except msgspec.DecodeError:
        return False
    return True


NULL_ID: Final = b"null"

MAX_BATCH: Final = 1024
"""Messages of one batch: each may be answered."""

CANCEL_REQUEST: Final = "$/cancelRequest"
"""The notification that cancels a request, in both directions."""

STREAM_TAKEN: Final = "$/streamTaken"
"""The notification by which a client says up to which event it has taken a stream, for which it has opened a window."""


class ClientResponse(msgspec.Struct, gc=False):
    """A response to a request that this side sent. One of `result` and `error` is set; neither where it can't be told."""

    id: bytes
    result: Raw | None
    error: Raw | None


class Refused(msgspec.Struct):
    """A JSON text that is no proper message; `id` is the JSON text to answer with."""

    id: bytes
    failure: InvalidRequest


class Scalar(Refused):
    """Neither an object nor an array, so it may be the beginning of a longer text (`12` of `12345`): where the message is a
    whole body, the parser finds out whether the stream is still in step.
    """


class Dropped(msgspec.Struct):
    """A message that can't be answered and is of no use: a broken notification, or a response to nothing."""


class NoJson(msgspec.Struct):
    """Not a JSON text at all: whether the stream is still in step is the parser's to find out."""

    failure: ParseFailure


Message: TypeAlias = Request | ClientResponse | Refused | Dropped | NoJson


class _Envelope(msgspec.Struct, gc=False):
    """The good path: one pass, nothing but the method and the version decoded."""

    method: str
    jsonrpc: str
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    service_params: Raw | UnsetType = msgspec.field(name="serviceParams", default=UNSET)


class _Members(msgspec.Struct, gc=False):
    """Any JSON object: every member that matters, whatever its type."""

    jsonrpc: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_members = msgspec.json.Decoder(_Members).decode
_decode_batch = msgspec.json.Decoder(Annotated[list[Raw], msgspec.Meta(max_length=MAX_BATCH)]).decode
_decode_metadata = msgspec.json.Decoder(dict[str, str]).decode
_encode = json_encoder()

_NO_METADATA: dict[str, str] = {}
_STARTS_NO_ID: Final = b"{[tf"
"""First bytes of objects, arrays and booleans: what JSON allows and an id may not be."""
_STARTS_CONTAINER: Final = b"{["
_STARTS_NULL: Final = 0x6E


def decode(body: bytes) -> Message:
    """Read one body. Total: any bytes give a message. Linear in the body's length."""
    try:
        envelope = _decode_envelope(body)
    except msgspec.ValidationError:
        return _diagnose(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NoJson(parse_failure(body))
    except RecursionError:
        return _too_deep(body)
    if not (body.isascii() and BACKSLASH not in body) and (failure := encoding_failure(body)):
        return NoJson(failure)
    params = envelope.params
    call_id = None if envelope.id is UNSET else bytes(envelope.id)
    if (
        envelope.jsonrpc != "2.0"
        or params is UNSET
        or memoryview(params)[0] not in _STARTS_CONTAINER
        or (call_id is not None and call_id[0] in _STARTS_NO_ID)
        or envelope.service_params is not UNSET
    ):
        return _with_care(envelope, call_id, len(body))
    return Request(envelope.method, call_id, params, _NO_METADATA, "", len(body))


def split_batch(body: bytes) -> list[Message]:
    """The messages of a batch (JSON-RPC 2.0 section 6), for a body that `decode` refuses as one. More than `MAX_BATCH` are
    refused as a whole, and so is an empty one.
    """
    try:
        members = _decode_batch(body)
    except (msgspec.DecodeError, RecursionError):
        return [Refused(NULL_ID, InvalidRequest("batch-not-supported"))]
    if not members:
        return [Refused(NULL_ID, InvalidRequest("malformed-envelope"))]
    return [decode(bytes(member)) for member in members]


def _with_care(envelope: _Envelope, call_id: bytes | None, size: int) -> Message:
    """An object with a string method and a string version, of which something else is missing, rare or wrong."""
    if call_id is not None and call_id[0] in _STARTS_NO_ID:
        return Refused(NULL_ID, InvalidRequest("invalid-id-type"))
    params = None if isinstance(envelope.params, UnsetType) else envelope.params
    metadata = _metadata(envelope.service_params)
    if params is not None and memoryview(params)[0] == _STARTS_NULL:
        params = None
    if envelope.jsonrpc != "2.0":
        return _malformed(call_id, "jsonrpc")
    if params is not None and memoryview(params)[0] not in _STARTS_CONTAINER:
        return _malformed(call_id, "params")
    if metadata is None:
        return _malformed(call_id, "serviceParams")
    return Request(envelope.method, call_id, params, metadata, "", size)


def _metadata(raw: Raw | UnsetType) -> dict[str, str] | None:
    """`serviceParams` with lower-case keys; None when it is no object of strings."""
    if isinstance(raw, UnsetType) or memoryview(raw)[0] == _STARTS_NULL:
        return _NO_METADATA
    try:
        return {key.lower(): value for key, value in _decode_metadata(raw).items()}
    except msgspec.DecodeError:
        return None


def _malformed(call_id: bytes | None, member: EnvelopeMember) -> Message:
    """A broken envelope that has a method: without an id it is a notification, and those are never answered."""
    if call_id is None:
        return Dropped()
    return Refused(call_id, InvalidRequest("malformed-envelope", member))


def _diagnose(body: bytes, *, whole: bool = True) -> Message:
    """JSON of another shape than a call's: a response, a batch, or a broken envelope. The text may still be broken.

    Without `whole` something was left out of the text, because it was nested too deeply.
    """
    if failure := encoding_failure(body):
        return NoJson(failure)
    try:
        members = _decode_members(body)
    except msgspec.ValidationError:  # no object
        return _diagnose_other(body)
    except msgspec.DecodeError:
        return NoJson(_INVALID_JSON)
    except RecursionError:
        return _too_deep(body)
    raw_id = None if isinstance(members.id, UnsetType) else bytes(members.id)
    if raw_id is not None and raw_id[0] in _STARTS_NO_ID:
        return Refused(NULL_ID, InvalidRequest("invalid-id-type"))
    if isinstance(members.method, UnsetType) and (members.result is not UNSET or members.error is not UNSET):
        return _response(members, raw_id, whole)
    if raw_id is None and not isinstance(members.method, UnsetType) and bytes(members.method)[:1] == b'"':
        return Dropped()
    if not whole:
        return Refused(raw_id or NULL_ID, NESTED_TOO_DEEPLY)
    has_version = not isinstance(members.jsonrpc, UnsetType) and bytes(members.jsonrpc) == b'"2.0"'
    return Refused(raw_id or NULL_ID, InvalidRequest("malformed-envelope", "method" if has_version else "jsonrpc"))


def _diagnose_other(body: bytes) -> Message:
    """Anything but an object: an array, a scalar, or no JSON."""
    try:
        _decode_raw(body)
    except msgspec.DecodeError:
        return NoJson(_INVALID_JSON)
    except RecursionError:
        return _too_deep(body)
    if body.lstrip().startswith(b"["):
        return Refused(NULL_ID, InvalidRequest("batch-not-supported"))
    return Scalar(NULL_ID, NO_OBJECT)


def _too_deep(body: bytes) -> Message:
    """Nested deeper than the decoder goes (RFC 8259 section 9 allows a limit): answered under its id if it has one."""
    if failure := encoding_failure(body):
        return NoJson(failure)
    text = flattened(body)
    return NoJson(_INVALID_JSON) if text is None else _diagnose(text, whole=False)


def _response(members: _Members, raw_id: bytes | None, whole: bool) -> Message:
    if raw_id is None:
        return Dropped()
    if not whole:
        return ClientResponse(raw_id, None, None)
    result = None if isinstance(members.result, UnsetType) else members.result
    error = None if isinstance(members.error, UnsetType) else members.error
    if result is None or error is None:
        return ClientResponse(raw_id, result, error)
    if bytes(error) == b"null":  # both members, one of them null, are what JSON-RPC 1.0 asks for
        return ClientResponse(raw_id, result, None)
    return ClientResponse(raw_id, None, error if bytes(result) == b"null" else None)


def decode_mended(body: bytes) -> Message | None:
    """The message in a body that is no JSON for want of the other halves of surrogate pairs: each half becomes U+FFFD.

    None for any other body, and for a request whose id holds one: its caller would not know the answer.
    """
    mended = without_unpaired(body)
    message = None if mended is None else decode(mended)
    unknown = isinstance(message, Request) and rb"\ufffd" in (message.id or b"")
    return None if unknown or isinstance(message, NoJson) else message


def encode_result(call_id: bytes, result: bytes) -> bytes:
    """A response; both arguments are JSON texts."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (call_id, result)


def result_parts(call_id: bytes, result: bytes) -> tuple[bytes, bytes, bytes]:
    """A response as the parts around its result, which is not copied."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % call_id, result, b"}"


def encode_notification(method: str, params: object) -> bytes:
    """A notification; without params where they are UNSET.

    Raises `TypeError` for params that msgspec encodes to neither an object nor an array, and `ValueError` where a `Raw` in
    them is no JSON.
    """
    return b'{"jsonrpc":"2.0","method":%b%b}' % (_encode(method), _params_member(params))


def encode_event(call_id: bytes, seq: int, value: bytes) -> bytes:
    """One event of a subscription; `call_id` and `value` are JSON texts (section 5 of docs/protocol.md)."""
    return b'{"jsonrpc":"2.0","method":"stream/event","params":{"id":%b,"seq":%d,"value":%b}}' % (call_id, seq, value)


def encode_request(call_id: int, method: str, params: object, service_params: Mapping[str, str] | None = None) -> bytes:
    """A request that this side sends. Raises as `encode_notification` does."""
    beside = b',"serviceParams":%b' % _encode(service_params) if service_params else b""
    return b'{"jsonrpc":"2.0","id":%d,"method":%b%b%b}' % (call_id, _encode(method), _params_member(params), beside)


def _params_member(params: object) -> bytes:
    if params is UNSET:
        return b""
    text = _encode(params)
    _decode_raw(text)
    if text.lstrip()[:1] not in (b"{", b"["):  # JSON-RPC 2.0 section 4.2
        raise TypeError(f"params must be an object or an array in JSON, not {type(params).__name__}")
    return b',"params":' + text
