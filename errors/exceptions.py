"""The exceptions that carry failures: one for this library's own code, one for operations to subclass.

Neither is ever rendered to a peer: `failure_of` makes a failure of declared fields only, and `wire` an error object of that.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, dataclass_transform, final, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import Raw

from .codes import RESERVED_CODES
from .decoders import ExternalSchema, decoder_for, type_info
from .failures import DomainFailure, Failure, Internal

if TYPE_CHECKING:
    from msgspec import inspect as types


@final
class FailureError(Exception):
    """Carries a `Failure` to the one place that catches everything a handler raises."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


JSON_RPC_CODES: Final = frozenset({-32700, -32600, -32601, -32602, -32603})
"""The codes that JSON-RPC 2.0 defines (section 5.1). An error that is declared can't mean what they mean."""

_DECLARES: Final = ("code", "message", "http_status", "retryable", "number")
"""Keywords of the class statement of an operation error."""

_CODE = r"[A-Z][A-Z0-9_]{0,63}"
_RESERVED_FIELDS = frozenset({"args", "add_note", "with_traceback", "details", "definition"})

_UNREADABLE = (TypeError, ValueError, NameError, AttributeError, SyntaxError, RuntimeError)
"""Exceptions of resolving annotations, and of msgspec for defaults that it refuses."""


class ErrorDefinition(msgspec.Struct, frozen=True):
    """One declared error. `details` is the struct type of its fields, or a type with a given schema. `number` is its JSON-RPC
    code, None for the code of all declared errors."""

    code: str
    message: str
    description: str
    http_status: int
    retryable: bool
    details: Any
    number: int | None = None

    @property
    def has_details(self) -> bool:
        """Whether the error has any field."""
        return isinstance(self.details, ExternalSchema) or bool(self.details.__struct_fields__)


def _define(
    cls: type[OperationError], code: str, message: str | None, http_status: int, retryable: bool, number: int | None
) -> ErrorDefinition:
    fault = ""
    if not (isinstance(code, str) and re.fullmatch(_CODE, code)):
        fault = f"code {code!r} must be upper-case words such as FILE_NOT_FOUND"
    elif code in RESERVED_CODES:
        fault = f"code {code} is a protocol code and can't be declared"
    elif not (isinstance(http_status, int) and 400 <= http_status <= 599):
        fault = f"http_status {http_status!r} must be a number between 400 and 599"
    elif not isinstance(retryable, bool):
        fault = "retryable must be True or False"
    elif not (message is None or (isinstance(message, str) and not re.search("[\ud800-\udfff]", message))):
        fault = "message must be a string of Unicode text"
    elif number is not None and (type(number) is not int or number.bit_length() > 31 or number in JSON_RPC_CODES):
        defined = ", ".join(map(str, sorted(JSON_RPC_CODES)))
        fault = f"number {number!r} must be an integer of 32 bits that JSON-RPC does not define itself ({defined})"
    if fault:
        raise TypeError(f"{cls.__name__}: {fault}")
    try:
        details = _details_type(cls)
    except _UNREADABLE as exc:
        raise TypeError(f"{cls.__name__}: its fields can't be read: {exc}") from exc
    doc = (cls.__doc__ or "").strip()
    shown = message or doc.partition("\n")[0].strip().rstrip(".") or code.replace("_", " ").capitalize()
    return ErrorDefinition(code, shown, " ".join(doc.split()), http_status, retryable, details, number)


def _details_type(cls: type[OperationError]) -> type[msgspec.Struct]:
    """The struct of a class's annotated fields, which extends that of its base class. Moves defaults to the struct."""
    parent: ErrorDefinition | None = getattr(cls.__base__, "definition", None)
    inherited = parent.details.__struct_fields__ if parent else ()
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for field, annotation in get_type_hints(cls, include_extras=True).items():
        if get_origin(annotation) is ClassVar or (field in inherited and field not in cls.__dict__):
            continue
        if field.startswith("_") or field in _RESERVED_FIELDS:
            raise TypeError(f"no field can be named {field}")
        if field in cls.__dict__:
            fields.append((field, annotation, cls.__dict__[field]))
            delattr(cls, field)  # a class attribute would hide the instance's field
        else:
            fields.append((field, annotation))
    bases = (parent.details,) if parent else None
    name = f"{cls.__name__}Details"
    return msgspec.defstruct(name, fields, bases=bases, frozen=True, kw_only=True, module=cls.__module__)


def _written(cls: type[OperationError], details: type[msgspec.Struct], given: Iterable[str]) -> str:
    """How an error with these details is made, and what is wrong with the names that were given."""
    fields = [field.name for field in msgspec.structs.fields(details)]
    line = f"write {cls.__name__}({', '.join(f'{name}=…' for name in fields)})"
    for name in given:
        if name not in fields:
            bare = hasattr(cls, name)
            return f"{line}; {f'{name} is no field without an annotation' if bare else f'there is no field {name}'}"
    return line


def _rebuild(cls: type[OperationError], details: dict[str, Any]) -> OperationError:
    return cls(**details)


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class OperationError(Exception):
    """A declared error of an operation: subclass it, list the subclass in `errors=[…]`, raise it with its fields.

        class FileNotFound(OperationError, code="FILE_NOT_FOUND", http_status=404):
            '''The file does not exist.'''
            path: str

        raise FileNotFound(path=path)

    `code` is the stable, machine-readable name, unique in its operation and none of the protocol's codes. `message` is
    the constant text that callers see; without it, the first line of the docstring. `retryable` tells callers whether
    the same call may succeed later. `number` is the JSON-RPC code, for protocols that give errors numbers of their own;
    without it, all declared errors share −32000. `http_status` (400-599) is for gateways. The annotated fields become the
    `details`: keyword-only, and checked against their types before they are sent.

    The class statement raises `TypeError` if there is no code, if the code is reserved or no upper-case word, or if the
    number or the status is out of range. The constructor raises `TypeError` for a missing or unknown field. A field of
    the wrong type is found when the error is encoded: the caller then gets INTERNAL, and the log tells why.
    """

    definition: ClassVar[ErrorDefinition]

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        message: str | None = None,
        http_status: int = 500,
        retryable: bool = False,
        number: int | None = None,
        **kwargs: Any,  # for other base classes, if there are any
    ) -> None:
        if kwargs and cls.__mro__[cls.__mro__.index(OperationError) + 1 :] == Exception.__mro__:
            raise TypeError(
                f"{cls.__name__}: there is no {', '.join(kwargs)}; an operation error takes {', '.join(_DECLARES)}"
            )
        super().__init_subclass__(**kwargs)
        inherited: ErrorDefinition | None = getattr(cls, "definition", None)
        if code is None and inherited is None:
            raise TypeError(f'{cls.__name__}: an operation error needs code="…"')
        inherited_code, inherited_number = (inherited.code, inherited.number) if inherited else ("", None)
        cls.definition = _define(
            cls, code or inherited_code, message, http_status, retryable, inherited_number if number is None else number
        )

    def __init__(self, *args: Any, **details: Any) -> None:  # typed per subclass by dataclass_transform
        definition: ErrorDefinition | None = getattr(type(self), "definition", None)
        if definition is None:
            raise TypeError("OperationError is raised through a subclass that declares a code")
        try:
            self.details: msgspec.Struct = definition.details(*args, **details)
        except TypeError:
            raise TypeError(_written(type(self), definition.details, details)) from None
        super().__init__(definition.code)

    def __str__(self) -> str:  # for the program: peers get the fields of the declaration
        facts = ", ".join(f"{name}={value!r}" for name, value in msgspec.structs.asdict(self.details).items())
        return f"{self.definition.code}: {self.definition.message}{f' ({facts})' if facts else ''}"

    def __getattr__(self, name: str) -> Any:  # the fields, by their declared names
        if name.startswith("__") or name == "details":
            raise AttributeError(name)
        return getattr(self.details, name)

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can be pickled, as process pools do
        return _rebuild, (type(self), msgspec.structs.asdict(self.details))

    @classmethod
    def from_failure(cls, failure: DomainFailure) -> OperationError:
        """Make the error that a failure stands for. Raises as `decoder_for` does if the details do not fit the declaration."""
        return cls(**msgspec.structs.asdict(decoder_for(cls.definition.details)(failure.details or b"{}")))


class ExternalError(OperationError, code="GIVEN"):
    """An error that another program has declared, by a code and a schema.

    `raw` is its details as JSON text, None without details, checked by the raising code. `details` are the same as values.
    `retry_after_ms` is that program's time to wait.
    """

    def __init__(self, raw: msgspec.Raw | None = None, *, retry_after_ms: int | None = None) -> None:
        Exception.__init__(self, self.definition.code)
        self.raw = raw
        self.details: Any = None if raw is None else msgspec.json.decode(raw)
        self.retry_after_ms = retry_after_ms

    def __str__(self) -> str:
        return f"{self.definition.code}: {self.definition.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("an error of an imported operation can't be pickled: its class is made where it is imported")

    @classmethod
    def from_failure(cls, failure: DomainFailure) -> OperationError:
        return cls(failure.details, retry_after_ms=failure.retry_after_ms)


def given_error(
    code: str, *, message: str, description: str, http_status: int, retryable: bool, schema: ExternalSchema | None
) -> type[ExternalError]:
    """Make the class of an error that another program has declared. Raises `TypeError` as a class statement does."""
    words = (word.capitalize() for word in code.split("_"))
    make: Any = type  # of a class with arguments beside its bases
    cls: type[ExternalError] = make(
        "".join(words),
        (ExternalError,),
        {"__doc__": description, "__module__": __name__},
        code=code,
        message=message or None,
        http_status=http_status,
        retryable=retryable,
    )
    if schema is not None:
        cls.definition = msgspec.structs.replace(cls.definition, details=schema)
    return cls


def failure_of(exc: OperationError, declared: Sequence[type[OperationError]]) -> Failure:
    """Return the failure for an error that an operation raised.

    A declared error becomes a `DomainFailure`. Its details are checked against their declared types, and the scrubber removes
    secrets from them. A subclass of a declared error counts as that error if it adds no code, number or field. Any other error
    becomes `Internal` with its code and nothing else.

    Raises `msgspec.ValidationError` or `TypeError` if a declared error carries fields that its declaration does not allow;
    treat that as an unexpected fault.
    """
    definition = exc.definition
    if type(exc) not in declared:
        declaration = next((cls for cls in declared if isinstance(exc, cls) and _says_no_more(definition, cls)), None)
        if declaration is None:
            return Internal(definition.code)
        definition = declaration.definition
    details = None
    if definition.has_details and exc.details is not None:
        encoded = bytes(exc.raw) if isinstance(exc, ExternalError) and exc.raw is not None else _encode(exc.details)
        details = _without_secrets(encoded, definition.details)
    return DomainFailure(
        definition.code,
        definition.message,
        definition.retryable,
        details,
        definition.http_status,
        definition.number,
        exc.retry_after_ms if isinstance(exc, ExternalError) else None,
    )


_encode: Final = msgspec.json.Encoder().encode


def _says_no_more(definition: ErrorDefinition, declaration: type[OperationError]) -> bool:
    """Whether an error of this definition has the facts of that declaration and no others, by which callers know it."""
    known = declaration.definition
    same_fields = _fields_of(definition) == _fields_of(known)
    return same_fields and definition.code == known.code and definition.number == known.number


def _fields_of(definition: ErrorDefinition) -> object:
    return getattr(definition.details, "__struct_fields__", definition.details)


_FORMATS: Final = (
    bytes, bytearray, memoryview, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, Decimal, UUID,
)  # fmt: skip
"""Types whose JSON is a text of a format, which is no secret whatever its name: removing one would break the schema."""


def _without_secrets(encoded: bytes, tp: Any) -> Raw:
    """The details without secrets. Raises `msgspec.ValidationError` if they do not fit their declared type, or only with them."""
    from .redaction import scrub_details  # late: costs start-up time

    given = decoder_for(tp)(encoded)
    value = msgspec.to_builtins(given, builtin_types=_FORMATS, str_keys=True, enc_hook=msgspec.json.decode)
    scrubbed, replacements = scrub_details(value, declared=_declared_texts(tp))
    if not replacements:
        return Raw(encoded)
    safe = _encode(scrubbed)
    decoder_for(tp)(safe)
    return Raw(safe)


@lru_cache(maxsize=256)
def _declared_texts(tp: Any) -> frozenset[str]:
    """The texts that the type itself holds: the names of fields, and the members of closed lists."""
    leaves = list(_leaves(type_info(tp), "", frozenset()))
    names = {part for name, _ in leaves for part in name.split(".")}
    return frozenset(names.union(*(map(str, _members(node)) for _, node in leaves)))


def hidden_facts(tp: Any) -> list[str]:
    """The names of texts in details of this type that the scrubber would always remove, in dotted form."""
    from msgspec import inspect as types  # late: costs start-up time

    from .redaction.sensitivity import Sensitivity, name_sensitivity

    texts = (types.StrType, types.AnyType, types.RawType, types.CustomType)
    named = [name for name, node in _leaves(type_info(tp), "", frozenset()) if isinstance(node, texts)]
    telling = [name for name in named if name_sensitivity(_last(name)) is Sensitivity.CERTAIN]
    return list(dict.fromkeys(telling))


def _last(name: str) -> str:
    return name.replace(".*", "").rpartition(".")[2]


def _leaves(node: types.Type, name: str, above: frozenset[type]) -> Iterator[tuple[str, types.Type]]:
    """The types of all values that are no containers, each with its dotted name; `*` stands for any key."""
    from msgspec import inspect as types  # late, as above

    match node:
        case types.Metadata():
            yield from _leaves(node.type, name, above)
        case types.UnionType():
            for member in node.types:
                yield from _leaves(member, name, above)
        case types.StructType() | types.DataclassType() | types.TypedDictType() | types.NamedTupleType():
            if node.cls in above:
                yield name, node
                return
            is_array = isinstance(node, types.NamedTupleType) or getattr(node, "array_like", False)
            for field in node.fields:
                named = name if is_array else _dotted(name, field.encode_name)
                yield from _leaves(field.type, named, above | {node.cls})
        case types.DictType():
            for key in _members(node.key_type) or ("*",):
                yield from _leaves(node.value_type, _dotted(name, str(key)), above)
        case types.TupleType():
            for item in node.item_types:
                yield from _leaves(item, name, above)
        case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType() | types.CollectionType():
            yield from _leaves(node.item_type, name, above)
        case _:
            yield name, node


def _members(node: types.Type) -> Sequence[object]:
    """The members of a closed list, as JSON has them; none of any other type."""
    from msgspec import inspect as types  # late, as above

    if isinstance(node, types.EnumType):
        return [member.value for member in node.cls]
    return node.values if isinstance(node, types.LiteralType) else ()


def _dotted(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field
