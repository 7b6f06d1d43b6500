"""Wraps functions for `async with`. A forgotten `async with` gets an error that says what to write."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar, final

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


def async_block(function: Callable[P, AsyncGenerator[T_co]]) -> Callable[P, AsyncBlock[T_co]]:
    """Decorate a function as `asynccontextmanager` does; without `async with` the result says what to write."""
    make = asynccontextmanager(function)

    @wraps(function)
    def begin(*args: P.args, **kwargs: P.kwargs) -> AsyncBlock[T_co]:
        return AsyncBlock(make(*args, **kwargs), function.__name__)

    return begin


@final
class AsyncBlock(AbstractAsyncContextManager[T_co, bool | None], Generic[T_co]):
    """A block for `async with`, which gives the value."""

    def __init__(self, block: AbstractAsyncContextManager[T_co, bool | None], name: str) -> None:
        self._block = block
        self._name = name

    async def __aenter__(self) -> T_co:
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, exc, traceback)

    if not TYPE_CHECKING:  # type checkers report a missing `async with` by themselves

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # such as what `copy` and debuggers look for
                raise AttributeError(name)
            raise AttributeError(f"not begun yet: {self._usage()}, and use `it.{name}` in the block")

        def __await__(self) -> NoReturn:
            raise TypeError(f"not to be awaited: {self._usage()}")

        def __enter__(self) -> NoReturn:
            raise TypeError(f"not for a plain `with`: {self._usage()}")

        def __exit__(self, *_: object) -> None:
            """Never called: `__enter__` raises."""

        def _usage(self) -> str:
            return f"write `async with {self._name}(…) as it:`"
