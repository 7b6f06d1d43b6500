"""What people get wrong at a shell, and the one line that each of them reads. A row is a mistake; add the next one here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import discreet
from discreet import Service
from discreet.cli.commands import verbs
from discreet.cli.main import main
from discreet.cli.request import QUOTING
from support.frames import f
from support.in_process import in_process
from support.programs import DISCREET, finished

FILES: Final = {
    "shop.py": """
from discreet import Service

shop = Service("shop")
stock = Service("stock")
number = 5

@shop.query
def price(article: str) -> int:
    "Tell the price."
    return 1
""",
    "no_code.py": """
from discreet import OperationError


class Broke(OperationError):
    "It broke."
""",
    "no_annotation.py": """
from discreet import Service

shop = Service("shop")


@shop.query
def price(article):
    return 1
""",
    "in_library.py": "import fractions\n\nfractions.Fraction('x')\n",
    "no_module.py": "import not_there_at_all\n",
    "no_syntax.py": "x = = 1\n",
    "empty.py": "",
    "server.toml": "[server]\nordered = true\n",
    "text.toml": 'apps = "./shop.py:shop"\n',
    "typo.toml": "max-concurency = 5\n",
    "broken.toml": "apps = [\n",
}

ADDRESS: Final = "--http: expected HOST:PORT or unix:PATH"
TOKEN_FLAG: Final = (
    "--token: no flag holds a token; --token-env NAME names the variable that does, --token-file FILE the file"
)

MISTAKES: Final[dict[str, tuple[str, str]]] = {
    "a name that is no service": (
        "schema ./shop.py:number",
        "'./shop.py:number': neither a Service nor an Agent but of type int; the module has shop, stock",
    ),
    "a token that is none": (
        "serve --token foo",
        "--token, which is wrong: expected SUBJECT:SHA256[:SCOPE+SCOPE], with the SHA-256 of the token in 64 hex digits",
    ),
    "a credential that is none": ("serve --credential foo", "--credential, which is wrong: expected NAME=FILE"),
    "a module without a service": (
        "schema ./empty.py:shop",
        "'./empty.py:shop': there is no shop; the module has no Service",
    ),
    "a file without its folder": (
        "schema shop.py:shop",
        "'shop.py:shop': no installed module shop.py; to run ./shop.py write ./shop.py:shop",
    ),
    "a file that is not there": ("schema ./gone.py:shop", "'./gone.py:shop': there is no such file"),
    "a file without a name": (
        "shop.py",
        "shop.py: an app is a name in a file; write ./shop.py:shop or ./shop.py:stock",
    ),
    "the name of a file alone": (
        "shop",
        "shop: neither a command nor an app (pkg.module:name or ./file.py:name); write ./shop.py:shop or ./shop.py:stock",
    ),
    "a command misspelt": (
        "docter",
        "docter: neither a command nor an app (pkg.module:name or ./file.py:name); nearest: doctor",
    ),
    "a file misspelt": ("schema ./shpo.py:shop", "'./shpo.py:shop': there is no such file; nearest: ./shop.py"),
    "another program's verb": (
        "run ./shop.py:shop",
        "run: neither a command nor an app (pkg.module:name or ./file.py:name); nearest: serve",
    ),
    "a server's command line without its dashes": (
        "record -o r.jsonl discreet serve ./shop.py:shop",
        "the server's command line goes after `--`: -- discreet …",
    ),
    "an app in the place of the method": (
        "call ./shop.py:shop shop/price",
        "./shop.py:shop: an app is given with --app: discreet call METHOD --app ./shop.py:shop",
    ),
    "a file for what is printed": (
        "show r.jsonl --html -o r.html",
        "-o: unknown flag; what is printed is put into a file with > FILE",
    ),
    "a value behind a switch": (
        "serve ./shop.py:shop --reload true",
        "APP: true: expected pkg.module:name or ./file.py:name; a switch takes no value",
    ),
    "a param with a colon": (
        "call garden/plant name: oak",
        "name:: neither NAME=VALUE nor the only argument, a JSON object or array; write name=…",
    ),
    "a file of params as in curl": (
        "call m --json @p.json",
        "params: no JSON: @p.json: invalid character at character 1; a file is read from stdin: --json - < p.json",
    ),
    "help as a verb": ("help call", "help: write discreet call --help"),
    "the debugger of a daemon that call starts": (
        "call m --debug",
        "--debug: a flag of serve: put it into --server, or set DISCREET_DEBUG",
    ),
    "a word that is like no command": (
        "xyzzy",
        f"xyzzy: neither a command nor an app (pkg.module:name or ./file.py:name); commands: {', '.join(verbs())}",
    ),
    "a param as a flag": (
        "call m --song=1",
        "--song: unknown flag; nearest: --json; a param is written without dashes: song=…",
    ),
    "an app with the flag of call": (
        "generate python --app ./shop.py:shop",
        "--app: an app is an argument here, without a flag",
    ),
    "a switch with a value": ("serve --allow-write=true", "--allow-write: a switch takes no value"),
    "an error without a code": (
        "schema ./no_code.py:shop",
        "'./no_code.py:shop': its import failed (TypeError: Broke: an operation error needs code=\"…\" at no_code.py:5)",
    ),
    "a param without a type": (
        "schema ./no_annotation.py:shop",
        (
            "'./no_annotation.py:shop': operation shop/price: price: parameter 'article' has no annotation;"
            " annotate it with the type of the param (no_annotation.py:7)"
        ),
    ),
    "a module that is not installed": (
        "schema ./no_module.py:shop",
        "'./no_module.py:shop': its import failed (no module named not_there_at_all)",
    ),
    "no Python": (
        "schema ./no_syntax.py:shop",
        "'./no_syntax.py:shop': its import failed (SyntaxError: invalid syntax (no_syntax.py, line 1))",
    ),
    "another table's name": ("--config server.toml", "server.toml: server: unknown key; nearest: serve"),
    "a text for an array": (
        "--config text.toml",
        'text.toml: apps: expected an array of pkg.module:name or ./file.py:name: apps = ["./shop.py:shop"]',
    ),
    "no TOML": ("--config broken.toml", "broken.toml: not valid TOML, at its end"),
    "a settings file that is not there": ("--config gone.toml", "--config: there is no file gone.toml"),
    "a param without a value": (
        "call fs/read README.md",
        "README.md: neither NAME=VALUE nor the only argument, a JSON object or array",
    ),
    "a param twice": ("call fs/read path=a path=b", "path: given twice"),
    "params whose quotes the shell has taken": (
        "call m {song:1}",
        f"params: no JSON: {{song:1}}: expected '\"' at character 2{QUOTING}",
    ),
    "params whose blanks the shell has parted": (
        "call m {song: 1}",
        f"{{song:: neither NAME=VALUE nor the only argument, a JSON object or array{QUOTING}",
    ),
    "quotes of a word processor": (
        "call m --json {“song”:1}",
        "params: no JSON: {“song”:1}: expected '\"' at character 2; “ is no quote of JSON, \" is",
    ),
    "half a surrogate pair": (
        'call m --json {"note":"\\ud800"}',
        'params: no JSON: {"note":"\\ud800"}: half of a surrogate pair (\\ud800 to \\udfff) is no text',
    ),
    "a secret in what is no JSON": (
        "call m --json {password:hunter2secret",
        f"params: no JSON: {{password:<redacted>: expected '\"' at character 2{QUOTING}",
    ),
    "a value from a file that is not there": (
        "call fs/write content=@gone.txt",
        "content: there is no file gone.txt; a text that begins with @ is written as JSON: content='\"@gone.txt\"'",
    ),
    "a flag of serve for another server": (
        "call m --server x --root .",
        "--root is for discreet serve; put what your server needs into --server",
    ),
    "a token that is not there": ("call m --token-env GONE", "--token-env: GONE: there is no such variable"),
    "progress of a stream": ("call m --stream --progress", "--progress is for calls; a stream tells by its events"),
    "an address without a port": ("serve --http localhost", f"{ADDRESS}; the port is missing, such as 127.0.0.1:8000"),
    "a port alone": ("serve --http 8000", f"{ADDRESS}; the host is missing, such as 127.0.0.1:8000"),
    "a URL to listen on": ("serve --http http://127.0.0.1:8000", f"{ADDRESS}; without http://, and without a path"),
    "a port beyond the last": ("serve --http 127.0.0.1:65536", f"{ADDRESS}; the port is a number from 0 to 65535"),
    "an IPv6 address without brackets": (
        "serve --http ::1:8000",
        f"{ADDRESS}; an IPv6 address stands in brackets, such as [::1]:8000",
    ),
    "all addresses as a star": ("serve --http *:8000", f"{ADDRESS}; all addresses of this machine are 0.0.0.0"),
    "a path to listen on": (
        "serve --http ./agent.sock",
        f"{ADDRESS}; the path of a unix socket is written unix:PATH",
    ),
    "a unix socket without a path": ("serve --http unix:", f"{ADDRESS}; the path is missing"),
    "the port as another server has it": (
        "serve --port 8000",
        "--port: where to listen is given with --http HOST:PORT",
    ),
    **{
        f"{flags.partition(' ')[0]} without HTTP": (
            f"serve {flags}",
            f"{flags.partition(' ')[0]} is for HTTP; add --http HOST:PORT",
        )
        for flags in (
            "--http-cert shop.py",
            "--http-open",
            "--http-url http://x/",
            "--http-max-requests 3",
            "--no-stdio",
        )
    },
    "keys of MCP without MCP by HTTP": (
        "serve --http 127.0.0.1:0 --mcp-key shop.py",
        "--mcp-key is for MCP by HTTP; add --http-mcp",
    ),
    "a token as a flag": ("call GetTask --token X", TOKEN_FLAG),
    "an address in the place of the method": (
        "call http://127.0.0.1:8000/ GetTask",
        ("http://127.0.0.1:8000/: an address is given with --url: discreet call METHOD --url http://127.0.0.1:8000/"),
    ),
}
"""The command line, in the folder of `FILES`, and the line."""


PRELUDE: Final = """\
from contextlib import asynccontextmanager, contextmanager
from discreet import Context, OperationError, Service
from discreet.agents import Agent, Skill
shop = Service("shop")
"""

DECLARATIONS: Final[dict[str, tuple[str, str]]] = {
    "a context that is not the first": (
        "@shop.query\ndef price(article: str, ctx: Context) -> int: ...",
        "operation shop/price: price: parameter 'ctx' is the context, which comes first: write `def f(ctx: Context, …)` (d.py:5)",
    ),
    "a param that has the context's name": (
        "@shop.query\ndef price(ctx: int) -> int: ...",
        "operation shop/price: parameter 'ctx' is the context: annotate it Context, or rename the param (d.py:5)",
    ),
    "a context under another name": (
        "@shop.query\ndef price(context, article: str) -> int: ...",
        (
            "operation shop/price: price: parameter 'context' has no annotation; annotate it with the type of the param,"
            " or Context for what the handler may know and do (d.py:5)"
        ),
    ),
    "a stream of nothing in particular": (
        "from typing import AsyncIterator\n@shop.subscription\nasync def sold() -> AsyncIterator:\n    yield 1",
        "operation shop/sold: a subscription must be annotated AsyncIterator[T], where T is the type of its events (d.py:6)",
    ),
    "the function any": (
        "@shop.query\ndef price(article: any) -> int: ...",
        (
            "operation shop/price: price: parameter 'article' has an annotation that can't be decoded from JSON:"
            " any is a function; write Any of typing (d.py:5)"
        ),
    ),
    "a method": (
        "class Shop:\n    @shop.query\n    def price(self) -> int: ...",
        (
            "operation shop/price: Shop.price: parameter 'self' has no annotation; a handler is a function, not a method:"
            " declare it outside of the class (d.py:6)"
        ),
    ),
    "the decorator of the class": (
        "@Service.query\ndef price() -> int: ...",
        'write @shop.query of a service, shop = Service("shop"), not @Service.query (d.py:5)',
    ),
    "a decorator misspelt": (
        "@shop.querry\ndef price() -> int: ...",
        "its import failed (AttributeError: a service has no querry; nearest: query at d.py:5)",
    ),
    "a decorator of pygls": (
        '@shop.feature("textDocument/hover")\ndef hover() -> int: ...',
        (
            'its import failed (AttributeError: a service has no feature: a feature is a @service.query("textDocument/hover")'
            ' or a @service.notification("textDocument/didSave") at d.py:5)'
        ),
    ),
    "an error class twice": (
        'class Broke(OperationError, code="BROKE"): ...\n@shop.query(errors=[Broke, Broke])\ndef price() -> int: ...',
        "operation shop/price: errors lists Broke twice; remove one (d.py:6)",
    ),
    "a lifespan without its decorator": (
        'async def life():\n    yield\nshop = Service("shop", lifespan=life)',
        "service 'shop': the lifespan life must be an `async def` with `yield` under @asynccontextmanager of contextlib (d.py:7)",
    ),
    "a lifespan without a yield": (
        '@asynccontextmanager\nasync def life(): ...\nshop = Service("shop", lifespan=life)',
        "service 'shop': the lifespan life has no `yield`: what stands before it is run at the start, the rest at the end (d.py:7)",
    ),
    "an executor that takes too little": (
        (
            "class Clerk:\n    async def execute(self, events): ...\n    async def cancel(self, context, events): ...\n"
            'shop = Agent(Clerk(), name="Clerk", description="Works.")'
        ),
        "agent 'Clerk': the executor's execute is called with two arguments: `async def execute(self, context, events)` (d.py:8)",
    ),
    "an agent's option misspelt": (
        'shop = Agent(None, name="Clerk", description="Works.", skill=[])',
        "agent 'Clerk': there is no option skill; nearest: skills (d.py:5)",
    ),
}
"""What stands in an app's file, and what is said of it."""


PROGRAMS: Final = [
    ("shop, loglevel='info'", "there is no setting loglevel; nearest: log_level"),
    ("shop, scopes='a b'", "scopes must be a list of strings, not one string"),
    ("shop, reload=True", "reload: only for the command line, `discreet serve`"),
    ("'./shop.py:shop'", "neither a Service nor an Agent but of type str"),
    ("shop, max_threads='3'", "max_threads: expected a number, not str"),
    ("shop, ordered='yes'", "ordered: expected True or False, not str"),
    ("shop, log_level='verbose'", "log_level: expected one of "),
    ("shop, http='localhost'", "http: expected HOST:PORT or unix:PATH; the port is missing"),
    ("shop, http_cert='shop.py'", 'http_cert is for HTTP; add http="HOST:PORT"'),
    ("shop, no_stdio=True", 'no_stdio is for HTTP; add http="HOST:PORT"'),
    ("shop, isolated=True, config='x.toml'", "isolated reads no file, and config names one"),
]
"""What a program hands to `serve`, and how the line begins."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With all `FILES`."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_status_2(mistake: str, folder: Path) -> None:
    words, line = MISTAKES[mistake]
    done = in_process(*words.split(), folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"discreet: {line}\n")


@pytest.mark.parametrize("mistake", DECLARATIONS)
def test_a_wrong_declaration_is_one_line_with_its_place(mistake: str, folder: Path) -> None:
    text, line = DECLARATIONS[mistake]
    (folder / "d.py").write_text(PRELUDE + text + "\n", encoding="utf-8")
    done = in_process("schema", "./d.py:shop", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"discreet: './d.py:shop': {line}\n")


@pytest.mark.parametrize(("arguments", "line"), PROGRAMS)
def test_a_program_that_serves_wrongly_is_told_in_one_line(
    arguments: str, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        exec(f"discreet.serve({arguments})", {"discreet": discreet, "shop": Service("shop")})
    said = capsys.readouterr()
    assert said.err.startswith(f"discreet: {line}")
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)


def test_what_no_daemon_can_read_is_logged_with_what_was_meant(folder: Path) -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"version"}\n'
    greeting = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n'
    assert "--dialect mcp or acp" in finished([*DISCREET, "serve"], folder, stdin=greeting).stderr
    unversioned = f(b'{"id":2,"method":"version"}').decode()
    done = finished([*DISCREET, "serve"], folder, stdin=line + unversioned)
    dropped, failed = done.stderr.splitlines()
    assert "reason=missing-content-length" in dropped
    assert "--framing newline" in dropped
    assert "member=jsonrpc" in failed
    assert 'jsonrpc must be \\"2.0\\"' in done.stdout


SECRET = "Willow-Hollow-86"


@pytest.mark.parametrize(
    "flags",
    ["--store sqlite:redis://u:hunter2@h/x", "--store sqlite:https://u:p//w/o@rd@h/x", "https://u:x@h/x.py:shop"],
)
def test_a_url_where_a_path_belongs_shows_no_user_info(flags: str, folder: Path) -> None:
    """A path joins the two slashes of a URL."""
    done = finished([*DISCREET, "serve", *flags.split()], folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert ":/<redacted>@h/x" in done.stderr


@pytest.mark.parametrize(
    "value", [f"https://ann:{SECRET}@api.example.org/x", f"postgresql://svc:p@ss/{SECRET}@db/x", f"token={SECRET}"]
)
@pytest.mark.parametrize(
    "verb", ["serve", "card", "schema", "record", "show", "import", "new", "demo", "completion", "nonsense", "call"]
)
def test_no_mistake_repeats_a_secret(verb: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, value] if verb != "call" else [verb, "x", "--url", value, "--apps", value])
    said = capsys.readouterr()
    assert said.err.startswith("discreet: ")
    assert SECRET not in said.out + said.err
