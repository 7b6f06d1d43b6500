"""The program: which command lines it takes, and a server behind two bridges, over HTTP and stdio."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from discreet.garbage import RELAYING, begin_start, end_start
from support.form_server import taking_forms
from support.http_process import HttpDaemon
from support.in_process import in_process
from support.programs import DISCREET, environment, finished, has_ended
from support.vault import SECRET, digest
from support.waits import DEADLINE_SECONDS, wait_until

from .conftest import SERVER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "either a URL, or the server's command line after `--`"),
        (["http://127.0.0.1:1/mcp", "--", "cat"], "either a URL, or the server's command line after `--`"),
        (["my-server"], "my-server: no http(s) URL"),
        (["ftp://a.example/mcp"], "no http(s) URL"),
        (["http://127.0.0.1:1/mcp", "./app.py:app"], "./app.py:app: one argument too many"),
        (["http://127.0.0.1:1/mcp", "--http-open"], "--http-open is for HTTP; add --http HOST:PORT"),
        (["--token-env", "HOME", "--", "cat"], "are for a server behind a URL"),
        (["--", "no-such-command-anywhere"], "can't run no-such-command-anywhere"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(words: list[str], told: str) -> None:
    result = in_process("bridge", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_wrong_with_a_setting_is_told_by_its_flag() -> None:
    result = finished([*DISCREET, "bridge", "--isolated", "--http", "0.0.0.0:0", "--", "cat"])
    assert (result.returncode, result.stdout) == (2, "")
    assert "--http-open" in result.stderr
    assert result.stderr.count("\n") == 1


def test_garbage_of_ended_sessions_is_collected_often(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = gc.get_threshold(), []

    def serve(*args: object, **more: object) -> int:
        end_start()  # as the daemon does, once it serves
        seen.append(gc.get_threshold())
        return 0

    monkeypatch.setattr("discreet.cli.verbs.bridge.serve", serve)
    try:
        begin_start()
        assert in_process("bridge", "http://127.0.0.1:1/mcp").returncode == 0
    finally:
        gc.set_threshold(*before)
    assert seen == [RELAYING]


@contextmanager
def http_bridge(*flags: str) -> Iterator[HttpDaemon]:
    command = [*DISCREET, "bridge", "--http", "127.0.0.1:0", "--isolated", *flags, "--", *SERVER.words]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield HttpDaemon(process).listening()
        finally:
            process.kill()


class StdioBridge:
    """A client over the pipes of `discreet bridge URL`."""

    def __init__(self, url: str, *flags: str, **more: str) -> None:
        self._process = subprocess.Popen(
            [*DISCREET, "bridge", url, "--isolated", *flags],
            env=environment(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.heard: list[Any] = []
        self.log = ""

    def send(self, message: dict[str, Any] | str) -> None:
        assert self._process.stdin is not None
        text = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def take(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def call(self, method: str, call_id: object = 1, **params: Any) -> Any:
        self.send({"id": call_id, "method": method, "params": params})
        while "method" in (message := self.take()):
            self.heard.append(message)
        assert message["id"] == call_id
        return message

    def begin(self) -> Any:
        answer = self.call("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
        self.send({"method": "notifications/initialized"})
        return answer["result"]

    def end(self) -> int:
        _, self.log = self._process.communicate(timeout=DEADLINE_SECONDS)
        return self._process.returncode

    def wait(self) -> int:
        return self._process.wait(DEADLINE_SECONDS)


def test_a_client_over_stdio_speaks_to_a_server_by_http_as_if_it_were_its_own() -> None:
    with http_bridge() as server:
        ours = StdioBridge(f"{server.url}mcp")
        pid = ours.begin()["pid"]
        params = '{"a":1.50,"_meta":{"own/x":{"n":null}}}'
        ours.send('{"jsonrpc":"2.0","id":"mine","method":"do/say","params":' + params + "}")
        answer = ours.take()
        assert answer["id"] == "mine"
        assert params in answer["result"]["line"]
        told = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1}}'
        ours.call("do/tell", message=told, _meta={"progressToken": "t"})
        assert ours.heard.pop()["params"] == {"progressToken": "t", "progress": 1}
        assert ours.call("do/fail", code=-32042)["error"]["data"] == {"why": [1.5, None]}
        lines = ours.call("do/seen")["result"]["lines"]
        assert [json.loads(line)["method"] for line in lines] == ["notifications/initialized"]
        assert ours.end() == 0
        wait_until(lambda: has_ended(pid))
        assert server.end() == 0


def test_the_server_asks_the_client_through_both_bridges() -> None:
    with http_bridge() as server:
        ours = StdioBridge(f"{server.url}mcp")
        ours.begin()
        ours.send({"id": 5, "method": "do/ask", "params": {"request": '{"jsonrpc":"2.0","id":"q","method":"own/q"}'}})
        question = ours.take()
        assert question["method"] == "own/q"
        ours.send('{"jsonrpc":"2.0","id":' + json.dumps(question["id"]) + ',"result":{"n":1.50}}')
        assert ours.take()["result"]["line"] == '{"jsonrpc":"2.0","id":"q","result":{"n":1.50}}\n'
        assert ours.end() == 0


def test_what_the_server_says_by_itself_is_heard_through_both_bridges() -> None:
    with http_bridge() as server:
        ours = StdioBridge(f"{server.url}mcp")
        ours.begin()
        ours.call("do/tell", message='{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
        heard = ours.heard or [ours.take()]
        assert heard == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
        assert ours.end() == 0


def test_a_client_without_sessions_listens_through_both_bridges() -> None:
    with http_bridge() as server:
        ours = StdioBridge(f"{server.url}mcp")
        ours.send({"id": "l", "method": "subscriptions/listen", "params": {"_meta": META, "notifications": {}}})
        for method in ("notifications/subscriptions/acknowledged", "notifications/tools/list_changed"):
            told = ours.take()
            assert (told["method"], told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]) == (method, "l")
            if "acknowledged" in method:
                ours.send({"id": 2, "method": "do/change", "params": {"_meta": META}})
        assert ours.take() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        assert ours.end() == 0
        assert "daemon.window_closed" not in ours.log  # who only listens is not waited for


def test_the_server_gets_the_token_that_is_named() -> None:
    with http_bridge("--token", f"ada:{digest(SECRET)}") as server:
        ours = StdioBridge(f"{server.url}mcp", "--token-env", "MCP_TOKEN", MCP_TOKEN=SECRET)
        assert ours.begin()["pid"]
        assert ours.end() == 0
        stranger = StdioBridge(f"{server.url}mcp")
        answer = stranger.call("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
        assert "error" in answer
        stranger.end()
        assert SECRET not in ours.log + stranger.log + server.log


def test_the_server_gets_the_tokens_of_an_oauth_client() -> None:
    issued = {"access_token": SECRET, "token_type": "Bearer"}
    with http_bridge("--token", f"ada:{digest(SECRET)}") as server, taking_forms(lambda _: issued) as issuer:
        text = f'[oauth]\ntoken-url = "{issuer.url}"\nclient-id = "c"\nclient-secret = "s3cret-of-c"\n'
        ours = StdioBridge(f"{server.url}mcp", "--token-env", "MCP_CLIENT", MCP_CLIENT=text)
        assert ours.begin()["pid"]
        assert ours.end() == 0
        wrong = StdioBridge(
            f"{server.url}mcp", "--token-env", "MCP_CLIENT", MCP_CLIENT=f'{text}grant = "token-exchange"'
        )
        assert wrong.end() == 2
        assert wrong.log.count("\n") == 1 and "token-exchange" in wrong.log
        assert "s3cret" not in ours.log + wrong.log
    assert [form["grant_type"] for form in issuer.asked] == ["client_credentials"]


TOOL = """
from typing import Annotated
import msgspec
from discreet import Service

shop = Service("shop")

@shop.query
async def find(region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
    return region
"""


def test_a_server_by_http_gets_the_arguments_that_it_wants_in_headers(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOL)
    command = [*DISCREET, "serve", "./shop.py:shop", "--http", "127.0.0.1:0", "--http-mcp", "--no-stdio", "--isolated"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            ours = StdioBridge(f"{HttpDaemon(process).listening().url}mcp")
            name = ours.call("tools/list", _meta=META)["result"]["tools"][0]["name"]
            found = ours.call("tools/call", name=name, arguments={"region": "Überall"}, _meta=META)
            assert "Überall" in json.dumps(found["result"], ensure_ascii=False)
            assert ours.end() == 0
        finally:
            process.kill()


def test_a_session_that_is_lost_ends_the_bridge_on_stdio() -> None:
    with http_bridge() as server:
        ours = StdioBridge(f"{server.url}mcp")
        ours.begin()
        assert ours.call("do/die")["error"]["code"] == -32603
        ours.send({"id": 9, "method": "do/say"})
        assert ours.take()["id"] == 9
        assert ours.wait() == 1
        ours.end()


def test_a_server_that_is_not_there_is_an_answer() -> None:
    ours = StdioBridge("http://127.0.0.1:9/mcp")
    answer = ours.call("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
    assert answer["error"]["data"]["code"] == "UNAVAILABLE"
    assert ours.end() == 0


def test_what_the_server_writes_to_stderr_is_in_the_log(tmp_path: Path) -> None:
    script = tmp_path / "noisy.py"
    script.write_text("import sys; print('on stderr', file=sys.stderr, flush=True); sys.stdin.read()")
    command = [*DISCREET, "bridge", "--http", "127.0.0.1:0", "--isolated", "--log-level", "info"]
    command += ["--", sys.executable, str(script)]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            daemon = HttpDaemon(process).listening()
            with daemon.connected() as client:
                body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":%b}}' % json.dumps(META).encode()
                client.send(
                    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                    b"mcp-protocol-version: 2026-07-28\r\nmcp-method: ping\r\ncontent-length: %d\r\n\r\n%b"
                    % (len(body), body)
                )
                assert "on stderr" in daemon.wait_for("import.stderr")
        finally:
            process.kill()
