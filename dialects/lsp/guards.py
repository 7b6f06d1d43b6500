"""Writes what LSP 3.18 added in its older form for clients that can't read it. `RULES` says what, and by which capability.

Works on JSON: results come from structs of `discreet.lsp`, from those of other libraries, and from dicts. Members that belong
to the author (`data`, `arguments`) stay as they are. Loads no structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, final  # Any: JSON

import msgspec

from ...errors.failures import Failure
from .capabilities import has_capability
from .generated.tables import RESULTS_WITH

Json = dict[str, Any]

ITEM_DEFAULTS: Final = ("commitCharacters", "editRange", "insertTextFormat", "insertTextMode", "data")
MERGE: Final = 2
"""`ApplyKind.Merge`."""
_AUTHORS: Final = frozenset({"data", "arguments"})

_COMPLETION: Final = "textDocument.completion"
ITEM_DEFAULTS_SUPPORT: Final = f"{_COMPLETION}.completionList.itemDefaults"
"""Names the members of `itemDefaults` that the client reads; since 3.17."""
_ITEM: Final = f"{_COMPLETION}.completionItem"
INSERT_REPLACE_SUPPORT: Final = f"{_ITEM}.insertReplaceSupport"
MEMBER_SUPPORT: Final = {
    "commitCharacters": f"{_ITEM}.commitCharactersSupport",
    "insertTextMode": f"{_ITEM}.insertTextModeSupport",
}
"""The capabilities of a client that reads these members of an item."""


class Rule(NamedTuple):
    """How a part of LSP 3.18 is written without this capability of the client. `plain` changes an object that has the part."""

    capability: str
    markers: tuple[bytes, ...]
    """One of these names stands in every JSON text that has the part."""
    plain: Callable[[Json, Mapping[str, Any]], None]


def _plain_edit(value: Json, _can: Mapping[str, Any]) -> None:
    """A snippet becomes the text that it begins with: placeholders are their defaults."""
    snippet = value.get("snippet")
    if isinstance(snippet, dict) and "range" in value:
        from .snippets import text_of  # late: few servers edit by snippets

        del value["snippet"]
        value["newText"] = text_of(str(snippet.get("value", "")))


def _plain_message(value: Json, _can: Mapping[str, Any]) -> None:
    """Markup becomes its text."""
    message = value.get("message")
    if isinstance(message, dict) and "range" in value:
        value["message"] = message.get("value", "")


def _plain_parameter(value: Json, _can: Mapping[str, Any]) -> None:
    """No active parameter becomes none that is named."""
    if value.get("activeParameter", 0) is None:
        del value["activeParameter"]


def _plain_tags(value: Json, _can: Mapping[str, Any]) -> None:
    """A code action loses its tags. Those of its diagnostics are older."""
    if "title" in value:
        value.pop("tags", None)


def _plain_list(value: Json, can: Mapping[str, Any]) -> None:
    """The defaults that the client does not read, or does not merge, become members of the items."""
    defaults, items = value.get("itemDefaults") or {}, value.get("items")
    if not isinstance(items, list):
        return
    kinds = value.get("applyKind") or {}
    read = _read_defaults(can)
    merges = has_capability(can, APPLY_KIND.capability)
    for name in ITEM_DEFAULTS:
        if name in defaults and (name not in read or (not merges and kinds.get(name) == MERGE)):
            default = defaults.pop(name)
            known = name not in MEMBER_SUPPORT or has_capability(can, MEMBER_SUPPORT[name])
            for item in items if known else ():
                if name == "editRange":
                    _give_range(item, default, can)
                else:
                    _give(item, name, default, merged=kinds.get(name) == MERGE)
    if not merges:
        value.pop("applyKind", None)
    if not defaults:
        value.pop("itemDefaults", None)


def _read_defaults(can: Mapping[str, Any]) -> Iterable[str]:
    found: Any = can
    for name in ITEM_DEFAULTS_SUPPORT.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, list) else ()


def _give(item: Json, name: str, default: Any, *, merged: bool) -> None:
    if item.get(name) is None:
        item[name] = default
    elif merged and isinstance(default, list):
        item[name] = list(dict.fromkeys([*default, *item[name]]))
    elif merged and isinstance(default, dict) and isinstance(item[name], dict):
        item[name] = default | item[name]


def _give_range(item: Json, default: Json, can: Mapping[str, Any]) -> None:
    if item.get("textEdit") is not None:
        return
    texts = (item.pop("textEditText", None), item.get("insertText"), item.get("label"), "")
    edit: Json = {"newText": next(text for text in texts if text is not None)}
    if "insert" not in default:
        edit["range"] = default
    elif has_capability(can, INSERT_REPLACE_SUPPORT):
        edit |= default
    else:
        edit["range"] = default["insert"]
    item["textEdit"] = edit


APPLY_KIND: Final = Rule(
    f"{_COMPLETION}.completionList.applyKindSupport", (b'"itemDefaults"', b'"applyKind"'), _plain_list
)
SNIPPETS: Final = Rule("workspace.workspaceEdit.snippetEditSupport", (b'"snippet"',), _plain_edit)
MARKUP: Final = Rule("textDocument.diagnostic.markupMessageSupport", (b'"value"',), _plain_message)

RULES: Final[dict[str, Rule]] = {
    "CodeAction": Rule("textDocument.codeAction.tagSupport", (b'"tags"',), _plain_tags),
    "CompletionList": APPLY_KIND,
    "Diagnostic": MARKUP,
    "SignatureHelp": Rule(
        "textDocument.signatureHelp.signatureInformation.noActiveParameterSupport", (b"null",), _plain_parameter
    ),
    "SnippetTextEdit": SNIPPETS,
}
"""By the struct that has the part, as `RESULTS_WITH` names it."""


@final
class PlainResults:
    """Writes the results of a method for one client: a `Rendering`."""

    def __init__(self, rules: tuple[Rule, ...], can: Mapping[str, Any]) -> None:
        self._rules = rules
        self._can = can
        self._markers = tuple(marker for rule in rules for marker in rule.markers)

    def result(self, result: bytes) -> bytes:
        """Write a result, or a part of it. One without anything new is returned as it is, unread."""
        if not any(marker in result for marker in self._markers):
            return result
        value = msgspec.json.decode(result)
        self.make_plain(value)
        return msgspec.json.encode(value)

    def failure(self, failure: Failure) -> None:
        """Tell failures as they are."""

    def make_plain(self, value: Any) -> None:
        """Change a JSON value in place."""
        if isinstance(value, dict):
            for rule in self._rules:
                rule.plain(value, self._can)
            for name, inner in value.items():
                if name not in _AUTHORS:
                    self.make_plain(inner)
        elif isinstance(value, list):
            for inner in value:
                self.make_plain(inner)


def plain_results(methods: Iterable[str], can: Mapping[str, Any]) -> dict[str, PlainResults]:
    """Return the writers of those of these methods whose results a client with these capabilities may not read whole."""
    found = {}
    for method in methods:
        rules = tuple(
            RULES[name] for name, among in RESULTS_WITH.items() if method in among and not _reads(can, RULES[name])
        )
        if rules:
            found[method] = PlainResults(rules, can)
    return found


def _reads(can: Mapping[str, Any], rule: Rule) -> bool:
    if rule is APPLY_KIND and not set(ITEM_DEFAULTS).issubset(_read_defaults(can)):
        return False
    return has_capability(can, rule.capability)


def plain_for(rule: Rule, can: Mapping[str, Any], params: msgspec.Struct) -> msgspec.Raw | msgspec.Struct:
    """Return params for a client with these capabilities: as they are, unless there is something in them that it can't read."""
    if has_capability(can, rule.capability):
        return params
    return msgspec.Raw(PlainResults((rule,), can).result(msgspec.json.encode(params)))
