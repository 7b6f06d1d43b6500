"""A name that another library has is told with what stands here for it."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service
from discreet.daemon.documents import Text, TextDocument
from discreet.daemon.operations import context as contexts
from discreet.daemon.operations import service as services


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
