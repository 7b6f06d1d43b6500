"""Names, filters, servers and security of a whole document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.daemon.operations.spec import check_name
from discreet.imports.arguments import Selection
from discreet.imports.http.model import SecurityScheme
from discreet.imports.model import ImportFailed
from discreet.imports.openapi.loading import load_document
from discreet.imports.openapi.parsing import DocumentError
from discreet.imports.openapi.reader import read_openapi
from support.openapi_documents import OK, document, only, read, reasons, with_operation


def get(operation_id: str | None = None, **members: Any) -> dict[str, Any]:
    return {"responses": OK, **({} if operation_id is None else {"operationId": operation_id}), **members}


@pytest.mark.parametrize(
    ("operation_id", "name"),
    [
        ("listPets", "listPets"),
        ("actions/list-runs", "actions/list-runs"),
        ("pets.list", "pets.list"),
        ("List all pets!", "List_all_pets_"),
        ("2fa", "_2fa"),
        ("/a//b/", "a/b"),
        ("größe", "gr_e"),
        ("", "get_pets_id_.json"),
        (None, "get_pets_id_.json"),
    ],
)
def test_an_operation_is_named_by_its_id_or_by_method_and_path(operation_id: str | None, name: str) -> None:
    params = [{"name": "id", "in": "path", "schema": {}}]
    imported = read(document({"/pets/{id}.json": {"parameters": params, "get": get(operation_id)}}))
    assert imported.operations[0].name == name
    assert list(reasons(imported).values()) == ([] if operation_id == name else ["renamed"])


def test_a_name_that_several_have_stays_with_the_one_whose_own_it_is() -> None:
    imported = read(
        document({"/a": {"get": get("a b"), "put": get("a b")}, "/b": {"get": get("a_b"), "put": get("a_b")}})
    )
    assert [each.name for each in imported.operations] == ["a_b_3", "a_b_4", "a_b", "a_b_2"]
    assert len(imported.notes) == 3


@given(st.lists(st.text(max_size=6), max_size=8))
def test_names_can_be_names_and_no_two_are_the_same(ids: list[str]) -> None:
    imported = read(document({f"/{at}": {"get": get(each)} for at, each in enumerate(ids)}))
    names = [each.name for each in imported.operations]
    assert len(set(names)) == len(ids)
    for name in names:
        check_name(name)


@pytest.mark.parametrize(
    "rename", [{"none": "x"}, {"a": "b"}, {"a": "a b"}, {"a": "x", "b": "x"}, {"a": ""}, {"twice": "x"}]
)
def test_a_wrong_new_name_is_one_line(rename: dict[str, str]) -> None:
    paths = {"/a": {"get": get("a"), "put": get("b"), "post": get("twice"), "delete": get("twice")}}
    with pytest.raises(ImportFailed, match="^rename: "):
        read(document(paths), rename=rename)


PATHS = {
    "/pets": {"get": get("listPets", tags=["pets"]), "post": get("addPet", tags=["pets", "admin"])},
    "/users/{id}": {
        "parameters": [{"name": "id", "in": "path", "schema": {}}],
        "get": get("getUser", tags=["users"]),
        "delete": get("deleteUser", tags=["admin"]),
    },
}


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(), ["listPets", "addPet", "getUser", "deleteUser"]),
        (Selection(tags=["pets"]), ["listPets", "addPet"]),
        (Selection(tags=["pets", "users"], methods=["get"]), ["listPets", "getUser"]),
        (Selection(paths=["/users/*"]), ["getUser", "deleteUser"]),
        (Selection(operation_ids=["*Pet*"]), ["listPets", "addPet"]),
        (Selection(include=["get*", "list*"]), ["listPets", "getUser"]),
        (Selection(tags=["admin"], exclude=["delete*"]), ["addPet"]),
    ],
)
def test_filters_select_operations_and_others_are_not_read(selection: Selection, names: list[str]) -> None:
    broken = {"/broken": {"get": {"operationId": "broken", "responses": 1}}} if selection != Selection() else {}
    found = read(document({**PATHS, **broken}), select=selection)
    assert ([each.name for each in found.operations], found.notes) == (names, ())


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(include=["listPets", "nope_*"]), "include: no operation is called nope_*"),
        (Selection(include=["listPet"]), "include: no operation is called listPet; nearest: listPets"),
        (Selection(exclude=["getUser"]), "exclude: no operation is called getUser; it is called user here"),
        (Selection(operation_ids=["user"]), "operation_ids: no operation is called user"),
        (Selection(tags=["pets", "pet"]), "tags: no operation has pet; nearest: pets"),
        (Selection(paths=["/pets", "/pats"]), "paths: no operation has /pats; nearest: /pets"),
    ],
)
def test_a_filter_that_fits_nothing_is_an_error_that_names_it(selection: Selection, said: str) -> None:
    with pytest.raises(ImportFailed) as caught:
        read(document(PATHS), select=selection, rename={"getUser": "user"})
    assert str(caught.value) == said


# -- servers ------------------------------------------------------------------------------------------

HOST = {
    "url": "https://{host}:{port}/v1",
    "variables": {"host": {"default": "a.example"}, "port": {"default": "443", "enum": ["443", "8443"]}},
}


@pytest.mark.parametrize(
    ("members", "origin", "variables", "server"),
    [
        ({}, "", {}, ""),
        ({}, "https://a.example/docs/openapi.json", {}, "https://a.example/"),
        ({"servers": [{"url": "/v1"}]}, "", {}, "/v1"),
        ({"servers": [{"url": "/v1"}]}, "https://a.example/docs/openapi.json", {}, "https://a.example/v1"),
        ({"servers": [{"url": "../v1"}]}, "https://a.example/docs/openapi.json", {}, "https://a.example/v1"),
        ({"servers": [HOST, {"url": "https://b.example"}]}, "", {}, "https://a.example:443/v1"),
        ({"servers": [HOST]}, "", {"host": "b.example", "port": "8443"}, "https://b.example:8443/v1"),
    ],
)
def test_the_server_is_the_base_of_every_call(members: Any, origin: str, variables: Any, server: str) -> None:
    found = read(with_operation({}, **members), origin=origin, variables=variables)
    assert found.operations[0].server == server
    several = len(members.get("servers", ())) > 1
    assert reasons(found) == ({"/servers": "changed"} if several else {})


def test_an_operation_may_have_a_server_of_its_own_and_so_may_a_path() -> None:
    def servers(name: str) -> dict[str, Any]:
        return {"servers": [{"url": f"https://{name}.example"}]}

    paths = {
        "/a": {**servers("path"), "get": get("a"), "put": get("b", **servers("operation"))},
        "/b": {"get": get("c")},
    }
    found = {each.name: each.server for each in read(document(paths, **servers("root"))).operations}
    assert found == {"a": "https://path.example", "b": "https://operation.example", "c": "https://root.example"}


@pytest.mark.parametrize(
    "servers", [[1], {}, [{"url": 1}], [{"url": "{x}"}], [{"url": "{x}", "variables": {"x": {}}}], [{"url": "a b"}]]
)
def test_a_wrong_server_is_noted_and_unknown(servers: Any) -> None:
    imported = read(with_operation({}, servers=servers))
    assert imported.operations[0].server == ""
    assert list(reasons(imported).values()) == ["left-out"]


@pytest.mark.parametrize("variables", [{"port": "1"}, {"hots": "b.example"}])
def test_a_wrong_value_of_a_variable_is_an_error(variables: dict[str, str]) -> None:
    with pytest.raises(DocumentError):
        read(with_operation({}, servers=[HOST]), variables=variables)


# -- security -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "scheme"),
    [
        ({"type": "http", "scheme": "Bearer"}, SecurityScheme("bearer")),
        ({"type": "http", "scheme": "basic"}, SecurityScheme("basic")),
        ({"type": "http", "scheme": "digest"}, SecurityScheme("other")),
        ({"type": "mutualTLS"}, SecurityScheme("other")),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, SecurityScheme("api-key", "header", "X-Key")),
        ({"type": "apiKey", "in": "query", "name": "key"}, SecurityScheme("api-key", "query", "key")),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, SecurityScheme("api-key", "cookie", "sid")),
        ({"type": "oauth2", "flows": {}}, SecurityScheme("bearer")),
        ({"type": "openIdConnect"}, SecurityScheme("bearer")),
        ({"$ref": "#/components/securitySchemes/real"}, SecurityScheme("basic")),
    ],
)
def test_security_schemes_say_how_a_caller_is_known(declared: Any, scheme: SecurityScheme) -> None:
    schemes = {"x-it": declared, "real": {"type": "http", "scheme": "basic"}}
    imported = read(with_operation({}, components={"securitySchemes": schemes}, security=[{"x-it": []}]))
    assert (imported.security_schemes, imported.operations[0].security) == ({"x-it": scheme}, (("x-it",),))


SCHEMES = {"securitySchemes": {name: {"type": "http", "scheme": "bearer"} for name in "ab"}}


@pytest.mark.parametrize(
    ("own", "required"),
    [
        ({}, (("a",),)),
        ({"security": []}, ()),
        ({"security": [{}]}, ((),)),
        ({"security": [{"a": [], "b": []}, {"b": ["x"]}, {}]}, (("a", "b"), ("b",), ())),
        ({"security": [{"none": []}, {"b": []}]}, (("b",),)),
    ],
)
def test_an_operation_has_the_alternatives_of_the_document_or_its_own(own: Any, required: Any) -> None:
    assert only(with_operation(own, components=SCHEMES, security=[{"a": []}])).security == required


@pytest.mark.parametrize(
    "declared",
    [1, {}, {"type": "x"}, {"type": "apiKey"}, {"type": "apiKey", "in": "body", "name": "x"}, {"$ref": "#/x"}],
)
def test_a_wrong_security_scheme_is_left_out_with_notes(declared: Any) -> None:
    imported = read(with_operation({}, components={"securitySchemes": {"it": declared}}, security=[{"it": []}]))
    assert (imported.operations[0].security, imported.security_schemes) == ((), {})
    assert set(reasons(imported).values()) == {"left-out"}


# -- the whole ----------------------------------------------------------------------------------------


def test_what_a_document_and_its_operations_say_is_carried_over() -> None:
    info = {"title": "Pets", "version": "2", "description": "All of them."}
    put = get("b", summary="Put.", description=" It. ", deprecated=True)
    imported = read(document({"/a": {"summary": "Path.", "get": get("a"), "put": put}}, info=info))
    assert (imported.title, imported.version, imported.description) == ("Pets", "2", "All of them.")
    assert [each.description for each in imported.operations] == ["Path.", "Put.\n\nIt.\n\nDeprecated."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "empty"),
        (b"[]", "object"),
        (b"{}", "openapi"),
        (b'{"openapi": 3}', "/openapi"),
        (b'{"openapi": "2.0"}', "/openapi"),
        (b'{"openapi": "3.3.0"}', "/openapi"),
        (b'{"swagger": "2.0", "paths": {}}', "convert"),
        (b'{"openapi": "3.0.0", "paths": []}', "/paths"),
        (b'{"openapi": "3.0.0", "paths": ', "JSON"),
        (b'{"openapi": "\xff"}', "UTF-8"),
    ],
)
def test_what_is_no_document_is_one_line(text: bytes, said: str) -> None:
    with pytest.raises(DocumentError, match=said) as caught:
        read_openapi(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["3.0.0", "3.0.4", "3.1.0", "3.1.1", "3.2.0", "3.1", 3.1])
def test_each_version_of_3_is_read(version: Any) -> None:
    assert len(read(document({"/x": {"get": get("x")}}, version=version)).operations) == 1


def test_a_mapping_may_have_numbers_as_keys_and_may_not_hold_what_is_no_json() -> None:
    responses = {200: {"description": ""}, 404: {"description": ""}}
    assert only(with_operation({"responses": responses})).errors[0].code == "HTTP_404"
    with pytest.raises(DocumentError):
        load_document(document({"/x": {"get": {"x": object()}}}))
