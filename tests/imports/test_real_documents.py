"""Documents as they are published: every operation and every declared error of them is there, with schemas that others can read.

`DISCREET_OPENAPI_DOCUMENTS` names a folder of node packages that hold them.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("h11")
pytest.importorskip("yaml")
pytest.importorskip("jsonschema")

import jsonschema
import yaml

from discreet import from_openapi
from discreet.dialects.mcp.tools import tools_of
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.schemas.documents import operation_schema
from support.requirements import missing

DOCUMENTS = (
    "@octokit/openapi/generated/api.github.com.json",
    "@figma/rest-api-spec/openapi/openapi.yaml",
    "@blockfrost/openapi/openapi.yaml",
)
METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
EVERY = 25
"""Of the operations, each so many-th is looked at closely."""


@pytest.fixture(params=DOCUMENTS, ids=lambda name: name.split("/")[0])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = os.environ.get("DISCREET_OPENAPI_DOCUMENTS")
    if folder is None:
        missing("DISCREET_OPENAPI_DOCUMENTS names no folder")
    return Path(folder) / request.param


def declared(path: Path) -> tuple[int, int]:
    """How many operations a document has, and how many responses that are no success."""
    text = path.read_bytes()
    tree = msgspec.json.decode(text) if path.suffix == ".json" else yaml.load(text, Loader=yaml.CSafeLoader)
    operations = [
        operation for item in tree["paths"].values() for method, operation in item.items() if method in METHODS
    ]
    errors = [
        status for operation in operations for status in operation["responses"] if not str(status).startswith("2")
    ]
    return len(operations), len(errors)


def test_nothing_of_it_is_lost(path: Path) -> None:
    service = from_openapi(path, namespace="api", expose=True)
    assert (len(service.operations), sum(len(spec.errors) for spec in service.operations)) == declared(path)
    assert len({spec.name for spec in service.operations}) == len(service.operations)


def test_what_is_told_of_it_is_valid_to_others(path: Path) -> None:
    service = from_openapi(path, namespace="api", expose=True)
    valid = jsonschema.Draft202012Validator
    specs = service.operations[::EVERY]
    for spec in specs:
        schema = operation_schema(spec)
        for each in (
            schema.input_schema,
            schema.output_schema,
            *(error.schema or {} for error in schema.error_schemas),
        ):
            valid.check_schema(each)
    document = msgspec.json.decode(document_text(openapi_document(specs, About(title="t", version="1"))))
    for each in document["components"]["schemas"].values():
        valid.check_schema(each)
    for tool in tools_of(specs).values():
        valid.check_schema(tool.described.input_schema)
        valid.check_schema(tool.described.output_schema or {})
