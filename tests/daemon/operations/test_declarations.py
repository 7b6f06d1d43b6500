"""Declarations that can't work: each is refused at the start, in one line that says where, what and what was expected."""

from __future__ import annotations

import enum
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from discreet import DeclarationError, OperationError, Service
from discreet.daemon.apps import AppError, load
from discreet.daemon.operations.registry import Registry
from discreet.errors.codes import ERROR_TABLE, RESERVED_CODES
from discreet.errors.failures import AgentFailure
from support.programs import DISCREET, environment


class Plain:
    """A class that msgspec does not know."""


class Color(enum.Enum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Item(msgspec.Struct):
    count: int = 1


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

WRONG_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "an empty name": ({"name": ""}, "a name consists of"),
    "a name with a blank": ({"name": "a b"}, "a name consists of"),
    "a name with a slash before it": ({"name": "/a"}, "a name consists of"),
    "a name that ends a line": ({"name": "a\n"}, "a name consists of"),
    "a number as a name": ({"name": 5}, "name must be a string, not int"),
    "no name": ({"name": None}, "name must be a string, not NoneType"),
    "an empty scope": ({"scopes": [""]}, "scopes holds ''"),
    "a blank scope": ({"scopes": [" "]}, "scopes holds ' '"),
    "a scope with a blank": ({"scopes": ["a b"]}, "scopes holds 'a b'"),
    "a scope with a line's end": ({"scopes": ["a\n"]}, "scopes holds"),
    "a scope with a control character": ({"any_scope": ["a\x00"]}, "any_scope holds"),
    "a scope that is no text": ({"scopes": [5]}, "scopes must hold strings.*not int"),
    "scopes that are no list": ({"scopes": 5}, "scopes must be a list.*not int"),
    "scopes in a mapping": ({"any_scope": {"a": 1}}, "any_scope must be a list.*not dict"),
    "errors that are no list": ({"errors": 5}, "errors must be a list.*not int"),
    "errors that are nothing": ({"errors": None}, "errors must be a list.*not NoneType"),
    "a deadline that is a truth": ({"timeout": True}, "timeout must be a number of seconds"),
    "a deadline that never comes": ({"timeout": float("inf")}, "timeout must be a number of seconds"),
    "a limit that is a truth": ({"limit": True}, "limit must be a number of calls"),
    "no concurrency": ({"concurrency": None}, "concurrency must be a number of calls"),
    "inline in words": ({"inline": "yes"}, "inline must be True or False"),
    "an etag that is a text": ({"etag": "yes"}, "etag must be True or False"),
    "serial as a number": ({"serial": 1}, "serial must be True or False"),
    "keyed by a number": ({"keyed": 5}, "keyed must be a string"),
    "a visibility in a list": ({"visibility": ["external"]}, "visibility must be one of external, internal"),
    "a description that is no text": ({"description": 5}, "description must be a string"),
    "a description that is no Unicode": ({"description": "\ud800"}, "description must be Unicode text"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_a_wrong_option_is_named_with_what_was_expected(case: str) -> None:
    options, message = WRONG_OPTIONS[case]
    with pytest.raises(DeclarationError, match=f"^operation shop/.*: {message}"):
        declare(price, **options)


def test_an_etag_is_for_queries() -> None:
    with pytest.raises(DeclarationError, match="^operation shop/nothing: etag is for queries"):
        Service("shop").mutation(name="nothing", etag=True)(lambda: None)


WRONG_HANDLERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a class": (Plain, {}, "shop/Plain: a handler must be a function, not the class Plain"),
    "a struct": (Item, {}, "shop/Item: a handler must be a function, not the class Item"),
    "a number": (5, {}, "shop/int: a handler must be a function, not int"),
    "a text": ("price", {}, "shop/str: a handler must be a function, not str"),
    "a lambda without a name": (lambda: 1, {}, "shop/<lambda>: a name consists of"),
    "a partial call without a name": (partial(price), {}, "shop/partial: a partial has no name"),
    "a generator": (generator, {}, "shop/generator: a query must be a function without `yield`"),
    "a partial generator": (partial(generator), {"name": "p"}, "shop/p: a query must be a function without `yield`"),
    "an object that generates": (Generating(), {"name": "p"}, "shop/p: a query must be a function without `yield`"),
    "an inline object that awaits": (Awaiting(), {"name": "p", "inline": True}, "shop/p: inline=True is for"),
}


@pytest.mark.parametrize("case", WRONG_HANDLERS)
def test_what_is_no_function_of_the_kind_is_refused(case: str) -> None:
    handler, options, message = WRONG_HANDLERS[case]
    with pytest.raises(DeclarationError, match=f"^operation {message}"):
        declare(handler, **options)


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


def test_a_name_that_is_declared_twice_is_refused() -> None:
    service = declare(price)
    service.query(name="price")(price_async)
    with pytest.raises(DeclarationError, match="shop/price"):
        Registry([service])


# -- errors --------------------------------------------------------------------------------------------------------


def test_every_code_of_the_protocol_is_reserved() -> None:
    own = {row.protocol_code for row in ERROR_TABLE if not issubclass(row.failure, AgentFailure)} - {""}
    assert own == RESERVED_CODES
    assert {"OVERLOADED", "UNAVAILABLE", "CANCELLED", "PARSE_ERROR", "INVALID_REQUEST", "NOT_FOUND"} <= RESERVED_CODES


WRONG_ERRORS: dict[str, dict[str, Any]] = {
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


# -- through the command line --------------------------------------------------------------------------------------

APPS = {
    "fact": ("class E(OperationError, code='E'):\n    c: complex\n@s.query(errors=[E])\ndef f() -> int: ...", "E.c"),
    "code": ("class E(OperationError, code='OVERLOADED'):\n    pass", "OVERLOADED"),
    "default": ("@s.query()\ndef f(n: int = 'one') -> int: ...", "shop/f: parameter 'n': its default"),
    "scope": ("@s.query(scopes=[' '])\ndef f() -> int: ...", "shop/f: scopes holds ' '"),
    "name": ("@s.query(name='')\ndef f() -> int: ...", "shop/: a name consists of"),
    "class": ("@s.query()\nclass F: ...", "shop/F: a handler must be a function"),
    "object": ("s.query()(5)", "shop/int: a handler must be a function"),
    "generator": ("@s.query()\ndef f():\n    yield 1", "shop/f: a query must be a function"),
    "annotation": ("@s.query()\ndef f(n: 'Nowhere') -> int: ...", "Nowhere"),
}


def written(folder: Path) -> list[str]:
    for name, (text, _) in APPS.items():
        (folder / f"wrong_{name}.py").write_text(
            f"from discreet import OperationError, Service\ns = Service('shop')\n{text}\n"
        )
    return [f"wrong_{name}.py:s" for name in APPS]


@pytest.mark.parametrize("name", APPS)
def test_an_app_with_a_wrong_declaration_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    with pytest.raises(AppError) as caught:
        load([f"{tmp_path}/wrong_{name}.py:s"])
    assert APPS[name][1] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_declarations_end_the_start_with_one_line_and_status_2(tmp_path: Path) -> None:
    apps = [f"./{app}" for app in written(tmp_path)]
    ended = subprocess.run(
        [*DISCREET, "serve", *apps, "--log-level", "info"],
        cwd=tmp_path,
        env=environment(),
        input=b"",
        capture_output=True,
        timeout=30,
        check=False,
    )
    message = ended.stderr.decode()
    assert (ended.returncode, ended.stdout, message.count("\n")) == (2, b"", 1)
    assert "Traceback" not in message
    assert [expected for _, expected in APPS.values() if expected not in message] == []
