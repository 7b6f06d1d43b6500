"""The two exceptions that carry failures: one for this library's own code, one for operations to subclass.

Neither is ever rendered to a peer: `wire` builds error objects from declared fields only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, dataclass_transform, final

import msgspec

from .codes import RESERVED_CODES
from .decoders import ExternalSchema, decoder_for
from .failures import DomainFailure, ErrorDefinition, Failure, define_error


@final
class FailureError(Exception):
    """Carries a `Failure` to the one place that catches everything a handler raises."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


_DECLARES: Final = ("code", "message", "http_status", "retryable", "number")
"""What the class statement of an operation error may say."""


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
        cls.definition = define_error(
            cls,
            code=code or (inherited.code if inherited else ""),
            message=message,
            http_status=http_status,
            retryable=retryable,
            number=number if number is not None or inherited is None else inherited.number,
            reserved=RESERVED_CODES,
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

    def __str__(self) -> str:  # for whoever raises or catches it: peers get the fields of the declaration
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
        """The error that such a failure stands for. Raises as `decoder_for` does where the details are not what it declares."""
        return cls(**msgspec.structs.asdict(decoder_for(cls.definition.details)(failure.details or b"{}")))


class ExternalError(OperationError, code="GIVEN"):
    """An error that another program has declared, by a code and a schema.

    `raw` are its details as JSON text, None where there are none; whoever raises it has checked them. `details` are the same as
    values. `retry_after_ms` is what that program has said of the time to wait.
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
    """The class of an error that another program has declared. Raises `TypeError` as a class statement does."""
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
