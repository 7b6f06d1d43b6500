"""What `stdio_bench.py` says to servers: frames, each server's wording of a request, and the params of every size."""

from __future__ import annotations

import json

from stdio_machine import BenchError

FIRST_ID = 1_000_000  # ids keep one width, so that every small frame has one length


class Framer:
    """Strict incremental frame parser; used wherever its cost does not matter."""

    def __init__(self, framing: str) -> None:
        self.newline = framing == "newline"
        self.buf = bytearray()
        self.header = b"Content-Length: "  # as the server spells it

    def feed(self, data: bytes) -> list[bytes]:
        buf = self.buf
        buf += data
        out = []
        pos = 0
        while True:
            if self.newline:
                end = buf.find(b"\n", pos)
                if end < 0:
                    break
                if end > pos:
                    out.append(bytes(buf[pos:end]))
                pos = end + 1
                continue
            end = buf.find(b"\r\n\r\n", pos)
            if end < 0:
                break
            length = None
            for line in bytes(buf[pos:end]).split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.strip().lower() == b"content-length":
                    length = int(value)
                    self.header = line[: len(line) - len(value.lstrip())]
            if length is None:
                raise BenchError(f"frame without Content-Length: {bytes(buf[pos:end])!r}")
            if len(buf) < end + 4 + length:
                break
            pos = end + 4 + length
            out.append(bytes(buf[end + 4 : pos]))
        del buf[:pos]
        return out


class Dialect:
    """How one server wants its requests framed and worded."""

    def __init__(self, framing: str, dialect: str, loose: bool) -> None:
        self.framing, self.dialect, self.loose = framing, dialect, loose

    def frame(self, body: bytes) -> bytes:
        if self.framing == "newline":
            return body + b"\n"
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def message(self, **members) -> bytes:
        text = json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":"), ensure_ascii=False)
        return self.frame(text.encode())

    def request(self, rid: int, method: str, params) -> bytes:
        if self.dialect == "mcp":
            return self.message(id=rid, method="tools/call", params={"name": method, "arguments": params})
        return self.message(id=rid, method=method, params=params)

    def check(self, body: bytes, params) -> None:
        """One reply, decoded: it must be a result, and (unless loose) the params."""
        reply = json.loads(body)
        if "error" in reply or "result" not in reply:
            raise BenchError(f"not a result: {body[:300]!r}")
        result = reply["result"]
        if self.dialect == "mcp":
            if result.get("isError"):
                raise BenchError(f"tool error: {body[:300]!r}")
            result = result.get("structuredContent")
        if not self.loose and result != params:
            raise BenchError(f"reply is not the params: {body[:300]!r}")


def small_params(seq: int) -> dict:
    return {
        "seq": seq,
        "uri": "untitled:main.py",
        "position": {"line": 120, "character": 17},
        "text": "lorem ipsum",
    }


def small_frames(d: Dialect, n: int, first: int = FIRST_ID, pad: int = 0) -> list[bytes]:
    """n echo requests; id and seq are both the running number."""

    def params(seq):
        p = small_params(seq)
        if pad:
            p["text"] = "x" * pad
        return p

    # 7_777_777 is a placeholder of the ids' width
    template = d.request(7_777_777, "echo", params(7_777_777))
    parts = template.split(b"7777777")
    assert len(parts) == 3, parts
    a, b, c = parts
    return [b"%b%d%b%d%b" % (a, i, b, i, c) for i in range(first, first + n)]


def big_params(kind: str, size: int) -> dict:
    if kind == "str":  # source-like text: quotes, tabs and newlines to escape
        line = 'def handle_%06d(self, params):\n\treturn self.echo("%06d", params)\n'
        text = "".join(line % (i, i) for i in range(size // 60))
        while len(json.dumps(text)) > size:
            text = text[: -max(1, (len(json.dumps(text)) - size) // 2)]
        return {"text": text}
    if kind == "ustr":  # the same with 2-, 3- and 4-byte characters
        text = "naïve → “déjà vu” ✓ 🙂 plain ascii words in between\n"
        n = size // len(json.dumps(text, ensure_ascii=False).encode())
        return {"text": text * n}
    items = []
    total = 0
    i = 0
    while total < size:
        span = {"start": {"line": i, "character": 4}, "end": {"line": i + 9, "character": 0}}
        item = {
            "name": f"symbol_{i:06d}",
            "kind": 12,
            "deprecated": False,
            "score": 0.5,
            "detail": None,
            "tags": [1, 2],
            "range": span,
            "selectionRange": span,
            "children": [{"name": f"child_{i:06d}_{j}", "kind": 13, "range": span, "children": []} for j in range(3)],
        }
        if i % 100 == 0:  # and some depth
            for _ in range(40):
                item = {"name": "outer", "children": [item]}
        items.append(item)
        total += len(json.dumps(item, separators=(",", ":"))) + 1
        i += 1
    return {"items": items}
