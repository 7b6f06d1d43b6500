"""YAML is read as YAML 1.2 has it, bounded, and JSON cannot hold what it doesn't."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.openapi.parsing import MAX_DEPTH, DocumentError, Path, parse

pytestmark = pytest.mark.needs("yaml")


def parsed(text: str | bytes) -> Any:
    return parse(text if isinstance(text, bytes) else text.encode(), lambda path, reason: None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: no", {"on": "no"}),
        ("y: yes", {"y": "yes"}),
        ("200: ok", {"200": "ok"}),
        ("1.0: ok", {"1.0": "ok"}),
        ("true: null: x", None),
        ("null: x", {"null": "x"}),
        ("a: 2001-12-14", {"a": "2001-12-14"}),
        ("a: 2001-12-14T21:59:43Z", {"a": "2001-12-14T21:59:43Z"}),
        ("a: 12:30:00", {"a": "12:30:00"}),
        ("a: 010", {"a": 10}),
        ("a: 0o10", {"a": 8}),
        ("a: 0xff", {"a": 255}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: -1.5e3", {"a": -1500.0}),
        ("a: .5", {"a": 0.5}),
        ("a: 1e999", {"a": "1e999"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: .NaN", {"a": ".NaN"}),
        ("a: 3.1.0", {"a": "3.1.0"}),
        ("a: -", None),
        ("a: +", {"a": "+"}),
        ("a: .", {"a": "."}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: TRUE", {"a": True}),
        ("a: 'true'", {"a": "true"}),
        ("a: !!str 1", {"a": "1"}),
        ("a: !!int '1'", {"a": 1}),
        ("a: !mine 1", {"a": "1"}),
        ("a: !!binary aGk=", {"a": "aGk="}),
        ("a: 99999999999999999999", {"a": 1e20}),
        (f"a: {'9' * 5000}", {"a": "9" * 5000}),
        ("- &x [1]\n- *x", [[1], [1]]),
        ("&k a: 1\nb: {*k : 2}", {"a": 1, "b": {"a": 2}}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}}),
        ("b: {<<: [{p: 1}, {p: 2, q: 3}]}", {"b": {"p": 1, "q": 3}}),
        ("'<<': 1", {"<<": 1}),
        ("", None),
        ("# nothing", None),
        ("--- 1\n--- 2", None),
        ("a: [", None),
        ("a: *none", None),
        ("a: &a [*a]", None),
        ("? [1]\n: 2", None),
        ("? {a: 1}\n: 2", None),
        ("a: {<<: 1}\nb: {<<: [1]}", None),
        ("a: \x01", None),
        (b"a: \xff\xfe", None),
    ],
)
def test_a_text_is_its_value_or_a_fault(text: str | bytes, value: Any) -> None:
    if value is None:
        try:
            assert parsed(text) is None
        except DocumentError as exc:
            assert "\n" not in str(exc)
    else:
        assert parsed(text) == value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["a: ü", '{"a": "ü"}'])
def test_a_text_with_a_byte_order_mark_is_read(encoding: str, text: str) -> None:
    assert parsed(text.encode(encoding)) == {"a": "ü"}


def test_a_key_that_occurs_twice_is_told_with_its_place() -> None:
    told: list[tuple[Path, str]] = []
    value = parse(b"a:\n- {}\n- b: {c: 1, c: 2}\n", lambda path, reason: told.append((path, reason)))
    assert value == {"a": [{}, {"b": {"c": 2}}]}
    assert [path for path, _ in told] == [((((None, "a"), "1"), "b"), "c")]


def test_aliases_that_come_to_too_much_are_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(DocumentError, match="aliases"):
        parsed("\n".join(lines))


def test_merged_keys_that_come_to_too_much_are_refused() -> None:
    keys = ",".join(f"k{n}: 1" for n in range(2000))
    with pytest.raises(DocumentError, match="aliases"):
        parsed(f"a: &a {{{keys}}}\nb:\n" + "- {<<: *a}\n" * 2000)


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[", "- "])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 1500, 100_000])
def test_deep_nesting_is_one_line(opening: str, depth: int) -> None:
    closing = {"[": "]", "{": "}"}
    text = opening * depth + "1" + "".join(closing.get(char, "") for char in reversed(opening)) * depth
    with pytest.raises(DocumentError) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)


def test_what_is_nested_as_deeply_as_allowed_is_read() -> None:
    assert parsed("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_yaml_of_any_json_is_that_json(value: Any) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes strings: PyYAML goes by YAML 1.1, where `0E0` is none of the numbers."""

    Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
    assert parsed(yaml.dump({"x": value}, Dumper=Dumper)) == {"x": value}


@given(st.binary(max_size=60) | st.text("[]{}:,-&*!|>#%@`'\"? \n\tab1", max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_a_fault(text: bytes) -> None:
    try:
        parsed(text)
    except DocumentError as exc:
        assert "\n" not in str(exc)
