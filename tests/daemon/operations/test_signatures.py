"""Which signatures can be no input, and are refused at the start."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from discreet.daemon.operations.context import Context
from discreet.daemon.operations.params import build_input

if TYPE_CHECKING:
    pass


def no_annotation(ctx: Context, path) -> None: ...  # type: ignore[no-untyped-def]


def no_annotation_of_rest(**params) -> None: ...  # type: ignore[no-untyped-def]


def positional_only(path: str, /) -> None: ...


def any_number(*paths: str) -> None: ...


def two_underscores(__path: str) -> None: ...


def nowhere(path: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def no_type(path: "1 +") -> None: ...  # type: ignore[valid-type]


def ambiguous(path: list[int] | set[int]) -> None: ...


def context_by_name(*, ctx: Context, path: str) -> None: ...


@pytest.mark.parametrize(
    ("func", "named"),
    [
        (no_annotation, "'path' has no annotation"),
        (no_annotation_of_rest, "'params' has no annotation"),
        (positional_only, "'path' takes the whole params"),
        (any_number, "'paths' takes any number"),
        (two_underscores, "'__path' can't begin"),
        (nowhere, "'path' has an annotation that can't be decoded"),
        (no_type, "'path' has an annotation that can't be decoded"),
        (ambiguous, "'path' has an annotation that can't be decoded"),
        (context_by_name, "the context must be the first positional"),
    ],
)
def test_a_signature_that_can_be_no_input_is_refused_at_the_start(func: Callable[..., Any], named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        build_input(func)
    assert str(caught.value).startswith(func.__qualname__ + ": ")
    assert "\n" not in str(caught.value)
