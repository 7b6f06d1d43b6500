"""Wraps coroutines whose results people test for truth: a forgotten `await` must not count as true."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, final

P = ParamSpec("P")
T = TypeVar("T")

MARK: Final = "__refuses_bool__"


@final
class Unawaited(Coroutine[Any, Any, T]):
    """A coroutine that refuses to be true or false. Else it is like any other."""

    __slots__ = ("_coroutine", "_name")

    def __init__(self, coroutine: Coroutine[Any, Any, T], name: str) -> None:
        self._coroutine = coroutine
        self._name = name

    def __bool__(self) -> NoReturn:
        self._coroutine.close()
        raise TypeError(f"{self._name}(…) is a coroutine, neither true nor false: write `await {self._name}(…)`")

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        return self._coroutine.send(value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> Any:
        return self._coroutine.throw(kind if isinstance(kind, BaseException) else kind(value))

    def close(self) -> None:
        self._coroutine.close()


def refuses_bool(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate an `async def` whose result is one that people write behind `if`."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return Unawaited(method(*args, **kwargs), method.__name__)

    setattr(call, MARK, True)
    return call
