"""What the doctor says that editors, hosts and agents' clients would see of a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from discreet import lsp
from discreet.cli.conversation import Finding, ListedTool, converse, faults_of, lsp_hello, unknown_members
from discreet.cli.main import main
from discreet.client.dialects import DIALECTS
from discreet.dialects.lsp.capabilities import slips

CAPABILITIES = [
    "promptCapabilities.embeddedContext",
    "sessionCapabilities.additionalDirectories",
    "sessionCapabilities.close",
]
EXAMPLES = Path(__file__).parents[2] / "examples"


def report(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[tuple[str, str, str]]]:
    """The exit status, and of each finding its check, status and message."""
    status = main(["doctor", "--json", *argv])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return status, [(each["check"], each["status"], each["message"]) for each in findings]


def said(findings: list[tuple[str, str, str]], check: str) -> list[tuple[str, str]]:
    return [(status, message) for name, status, message in findings if name == check]


# Servers that are well


def test_what_an_editor_sees_of_a_language_server_that_declares_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, str(EXAMPLES / "language_server" / "todo_server.py") + ":todo")
    assert status == 0
    assert said(findings, "lsp") == [
        ("ok", "server: todo 1.0"),
        ("ok", "positions are utf-8 for an editor that offers utf-8, utf-16 and utf-32"),
        ("ok", 'announces completionProvider {"triggerCharacters":["#"]}'),
        ("ok", 'announces diagnosticProvider {"interFileDependencies":false,"workspaceDiagnostics":false}'),
        ("ok", "announces hoverProvider"),
        ("ok", "announces renameProvider"),
        ("ok", 'announces workspace {"workspaceFolders":{"supported":true,"changeNotifications":true}}'),
        ("ok", "commands: todo.finish_all"),
    ]


def test_what_a_host_of_mcp_sees(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, str(EXAMPLES / "mcp_shop" / "shop.py") + ":shop", "--dialect", "mcp")
    assert status == 0
    seen = said(findings, "mcp")
    assert {each for each, _ in seen} == {"ok"}
    messages = [message for _, message in seen]
    assert messages[:3] == [
        "server: shop 1.0.0",
        "initialize agrees on 2025-11-25",
        "server/discover offers 2026-07-28",
    ]
    assert [message.partition(":")[0] for message in messages[3:6]] == [
        "tool shop_look",
        "tool shop_order",
        "tool shop_restock",
    ]
    assert messages[7:] == ["resource shop://stock", "resource template shop://items/{name}", "prompt shop_compare"]


def test_what_an_editor_sees_of_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, str(EXAMPLES / "acp_agent" / "tidy.py") + ":agent", "--dialect", "acp")
    assert status == 0
    assert said(findings, "acp") == [
        ("ok", "agent: Tidier 1.0.0, protocol 1"),
        ("ok", f"can do: {', '.join(CAPABILITIES)}"),
        ("ok", "ways to sign in: none"),
        ("ok", "session/new opens a session"),
    ]


def test_a_server_of_every_dialect_is_tried_in_each(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, str(EXAMPLES / "mcp_shop" / "shop.py") + ":shop", "--dialect", "auto")
    assert status == 0
    assert said(findings, "plain") == [
        ("ok", "server: shop 1.0.0"),
        ("ok", "6 operations: query 4, mutation 1, subscription 1"),
    ]
    assert said(findings, "lsp")[0] == ("ok", "server: shop 1.0.0")
    assert ("ok", "server/discover offers 2026-07-28") in said(findings, "mcp")
    assert ("ok", "command /shop/order") in said(findings, "acp")


# Servers that are ill

APP = """
import msgspec
from discreet import OperationError, Service, lsp

class Own(OperationError, code="OWN", number=-32042):
    "A number that MCP keeps for itself"

twice = Service()
twice.query(name="shop/price")(lambda: 1)
twice.query(name="shop_price")(lambda: 1)

refusing = Service("refusing", dialect="lsp")

@refusing.initialize
def refuse(params: lsp.InitializeParams, /) -> None:
    raise RuntimeError("the index is broken")

watching = Service("watching", dialect="lsp")
options = {"watchers": [{"globPattern": "**/*.txt"}]}

@watching.notification("workspace/didChangeWatchedFiles", options=options)
def changed(params: lsp.DidChangeWatchedFilesParams, /) -> None:
    "Look again."

bare = Service("", dialect="mcp")

class Pen(msgspec.Struct, tag=True):
    colour: str

class Desk(msgspec.Struct, tag=True):
    width: int

@bare.query(name="x" * 70)
def find(params: Pen | Desk, /) -> str:
    return ""

@bare.prompt
def ask() -> str:
    return "well?"
"""


@pytest.fixture
def apps(tmp_path: Path) -> str:
    path = tmp_path / "ill_apps.py"
    path.write_text(APP)
    return str(path)


@pytest.mark.parametrize("dialect", ["mcp", "auto"])
def test_a_declaration_that_the_dialect_refuses_is_found(
    apps: str, dialect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, findings = report(capsys, f"{apps}:twice", "--dialect", dialect)
    assert status == 1
    ((failed, message),) = said(findings, "reply")
    assert failed == "fail"
    assert "are both the tool shop_price" in message
    assert said(findings, "mcp") == []


def test_methods_of_editors_in_a_server_of_plain_json_rpc_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words_app.py").write_text(
        'from discreet import Service\nwords = Service("words")\n@words.query("textDocument/hover")\ndef hover() -> None: ...\n'
    )
    status, findings = report(capsys, f"{tmp_path / 'words_app.py'}:words")
    _, (level, message) = said(findings, "log")
    assert (status, level) == (0, "warn")
    assert "write Service(…, dialect='lsp')" in message


def test_an_app_that_cannot_be_imported_is_found_in_every_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, "no_such_module_anywhere:svc", "--dialect", "lsp")
    assert (status, said(findings, "lsp")) == (1, [])
    assert "no_such_module_anywhere" in said(findings, "reply")[0][1]


def test_a_handshake_that_is_refused_is_found(apps: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, f"{apps}:refusing")
    assert status == 1
    ((failed, message),) = said(findings, "reply")
    assert failed == "fail"
    assert message.startswith("initialize: refused with -32603 ")
    assert message.endswith("stderr: handler.failed: RuntimeError: the index is broken")


def test_what_the_doctor_says_first_is_what_an_editor_may_say() -> None:
    assert msgspec.convert(dict(lsp_hello()), lsp.InitializeParams)


def test_what_is_registered_after_the_handshake_is_shown(apps: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, f"{apps}:watching")
    assert status == 0
    (registered,) = [message for _, message in said(findings, "lsp") if message.startswith("registers")]
    assert registered == 'registers workspace/didChangeWatchedFiles {"watchers":[{"globPattern":"**/*.txt"}]}'


def test_what_models_and_hosts_would_miss_is_a_warning(apps: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, f"{apps}:bare", "--framing", "content-length")
    assert status == 0
    framing, instructions, tool, prompt = (message for each, message in said(findings, "mcp") if each == "warn")
    assert framing == "clients of mcp use --framing newline, and the framing is content-length"
    assert instructions.startswith("no instructions")
    assert "characters; Claude Code takes 64" in tool  # the name itself was cut
    assert "no description" in tool
    assert "the input schema has anyOf at the top" in tool
    assert prompt == "prompt ask: no description"


# Servers that are not ours

PEER = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    {body}
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("pass", "initialize: no answer to initialize within 0.3 s"),
        ("sys.stderr.write('discreet: broken\\n'); sys.exit(2)", "stderr: discreet: broken"),
        ("print('no json', flush=True)", "initialize: "),
        ("print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': 1}), flush=True)", "initialize: "),
    ],
    ids=["silent", "ending", "garbage", "another shape"],
)
@pytest.mark.parametrize("dialect", ["mcp", "acp"])
async def test_a_server_that_breaks_the_handshake_is_a_finding_in_bounded_time(
    dialect: Any, body: str, found: str
) -> None:
    command = [sys.executable, "-I", "-c", PEER.replace("{body}", body)]
    finding, _ = await converse(
        command, DIALECTS[dialect].framing, dialect, answer_seconds=0.3 if body == "pass" else 10.0
    )
    assert (finding.check, finding.status) == ("reply", "fail")
    assert found in finding.message


@pytest.mark.anyio
async def test_a_conversation_that_takes_too_long_is_a_finding() -> None:
    command = [sys.executable, "-I", "-c", PEER.replace("{body}", "pass")]
    finding, _ = await converse(command, "newline", "mcp", total_seconds=0.2)
    assert finding == Finding("reply", "fail", "initialize: the conversation took longer than 0.2 s")


LANGUAGE_SERVER = """
import json, os, sys
def write(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
while line := sys.stdin.buffer.readline():
    message = json.loads(sys.stdin.buffer.read(int(line.split()[1]) + 2))
    if message["method"] == "exit":
        sys.exit(3)
    if "id" in message:
        write({"id": message["id"], "result": {"capabilities": {}}})
"""


@pytest.mark.anyio
async def test_a_language_server_that_ends_with_a_failure_and_offers_nothing_is_said_so() -> None:
    command = [sys.executable, "-I", "-c", LANGUAGE_SERVER]
    findings = await converse(command, "content-length", "lsp")
    assert [(finding.status, finding.message) for finding in findings[1:-1]] == [
        ("ok", "server: without a name"),
        ("ok", "positions are utf-16 for an editor that offers utf-8, utf-16 and utf-32"),
        ("warn", "announces nothing: an editor will send documents and ask nothing"),
    ]
    assert (findings[-1].check, findings[-1].status) == ("end", "fail")


AGENT = """if message["method"] == "initialize":
        reply = {"result": {"protocolVersion": 1, "authMethods": {methods}}}
    else:
        reply = {"error": {"code": -32000, "message": "Authentication required"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""


@pytest.mark.anyio
@pytest.mark.parametrize(("methods", "status"), [('[{"id": "key", "name": "A key"}]', "warn"), ("[]", "fail")])
async def test_a_session_that_wants_a_sign_in_is_a_failure_only_where_there_is_no_way_to(
    methods: str, status: str
) -> None:
    command = [sys.executable, "-I", "-c", PEER.replace("{body}", AGENT.replace("{methods}", methods))]
    *_, signing_in, session, _ = await converse(command, "newline", "acp")
    assert signing_in.message == ("ways to sign in: key" if status == "warn" else "ways to sign in: none")
    assert (session.check, session.status) == ("acp", status)


# What models refuse


@pytest.mark.parametrize(
    ("tool", "server", "refused_by"),
    [
        (ListedTool("look", "Look."), "shop", []),
        (ListedTool("look"), "shop", ["no description"]),
        (ListedTool("x" * 65, "Look."), "shop", ["OpenAI, Google and Claude Code"]),
        (ListedTool("x" * 53, "Look."), "shop", []),
        (ListedTool("x" * 54, "Look."), "shop", ["Claude Code"]),
        (ListedTool("look", "Look.", {"anyOf": []}), "shop", ["Anthropic and OpenAI"]),
        (ListedTool("look", "Look.", {"properties": {"a b": {}, "c": {}}}), "shop", ["the param a b"]),
    ],
)
def test_what_the_providers_of_models_refuse_is_named(tool: ListedTool, server: str, refused_by: list[str]) -> None:
    faults = list(faults_of(tool, server))
    assert len(faults) == len(refused_by)
    for fault, name in zip(faults, refused_by, strict=True):
        assert name in fault


# What LSP does not have


@pytest.mark.parametrize(
    ("capabilities", "line"),
    [
        (
            {"hoverProvidr": True},
            "hoverProvidr is no member of LSP's ServerCapabilities; nearest: hoverProvider; editors ignore it",
        ),
        (
            {"hoverProvider": {"triggerCharacters": ["#"]}},
            "hoverProvider.triggerCharacters is no member of LSP's HoverOptions; editors ignore it",
        ),
        ({"completionProvider": "yes"}, "completionProvider must be CompletionOptions in LSP"),
        ({"hoverProvider": True, "completionProvider": {}, "experimental": {"mine": 1}}, ""),
        ({"textDocumentSync": {"openClose": True, "change": 2}, "positionEncoding": "utf-8"}, ""),
        ({"semanticTokensProvider": {"legend": {}, "full": {"delta": True}, "range": True}}, ""),
    ],
)
def test_what_is_announced_and_not_lsps_is_named(capabilities: dict[str, Any], line: str) -> None:
    assert list(unknown_members(capabilities)) == ([line] if line else [])


def test_a_method_that_is_nearly_lsps_is_named() -> None:
    near = "textDocument/hovr is no method of LSP; nearest: textDocument/hover; editors never call it"
    assert list(slips(["textDocument/hover", "textDocument/hovr", "words/count", "experimental/ssr"])) == [near]
