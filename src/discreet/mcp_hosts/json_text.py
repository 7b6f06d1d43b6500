"""Changes one member of a JSON document as text, so that all the rest stays byte for byte: order, blanks and comments.

With `comments` the document is JSONC: comments and trailing commas are part of it, as editors have them. Never reads a file.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn, final

from msgspec import Struct

MAX_DEPTH: Final = 200
"""How many values may stand in each other: more than any settings have, less than Python's stack takes."""

_BLANKS: Final = " \t\r\n"
_TOKEN: Final = re.compile(
    r'[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"/]+', re.DOTALL
)


@final
class Node(Struct):
    """A value, where it stands, and the members of an object."""

    start: int
    end: int
    data: Any  # JSON
    members: dict[str, "Member"] = {}


@final
class Member(Struct):
    """A member of an object. `before` is the end of what stands before it, a comment too; `below_comment` means that a line
    comment ends there. `comma` is the place of the comma behind it, or -1.
    """

    before: int
    start: int
    value: Node
    comma: int
    below_comment: bool


def read_json(text: str, *, comments: bool) -> Node | None:
    """Read a document; None where there is no value in it. Raises `ValueError`, which says what is wrong in which line."""
    return _Reader(text, comments=comments).document()


def with_member(text: str, keys: Sequence[str], name: str, value: Any, *, comments: bool) -> str:  # Any: JSON
    """The document with this member in the object at `keys`, which is made where it is missing. Raises `ValueError`."""
    root, layout, path = read_json(text, comments=comments), _Layout(text), (*keys, name)
    nodes = [] if root is None else _objects(root, keys)
    depth = len(nodes)
    for missing in reversed(path[depth:]):
        value = {missing: value}
    dumped = layout.dumped(value, depth)
    if not nodes:
        gap = layout.line_end if text.strip(_BLANKS) else ""
        return f"{text.rstrip(_BLANKS)}{gap}{dumped}{layout.line_end}"
    found = nodes[-1].members.get(path[depth - 1])
    if found is not None:
        return text[: found.value.start] + dumped + text[found.value.end :]
    return _inserted(text, layout, nodes[-1], f"{json.dumps(path[depth - 1], ensure_ascii=False)}: {dumped}", depth)


def without_member(text: str, keys: Sequence[str], name: str, *, comments: bool) -> str:
    """The document without this member of the object at `keys`. Raises `ValueError`, and `KeyError` for one that is not there."""
    root = read_json(text, comments=comments)
    nodes = [] if root is None else _objects(root, keys)
    if len(nodes) <= len(keys):
        raise KeyError(name)
    return _cut(text, nodes[-1], name)


def _objects(root: Node, keys: Sequence[str]) -> list[Node]:
    """The root and the objects below it at these keys, as far as they are there. Raises `ValueError` for another value."""
    nodes = [root]
    for key in keys:
        if key not in nodes[-1].members:
            break
        nodes.append(nodes[-1].members[key].value)
    if any(not isinstance(node.data, dict) for node in nodes):
        raise ValueError("another value stands in the place of an object")
    return nodes


def _inserted(text: str, layout: "_Layout", node: Node, member: str, depth: int) -> str:
    close = node.end - 1
    begin, end = layout.line(depth), layout.line(depth - 1)
    if not node.members:
        return f"{text[:close].rstrip(_BLANKS)}{begin}{member}{end}{text[close:]}"
    last = max(node.members.values(), key=lambda each: each.start)
    tail = len(text[:close].rstrip(_BLANKS))
    if last.comma >= 0:
        return f"{text[:tail]}{begin or ' '}{member},{text[tail:]}"
    at = last.value.end
    return f"{text[:at]},{text[at:tail]}{begin or ' '}{member}{text[tail:]}"


def _cut(text: str, node: Node, name: str) -> str:
    member = node.members[name]
    start, end = member.before, member.comma + 1 if member.comma >= 0 else member.value.end
    if member.below_comment and text[end : end + 1] not in ("\r", "\n"):
        start = text.index("\n", start) + 1  # or the comment would go on over what follows
    before = text[:start]
    previous = max((each.comma for each in node.members.values() if each.start < member.start), default=-1)
    if member.comma < 0 and previous >= 0:
        before = before[:previous] + before[previous + 1 :]
    elif not (before[node.start + 1 :] + text[end : node.end - 1]).strip(_BLANKS):
        before, end = before[: node.start + 1], node.end - 1
    return before + text[end:]


@final
class _Layout:
    """How a document is laid out: its line ends, and by how much it is indented. One of a single line stays so."""

    def __init__(self, text: str) -> None:
        found = re.search(r"\n([ \t]+)\S", text)
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self._indent = found[1] if found else "  "
        self._lines = "\n" in text.strip(_BLANKS) or ":" not in text

    def line(self, depth: int) -> str:
        """What begins a line at this depth."""
        return self.line_end + self._indent * depth if self._lines else ""

    def dumped(self, value: Any, depth: int) -> str:  # Any: JSON
        """The value as it is written at this depth."""
        indent = self._indent if self._lines else None
        return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", self.line(depth) or "\n")


@final
class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._at = int(text.startswith("\ufeff"))  # a byte order mark
        self._token = ""
        self._start = self._before = 0
        self._below_comment = False
        self._advance()

    def document(self) -> Node | None:
        if not self._token:
            return None
        node = self._value(0)
        if self._token:
            self._refuse("more than one value")
        return node

    def _advance(self) -> None:
        """Go to the next token, past blanks and comments; to the empty one at the end."""
        self._before, self._below_comment, self._token = self._at, False, ""
        while not self._token and self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            self._start = self._at
            if found is None:
                self._refuse("not JSON")
            self._at = found.end()
            if found[0].startswith(("//", "/*")):
                if not self._comments:
                    self._refuse("a comment, which this file may not have")
                self._before, self._below_comment = self._at, found[0].startswith("//")
            elif found[0][0] not in _BLANKS:
                self._token = found[0]

    def _value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._refuse(f"more than {MAX_DEPTH} values in each other")
        start = self._start
        match self._token:
            case "{":
                return self._object(start, depth)
            case "[":
                items: list[Any] = []  # Any: JSON
                self._advance()
                while not self._is("]"):
                    items.append(self._value(depth + 1).data)
                    self._pass_comma("]")
                end = self._at
                self._advance()
                return Node(start, end, items)
            case _:
                data, end = self._scalar(), self._at
                self._advance()
                return Node(start, end, data)

    def _object(self, start: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        self._advance()
        while not self._is("}"):
            if not self._token.startswith('"'):
                self._refuse("not the name of a member, in double quotes")
            name, place = self._scalar(), (self._before, self._start)
            below_comment = self._below_comment
            self._advance()
            if self._token != ":":
                self._refuse("no colon behind a member's name")
            self._advance()
            value = self._value(depth + 1)
            members[name] = Member(*place, value, self._pass_comma("}"), below_comment)
        end = self._at
        self._advance()
        return Node(start, end, {name: member.value.data for name, member in members.items()}, members)

    def _pass_comma(self, close: str) -> int:
        """Go past a comma, or up to `close`. Returns where the comma stands, or -1."""
        if self._is(close):
            return -1
        if self._token != ",":
            self._refuse(f"neither a comma nor {close}")
        comma = self._start
        self._advance()
        if self._is(close) and not self._comments:
            self._refuse(f"a comma before {close}")
        return comma

    def _is(self, token: str) -> bool:
        return self._token == token

    def _scalar(self) -> Any:  # Any: JSON
        try:
            return json.loads(self._token, parse_constant=self._refuse)
        except ValueError:
            self._refuse("not a JSON value")

    def _refuse(self, reason: str) -> NoReturn:
        line = self._text.count("\n", 0, self._start) + 1
        raise ValueError(f"line {line}: {reason}")
