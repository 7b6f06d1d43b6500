"""Operations as an OpenAPI 3.1 document: `POST /operations/{name}`, and queries also by GET.

Derives everything from the operations' own schemas. Never sees a payload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

import msgspec
from msgspec import UNSET, UnsetType

from ...a2a.card import AgentCard, HttpAuth
from ...a2a.card_v03 import scheme_to_v03
from ...daemon.operations.access import AccessRule, IdentityProvider
from ...daemon.operations.context import LONGEST_NUMBER
from ...daemon.operations.registry import server_of
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.redaction import scrub_known
from ...schemas.documents import AccessSchema, OperationSchema, operation_schema
from ...schemas.named_types import NamedTypes
from .errors import JSON, ErrorResponses
from .examples import example_of
from .keywords import to_openapi, with_optional_members
from .objects import (
    OPENAPI_VERSION,
    Components,
    Document,
    Header,
    Info,
    MediaType,
    Operation,
    Parameter,
    PathItem,
    RequestBody,
    Response,
    Scopes,
    SecurityRequirement,
    Server,
    Tag,
)
from .query_params import QueryParam, query_params

PREFIX: Final = "/operations/"
"""The path in front of the name of an operation."""

EVENT_STREAM: Final = "text/event-stream"

_STREAM: Final = (
    "Server-Sent Events. The data of each is the JSON of `x-event`. The last is called `completed`, or `error`, whose data is"
    " an error as in the other responses."
)
LAST_EVENT_ID: Final = "Last-Event-ID"
_BEHIND: Final = Parameter(
    LAST_EVENT_ID,
    "header",
    "The `id` of the last event that came: the stream goes on behind it.",
    schema={"type": "integer", "minimum": 0, "maximum": 10**LONGEST_NUMBER - 1},
)
_IF_NONE_MATCH: Final = Parameter(
    "If-None-Match", "header", "The `ETag` of the result that the caller has.", schema={"type": "string"}
)
_ETAG: Final = Header({"type": "string"}, "Stands for this result: another one has another.")
_NOT_IN_IDS: Final = re.compile(r"\W", re.ASCII)


def openapi_document(specs: Iterable[OperationSpec], about: About) -> Document:
    """The document of these operations, in this order. Every `$ref` resolves within it."""
    types = NamedTypes(to_openapi)
    writer = _Writer(types, about.security)
    paths: dict[str, PathItem] = {}
    tags: dict[str, Tag] = {}
    for spec in specs:
        paths[PREFIX + spec.name] = writer.path(spec)
        if spec.namespace:
            tags[spec.namespace] = Tag(spec.namespace, scrub_known(about.namespaces.get(spec.namespace, "")))
    return Document(
        OPENAPI_VERSION,
        Info(about.title, about.version),
        (Server(about.url),),
        paths,
        Components(
            {name: with_optional_members(types.schemas[name]) for name in sorted(types.schemas)},
            writer.errors.shared,
            {**about.security.schemes},
        ),
        tags=tuple(tags.values()),
    )


def document_text(document: Document) -> bytes:
    """A document as JSON for a file: indented, a line end at the end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


@final
class _Writer:
    def __init__(self, types: NamedTypes, security: Security) -> None:
        self.errors = ErrorResponses(types, known_only=bool(security.alternatives))
        self._types = types
        self._security = security
        self._ids: set[str] = set()

    def path(self, spec: OperationSpec) -> PathItem:
        operation = operation_schema(spec)
        params = query_params(operation.input_schema) if spec.kind == "query" else None
        post = self._post(spec, operation)
        return PathItem(UNSET if params is None else self._get(spec, operation, params), post)

    def _post(self, spec: OperationSpec, operation: OperationSchema) -> Operation:
        model = operation.input_schema
        body = MediaType(self._types.include(model), example=example_of(model, model))
        return self._operation(
            spec,
            operation,
            _NOT_IN_IDS.sub("_", spec.name),
            parameters=(_BEHIND,) if spec.numbered else (),
            body=RequestBody({JSON: body}, required=True),
        )

    def _get(self, spec: OperationSpec, operation: OperationSchema, params: Iterable[QueryParam]) -> Operation:
        written = tuple(self._parameter(param, operation) for param in params)
        return self._operation(
            spec,
            operation,
            f"get_{_NOT_IN_IDS.sub('_', spec.name)}",
            parameters=(*written, *((_IF_NONE_MATCH,) if spec.etag else ())),
        )

    def _parameter(self, param: QueryParam, operation: OperationSchema) -> Parameter:
        described = param.schema.get("description", "") if isinstance(param.schema, dict) else ""
        schema = self._types.include(param.schema, operation.input_schema)
        if param.form == "json":
            content = {JSON: MediaType(schema)}
            return Parameter(param.name, "query", described, required=param.required, content=content)
        return Parameter(param.name, "query", described, required=param.required, schema=schema)

    def _operation(
        self,
        spec: OperationSpec,
        operation: OperationSchema,
        operation_id: str,
        *,
        parameters: tuple[Parameter, ...],
        body: RequestBody | UnsetType = UNSET,
    ) -> Operation:
        by_get = body is UNSET
        successes = self._successes(spec, operation, with_etag=by_get and spec.etag)
        failures = self.errors.of(spec, operation.error_schemas, with_body=not by_get)
        return Operation(
            operation_id=self._unique(operation_id),
            description=operation.description,
            tags=(spec.namespace,) if spec.namespace else (),
            parameters=parameters,
            request_body=body,
            responses={**successes, **failures},
            security=(not spec.access.public and self._security.required(spec.access)) or UNSET,
            kind=spec.kind,
            scopes=Scopes(operation.access.all_of, operation.access.any_of)
            if isinstance(operation.access, AccessSchema)
            else UNSET,
            timeout=operation.timeout,
            offer=operation.offer,
        )

    def _successes(self, spec: OperationSpec, operation: OperationSchema, *, with_etag: bool) -> dict[str, Response]:
        output = operation.output_schema
        if operation.kind == "subscription":
            event = self._types.include_named(output)
            return {"200": Response(_STREAM, content={EVENT_STREAM: MediaType(event=event)})}
        if not spec.has_result:
            return {"204": Response("It is done. There is no result.")}
        content = {JSON: MediaType(self._types.include_named(output), example=example_of(output, output))}
        result = Response("The result.", {"ETag": _ETAG} if with_etag else {}, content)
        return {"200": result, **({"304": Response("The caller has this result.")} if with_etag else {})}

    def _unique(self, operation_id: str) -> str:
        unique, count = operation_id, 1
        while unique in self._ids:
            count += 1
            unique = f"{operation_id}_{count}"
        self._ids.add(unique)
        return unique


# -- beside the operations: of the server, of its namespaces, of how callers authenticate ----------------------


class Security(msgspec.Struct, frozen=True):
    """The schemes by their names, and the alternatives of which a caller fulfils one."""

    schemes: dict[str, dict[str, Any]] = {}  # Any: JSON
    alternatives: tuple[Mapping[str, Sequence[str]], ...] = ()

    def required(self, rule: AccessRule) -> tuple[SecurityRequirement, ...]:
        """Return what a caller needs under this rule, which is not public: one of these. Empty without an identity provider."""
        others = [] if rule.all_of & rule.any_of else sorted(rule.any_of)
        return tuple(
            {name: tuple(sorted({*scopes, *rule.all_of, *more})) for name, scopes in alternative.items()}
            for alternative in self.alternatives
            for more in [[other] for other in others] or [[]]
        )


def security_of(provider: IdentityProvider | None, card: AgentCard | None) -> Security:
    """The security of a daemon with this identity provider and the card that its agent declares."""
    if provider is None:
        return Security()
    if card is not None and card.security_schemes:
        written = {name: scheme_to_v03(each.scheme) for name, each in card.security_schemes.items()}
        schemes = {  # without what A2A adds to the schemes of OpenAPI 3.1
            name: {word: value for word, value in scheme.items() if word != "oauth2MetadataUrl"}
            for name, scheme in written.items()
        }
        required = [
            req.schemes for req in card.security_requirements if req.schemes
        ]  # the empty one is the agent's alone
        declared = [{name: each.list for name, each in schemes.items()} for schemes in required]
        return Security(schemes, tuple(declared or ({name: ()} for name in schemes)))
    names = dict.fromkeys(scheme.lower() for scheme in provider.schemes)
    bearer_format: str | None = getattr(provider, "bearer_format", None)
    schemes = {
        name: scheme_to_v03(HttpAuth(name, bearer_format=bearer_format if name == "bearer" else None)) for name in names
    }
    return Security(schemes, tuple({name: ()} for name in schemes))


class About(msgspec.Struct, frozen=True, kw_only=True):
    """`url` is where the operations are served; `namespaces` describes each by its name."""

    title: str
    version: str
    url: str = "/"
    namespaces: Mapping[str, str] = {}
    security: Security = Security()


def about(
    services: Sequence[Service], card: AgentCard | None, provider: IdentityProvider | None, *, version: str, url: str
) -> About:
    """Describe a daemon of this `version` that hosts these services and an agent with this card, and that tells callers apart
    by this provider.
    """
    server = server_of(services, version)
    return About(
        title=server.name,
        version=server.version,
        url=url.rstrip("/") or "/",  # paths begin with a slash
        namespaces={service.namespace: service.description for service in services if service.description},
        security=security_of(provider, card),
    )
