"""The table of MCP hosts: where each keeps its settings, and how it writes a server down. Opens no file.

A path in the table has slashes. It begins with `~`, the user's home, with `.`, the working directory, or with `{NAME|PATH}`: the
value of an environment variable, and `PATH` where it is not set.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

from msgspec import Struct

System: TypeAlias = Literal["linux", "darwin", "win32"]
Scope: TypeAlias = Literal["user", "project", "local"]
Format: TypeAlias = Literal["json", "jsonc", "toml"]
Paths: TypeAlias = tuple[str, ...] | Mapping[System, tuple[str, ...]]
Entry: TypeAlias = Mapping[str, Any]  # Any: JSON or TOML


@final
class Machine(Struct, frozen=True):
    """What the table depends on. `folder` is the working directory, `repository` the one around it that git has, with slashes."""

    system: System
    environ: Mapping[str, str]
    home: str
    folder: str
    repository: str

    def path(self, text: str) -> str:
        """The path that a text of the table stands for."""
        found = re.sub(r"\{(\w+)\|([^}]*)\}", lambda match: self.environ.get(match[1]) or match[2], text)
        if found == "~" or found.startswith("~/"):
            found = self.home + found[1:]
        elif found.startswith("./"):
            found = self.folder + found[1:]
        return found.replace("/", "\\") if self.system == "win32" else found


def this_machine() -> Machine:
    """The machine that this runs on. A system that is neither macOS nor Windows has the paths of Linux."""
    systems: Mapping[str, System] = {"darwin": "darwin", "win32": "win32"}
    folder = Path.cwd()
    repository = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    system: System = systems.get(sys.platform, "linux")
    return Machine(system, os.environ, os.path.expanduser("~"), str(folder), repository.as_posix())


@final
class Server(Struct, frozen=True):
    """An MCP server as hosts have it: a command line, or an address. `env` maps names of variables to values."""

    name: str
    words: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = {}


@final
class Host(Struct, frozen=True, kw_only=True):
    """A row: a host. `source` is the page of its own documentation that says all this.

    `files` are those of each scope: of several the first that is there counts, else the first of all. `keys` lead to the object
    or table that has a member for each server: of several the first that is there counts, else the last. `stdio` and `http` are
    the members of a server's entry. A value in angle brackets stands for a part of the `Server`: `<command>` and `<args>`, or
    `<words>` for both in one list, `<env>`, `<names>` of its variables, `<url>`. `http` is None where the file takes no
    addresses. `env` is how the host is told to pass the variable NAME on; empty where it only takes values. `folder` is there if
    the host is: without it, the folder of the user's file.
    """

    title: str
    source: str
    format: Format
    files: Mapping[Scope, Paths]
    keys: tuple[tuple[str, ...], ...]
    stdio: Entry
    http: Entry | None
    env: str
    folder: str = ""

    def paths(self, scope: Scope, machine: Machine) -> list[str]:
        """The paths of its files of this scope."""
        files = self.files[scope]
        return [machine.path(text) for text in (files[machine.system] if isinstance(files, Mapping) else files)]

    def path(self, scope: Scope, machine: Machine) -> str:
        """The path of the file that counts."""
        paths = self.paths(scope, machine)
        return next((path for path in paths if os.path.lexists(path)), paths[0])

    def keys_of(self, scope: Scope, machine: Machine) -> list[tuple[str, ...]]:
        """The keys in a file of this scope, the preferred ones first."""
        return [("projects", machine.repository, *keys) if scope == "local" else keys for keys in self.keys]

    def folder_on(self, machine: Machine) -> str:
        """The folder that is there if the host is."""
        return machine.path(self.folder) or re.split(r"[\\/][^\\/]*$", self.paths("user", machine)[0])[0]

    @property
    def members(self) -> set[str]:
        """The members of an entry that say what the server is. Any other is the user's own."""
        return {"url", "serverUrl", "httpUrl", "env", "environment", *self.stdio, *(self.http or {})}

    def entry(self, server: Server) -> dict[str, Any]:  # Any: as above
        """The entry of a server. Its variables are passed on where the host can do that, else given as values."""
        env = {name: self.env.replace("NAME", name) if self.env else value for name, value in server.env.items()}
        parts = {
            "<command>": server.words[0] if server.words else "",
            "<args>": [*server.words[1:]],
            "<words>": [*server.words],
            "<env>": env,
            "<names>": [*env],
            "<url>": server.url,
        }
        template = (self.http or {}) if server.url else self.stdio
        filled = {key: parts.get(value, value) if isinstance(value, str) else value for key, value in template.items()}
        return {key: value for key, value in filled.items() if value not in ({}, []) or key == "args"}


def read_server(name: str, entry: Any) -> Server | None:  # Any: as above
    """The server of an entry, whichever host wrote it; None where it has neither a command nor an address."""
    if not isinstance(entry, dict):
        return None
    command, args = entry.get("command"), entry.get("args")
    words = [command, *(args if isinstance(args, list) else [])] if isinstance(command, str) else command
    url = next((url for key in ("url", "serverUrl", "httpUrl") if isinstance(url := entry.get(key), str)), "")
    env = entry.get("env") or entry.get("environment") or entry.get("env_vars") or {}
    named = env if isinstance(env, dict) else dict.fromkeys(filter(_is_text, env), "") if isinstance(env, list) else {}
    shown = tuple(map(str, words)) if isinstance(words, list) else ()
    return Server(name, shown, url, {str(key): str(value) for key, value in named.items()}) if shown or url else None


def starts_discreet(words: Sequence[str]) -> bool:
    """Whether a command line starts `discreet serve`, by whatever interpreter or launcher."""
    program = words[words.index("serve") - 1] if "serve" in words[1:] else ""
    return re.split(r"[\\/]", program)[-1].partition(".")[0] == "discreet"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _in_application_data(rest: str) -> Paths:
    """A path among the settings of applications, where each system has its own folder for them."""
    return {
        "linux": (f"{{XDG_CONFIG_HOME|~/.config}}/{rest}",),
        "darwin": (f"~/Library/Application Support/{rest}",),
        "win32": (f"{{APPDATA|~/AppData/Roaming}}/{rest}",),
    }


_CLAUDE: Final = ("{CLAUDE_CONFIG_DIR|~}/.claude.json",)
_SERVERS: Final = (("mcpServers",),)
_PLAIN: Final[Entry] = {"command": "<command>", "args": "<args>", "env": "<env>"}
_TYPED: Final[Entry] = {"type": "stdio", **_PLAIN}

HOSTS: Final[Mapping[str, Host]] = {
    "claude-code": Host(
        title="Claude Code",
        source="https://code.claude.com/docs/en/mcp",
        format="json",
        files={"user": _CLAUDE, "project": ("./.mcp.json",), "local": _CLAUDE},
        keys=_SERVERS,
        stdio=_TYPED,
        http={"type": "http", "url": "<url>"},
        env="${NAME}",
        folder="{CLAUDE_CONFIG_DIR|~/.claude}",
    ),
    "claude-desktop": Host(
        title="Claude Desktop",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        format="json",
        files={"user": _in_application_data("Claude/claude_desktop_config.json")},
        keys=_SERVERS,
        stdio=_PLAIN,
        http=None,
        env="",
    ),
    "cursor": Host(
        title="Cursor",
        source="https://cursor.com/docs/mcp",
        format="jsonc",
        files={"user": ("~/.cursor/mcp.json",), "project": ("./.cursor/mcp.json",)},
        keys=_SERVERS,
        stdio=_TYPED,
        http={"url": "<url>"},
        env="${env:NAME}",
    ),
    "vscode": Host(
        title="VS Code",
        source="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
        format="jsonc",
        files={"user": _in_application_data("Code/User/mcp.json"), "project": ("./.vscode/mcp.json",)},
        keys=(("servers",),),
        stdio=_TYPED,
        http={"type": "http", "url": "<url>"},
        env="${env:NAME}",
    ),
    "windsurf": Host(
        title="Windsurf",
        source="https://docs.windsurf.com/windsurf/cascade/mcp",
        format="json",
        files={"user": ("~/.codeium/windsurf/mcp_config.json",)},
        keys=_SERVERS,
        stdio=_PLAIN,
        http={"serverUrl": "<url>"},
        env="${env:NAME}",
    ),
    "zed": Host(
        title="Zed",
        source="https://zed.dev/docs/ai/mcp",  # its files: https://zed.dev/docs/configuring-zed
        format="jsonc",
        files={
            "user": {
                "linux": ("{XDG_CONFIG_HOME|~/.config}/zed/settings.json",),
                "darwin": ("~/.config/zed/settings.json",),
                "win32": ("{APPDATA|~/AppData/Roaming}/Zed/settings.json",),
            },
            "project": ("./.zed/settings.json",),
        },
        keys=(("context_servers",),),
        stdio=_PLAIN,
        http={"url": "<url>"},
        env="",
    ),
    "codex": Host(
        title="Codex",
        source="https://developers.openai.com/codex/mcp",
        format="toml",
        files={"user": ("{CODEX_HOME|~/.codex}/config.toml",), "project": ("./.codex/config.toml",)},
        keys=(("mcp_servers",),),
        stdio={"command": "<command>", "args": "<args>", "env_vars": "<names>"},
        http={"url": "<url>"},
        env="NAME",
    ),
    "gemini": Host(
        title="Gemini CLI",
        source="https://geminicli.com/docs/tools/mcp-server",
        format="jsonc",
        files={"user": ("~/.gemini/settings.json",), "project": ("./.gemini/settings.json",)},
        keys=_SERVERS,
        stdio=_PLAIN,
        http={"httpUrl": "<url>"},
        env="$NAME",
    ),
    "opencode": Host(
        title="opencode",
        source="https://opencode.ai/docs/mcp-servers",
        format="jsonc",
        files={
            "user": tuple(f"{{XDG_CONFIG_HOME|~/.config}}/opencode/opencode.{end}" for end in ("json", "jsonc")),
            "project": ("./opencode.json", "./opencode.jsonc"),
        },
        keys=(("mcp", "servers"), ("mcp",)),  # version 2 has the first, and reads the second too
        stdio={"type": "local", "command": "<words>", "environment": "<env>"},
        http={"type": "remote", "url": "<url>"},
        env="{env:NAME}",
    ),
}
"""The hosts, by the names that `--host` takes."""
