"""Types that msgspec meets for the first time, in many threads at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import discreet
from discreet.errors.decoders import MAX_CACHED, _decoders, decoder_for

PACKAGE = Path(discreet.__file__).parent

THREADS_MEET_FRESH_TYPES = """
import sys, threading
import anyio, msgspec
from discreet import Context, Service
from discreet.testing import in_memory

ROUNDS, THREADS = 60, 8
shop = Service("shop", uses=["shop/item"])
ITEM = {"inner": {"a": 1, "b": ["x"], "c": {}}, "many": []}
kinds = {}

@shop.query()
def item() -> dict[str, object]:
    return ITEM

@shop.query(timeout=None)
def meet(ctx: Context, n: int, way: str) -> str:
    barrier, kind = kinds[n]
    ctx.progress(n)
    if way == "call":
        get = lambda: ctx.call_blocking("shop/item", type=kind)
    else:
        get = lambda: ctx.request_blocking("client/item", type=kind)
    barrier.wait(20)
    return type(get().inner).__name__

async def main():
    async with in_memory(shop) as peer:
        async def give(params: object) -> object:
            return ITEM
        peer.on_request("client/item", give)
        for n in range(ROUNDS):
            inner = msgspec.defstruct("Inner", [("a", int), ("b", list[str]), ("c", dict[str, int])])
            kinds[n] = threading.Barrier(THREADS), msgspec.defstruct("Outer", [("inner", inner), ("many", list[inner])])
            async with anyio.create_task_group() as tasks:
                for m in range(THREADS):
                    tasks.start_soon(peer.call, "shop/meet", {"n": n, "way": WAYS[m % len(WAYS)]})
            del kinds[n]

sys.setswitchinterval(1e-6)
WAYS = sys.argv[1].split("+")
anyio.run(main)
print("alive")
"""


@pytest.mark.parametrize("ways", ["call", "call+request"])
def test_threads_that_meet_a_type_for_the_first_time_live_on(ways: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", THREADS_MEET_FRESH_TYPES, ways], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_decoders_are_kept_and_bounded() -> None:
    first = msgspec.defstruct("First", [("n", int)])
    assert decoder_for(first) is decoder_for(first)
    for number in range(MAX_CACHED):
        decoder_for(msgspec.defstruct(f"Type{number}", []))
    assert len(_decoders) <= MAX_CACHED
    assert decoder_for(first)(b'{"n": 1}') == first(1)


def late_builds(path: Path) -> Iterator[str]:
    """Where a function of this module has msgspec build a type by itself."""
    code = path.read_text(encoding="utf-8")
    if "msgspec" not in code and "inspect" not in code:
        return
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(code), False)]
    while pending:
        node, late = pending.pop()
        if late and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = ast.unparse(node.func)
            typed = any(keyword.arg == "type" for keyword in node.keywords)
            if (named.endswith("json.decode") and typed) or named in BUILDERS:
                yield f"{path.name}:{node.lineno}: {named}"
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending += [(child, late) for child in ast.iter_child_nodes(node)]


BUILDERS = {
    f"{module}.{name}"
    for module in ("msgspec", "msgspec.json", "msgspec.msgpack", "msgspec.inspect", "inspect", "types")
    for name in ("Decoder", "convert", "type_info", "schema", "schema_components")
}


def test_types_are_built_at_import_or_in_one_place() -> None:
    sources = [*PACKAGE.rglob("*.py")]
    for linked in (path.name for path in PACKAGE.iterdir() if path.is_symlink()):
        sources += (PACKAGE / linked).resolve().rglob("*.py")
    assert len(sources) > 100
    assert [line for path in sources if path.name != "decoders.py" for line in late_builds(path)] == []
