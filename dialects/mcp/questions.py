"""Lists the questions that one operation puts to its client before it runs: their requests, answers and order. Sends nothing."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, TypeAlias, assert_never, final, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw

from ...daemon.declarations import Ask, Asked, AskUrl, Roots, Sample, asks_of
from ...daemon.operations.context import Context
from ...daemon.operations.params import input_struct, named_decoder
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import DECODE_ERRORS, build_decoder, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import DomainFailure, InvalidParams
from ...schemas.json_schema import JsonSchema
from .. import forms
from .generated import structs


def form_of(operation: str, name: str, hint: Any) -> tuple[JsonSchema, bool]:  # Any: an annotation
    """The schema of the form that fills a param, and whether the param is all of it: that of a struct.

    Raises `DeclarationError` for a param that no form can fill.
    """
    try:
        return forms.form_of(hint, name)
    except ValueError as exc:
        raise DeclarationError(
            f"operation {operation}: the user can't be asked for param {name}, since {exc}; use one of these, or a struct"
            " of them"
        ) from None


Capability: TypeAlias = Literal["elicitation", "elicitation.url", "sampling", "roots"]
"""A capability that a client has declared, or a mode of one."""

_METHODS: Final[dict[Capability, str]] = {
    "elicitation": "elicitation/create",
    "elicitation.url": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}


_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ClientRequest(msgspec.Struct, frozen=True):
    """A request to the client."""

    method: str
    params: dict[str, Any]  # Any: JSON


class Answer(msgspec.Struct, frozen=True):
    """The user's answer to a form."""

    action: str
    content: dict[str, Any] | None = None


class UnusableAnswer(Exception):
    """The client's answer does not fit the param."""


def can(capabilities: Mapping[str, Any], capability: Capability) -> bool:
    """Whether a client of these capabilities takes requests of this kind. One that names no mode of elicitation shows forms."""
    name, _, mode = capability.partition(".")
    if name not in capabilities:
        return False
    modes = capabilities[name]
    if mode:
        return isinstance(modes, dict) and mode in modes
    return name != "elicitation" or not isinstance(modes, dict) or "url" not in modes or "form" in modes


def methods_taken(capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods of the requests that a client of these capabilities takes."""
    return tuple(dict.fromkeys(method for capability, method in _METHODS.items() if can(capabilities, capability)))


@final
class AskedParam:
    """One param that the client is asked for. Raises `DeclarationError` for one that it can't be asked for."""

    def __init__(self, operation: str, field: msgspec.structs.FieldInfo, ask: Asked, earlier: Collection[str]) -> None:
        self.name = field.name
        self.optional = not field.required
        self._ask = ask
        self._operation = operation
        self._field = field
        self._decode = build_decoder(field.type)
        self._question = None if isinstance(ask, Roots) else ask.url if isinstance(ask, AskUrl) else ask.text
        self.takes = () if isinstance(ask, Roots) else self._params_of(self._question, earlier)
        """The names of the params that its function takes."""
        self.capability: Capability
        match ask:
            case Ask():
                self.capability = "elicitation"
                self._form, self._is_struct = form_of(operation, self.name, _without_none(field.type))
            case AskUrl(url=url, text=text):
                self.capability = "elicitation.url"
                self._needs_type("bool", bool)
                if not isinstance(text, str) or (isinstance(url, str) and not forms.is_address(url)):
                    raise self._wrong("url must begin with https:// (on this machine http://), and text be a string")
            case Sample(max_tokens=most, system_prompt=prompt):
                self.capability = "sampling"
                if type(most) is not int or most < 1 or not isinstance(prompt, str):
                    raise self._wrong("max_tokens must be an integer from 1 on, and system_prompt a string")
                self._needs_type("str or mcp.CreateMessageResult", str, structs.CreateMessageResult)
            case Roots():
                self.capability = "roots"
                self._needs_type("list[mcp.Root]", list[structs.Root])
            case _:
                assert_never(ask)

    def _params_of(self, text: object, earlier: Collection[str]) -> tuple[str, ...]:
        if isinstance(text, str):
            return ()
        if not callable(text):
            raise self._wrong("what is asked must be a text, or a function that returns one")
        try:
            parameters = inspect.signature(text).parameters
        except (TypeError, ValueError):
            raise self._wrong("its function has no signature that Python can tell") from None
        names = tuple(parameters)
        unknown = [n for n, p in parameters.items() if p.kind not in _BY_NAME or n not in {*earlier, "ctx"}]
        if unknown:
            raise self._wrong(
                f"its function takes {', '.join(unknown)}; it may take ctx, params of the handler that come from the"
                " caller, and asked ones that stand before it"
            )
        return names

    def _needs_type(self, what: str, *types: Any) -> None:
        if _base(self._field.type) not in types:
            raise self._wrong(f"its type must be {what}")

    def _wrong(self, why: str) -> DeclarationError:
        return DeclarationError(f"operation {self._operation}: the client can't be asked for param {self.name}: {why}")

    @property
    def default(self) -> Any:
        """The param's default. Raises `RuntimeError` where it has none."""
        if not self.optional:
            raise RuntimeError(f"what asks for param {self.name} returned None, but the param has no default")
        factory = self._field.default_factory
        return self._field.default if factory is NODEFAULT else factory()

    async def request(self, ctx: Context, known: Mapping[str, Any]) -> ClientRequest | None:
        """Return the request to the client; None for none. `known` holds the params that the question's function takes."""
        method = _METHODS[self.capability]
        if isinstance(self._ask, Roots):
            return ClientRequest(method, {})
        text: Any = self._question
        if not isinstance(text, str):
            text = text(**{name: ctx if name == "ctx" else known[name] for name in self.takes})
            if inspect.isawaitable(text):
                text = await text
        if text is None:
            return None
        if isinstance(self._ask, Ask):
            if not isinstance(text, str):
                raise TypeError(f"what asks for param {self.name} must return a text or None")
            return ClientRequest(method, {"message": text, "requestedSchema": self._form})
        if isinstance(self._ask, AskUrl):
            if not isinstance(text, str) or not forms.is_address(text):
                raise TypeError(f"what asks for param {self.name} must return an address with https:// or None")
            return ClientRequest(method, {"mode": "url", "message": self._ask.text, "url": text})
        messages: Any = text
        if isinstance(text, str):
            messages = [structs.SamplingMessage(role="user", content=structs.TextContent(text=text))]
        if not isinstance(messages, list) or not all(isinstance(m, structs.SamplingMessage) for m in messages):
            raise TypeError(
                f"what asks for param {self.name} must return a text, a list of mcp.SamplingMessage, or None"
            )
        params = {"messages": msgspec.to_builtins(messages), "maxTokens": self._ask.max_tokens}
        return ClientRequest(method, params | ({"systemPrompt": prompt} if (prompt := self._ask.system_prompt) else {}))

    def read(self, answer: Raw) -> Any:
        """The value of an answer (JSON). Raises `UnusableAnswer` for one that is none, `FailureError` where the user declined."""
        try:
            value = self._value(answer)
            self.typed(value)
            return value
        except (*DECODE_ERRORS, ValueError, KeyError):  # what a caller sent stands in the text of such an exception
            pass
        raise UnusableAnswer

    def typed(self, value: Any) -> Any:
        """A value (JSON) as the handler gets it. Raises `DECODE_ERRORS`."""
        return self._decode(msgspec.json.encode(value))

    def _value(self, answer: Raw) -> Any:
        match self._ask:
            case Ask() | AskUrl():
                given = decoder_for(Answer)(answer)
                if given.action != "accept":
                    raise FailureError(DomainFailure("DECLINED", "The user did not answer", http_status=403))
                if isinstance(self._ask, AskUrl):
                    return True
                content = given.content or {}
                return content if self._is_struct else content[self.name]
            case Sample() if _base(self._field.type) is str:
                return _text_of(decoder_for(structs.CreateMessageResult)(answer))
            case Sample():
                return msgspec.json.decode(answer)
            case Roots():
                return msgspec.json.decode(answer)["roots"]
            case _:
                assert_never(self._ask)


@final
class Questions:
    """All that one operation asks for. Raises `DeclarationError` for what can't be asked."""

    def __init__(self, spec: OperationSpec) -> None:
        if spec.input.whole or spec.input.extra is not None:
            raise DeclarationError(
                f"operation {spec.name}: a handler that asks takes named params alone; leave out the / or the **"
            )
        self.spec = spec
        fields: dict[str, msgspec.structs.FieldInfo] = {f.name: f for f in msgspec.structs.fields(spec.input.type)}
        asks = asks_of(spec.input.type)
        self._given = tuple(name for name in spec.input.names if name not in asks)
        given = [_declared(fields[name]) for name in self._given]
        self._decode = named_decoder(input_struct(spec.input.type.__name__, given, __name__), self._given)
        self.params: dict[str, AskedParam] = {}
        for name, ask in asks.items():
            self.params[name] = AskedParam(spec.name, fields[name], ask, {*self._given, *self.params})

    def check_arguments(self, arguments: Raw, where: str) -> dict[str, Raw]:
        """The arguments by name. Raises `FailureError` for those that only the client may give."""
        try:
            members = decoder_for(dict[str, Raw] | None)(arguments) or {}
        except DECODE_ERRORS:
            members = None
        if members is None:
            raise FailureError(InvalidParams(where, "object", "another type"))
        for name in self.params:
            if name in members:
                what = "no value: the user is asked for it"
                raise FailureError(InvalidParams(f"{where}.{name}", what, "a value"))
        return members

    def decode(self, arguments: Raw, where: str) -> dict[str, Any]:
        """Decode the caller's params for the handler. Raises `FailureError`."""
        return dict(zip(self._given, self._decode(arguments, where), strict=True))

    def accepts(self, name: str, value: Any) -> bool:  # Any: JSON
        """Whether it is a value of a param that is asked for."""
        if name not in self.params:
            return False
        try:
            self.params[name].typed(value)
        except DECODE_ERRORS:
            return False
        return True

    def missing(self, capabilities: Mapping[str, Any], values: Collection[str]) -> list[Capability]:
        """Return the capabilities that the client lacks for the values that are still missing."""
        missing: dict[Capability, None] = {}
        for param in self.params.values():
            if not param.optional and param.name not in values and not can(capabilities, param.capability):
                missing[param.capability] = None
        return list(missing)

    async def ask(
        self, ctx: Context, given: Mapping[str, Any], values: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> dict[str, ClientRequest]:
        """Return the next questions, by the names of params: all that can be asked at once. Empty if everything is known."""
        known = dict(given)
        requests: dict[str, ClientRequest] = {}
        for name, param in self.params.items():
            if name in values:
                known[name] = param.typed(values[name])
            elif not can(capabilities, param.capability):
                known[name] = param.default
            elif all(taken in known or taken == "ctx" for taken in param.takes):
                request = await param.request(ctx, known)
                if request is None:
                    known[name] = param.default
                else:
                    requests[name] = request
        return requests


def _declared(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    if field.required:
        return field.name, field.type
    if field.default_factory is not NODEFAULT:
        return field.name, field.type, msgspec.field(default_factory=field.default_factory)
    return field.name, field.type, msgspec.field(default=field.default)


def _without_none(hint: Any) -> Any:
    """The annotation without `| None`: no form asks for nothing."""
    base, *marks = get_args(hint)
    members = [member for member in get_args(base) if member is not type(None)]
    if len(members) == len(get_args(base)) or get_origin(base) is Literal:
        return hint
    return Annotated[(reduce(or_, members), *marks)]


def _base(hint: Any) -> Any:
    """The type itself, without `| None` and what the annotation says beside it."""
    return get_args(_without_none(hint))[0]


def _text_of(message: structs.CreateMessageResult) -> str:
    blocks = message.content if isinstance(message.content, list) else [message.content]
    texts = [block.text for block in blocks if isinstance(block, structs.TextContent)]
    if not texts:
        raise ValueError
    return "".join(texts)
