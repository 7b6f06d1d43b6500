"""Layer 5: reduces file-system paths to their last part and hides the names of accounts.

Knows POSIX, Windows (single, doubled and forward slashes), UNC, WSL, `~user` and `file:` paths. Never touches what only
looks like a path: URLs, HTTP routes, method names (`fs/read`), MIME types, dates, fractions, JSON pointers.
"""

from __future__ import annotations

import re

from .limits import PATH, USER

# What may not stand before a path, except in flags such as `-I/usr/include`. Text in other scripts has no spaces.
_BEFORE = r"[A-Za-z0-9_!#$%&)*+./?\\\]^}~-]"
_MARK = r"<(?:redacted|user|cut)>"
_PART = rf"(?:{_MARK}|\\ |=(?!/)|[^\s/\\\"'`<>|*?,;:=()\[\]{{}}\x00])"
# A space within a directory's name: more capitalised words must follow, and then a slash (`Application Support/`).
_SPACED = r"(?: (?=(?:[A-Z(&][\w.()&'-]{0,40} ?){1,4}/)|\((?=[\w ]{1,16}\)/)|(?<=\w)\)(?=/))"

_POSIX = re.compile(
    rf"/(?:(?<!{_BEFORE}/)|(?<=\s-[A-Za-z]/)|(?<=^-[A-Za-z]/)|(?<=#!/))(?<!<path>/)(?=[\w.<@+~-])"
    rf"(?:(?:{_PART}|{_SPACED})++/++)++{_PART}*+"
)
_QUOTED = re.compile(r"/(?<=[\"'`]/)(?=[\w.<@+~-])[^\"'`\n<>*?|]{1,255}(?=[\"'`])")
_ESCAPED = re.compile(rf"(?<!{_BEFORE})(?:\\{{1,4}}/{_PART}++){{2,}}+")  # in JSON, `/` may be escaped
_FILE_SCHEMES = (
    "file", "sqlite", "sqlite3", "sqlite+aiosqlite", "sqlite+pysqlite", "duckdb", "unix", "leveldb", "smb", "cifs", "nfs", "afp",
    "sftp", "scp", "ftp", "ftps", "vscode", "vscode-remote", "vscode-insiders", "vscode-file", "vscodium", "cursor", "windsurf",
    "zed", "idea", "jetbrains", "txmt", "subl", "emacs",
)  # fmt: skip
"""The schemes of URLs that name a file: of databases, shares and editors."""
_FILE_START = re.compile(
    rf"(?i):\\{{0,4}}/(?:{'|'.join(rf'(?<={re.escape(name)}:/)' for name in _FILE_SCHEMES)}|(?<=\\/))"
)
_FILE = re.compile(
    rf"(?i)(?<![a-z0-9])(?:{'|'.join(map(re.escape, _FILE_SCHEMES))}):(?:\\{{0,4}}/){{1,4}}+"
    rf"(?:{_MARK}|[^\s\"'`<>()\[\]{{}},;]){{1,4096}}+"
)
_ENCODED = re.compile(
    r"(?i)(?<![\w/])(?:[a-z]%3a)?(?:%2f|%5c)(?:home|users|root|var|etc|tmp|opt|srv|mnt|usr)(?:(?:%2f|%5c)[\w.~+-]{1,255})++"
)
_TILDE = re.compile(rf"(?<![\w/~.@-])~(?:[A-Za-z_][\w.-]{{0,31}})?(?:/{_PART}++)++/?")
_WINDOWS_PART = r"(?:<(?:redacted|user|cut)>|[^\\/:*?\"<>|\r\n\t'`\x00])"
_WINDOWS = re.compile(
    rf"(?<![A-Za-z0-9_%])(?<!\w/)(?:\\{{2,4}}[?.]\\{{1,2}})?[A-Za-z]:(?:\\{{1,4}}|/)(?!/)"
    rf"(?:{_WINDOWS_PART}{{1,255}}(?:\\{{1,4}}|/))*(?:<(?:redacted|user|cut)>|[^\\/:*?\"<>|\s'`,;)\]}}\x00])*"
)
_UNC = re.compile(
    rf"(?<![\w\\}})%])(?<!\b[A-Za-z]:)\\{{2,4}}(?!u[0-9a-fA-F]{{4}}|U000|x[0-9a-fA-F]{{2}})(?:[?.]\\{{1,2}}(?:UNC\\{{1,2}})?)?[A-Za-z0-9][\w.$-]{{1,62}}\\{{1,2}}"
    rf"(?:{_WINDOWS_PART}{{1,255}}\\{{1,2}})*(?:<(?:redacted|user|cut)>|[^\\/:*?\"<>|\s'`,;)\]}}\x00])+"
)
_SEPARATORS = re.compile(r"(?:/|\\(?! )|%2[fF]|%5[cC])+")

_ROOTS = frozenset(
    "home Users root var etc usr tmp opt private mnt media srv proc sys dev run boot lib lib32 lib64 bin sbin Library"
    " Applications System Volumes Network nix snap cygdrive lost+found export scratch afs gpfs hpc sdcard storage"
    " __w kaniko vagrant".split()
)
"""First parts that only file paths have."""
_SHARED_ROOTS = frozenset(
    "app apps data work workspace workspaces code src source build builds project projects repo repos go logs log"
    " config configs secrets net github runner pgdata efs nfs db backup backups vol volume volumes shared share usr2"
    " home2 venv env site-packages node_modules out output input target checkout ci jenkins"
    " deploy releases current www htdocs content datasets models checkpoints results experiments".split()
)
"""First parts that both file paths and routes of web sites have."""
_WEB_ROOTS = frozenset(
    "static assets public images image img css js fonts dist media docs doc api rest graphql swagger openapi v1 v2 v3"
    " auth login logout admin user users account accounts health metrics favicon.ico robots.txt .well-known wp-admin"
    " wp-content wp-includes _next cgi-bin search blog news page pages".split()
)
_HOMES = frozenset({"home", "users", "documents and settings", "profiles"})

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_PATH_OPENERS = " \t\"'`=:({["
_ROUTE_CONTEXT = re.compile(
    r"(?:^|[^A-Za-z])(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|TRACE|CONNECT|HTTP/[\d.]{1,3}|(?i:routes?|uri|url|href"
    r"|endpoint|referr?er|location|request(?:ed)?|redirect(?:ing to)?|proxy|mapped|upstream))$"
)
_FILE_CONTEXT = re.compile(
    r"(?i)(?:^|[^a-z])(?:file(?:name|s)?|dir|directory|folder|cwd|chdir|open(?:ed|ing)?|read(?:ing)?|writ(?:e|ing)"
    r"|load(?:ed|ing)?|sav(?:ed?|ing)|exec|cd|ls|cat|rm|cp|mv|mkdir|rmdir|chmod|chown|touch|stat|unlink|mount|script"
    r"|interpreter|executable|(?:errno \d+\]|enoent|eacces)[^/]{0,60})$"
)


class PathScrubber:
    """Layer 5, with the account names of this machine and its home directories in unusual places."""

    def __init__(self) -> None:
        self._roots = _ROOTS
        self._users: re.Pattern[str] | None = None
        self._user_names: tuple[str, ...] = ()

    def add_names(self, *, users: tuple[str, ...], homes: tuple[str, ...]) -> None:
        """Redact these account names wherever they stand as a word, and paths that begin with the first part of a home."""
        self._roots |= {parts[0] for home in homes if len(parts := _parts(home)) > 1 and home[1:2] != ":"}
        self._user_names = tuple(dict.fromkeys((*self._user_names, *users)))
        if self._user_names:
            names = "|".join(re.escape(name) for name in self._user_names)
            self._users = re.compile(rf"(?<![\w<])(?:{names})(?![\w>])")

    def scrub(self, text: str, *, accounts: bool = True) -> str:
        """Run layer 5 over one line. Without `accounts`, names of accounts stay where they are no part of a path."""
        if "\\" in text:
            if "\\/" in text:
                text = self._posix(_ESCAPED, text)
            text = _UNC.sub(self._windows, _WINDOWS.sub(self._windows, text))
        if "/" in text:
            if text.count(":/") > text.count("://"):
                text = _WINDOWS.sub(self._windows, text)
            if _FILE_START.search(text):
                text = _FILE.sub(_reduce_match, text)
            if "~" in text:
                text = _TILDE.sub(_reduce_match, text)
            text = self._posix(_POSIX, self._posix(_QUOTED, text))
        if "%2" in text or "%5" in text:
            text = _ENCODED.sub(_reduce_match, text)
        if accounts and self._users is not None and any(name in text for name in self._user_names):
            text = self._users.sub(USER, text)
        return text

    def _windows(self, match: re.Match[str]) -> str:
        parts = _parts(match[0])
        is_escape = len(parts) < 3 and len(parts[-1]) < 2  # `a:\\n` in code
        return match[0] if is_escape or len(parts) < 2 else _reduced_parts(parts)

    def _posix(self, pattern: re.Pattern[str], text: str) -> str:
        def replacement(match: re.Match[str]) -> str:
            parts = _parts(match[0])
            before = text[max(0, match.start() - 80) : match.start()].rstrip(_PATH_OPENERS)
            return _reduced_parts(parts) if self._is_file_path(parts, before) else match[0]

        return pattern.sub(replacement, text)

    def _is_file_path(self, parts: list[str], before: str) -> bool:
        """Whether parts that look like a POSIX path are one; `before` is the text that precedes them."""
        first = parts[0] if parts else ""
        if len(parts) < 2 or (first == "dev" and len(parts) == 2):  # a device name reveals nothing
            return False
        if first in self._roots:
            return first not in ("home", "media", "run") or len(parts) > 2 or not _ROUTE_CONTEXT.search(before[-16:])
        if len(first) == 1 and parts[1].lower() in _HOMES:  # `/c/Users/…`, a Windows drive in Git's shell
            return True
        is_hidden = any(part[0] == "." and part[1:2].isalpha() for part in parts[:-1])
        if is_hidden or first in _SHARED_ROOTS:
            return not _ROUTE_CONTEXT.search(before[-16:])
        if first in _WEB_ROOTS:
            return False
        if _EXTENSION.search(parts[-1].rstrip(".")):
            return not _ROUTE_CONTEXT.search(before[-16:])
        return _FILE_CONTEXT.search(before) is not None


def reduce_path(path: str) -> str:
    """`<path>/` and the last part of a text that is known to be a path. A bare name stays as it is."""
    parts = _parts(path)
    return path if len(parts) < 2 else _reduced_parts(parts)


def _reduce_match(match: re.Match[str]) -> str:
    return _reduced_parts(_parts(match[0]))


def _reduced_parts(parts: list[str]) -> str:
    is_account = len(parts) > 1 and parts[-2].lower() in _HOMES
    return f"{PATH}/{USER if is_account else parts[-1]}"


def _parts(path: str) -> list[str]:
    return [part for part in _SEPARATORS.split(path) if part]
