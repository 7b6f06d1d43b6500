"""What the doctor finds in the environment, in daemons that are well or ill, and in what clients of each dialect would see."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from discreet import lsp
from discreet.cli.conversation import DaemonLog, Finding, ListedTool, converse, faults_of, lsp_hello, unknown_members
from discreet.cli.main import main
from discreet.cli.verbs import doctor
from discreet.cli.verbs.doctor import CHECKS, EXTRAS, check_extras, check_limits, check_log, check_settings
from discreet.daemon.settings import Resolved, Settings, resolve_settings
from discreet.dialects.lsp.capabilities import slips

EXAMPLES = Path(__file__).parents[2] / "examples"


def found(check: Any, chosen: Settings | None = None) -> list[Finding]:
    return list(check(Resolved(chosen or Settings(root="/"), {}), {}))


def statuses(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.check, finding.status) for finding in findings}


# -- the environment ----------------------------------------------------------------------------------------------------


def test_of_every_extra_that_is_missing_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["optional-dependencies"]
    assert EXTRAS.keys() - {"trio"} == declared.keys() - {"docs", "test", "dev"}
    for extra, (module, _, _) in EXTRAS.items():
        assert extra == "trio" or declared[extra][0].lower().replace("-", "_").removeprefix("py").startswith(module)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    told = found(check_extras)
    assert {finding.status for finding in told} == {"ok"}
    for (extra, (_, _, install)), finding in zip(EXTRAS.items(), told, strict=True):
        assert finding.message.startswith(f"{extra}: ")
        assert finding.message.endswith(f"pip install {install}")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_check_fails_where_these_tests_run(check: Any) -> None:
    assert "fail" not in {finding.status for finding in found(check)}


def test_each_setting_is_shown_with_its_source() -> None:
    environ = {"DISCREET_MAX_CONCURRENCY": "3", "DISCREET_SCOPE": "a b", "DISCREET_ELSEWHERE_BOT": "x"}
    findings = list(check_settings(resolve_settings({}, environ, "/"), environ))
    said = [finding.message for finding in findings if finding.status == "ok"]
    assert said == ["scope = a, b (from DISCREET_SCOPE)", "max-concurrency = 3 (from DISCREET_MAX_CONCURRENCY)"]
    assert [f.status for f in findings if "DISCREET_ELSEWHERE_BOT" in f.message] == ["warn"]


@pytest.mark.parametrize(
    "chosen", [Settings(request_timeout=None), Settings(drain_timeout=60.0)], ids=["request-timeout", "drain-timeout"]
)
def test_settings_that_may_surprise_are_named(chosen: Settings) -> None:
    assert ("limits", "warn") not in statuses([f for f in found(check_limits) if "timeout" in f.message])
    assert ("limits", "warn") in statuses([f for f in found(check_limits, chosen) if "timeout" in f.message])


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_more_requests_than_open_files_are_named() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        few, many = (
            [finding.status for finding in found(check_limits, Settings(max_threads=n)) if "files" in finding.message]
            for n in (64, 600)
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (few, many) == (["ok"], ["warn"])


def test_a_log_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    for path, status in (
        (None, "ok"),
        ("", "ok"),
        (str(tmp_path / "log"), "ok"),
        (str(tmp_path / "new"), "ok"),
        (str(tmp_path), "warn"),
        (str(tmp_path / "none" / "log"), "warn"),
    ):
        assert [finding.status for finding in found(check_log, Settings(log_file=path))] == [status]


# -- daemons that are well or ill -----------------------------------------------------------------------------------------

WELL = """
import json, os, signal, sys, time
def out(body): os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
def answer(first=b'{"id":%d,"jsonrpc":"2.0","result":{}}'):
    for text in (first, b'{"id":%d,"jsonrpc":"2.0","result":[]}'):
        message = json.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline().split()[1]) + 2))
        out(text % message["id"])
def to_the_end():
    while os.read(0, 65536): pass
"""
PEER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    {body}
"""


def talked(code: str, dialect: str = "plain", **seconds: float) -> list[Finding]:
    """What is found of a program that plays a server."""
    text, framing = (
        (WELL + code, "content-length") if dialect in ("plain", "lsp") else (PEER.replace("{body}", code), "newline")
    )
    command = [sys.executable, "-I", "-c", text]
    return anyio.run(partial(converse, command, framing, dialect, **{"drain_seconds": 3600.0, **seconds}))


def test_a_daemon_that_is_well_passes() -> None:
    assert [(each.check, each.status) for each in talked("answer(); to_the_end()")] == [
        ("reply", "ok"),
        ("plain", "ok"),
        ("plain", "warn"),  # it has no operations
        ("end", "ok"),
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("to_the_end()", ("reply", "fail")),
        ("os.write(2, b'first\\ncannot start\\n'); sys.exit(2)", ("end", "fail")),
        ("os.write(1, b'banner'); to_the_end()", ("reply", "fail")),
        ("answer(); to_the_end(); sys.exit(1)", ("end", "fail")),
        ("answer(); to_the_end(); time.sleep(0.7)", ("end", "warn")),
        ('os.write(2, b\'{"event":"lifespan.not_left","level":"warn"}\\n\'); answer(); to_the_end()', ("log", "warn")),
    ],
)
def test_what_is_wrong_with_a_daemon_is_found(code: str, found: tuple[str, str]) -> None:
    findings = talked(code, answer_seconds=0.3 if found[0] == "reply" else 10.0, drain_seconds=0.1)
    assert found in statuses(findings)
    assert ("cannot start" in code) == any("cannot start" in finding.message for finding in findings)


def test_what_the_apps_wrote_is_shown() -> None:
    log = DaemonLog()
    log.add('{"event":"stdout.stray","level":"warn","text":"hello\\nthere"}')
    (finding,) = log.findings("warn")
    assert finding.message.endswith(": hello\\nthere")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are the subject")
def test_a_daemon_that_does_not_end_is_killed_and_said_so(tmp_path: Path) -> None:
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); open({!r}, 'w').write(str(os.getpid())); answer(); signal.pause()"
    findings = talked(code.format(str(tmp_path / "pid")), end_seconds=0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert ("end", "fail") in statuses(findings)


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
def test_a_server_that_breaks_the_handshake_is_a_finding_in_bounded_time(dialect: str, body: str, found: str) -> None:
    finding, _ = talked(body, dialect, answer_seconds=0.3 if body == "pass" else 10.0)
    assert (finding.check, finding.status) == ("reply", "fail")
    assert found in finding.message


def test_a_conversation_that_takes_too_long_is_a_finding() -> None:
    finding, _ = talked("pass", "mcp", total_seconds=0.2)
    assert finding == Finding("reply", "fail", "initialize: the conversation took longer than 0.2 s")


LANGUAGE_SERVER = """
while line := sys.stdin.buffer.readline():
    message = json.loads(sys.stdin.buffer.read(int(line.split()[1]) + 2))
    if message["method"] == "exit":
        sys.exit(3)
    if "id" in message:
        out(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": {}}}).encode())
"""


def test_a_language_server_that_ends_with_a_failure_and_offers_nothing_is_said_so() -> None:
    findings = talked(LANGUAGE_SERVER, "lsp")
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


@pytest.mark.parametrize(("methods", "status"), [('[{"id": "key", "name": "A key"}]', "warn"), ("[]", "fail")])
def test_a_session_that_wants_a_sign_in_is_a_failure_only_where_there_is_no_way_to(methods: str, status: str) -> None:
    *_, signing_in, session, _ = talked(AGENT.replace("{methods}", methods), "acp")
    assert signing_in.message == ("ways to sign in: key" if status == "warn" else "ways to sign in: none")
    assert (session.check, session.status) == ("acp", status)


# -- our own daemon -------------------------------------------------------------------------------------------------------


def report(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[tuple[str, str, str]]]:
    """The exit status, and of each finding its check, status and message."""
    status = main(["doctor", "--json", *argv])
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is (status == 0)
    return status, [(each["check"], each["status"], each["message"]) for each in told["findings"]]


def said(findings: list[tuple[str, str, str]], check: str) -> list[tuple[str, str]]:
    return [(status, message) for name, status, message in findings if name == check]


@pytest.mark.parametrize("framing", ["newline", "auto"])
def test_our_own_daemon_passes(framing: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, "--framing", framing)
    assert (status, [message for _, level, message in findings if level == "fail"]) == (0, [])
    assert {"reply", "plain", "end"} <= {check for check, _, _ in findings}


def test_the_report_for_people_has_a_line_per_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("ok ", "warn ", "fail ")) for line in lines[:-2])
    assert lines[-1].startswith("0 failed")


LOUD = """
from discreet import Service
import os
print("a banner")
os.system("echo from a child")
svc = Service("svc")
svc.query("textDocument/hover")(lambda: None)
"""


def test_what_the_log_warns_of_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loud_app.py").write_text(LOUD)
    status, findings = report(capsys, f"{tmp_path / 'loud_app.py'}:svc")
    undeclared, *stray = said(findings, "log")[1:]
    assert (status, {level for level, _ in (undeclared, *stray)}) == (0, {"warn"})
    assert "write Service(…, dialect='lsp')" in undeclared[1]
    printed = "".join(message for _, message in stray)
    assert "a banner" in printed and "from a child" in printed


@pytest.mark.parametrize("dialect", ["plain", "lsp"])
def test_an_app_that_cannot_be_imported_is_found(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, "no_such_module_anywhere:svc", "--dialect", dialect)
    assert status == 1
    assert {check for check, level, _ in findings if level == "fail"} == {"reply", "end"}
    assert said(findings, dialect) == []
    assert "no_such_module_anywhere" in said(findings, "reply")[0][1]


SECRET = "Willow-Hollow-86"


@pytest.mark.parametrize(
    "flag",
    [
        f"--import=x=https://ann:{SECRET}@api.example.org/openapi.json?token={SECRET}",
        f"--http-url=https://ann:{SECRET}@shop.example.org",
        f"--http-origin=https://ann:{SECRET}@shop.example.org",
        f"--store=postgresql://svc:p@ss/{SECRET}@db.example.org/x?password={SECRET}",
        f"--store=redis://:{SECRET}@cache:6379/0",
        f"--jwt-jwks=https://id.example.org/keys?token={SECRET}",
        f"--log-file=/tmp/x?password={SECRET}",
        f"--log-level={SECRET}",
        f"--http=https://ann:{SECRET}@localhost:1",
    ],
)
def test_no_secret_of_a_setting_is_in_a_report(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", flag])
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err


def test_settings_that_cannot_be_read_are_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, "--framing=bogus")
    assert (status, [(check, level) for check, level, _ in findings]) == (1, [("settings", "fail")])


@pytest.mark.parametrize("flags", [["--tcp", "127.0.0.1:0"], ["--http", "127.0.0.1:0", "--no-stdio"]])
def test_a_daemon_without_stdin_is_not_tried(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, *flags)
    assert status == 0
    ((level, message),) = said(findings, "reply")
    assert level == "warn"
    assert f"which {flags[0] if flags[0] == '--tcp' else '--no-stdio'} closes" in message


# -- what clients of each dialect see -------------------------------------------------------------------------------------


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
    tools = [re.fullmatch(r"tool (\w+): (\d+) bytes, about (\d+) tokens, .*", message) for message in messages[3:6]]
    sizes = [int(found[2]) for found in tools if found]
    assert {found[1] for found in tools if found} == {"shop_look", "shop_order", "shop_restock"}
    assert sizes == sorted(sizes, reverse=True)
    assert messages[6] == f"3 tools, {sum(sizes)} bytes, about {round(sum(sizes) / 4)} tokens in each conversation"
    assert messages[7:] == ["resource shop://stock", "resource template shop://items/{name}", "prompt shop_compare"]


def test_what_an_editor_sees_of_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, str(EXAMPLES / "acp_agent" / "tidy.py") + ":agent", "--dialect", "acp")
    assert status == 0
    http = "" if find_spec("h11") is None else "mcpCapabilities.http, "
    able = f"promptCapabilities.embeddedContext, {http}sessionCapabilities.additionalDirectories, sessionCapabilities.close"
    assert said(findings, "acp") == [
        ("ok", "agent: Tidier 1.0.0, protocol 1"),
        ("ok", f"can do: {able}"),
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


# -- servers that are ill in their dialect --------------------------------------------------------------------------------

APP = """
from contextlib import asynccontextmanager
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

@asynccontextmanager
async def unclean():
    yield
    raise RuntimeError("the index is open")

deaf = Service("deaf", dialect="lsp", lifespan=unclean)

@deaf.notification("initialized")
def started(colour: str) -> None:
    "Take params that no editor sends."

useless = Service("useless", dialect="lsp")
useless.query(name="shop/price")(lambda: 1)

linter = Service("linter", dialect="lsp")

@linter.notification("textDocument/didSave")
def check(params: lsp.DidSaveTextDocumentParams, /) -> None:
    "Look again."
"""


@pytest.fixture
def apps(tmp_path: Path) -> str:
    path = tmp_path / "ill_apps.py"
    path.write_text(APP)
    return str(path)


def test_a_declaration_that_the_dialect_refuses_is_found(apps: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, findings = report(capsys, f"{apps}:twice", "--dialect", "auto")
    assert status == 1
    ((failed, message),) = said(findings, "reply")
    assert failed == "fail"
    assert "are both the tool shop_price" in message
    assert said(findings, "mcp") == []


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
    assert said(findings, "log") == [("ok", "stderr")]  # the doctor's own questions are no news
    assert registered == 'registers workspace/didChangeWatchedFiles {"watchers":[{"globPattern":"**/*.txt"}]}'


def test_what_fails_without_an_answer_is_a_warning_with_its_reason(
    apps: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, findings = report(capsys, f"{apps}:deaf")
    assert status == 0
    assert said(findings, "log")[1:] == [
        ("warn", "request.failed: method=initialized, failure=INVALID_INPUT, param=colour"),
        ("warn", "lifespan.failed: RuntimeError: the index is open"),
    ]


@pytest.mark.parametrize(("app", "warned"), [("useless", True), ("watching", False), ("linter", False)])
def test_a_language_server_that_is_of_no_use_to_editors_is_a_warning(
    app: str, warned: bool, apps: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, findings = report(capsys, f"{apps}:{app}")
    assert any("announces nothing" in message for _, message in said(findings, "lsp")) is warned


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


def test_tools_that_cost_a_model_more_than_the_conversation_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "many.py").write_text(MANY, encoding="utf-8")
    command = (f"{tmp_path / 'many.py'}:many", "--dialect", "mcp")
    for flags, told in (((), ("warn", "; --tool-search lists two in their place")), (("--tool-search",), ("ok", ""))):
        _, findings = report(capsys, *command, *flags)
        ((status, total),) = [each for each in said(findings, "mcp") if " in each conversation" in each[1]]
        assert (status, total.partition(" in each conversation")[2]) == told
        assert total.startswith("2 tools, " if flags else "50 tools, ")


MANY = """
from discreet import Service

many = Service("many", description="Has many tools.")
for number in range(50):
    many.query(name=f"many/tool{number}", description="Does one of many things. " * 50)(lambda: 1)
"""


# -- what models refuse, and what LSP does not have ------------------------------------------------------------------------


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
