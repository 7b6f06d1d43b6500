"""Turns messages of A2A's protobuf into JSON and back: A2A's JSON is ProtoJSON (A2A 1.0, section 5.5). Runs nothing.

The messages are made of the description beside this module, in a pool of their own: an app may have others of the same names.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from ...errors.codes import row_of
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, InvalidParams, UnsupportedOperation
from ...errors.wire import encode_status

_protobuf = {  # Any: the library has no types of its own
    name: import_module(f"google.protobuf.{name}")
    for name in (
        "any_pb2 duration_pb2 empty_pb2 struct_pb2 timestamp_pb2 descriptor_pb2 descriptor_pool json_format message"
        " message_factory"
    ).split()
}
_json_format: Final[Any] = _protobuf["json_format"]

SERVICE: Final = "lf.a2a.v1.A2AService"
"""The service of A2A 1.0 (section 10.1)."""

MAX_STATUS_BYTES: Final = 4096
"""Bytes that the details of a status take at most: clients refuse more than 8 KiB of metadata together."""

MAX_MESSAGE: Final = 500
"""Characters of its message. It stands in the details once more, and in both with up to 4 bytes each."""

_TOO_DEEP: Final = UnsupportedOperation(
    version="1.0",
    reason="The answer is JSON of more levels, or has larger numbers, than messages of protobuf can have.",
    suggestion="Get it by JSON-RPC or HTTP+JSON.",
)

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def _described() -> Any:  # Any: a pool of protobuf
    pool = _protobuf["descriptor_pool"].DescriptorPool()
    for name, module in _protobuf.items():
        if name.endswith("_pb2") and name != "descriptor_pb2":
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    files = _protobuf["descriptor_pb2"].FileDescriptorSet.FromString(Path(__file__).with_name("a2a.binpb").read_bytes())
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL: Final = _described()


def _class_of(descriptor: Any) -> Any:
    return _protobuf["message_factory"].GetMessageClass(descriptor)


class GrpcMethod(msgspec.Struct, frozen=True):
    """One method of the service. It has the name of the method of JSON-RPC (A2A 1.0, section 5.3)."""

    name: str
    request: Any  # Any: the classes of its messages
    response: Any

    def read(self, body: bytes) -> Raw:
        """Return the params that a message holds, as JSON. Raises `FailureError(InvalidParams)` for bytes that are none, and for
        values that JSON has not, such as infinity.
        """
        try:
            message = self.request.FromString(body)
            return Raw(_encode(_with_integers(_json_format.MessageToDict(message, descriptor_pool=_POOL))))
        except (_protobuf["message"].DecodeError, _json_format.Error, ValueError, RecursionError, OverflowError):
            expected = f"a message {self.request.DESCRIPTOR.full_name} with values that JSON has"
            raise FailureError(InvalidParams("$", expected, "other bytes")) from None

    def write(self, result: bytes) -> bytes:
        """Return the message of a result or an event. Raises `FailureError(UnsupportedOperation)` for one that is too deep."""
        try:
            encoded = _message_of(_decode(result) or {}, self.response)
            self.response.FromString(encoded)  # as clients read it: they take some 30 levels of JSON, 100 of messages
            return encoded
        except (_json_format.ParseError, _protobuf["message"].DecodeError, OverflowError):
            raise FailureError(_TOO_DEEP) from None


MOST_EXACT: Final = 2**53
"""Up to here a double tells every integer."""


def _with_integers(value: Any) -> Any:  # JSON
    """A value with its whole numbers as integers. Protobuf's values have doubles alone, and JSON does not tell 2 from 2.0."""
    match value:
        case float() if value.is_integer() and abs(value) <= MOST_EXACT:
            return int(value)
        case dict():
            return {name: _with_integers(each) for name, each in value.items()}
        case list():
            return [_with_integers(each) for each in value]
        case _:
            return value


METHODS: Final = {
    f"/{SERVICE}/{each.name}": GrpcMethod(each.name, _class_of(each.input_type), _class_of(each.output_type))
    for each in _POOL.FindServiceByName(SERVICE).methods
}
"""The methods, by the paths under which they are called."""

_STATUS: Final = _class_of(_POOL.FindMessageTypeByName("google.rpc.Status"))


def _message_of(value: Any, kind: Any) -> bytes:  # JSON, and the class of a message
    message = kind()
    _json_format.ParseDict(value, message, ignore_unknown_fields=True, descriptor_pool=_POOL)
    encoded: bytes = message.SerializeToString()
    return encoded


class Status(msgspec.Struct, frozen=True):
    """How gRPC tells a failure (A2A 1.0, section 10.6). `name` is that of the code, `details` a google.rpc.Status."""

    name: str
    message: str
    details: bytes


def status_of(failure: Failure) -> Status:
    """Return the status of a failure: code, message and details are those of the table of errors. Too many details are left out,
    and those that protobuf can't hold, the `ErrorInfo` last.
    """
    row = row_of(failure)
    told = _decode(encode_status(failure, 0))["error"]
    told["message"] = told["message"][:MAX_MESSAGE]
    name, details = row.grpc_status, told.pop("details")
    told["code"] = _CODES[name]
    for kept in (details, details[:1]):
        try:
            encoded = _message_of({**told, "details": kept}, _STATUS)
        except (_json_format.ParseError, OverflowError):  # JSON that protobuf can't hold
            continue
        if len(encoded) <= MAX_STATUS_BYTES:
            return Status(name, told["message"], encoded)
    return Status(name, told["message"], _message_of(told, _STATUS))


_CODES: Final = {
    name: number
    for number, name in enumerate(
        "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED"
        " FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split()
    )
}
"""The numbers of google.rpc.Code."""
