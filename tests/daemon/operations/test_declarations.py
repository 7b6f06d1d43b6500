"""Declarations that can't work: each is refused at the start, in one line that says where, what and what was expected."""

from __future__ import annotations

import enum
import math
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from discreet import Context, DeclarationError, OperationError, ServerEvent, Service
from discreet.daemon.documents import Text, TextDocument
from discreet.daemon.operations import context as contexts
from discreet.daemon.operations import service as services
from discreet.daemon.operations.registry import Registry
from discreet.errors.codes import ERROR_TABLE, RESERVED_CODES
from discreet.errors.failures import AgentFailure
from support.daemon_wire import Serving


class Plain:
    """A class that msgspec does not know."""


class Color(enum.Enum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Item(msgspec.Struct):
    count: int = 1


class Full(OperationError, code="FULL"):
    """It is full."""


class AlsoFull(OperationError, code="FULL"):
    """It is full as well."""


class Frozen(msgspec.Struct, frozen=True):
    count: int = 1


def declare(handler: Any, kind: str = "query", **options: Any) -> Service:
    service = Service("shop")
    getattr(service, kind)(**options)(handler)
    return service


def taking(annotation: object, *default: object) -> Callable[..., int]:
    """A handler `price(qty: annotation = default)`."""

    def required(qty) -> int:  # type: ignore[no-untyped-def]
        return 1

    def optional(qty=default[0] if default else None) -> int:  # type: ignore[no-untyped-def]
        return 1

    handler = optional if default else required
    handler.__annotations__["qty"] = annotation
    handler.__name__ = "price"
    return handler


def giving(annotation: object) -> Callable[..., Any]:
    def price() -> None: ...

    price.__annotations__["return"] = annotation
    return price


def stating(annotation: object, *default: object) -> type[OperationError]:
    """An error `Refused` with the one fact `fact: annotation = default`."""
    members: dict[str, Any] = {"__annotations__": {"fact": annotation}, "__doc__": "Refused.", "__module__": __name__}
    if default:
        members["fact"] = default[0]
    return type(OperationError)("Refused", (OperationError,), members, code="REFUSED")


def price(qty: int = 1) -> int:
    return qty


async def price_async(qty: int = 1) -> int:
    return qty


def generator() -> Iterator[int]:
    yield 1


class Awaiting:
    async def __call__(self, qty: int = 1) -> int:
        return qty


class Generating:
    def __call__(self) -> Iterator[int]:
        yield 1


# -- types that JSON can't hold ------------------------------------------------------------------------------------

FOREIGN = {
    "a complex number": (complex, "complex"),
    "a plain class": (Plain, "Plain"),
    "a function": (Callable[[int], int], "Callable"),
    "a list of classes": (list[Plain], "Plain"),
    "a class in a dict": (dict[str, Plain], "Plain"),
    "a set of lists": (set[list[int]], "set"),
    "a set of dicts": (frozenset[dict[str, int]], "set"),
    "a set of structs without a hash": (set[Item], "set"),
    "a set of tuples of lists": (set[tuple[list[int], ...]], "set"),
    "keys that are no strings": (dict[tuple[int, int], int], "keys"),
    "keys that are null": (dict[None, int], "keys"),
    "nothing at all": (5, "not supported"),
    "two kinds of array": (list[int] | set[int], "array-like"),
    "a name that is nowhere": ("Nowhere", "Nowhere"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_type_that_json_can_not_hold_is_refused_in_a_param_a_result_and_a_fact(case: str) -> None:
    annotation, named = FOREIGN[case]
    with pytest.raises(DeclarationError) as in_param:
        declare(taking(annotation))
    with pytest.raises(DeclarationError) as in_result:
        declare(giving(annotation))
    assert in_param.match(r"^operation shop/price: .*'qty'")
    assert in_result.match("^operation shop/price: the result")
    found = [in_param, in_result]
    if not isinstance(annotation, str):  # a fact's names are read when the class is made
        with pytest.raises(DeclarationError) as in_fact:
            declare(price, errors=[stating(annotation)])
        assert in_fact.match(r"^operation shop/price: Refused\.fact")
        found.append(in_fact)
    for caught in found:
        assert caught.match(named)
        assert "\n" not in str(caught.value)


HELD = {
    "a set": set[int],
    "a set of structs with a hash": set[Frozen],
    "a set of tuples": frozenset[tuple[int, str]],
    "keys that are numbers": dict[int, str],
    "keys that are names": dict[Color, int],
    "anything": Any,
    "raw JSON": msgspec.Raw,
    "a union": int | str | None,
}


@pytest.mark.parametrize("case", HELD)
def test_a_type_that_json_can_hold_is_taken(case: str) -> None:
    annotation = HELD[case]
    declare(taking(annotation), errors=[stating(annotation)])
    declare(giving(annotation))


# -- defaults ------------------------------------------------------------------------------------------------------

UNFIT: dict[str, tuple[Any, Any, str]] = {
    "a text for a number": (int, "one", "integer"),
    "a fraction for a whole number": (int, 1.5, "integer"),
    "a truth for a number": (int, True, "integer"),
    "nothing for a text": (str, None, r"string; annotate it with \| None"),
    "a number out of range": (Annotated[int, Meta(ge=1)], 0, "integer >= 1"),
    "a word that is not listed": (Literal["a", "b"], "c", "one of a, b"),
    "the text of an enum's member": (Color, "red", "one of red"),
    "items of another type": (list[int], ("a",), "array of integer"),
    "a dict for a struct": (Item, {}, "object"),
    "an object of no type": (int, object(), "integer"),
    "a text that is no Unicode": (str, "\ud800", "string"),
    "unset": (int, UNSET, "integer"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_default_that_its_own_type_refuses_is_refused(case: str) -> None:
    annotation, default, expected = UNFIT[case]
    with pytest.raises(DeclarationError, match=rf"^operation shop/price: parameter 'qty': its default.*: {expected}"):
        declare(taking(annotation, default))
    with pytest.raises(DeclarationError, match=rf"^operation shop/price: Refused\.fact: its default.*: {expected}"):
        declare(price, errors=[stating(annotation, default)])


FIT: dict[str, tuple[Any, Any]] = {
    "a number": (int, 1),
    "a whole number for a fraction": (float, 1),
    "infinity": (float, float("inf")),
    "nothing where it may be": (int | None, None),
    "unset where it may be": (int | UnsetType, UNSET),
    "a tuple for a list": (list[int], (1, 2)),
    "an enum's member": (Color, Color.RED),
    "a flag": (Rights, Rights.READ | Rights.WRITE),
    "a struct": (Item, Item(2)),
    "an empty list": (list[Item], []),
    "anything for anything": (Any, object()),
    "bytes": (bytes, b"x"),
}


@pytest.mark.parametrize("case", FIT)
def test_a_default_of_its_type_is_taken(case: str) -> None:
    annotation, default = FIT[case]
    assert len(declare(taking(annotation, default)).operations) == 1


# -- options, handlers, names --------------------------------------------------------------------------------------


async def events(n: int) -> AsyncIterator[int]:
    yield n


async def unpromised(n: int) -> int:  # type: ignore[misc]
    yield n


async def events_of_code() -> AsyncIterator[type[int]]:
    yield int


WRONG: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "a member of MCP": (
        "query",
        price,
        {"title": "Price"},
        r'price: unknown option title; the options are .*; what a protocol adds stands in options=\{"title": …\}',
    ),
    "an empty name": ("query", price, {"name": ""}, ": a name consists of"),
    "a name with a blank": ("query", price, {"name": "a b"}, "a b: a name consists of"),
    "a name with a slash before it": ("query", price, {"name": "/a"}, "/a: a name consists of"),
    "a name with a slash too many": ("query", price, {"name": "a//b"}, "a//b: a name consists of"),
    "a name that ends a line": ("query", price, {"name": "a\n"}, ".*: a name consists of"),
    "a number as a name": ("query", price, {"name": 5}, ".*: name must be a string, not int"),
    "no name": ("query", price, {"name": None}, ".*: name must be a string, not NoneType"),
    "scopes in one string": ("query", price, {"scopes": "read"}, "price: scopes must be a list"),
    "an empty scope": ("query", price, {"scopes": [""]}, "price: scopes holds ''"),
    "a scope with a blank": ("query", price, {"scopes": ["a b"]}, "price: scopes holds 'a b'"),
    "a scope with a control character": ("query", price, {"any_scope": ["a\x00"]}, "price: any_scope holds"),
    "a scope that is no text": ("query", price, {"scopes": [5]}, "price: scopes must hold strings.*not int"),
    "scopes that are no list": ("query", price, {"scopes": 5}, "price: scopes must be a list.*not int"),
    "scopes in a mapping": ("query", price, {"any_scope": {"a": 1}}, "price: any_scope must be a list.*not dict"),
    "errors that are no list": ("query", price, {"errors": 5}, "price: errors must be a list.*not int"),
    "errors that are nothing": ("query", price, {"errors": None}, "price: errors must be a list.*not NoneType"),
    "an error that is none": ("query", price, {"errors": [ValueError]}, "price: "),
    "an error without a code": ("query", price, {"errors": [OperationError]}, "price: "),
    "an error as an object": ("query", price, {"errors": [Full()]}, "price: "),
    "one code twice": ("query", price, {"errors": [Full, AlsoFull]}, "price: "),
    "a deadline of no time": ("query", price, {"timeout": 0}, "price: timeout must be a number of seconds"),
    "a deadline that is no number": ("query", price, {"timeout": "1"}, "price: timeout must be a number of seconds"),
    "a deadline that is a truth": ("query", price, {"timeout": True}, "price: timeout must be a number of seconds"),
    "a deadline that never comes": ("query", price, {"timeout": math.inf}, "price: timeout must be a number of seconds"),
    "a deadline for an inline handler": ("query", price, {"timeout": 1.0, "inline": True}, "price: "),
    "a limit of nothing": ("query", price, {"limit": 0}, "price: limit must be a number of calls"),
    "a limit that is a truth": ("query", price, {"limit": True}, "price: limit must be a number of calls"),
    "no concurrency": ("query", price, {"concurrency": None}, "price: concurrency must be a number of calls"),
    "no calls at a time": ("query", price, {"concurrency": 0}, "price: concurrency must be a number of calls"),
    "serial and several at a time": ("query", price, {"serial": True, "concurrency": 2}, "price: "),
    "serial and keyed": ("query", price, {"serial": True, "keyed": "qty"}, "price: "),
    "keyed by no param": ("query", price, {"keyed": "m"}, "price: "),
    "keyed by a number": ("query", price, {"keyed": 5}, "price: keyed must be a string"),
    "inline in words": ("query", price, {"inline": "yes"}, "price: inline must be True or False"),
    "an etag that is a text": ("query", price, {"etag": "yes"}, "price: etag must be True or False"),
    "an etag of a mutation": ("mutation", price, {"etag": True}, "price: etag is for queries"),
    "serial as a number": ("query", price, {"serial": 1}, "price: serial must be True or False"),
    "a visibility in a list": ("query", price, {"visibility": ["external"]}, "price: visibility must be one of external, internal"),
    "a description that is no text": ("query", price, {"description": 5}, "price: description must be a string"),
    "a description that is no Unicode": ("query", price, {"description": "\ud800"}, "price: description must be Unicode text"),
    "an option that is none": ("query", price, {"scope": ["read"]}, "price: "),
    "an option of the daemon's own": ("query", price, {"inline": True, "immediate": True}, "price: "),
    "a class": ("query", Plain, {}, "Plain: a handler must be a function, not the class Plain"),
    "a struct": ("query", Item, {}, "Item: a handler must be a function, not the class Item"),
    "a number": ("query", 5, {}, "int: a handler must be a function, not int"),
    "a lambda without a name": ("query", lambda: 1, {}, "<lambda>: a name consists of"),
    "a partial call without a name": ("query", partial(price), {}, "partial: a partial has no name"),
    "a generator": ("query", generator, {}, "generator: a query must be a function without `yield`"),
    "a partial generator": ("query", partial(generator), {"name": "p"}, "p: a query must be a function without `yield`"),
    "an object that generates": ("query", Generating(), {"name": "p"}, "p: a query must be a function without `yield`"),
    "an asynchronous generator as a mutation": ("mutation", events, {}, "events: "),
    "an inline object that awaits": ("query", Awaiting(), {"name": "p", "inline": True}, "p: inline=True is for"),
    "an inline coroutine": ("query", price_async, {"inline": True}, "price_async: inline=True is for"),
    "an inline subscription": ("subscription", events, {"inline": True}, "events: "),
    "a coroutine as a subscription": ("subscription", price_async, {}, "price_async: "),
    "an inline generator": ("subscription", generator, {"inline": True}, "generator: "),
    "a subscription that promises no events": ("subscription", unpromised, {}, "unpromised: "),
    "events that JSON can't hold": ("subscription", events_of_code, {}, "events_of_code: "),
    "numbered results": ("query", giving(ServerEvent[int]), {}, "price: .*ServerEvent"),
    "numbered results of any type": ("mutation", giving(ServerEvent), {}, "price: .*ServerEvent"),
    "a notification that is serial": ("notification", giving(None), {"serial": True}, "price: .*one at a time in any case"),
    "a notification of several at a time": ("notification", giving(None), {"concurrency": 2}, "price: .*one at a time in any case"),
    "a notification that returns something": ("notification", price, {}, "price: .*-> None"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_one_line_that_names_the_operation_and_what_was_expected(case: str) -> None:
    kind, handler, options, message = WRONG[case]
    service = Service("shop")
    with pytest.raises(DeclarationError, match=f"^operation shop/{message}") as caught:
        getattr(service, kind)(**options)(handler)
    assert "\n" not in str(caught.value)
    assert service.operations == []


def test_a_method_is_a_text_and_excludes_a_name() -> None:
    for wrong, named in (((3,), "a method"), (("textDocument/hover",), "named twice")):
        with pytest.raises(DeclarationError, match=named):
            Service("editor").query(*wrong, name="hover")(price)  # type: ignore[call-overload]


def test_a_declared_function_stays_itself() -> None:
    service = Service("shop")
    assert service.query()(price) is price
    assert service.subscription()(events) is events
    assert [spec.name for spec in service.operations] == ["shop/price", "shop/events"]


def test_what_can_be_called_runs_as_its_own_code_does() -> None:
    modes = {
        declare(handler, name="price").operations[0].mode
        for handler in (Awaiting(), partial(price_async), staticmethod(price_async), price_async)
    }
    assert modes == {"async"}


WRONG_SERVICES: dict[str, tuple[object, dict[str, Any], str]] = {
    "a number as its name": (5, {}, "service 5: a name consists of"),
    "no name": (None, {}, "service None: a name consists of"),
    "a name with a blank": ("a b", {}, "service 'a b': a name consists of"),
    "a name with a slash before it": ("/a", {}, "service '/a': a name consists of"),
    "a name with a slash behind it": ("a/", {}, "service 'a/': a name consists of"),
    "a name that begins with a digit": ("1a", {}, "service '1a': a name consists of"),
    "a name that is not ASCII": ("é", {}, "service 'é': a name consists of"),
    "uses in one string": ("shop", {"uses": "shop/call"}, "service 'shop': uses must be a list"),
    "an empty use": ("shop", {"uses": [""]}, "service 'shop': uses holds ''"),
    "a use that is no name": ("shop", {"uses": ["a//b"]}, "service 'shop': a name consists of"),
    "a use that is no text": ("shop", {"uses": [5]}, "service 'shop': uses must hold strings"),
    "uses that are no list": ("shop", {"uses": 5}, "service 'shop': uses must be a list"),
    "a blank authority": ("shop", {"authority": [" "]}, "service 'shop': authority holds"),
    "an empty credential": ("shop", {"credentials": [""]}, "service 'shop': credentials holds"),
    "capabilities in a list": ("shop", {"capabilities": ["x"]}, "service 'shop': capabilities must be a mapping"),
    "capabilities under a number": ("shop", {"capabilities": {5: 1}}, "service 'shop': capabilities must be a mapping"),
    "capabilities an object": (
        "shop",
        {"capabilities": {"x": Plain()}},
        "service 'shop': capabilities must hold values",
    ),
    "a description that is no text": ("shop", {"description": 5}, "service 'shop': description must be a string"),
}


@pytest.mark.parametrize("case", WRONG_SERVICES)
def test_a_wrong_service_is_named_with_what_was_expected(case: str) -> None:
    namespace, options, message = WRONG_SERVICES[case]
    with pytest.raises(DeclarationError, match=f"^{message}"):
        Service(namespace, **options)  # type: ignore[arg-type]


def test_everything_wrong_between_services_is_told_at_once() -> None:
    services = []
    for uses in (["none/a", "shop/price"], ["/none/b"]):
        services.append(Service("shop", uses=uses))
        services[-1].query()(price)
        services[-1].query(name="other")(price_async)
    with pytest.raises(DeclarationError) as caught:
        Registry(services)
    message = str(caught.value)
    assert "\n" not in message
    for name in ("shop/price", "shop/other", "none/a", "none/b"):
        assert message.count(name) == 1


def test_operations_that_use_each_other_are_fine() -> None:
    first, second = Service("first", uses=["second/price"]), Service("second", uses=["first/price", "second/price"])
    for service in (first, second):
        service.query()(price)
    assert len(Registry([first, second])) == 2


# -- errors --------------------------------------------------------------------------------------------------------


def test_every_code_of_the_protocol_is_reserved() -> None:
    own = {row.protocol_code for row in ERROR_TABLE if not issubclass(row.failure, AgentFailure)} - {""}
    assert own == RESERVED_CODES
    assert {"OVERLOADED", "UNAVAILABLE", "CANCELLED", "PARSE_ERROR", "INVALID_REQUEST", "NOT_FOUND"} <= RESERVED_CODES


class ContentModified(OperationError, code="CONTENT_MODIFIED", number=-32801):
    """Content modified."""

    version: int


@pytest.mark.anyio
async def test_a_declared_error_has_the_number_that_it_declares(serving: Serving) -> None:
    service = Service("editor")

    @service.query(errors=[ContentModified])
    async def hover() -> None:
        raise ContentModified(version=3)

    async with serving(service) as wire:
        error = (await wire.call("editor/hover"))["error"]
    data = {"code": "CONTENT_MODIFIED", "retryable": False, "details": {"version": 3}}
    assert error == {"code": -32801, "message": "Content modified", "data": data}


WRONG_ERRORS: dict[str, dict[str, Any]] = {
    **{f"the code {code} of the protocol": {"code": code} for code in sorted(RESERVED_CODES)},
    **{
        f"the number {number!r}": {"code": "GONE", "number": number}
        for number in (-32700, -32600, 2**31, "1", 1.0, True)
    },
    "a number as its code": {"code": 5},
    "a status in words": {"code": "GONE", "http_status": "410"},
    "a retry rule in words": {"code": "GONE", "retryable": "no"},
    "a message that is no text": {"code": "GONE", "message": 5},
    "a message that is no Unicode": {"code": "GONE", "message": "\ud800"},
}


@pytest.mark.parametrize("case", WRONG_ERRORS)
def test_a_wrong_error_class_is_named(case: str) -> None:
    with pytest.raises(TypeError, match="^Gone: "):
        type(OperationError)("Gone", (OperationError,), {}, **WRONG_ERRORS[case])


def test_an_error_class_whose_fields_can_not_be_read_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Refused: .*Nowhere"):
        stating("Nowhere")
    with pytest.raises(TypeError, match="^Refused: "):
        stating(list[int], [1])


@pytest.mark.parametrize("name", services._ELSEWHERE)
def test_a_service_says_what_stands_for_a_name_of_another_library(name: str) -> None:
    with pytest.raises(AttributeError, match=f"a service has no {name}: "):
        getattr(Service(), name)


@pytest.mark.parametrize("name", contexts._ELSEWHERE)
def test_a_context_says_what_stands_for_a_name_of_another_library(name: str) -> None:
    with pytest.raises(AttributeError, match=f"a context has no {name}: "):
        getattr(Context(Any), name)


@pytest.mark.parametrize(("name", "here"), [("source", r"document\.text"), ("offset_at_position", "offset_at")])
def test_a_document_says_what_stands_for_a_name_of_pygls(name: str, here: str) -> None:
    with pytest.raises(AttributeError, match=f"a document has no {name}: write .*{here}"):
        getattr(TextDocument("file:///a", "text", 1, Text("", "utf-16")), name)
