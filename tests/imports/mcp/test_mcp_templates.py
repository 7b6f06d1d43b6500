"""URI templates, by the examples of RFC 6570."""

from __future__ import annotations

import pytest

from discreet.imports.mcp.reading import expand, variables_of

VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "y": "768", "empty": ""}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("X{#hello}", "X#Hello%20World!"),
        ("map?{x,y}", "map?1024,768"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("file:///{path}{?undefined}", "file:///%2Ffoo%2Fbar"),
    ],
)
def test_templates_are_expanded_as_the_rfc_says(template: str, uri: str) -> None:
    assert expand(template, VALUES) == uri


def test_the_variables_come_in_their_order() -> None:
    assert variables_of("a://{b}/{+c}{?d,b}") == ("b", "c", "d")


@pytest.mark.parametrize("template", ["a://{", "a://{}", "a://{b", "a://{b*}", "a://{b:3}", "a://}{b}"])
def test_what_is_no_template_of_these_levels_has_no_variables(template: str) -> None:
    assert variables_of(template) is None
