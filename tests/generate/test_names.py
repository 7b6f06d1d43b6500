"""Names, texts and types that are hard to carry over into a language."""

from __future__ import annotations

import ast
import keyword
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.generate import python_client, typescript_client
from discreet.generate.text import constant_name, error_name, member_name, type_name
from discreet.schemas.documents import ErrorSchema, OperationSchema

KEYWORDS = frozenset(keyword.kwlist)


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("path", "path"),
        ("mediaType", "mediaType"),
        ("größe", "größe"),
        ("from", "from_"),
        ("a-b", "a_b"),
        ("_id", "id"),
        ("__class__", "class__"),
        ("3d", "n3d"),
        ("ﬁle", "le"),
        ("", "value"),
        ("$", "value"),
    ],
)
def test_members_keep_their_names_where_they_can(wire: str, name: str) -> None:
    assert member_name(wire, KEYWORDS) == name


@given(st.text(max_size=8))
def test_any_text_makes_names(wire: str) -> None:
    member = member_name(wire, KEYWORDS)
    assert member.isidentifier() and not keyword.iskeyword(member) and not member.startswith("_")
    for name in (type_name(wire), constant_name(wire), error_name(wire)):
        assert name.isidentifier() and name[0].isupper()


def operation(name: str, schema: dict[str, Any], *, text: str = "", **more: Any) -> OperationSchema:
    """An operation of any server, whose params and result are of one type."""
    return OperationSchema(
        name=name,
        namespace=name.rpartition("/")[0],
        kind="query",
        visibility="external",
        description=text,
        input_schema={"type": "object", "properties": {"value": schema}},
        output_schema=schema,
        error_schemas=more.get("errors", ()),
    )


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\"'\\*/`\n\t "), max_size=120)


@given(TEXTS, TEXTS)
@example("TimeText", "TimeText")  # a name that the TypeScript module declares when a type needs it
@example("", "str")
@settings(max_examples=60)
def test_no_text_of_a_server_can_leave_the_place_that_it_has(text: str, word: str) -> None:
    error = ErrorSchema("BAD", text, text, {"properties": {"a": {"description": text}}}, 500, "INTERNAL", False)
    hostile = operation("a/b", {"enum": [word]}, text=text, errors=(error,))
    hostile.input_schema["properties"][word] = {"type": "string", "description": text, "default": word}
    plain = operation("a/b", {"enum": ["x" * len(word)]}, text="Plain.", errors=(error,))
    tree, expected = ast.parse(python_client([hostile])), ast.parse(python_client([plain]))
    # A member that is named like a builtin type hides it, so the module imports `builtins` as well.
    statements = [type(node) for node in tree.body if ast.unparse(node) != "import builtins"]
    assert statements == [type(node) for node in expected.body]
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {word, text} <= literals
    outside = _without_comments_and_strings(typescript_client([hostile]))
    assert outside.count("export ") == _without_comments_and_strings(typescript_client([plain])).count("export ")
    assert outside.isascii()


def _without_comments_and_strings(text: str) -> str:
    """What a compiler sees as code. Quotes and comments of the fixed part are balanced."""
    kept, place = [], 0
    while place < len(text):
        if text.startswith("/*", place):
            place = text.index("*/", place) + 2
        elif text.startswith("//", place):
            place = text.index("\n", place)
        elif text[place] in "\"'`":
            end = place + 1
            while text[end] != text[place]:
                end += 2 if text[end] == "\\" else 1
            place = end + 1
        else:
            kept.append(text[place])
            place += 1
    return "".join(kept)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"]},
        {"oneOf": [{"type": "string"}, {"type": "string"}]},
        {"const": 3},
        {"enum": [1.5, 2]},
        {"enum": []},
        {"allOf": [{"type": "string"}]},
        {"$ref": "https://elsewhere.example/schema"},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "properties": {"inner": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
        {"type": "nonsense"},
        {"title": "Custom"},
    ],
)
def test_schemas_of_other_servers_are_taken_as_far_as_they_are_understood(schema: dict[str, Any]) -> None:
    names: dict[str, Any] = {"__name__": "other_client"}
    exec(compile(python_client([operation("a/b", schema)]), "other_client.py", "exec"), names)
    assert "AClient" in names
    assert "export class AClient" in typescript_client([operation("a/b", schema)])


def test_one_type_in_two_operations_is_declared_once_and_another_of_its_name_gets_a_number() -> None:
    one = {"title": "Same", "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    other = {"title": "Same", "type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    nested = {"type": "array", "items": {"$ref": "#/$defs/Same"}, "$defs": {"Same": one}}
    text = typescript_client([OperationSchema("a/a", "a", "query", "external", "", {}, one, ()),
                       OperationSchema("a/b", "a", "query", "external", "", {}, nested, ()),
                       OperationSchema("a/c", "a", "query", "external", "", {}, other, ())])  # fmt: skip
    assert text.count("export interface Same") == 2
    assert "Promise<readonly Same[]>" in text
    assert "Promise<Same2>" in text
