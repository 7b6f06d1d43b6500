"""Requests as they leave: whatever the values, a strict reader finds exactly these, and the path has the shape of its template."""

from __future__ import annotations

import json
from base64 import b64encode
from email import message_from_bytes
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import FailureError, InvalidParams
from discreet.imports.http.model import Body, Param, Serialization
from discreet.imports.http.request import (
    Authorization,
    HttpRequest,
    Unwritable,
    build_request,
    cookie_pairs,
    header_text,
    path_text,
    query_pairs,
    scalar,
)
from support.raw_upstream import HttpOperation, operation

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
SLASHED = st.text(st.sampled_from("./\\%25FfaA?#;=&,|+ é\0\n"), max_size=12)
VALUE = TEXT | SLASHED
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | VALUE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALUE, inner, max_size=3),
    max_leaves=6,
)


def built(described: HttpOperation, arguments: dict[str, Any], **options: Any) -> HttpRequest:
    options = {"base_path": "/v1", "authorization": Authorization(), "headers": {"accept": "*/*"}, **options}
    return build_request(described, arguments, **options)


def arrived(request: HttpRequest) -> h11.Request:
    """The request as a strict parser reads it."""
    client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
    sent = client.send(
        h11.Request(method=request.method, target=request.target, headers=[("host", "h"), *request.headers])
    )
    server.receive_data(sent or b"")
    event = server.next_event()
    assert isinstance(event, h11.Request)
    assert server.trailing_data[0] == b""
    return event


def pairs(target: bytes) -> list[tuple[str, str]]:
    query = target.decode().partition("?")[2]
    return [
        (unquote(name, errors="strict"), unquote(value, errors="strict"))
        for name, _, value in (each.partition("=") for each in query.split("&") if each)
    ]


def param(
    name: str, location: Any, style: Any = "form", explode: bool = False, *, content_type: str = "", **fields: Any
) -> Param:
    return Param(
        name,
        fields.pop("wire_name", name),
        location,
        Serialization(style, explode, content_type=content_type),
        **fields,
    )


PATHED = operation(
    path="/a/{x}/b{y}.txt/{z}/c",
    params=(param("x", "path", "simple"), param("y", "path", "simple"), param("z", "path", "matrix")),
)


@given(VALUE, VALUE, VALUE)
def test_no_value_changes_the_shape_of_the_path(x: str, y: str, z: str) -> None:
    try:
        target = arrived(built(PATHED, {"x": x, "y": y, "z": z})).target
    except FailureError as exc:
        assert isinstance(exc.failure, InvalidParams) and exc.failure.param in {"x", "y", "z"}
        assert not x or any(
            piece in (".", "..") for text in (x, f"b{y}.txt", z) for piece in text.replace("\\", "/").split("/")
        )
        return
    assert b"?" not in target and b"#" not in target
    segments = [unquote_to_bytes(segment).decode() for segment in target.split(b"/")]
    assert segments == ["", "v1", "a", x, f"b{y}.txt", f";z={z}" if z else ";z", "c"]


@pytest.mark.parametrize("value", ["", ".", "..", "../a", "a/..", "a\\..\\b", "a/./b"])
def test_a_segment_that_servers_resolve_is_refused_and_its_param_named(value: str) -> None:
    with pytest.raises(FailureError) as caught:
        built(operation(path="/a/{x}", params=(param("x", "path", "simple"),)), {"x": value})
    assert isinstance(caught.value.failure, InvalidParams) and caught.value.failure.param == "x"


@given(VALUE, st.lists(VALUE, max_size=4), st.dictionaries(VALUE, VALUE, max_size=4))
def test_queries_arrive_as_they_were_given(text: str, items: list[str], members: dict[str, str]) -> None:
    described = operation(
        params=(
            param("t", "query", "form", True),
            param("i", "query", "form", True, wire_name="i[]&="),
            param("m", "query", "deepObject", True),
            param("j", "query", content_type="application/json"),
        )
    )
    target = arrived(built(described, {"t": text, "i": items, "m": members, "j": members})).target
    assert pairs(target) == [
        ("t", text),
        *(("i[]&=", item) for item in items),
        *((f"m[{key}]", value) for key, value in members.items()),
        ("j", json.dumps(members, separators=(",", ":"), ensure_ascii=False)),
    ]


@given(st.lists(VALUE, min_size=1, max_size=4))
def test_items_that_are_not_exploded_arrive_as_they_were_given(items: list[str]) -> None:
    for style, between in (("form", ","), ("spaceDelimited", "%20"), ("pipeDelimited", "%7C")):
        described = operation(params=(param("i", "query", style),))
        try:
            target = arrived(built(described, {"i": items})).target.decode()
        except FailureError:
            assert any(unquote(between) in item for item in items) and style != "form"
            continue
        name, _, value = target.partition("?")[2].partition("=")
        assert (name, [unquote(item) for item in value.split(between)]) == ("i", items)


@given(VALUE, VALUE, VALUE)
def test_headers_and_cookies_arrive_as_they_were_given_or_are_refused(header: str, cookie: str, form: str) -> None:
    described = operation(
        params=(param("h", "header", "simple", wire_name="X-H"), param("c", "cookie", "cookie"), param("f", "cookie"))
    )
    arguments = {"h": header, "c": cookie, "f": form}
    try:
        request = arrived(built(described, arguments))
    except FailureError as exc:
        assert isinstance(exc.failure, InvalidParams) and exc.failure.param in {"h", "c"}
        return
    headers = {name.decode(): value.decode() for name, value in request.headers}
    assert headers.get("x-h") == header
    sent = dict(each.split("=", 1) for each in headers["cookie"].split("; "))
    assert (sent["c"], unquote(sent["f"])) == (cookie, form)


@given(JSON)
def test_whatever_json_is_given_the_request_is_http_or_names_the_param(value: Any) -> None:
    for location, styles in {
        "path": ("simple", "label", "matrix"),
        "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
        "header": ("simple",),
        "cookie": ("form", "cookie"),
    }.items():
        for style in styles:
            for explode in (False, True):
                described = operation(path="/a/{p}/b", params=(param("p", location, style, explode),))
                try:
                    target = arrived(built(described, {"p": value})).target
                except FailureError as exc:
                    assert isinstance(exc.failure, InvalidParams) and exc.failure.param == "p"
                    continue
                assert target.partition(b"?")[0].count(b"/") == 4


@pytest.mark.parametrize("name", ["Host", "Content-Length", "transfer-encoding", "Connection", "a b", "a:"])
def test_headers_of_the_connection_are_nobodys_params(name: str) -> None:
    described = operation(params=(param("h", "header", "simple", wire_name=name),))
    with pytest.raises(FailureError) as caught:
        built(described, {"h": "1"})
    assert isinstance(caught.value.failure, InvalidParams) and caught.value.failure.param == "h"


def test_what_is_null_or_absent_is_not_sent() -> None:
    described = operation(params=tuple(param(each, each, "simple") for each in ("query", "header", "cookie")))
    for arguments in ({}, {"query": None, "header": None, "cookie": None}, {"query": [], "header": [], "cookie": {}}):
        request = built(described, arguments)
        assert (request.target, request.headers) == ("/v1/x", (("accept", "*/*"),))


def test_the_whole_query_can_be_one_param() -> None:
    form = operation(params=(param("q", "querystring", content_type="application/x-www-form-urlencoded"),))
    assert built(form, {"q": {"a": ["1&", 2], "b": True}}).target == "/v1/x?a=1%26&a=2&b=true"
    text = operation(params=(param("q", "querystring", content_type="application/json"),))
    assert built(text, {"q": {"a": 1}}).target == "/v1/x?%7B%22a%22%3A1%7D"


def test_a_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(FailureError):
        built(operation(params=(param("q", "query"),)), {"q": "x" * 40_000})


# -- bodies ------------------------------------------------------------------------------------------------------


def body_of(body: Body, value: Any, method: str = "POST") -> tuple[str, bytes]:
    request = built(operation(method, body=body), {"body": value})
    headers = dict(request.headers)
    assert headers["content-length"] == str(len(request.body))
    return headers["content-type"], request.body


@given(st.dictionaries(VALUE, VALUE | st.lists(VALUE, max_size=3), max_size=4))
def test_forms_arrive_as_they_were_given(value: dict[str, Any]) -> None:
    content_type, data = body_of(Body("application/x-www-form-urlencoded", "form"), value)
    assert content_type == "application/x-www-form-urlencoded"
    assert pairs(b"?" + data) == [
        (name, item) for name, items in value.items() for item in (items if isinstance(items, list) else [items])
    ]


def test_parts_of_a_form_are_written_as_the_document_says() -> None:
    parts = {
        "l": Serialization("spaceDelimited"),
        "j": Serialization(content_type="application/json"),
        "d": Serialization("deepObject", True),
    }
    _, data = body_of(
        Body("application/x-www-form-urlencoded", "form", parts=parts),
        {"l": ["a", "b"], "j": ["1", 2], "d": {"k": "v"}, "o": {"x": 1}, "n": None, "b": True},
    )
    assert data == b"l=a%20b&j=%221%22&j=2&d%5Bk%5D=v&o=%7B%22x%22%3A1%7D&b=true"


@given(st.dictionaries(VALUE, VALUE, max_size=4))
def test_parts_of_a_multipart_body_are_as_many_as_its_members(value: dict[str, str]) -> None:
    content_type, data = body_of(Body("multipart/form-data", "multipart"), value)
    boundary = content_type.partition("boundary=")[2].encode()
    *parts, end = data.split(b"--" + boundary)[1:] if value else [data.split(b"--" + boundary)[1]]
    assert end == b"--\r\n"
    assert [part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n").decode() for part in parts] == list(value.values())


def test_parts_have_their_types_and_bytes_come_from_base64() -> None:
    parts = {
        "file": Serialization(content_type="image/png, image/jpeg"),
        "xml": Serialization(content_type="application/xml"),
        "files": Serialization(content_type="application/octet-stream"),
        "meta": Serialization(content_type="application/json"),
    }
    value = {
        "file": b64encode(b"\x89PNG\r\n--").decode(),
        "xml": "<a/>",
        "files": [b64encode(b"1").decode(), b64encode(b"2").decode()],
        "meta": [{"a": 1}, "x"],
        "plain": ["x", 2],
        "complex": {"k": None},
        "none": None,
    }
    content_type, data = body_of(Body("multipart/form-data", "multipart", parts=parts), value)
    message = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + data)
    found = [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get("content-type"),
            part.get_filename(),
            part.get_payload(decode=True),
        )
        for part in message.get_payload()
        if not isinstance(part, str)
    ]
    assert found == [
        ("file", "image/png", "file", b"\x89PNG\r\n--"),
        ("xml", "application/xml", None, b"<a/>"),
        ("files", "application/octet-stream", "files", b"1"),
        ("files", "application/octet-stream", "files", b"2"),
        ("meta", "application/json", None, b'{"a":1}'),
        ("meta", "application/json", None, b'"x"'),
        ("plain", None, None, b"x"),
        ("plain", None, None, b"2"),
        ("complex", "application/json", None, b'{"k":null}'),
    ]


def test_a_name_can_not_end_the_head_of_its_part() -> None:
    _, data = body_of(Body("multipart/form-data", "multipart"), {'a"\r\nX: y\r\n\r\n': "v"})
    assert data.count(b"\r\n\r\n") == 1 and b"X: y" in data.split(b"\r\n")[1]


def test_json_texts_and_bytes_are_sent_as_they_are() -> None:
    digits = '{"a":[1.0,1180591620717411303424,null,"é"]}'
    json_body = Body("application/json", "json")
    assert body_of(json_body, json.loads(digits)) == ("application/json", digits.encode())
    assert body_of(Body("text/plain", "text"), "é") == ("text/plain; charset=utf-8", "é".encode())
    assert body_of(Body("application/xml", "text"), "<a/>") == ("application/xml", b"<a/>")
    assert body_of(Body("*/*", "binary"), b64encode(bytes(range(256))).decode()) == (
        "application/octet-stream",
        bytes(range(256)),
    )


@pytest.mark.parametrize(
    ("body", "value", "named"),
    [
        (Body("image/png", "binary"), "no base64!", "body"),
        (Body("image/png", "binary"), 7, "body"),
        (Body("text/plain", "text"), {}, "body"),
        (Body("multipart/form-data", "multipart"), "x", "body"),
        (Body("a/b", "form"), [], "body"),
        (
            Body("multipart/form-data", "multipart", parts={"f": Serialization(content_type="image/png")}),
            {"f": "?"},
            "body.f",
        ),
    ],
)
def test_what_the_body_can_not_hold_is_named(body: Body, value: Any, named: str) -> None:
    with pytest.raises(FailureError) as caught:
        body_of(body, value)
    assert isinstance(caught.value.failure, InvalidParams) and caught.value.failure.param == named


def test_without_a_body_only_methods_that_could_have_one_say_so() -> None:
    body = Body("application/json", "json")
    assert ("content-length", "0") in built(operation("POST", body=body), {}).headers
    assert not any(name == "content-length" for name, _ in built(operation("DELETE", body=body), {}).headers)
    assert dict(built(operation("DELETE", body=body), {"body": 1}).headers)["content-length"] == "1"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/things/{id}#x-amz-target", "/v1/things/a%23b?q=x%20y"),
        ("/things?fixed=1&v=2#second", "/v1/things?fixed=1&v=2&q=x%20y"),
        ("#only", "/v1/?q=x%20y"),
    ],
)
def test_a_fixed_query_of_the_path_is_kept_before_the_params_and_its_fragment_is_not_sent(
    path: str, target: str
) -> None:
    described = operation(path=path, params=(param("id", "path", "simple"), param("q", "query")))
    assert built(described, {"id": "a#b", "q": "x y"}).target == target


# -- the table "Style Examples" of the OpenAPI specification, and what no style can express --

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}

PATHS: list[tuple[str, bool, Any, str]] = [
    ("matrix", False, None, ";color"),
    ("matrix", False, "blue", ";color=blue"),
    ("matrix", False, ARRAY, ";color=blue,black,brown"),
    ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
    ("matrix", True, None, ";color"),
    ("matrix", True, "blue", ";color=blue"),
    ("matrix", True, ARRAY, ";color=blue;color=black;color=brown"),
    ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
    ("matrix", True, [], ";color"),
    ("label", False, None, "."),
    ("label", False, "blue", ".blue"),
    ("label", False, ARRAY, ".blue,black,brown"),
    ("label", False, OBJECT, ".R,100,G,200,B,150"),
    ("label", True, "blue", ".blue"),
    ("label", True, ARRAY, ".blue.black.brown"),
    ("label", True, OBJECT, ".R=100.G=200.B=150"),
    ("simple", False, "blue", "blue"),
    ("simple", False, ARRAY, "blue,black,brown"),
    ("simple", False, OBJECT, "R,100,G,200,B,150"),
    ("simple", True, ARRAY, "blue,black,brown"),
    ("simple", True, OBJECT, "R=100,G=200,B=150"),
    ("simple", False, "a/b?c#d", "a%2Fb%3Fc%23d"),
    ("simple", False, ["a,b", "c"], "a%2Cb,c"),
]

QUERIES: list[tuple[str, bool, Any, str]] = [
    ("form", False, "", "color="),
    ("form", False, "blue", "color=blue"),
    ("form", False, ARRAY, "color=blue,black,brown"),
    ("form", False, OBJECT, "color=R,100,G,200,B,150"),
    ("form", True, "blue", "color=blue"),
    ("form", True, ARRAY, "color=blue&color=black&color=brown"),
    ("form", True, OBJECT, "R=100&G=200&B=150"),
    ("form", True, None, ""),
    ("form", True, [], ""),
    ("form", False, {}, ""),
    ("form", True, ["a", None, "b"], "color=a&color=b"),
    ("form", False, ["a,b", "c&d"], "color=a%2Cb,c%26d"),
    ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    ("spaceDelimited", True, ARRAY, "color=blue&color=black&color=brown"),
    ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
    ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
    ("deepObject", True, {"a": {"b": [1, True]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=true"),
]

COOKIES: list[tuple[str, bool, Any, str]] = [
    ("cookie", False, "blue", "color=blue"),
    ("cookie", False, ARRAY, "color=blue,black,brown"),
    ("cookie", False, OBJECT, "color=R,100,G,200,B,150"),
    ("cookie", True, ARRAY, "color=blue; color=black; color=brown"),
    ("cookie", True, OBJECT, "R=100; G=200; B=150"),
    ("form", True, "a b;c", "color=a%20b%3Bc"),
]


@pytest.mark.parametrize(("style", "explode", "value", "text"), PATHS)
def test_paths_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert path_text("color", value, Serialization(style, explode)) == text


@pytest.mark.parametrize(("style", "explode", "value", "text"), QUERIES)
def test_queries_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert "&".join(query_pairs("color", value, Serialization(style, explode), required=False)) == text


@pytest.mark.parametrize(("style", "explode", "value", "text"), COOKIES)
def test_cookies_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert "; ".join(cookie_pairs("color", value, Serialization(style, explode))) == text


@pytest.mark.parametrize(
    ("explode", "value", "text"),
    [
        (False, "blue", "blue"),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (False, "a, b=c", "a, b=c"),
    ],
)
def test_headers_are_written_as_the_specification_shows(explode: bool, value: Any, text: str) -> None:
    assert header_text(value, explode=explode) == text


def test_a_required_value_that_is_undefined_leaves_its_name() -> None:
    assert query_pairs("color", [], Serialization("form", True), required=True) == ["color="]


def test_reserved_characters_stay_where_they_are_allowed_but_for_those_that_end_a_value() -> None:
    how = Serialization("form", False, allow_reserved=True)
    assert query_pairs("u", "http://a/?b=c&d#e+f%41%zz", how, required=False) == ["u=http://a/?b=c%26d%23e%2Bf%41%25zz"]
    assert query_pairs("u", ["a,b", "c:d"], how, required=False) == ["u=a%2Cb,c:d"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (2**80, str(2**80)),
        ({"a": [1]}, '{"a":[1]}'),
        (None, "null"),
    ],
)
def test_scalars_are_written_as_json_writes_them(value: Any, text: str) -> None:
    assert scalar(value) == text


@pytest.mark.parametrize(
    "value", ["a\r\nb", "a\nb", "\0", "é", " a", "a ", "\x7f", ["a,b"], [""], ["a\n"], {"a": "\r"}]
)
def test_what_a_header_can_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(Unwritable):
        header_text(value, explode=False)


@pytest.mark.parametrize("value", ["a;b", "a b", "a,b", "a\r\n", '"', "\\", "é"])
def test_what_a_cookie_can_not_hold_is_refused(value: str) -> None:
    for wrapped in (value, [value], {"k": value}):
        for explode in (False, True):
            with pytest.raises(Unwritable):
                cookie_pairs("c", wrapped, Serialization("cookie", explode))


@pytest.mark.parametrize(
    ("style", "value"), [("spaceDelimited", ["a b"]), ("pipeDelimited", ["a|b"]), ("pipeDelimited", {"|": 1})]
)
def test_a_value_with_its_delimiter_in_it_is_refused(style: Any, value: Any) -> None:
    with pytest.raises(Unwritable):
        query_pairs("c", value, Serialization(style, False), required=False)
