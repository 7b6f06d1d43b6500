"""One setting: its names, its type, and how a user's text becomes its value. Knows no setting by name."""

import os
import re
import sys
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, assert_never, final, get_args, get_origin

import msgspec
from msgspec import Struct

from ...errors.printable import cut
from .. import plugins
from .imports import WrongImport, import_of_flag, imports_of_tables

# What an app is called: an attribute of an installed module, or of a file. Reads text, imports nothing.


EXPECTED = "pkg.module:name or ./file.py:name"

_SEPARATORS = ("/", "\\") if sys.platform == "win32" else ("/",)


@final
class ModuleReference(Struct, frozen=True):
    """`pkg.module:attribute`: a module that is installed, or stands in `app-dir`."""

    module: str
    attribute: str


@final
class FileReference(Struct, frozen=True):
    """`./shop.py:attribute`: a file. It has at least one separator of folders, so that no name is taken for it."""

    path: str
    attribute: str


Reference: TypeAlias = ModuleReference | FileReference


def read_reference(text: object) -> Reference | None:
    """What a text refers to; None where it is no reference."""
    if not isinstance(text, str):
        return None
    target, colon, attribute = text.rpartition(":")  # a path may have a colon of its own, as in C:\\shop.py:shop
    if not colon or not _is_dotted_name(attribute) or "\0" in target:
        return None
    if any(separator in target for separator in _SEPARATORS):
        is_file = target.endswith(".py") and os.path.basename(target) != ".py"
        return FileReference(target, attribute) if is_file else None
    return ModuleReference(target, attribute) if _is_dotted_name(target) else None


def absolute_reference(text: str, directory: str) -> str:
    """The same with an absolute path, where it has one."""
    match read_reference(text):
        case FileReference(path, attribute):
            return f"{os.path.normpath(os.path.join(directory, path))}:{attribute}"
        case _:
            return text


def without_folder(text: str) -> str:
    """The same without the folder of a file: for those who must not learn where it is."""
    match read_reference(text):
        case FileReference(path, attribute):
            return f"./{os.path.basename(path)}:{attribute}"
        case _:
            return text


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


# Where to listen, as users write it: `HOST:PORT`, `[ADDRESS]:PORT`, or `unix:PATH`. Reads text, opens nothing.


ADDRESS_FORM: Final = "HOST:PORT or unix:PATH"
KEYS_FORM: Final = "an existing file, or an address that begins with https:// (http:// on this machine alone)"
UNIX: Final = "unix:"

MAX_PORT: Final = 65535

_HOST: Final = re.compile(r"[\w.-]*").fullmatch
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+").fullmatch


@final
class Address(Struct, frozen=True):
    """Where to listen: a unix socket where `path` is set."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def loopback(self) -> bool:
        """Whether only processes of this machine can connect."""
        return bool(self.path) or _is_loopback(self.host)


def read_address(text: str) -> Address | None:
    """The address that a text names; None for none."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        return Address(path=path) if path and "\0" not in path else None
    host, colon, port = text.rpartition(":")
    if not (
        colon and port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT)) and int(port) <= MAX_PORT
    ):
        return None
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif not _HOST(host):
        return None
    return Address(host or "127.0.0.1", int(port))


def about_wrong_address(text: str) -> str:
    """The end of a message on a text that is no address: what is wrong with it; empty for no idea. Repeats nothing of it."""
    host, colon, _ = text.rpartition(":")
    if not text:
        return ""
    if text.startswith(UNIX):
        return "; the path is missing"
    if "://" in text:
        return "; without http://, and without a path"
    if text.startswith((os.sep, os.curdir)):
        return "; the path of a unix socket is written unix:PATH"
    if "/" in text:
        return "; without a path"
    if text.isdecimal():
        return "; the host is missing, such as 127.0.0.1:8000"
    if host.count(":") and _IPV6(text):
        return "; an IPv6 address stands in brackets, such as [::1]:8000"
    if not colon or text.endswith((":", "]")):
        return "; the port is missing, such as 127.0.0.1:8000"
    if host == "*":
        return "; all addresses of this machine are 0.0.0.0"
    return f"; the port is a number from 0 to {MAX_PORT}" if _HOST(host) or host.endswith("]") else ""


def _is_loopback(host: str) -> bool:
    """Whether a server that binds this host can be reached from this machine alone."""
    from ipaddress import ip_address  # late: only who serves HTTP needs it

    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_key_address(text: str) -> bool:
    """Whether public keys may be fetched from here: nobody may change them on their way."""
    from urllib.parse import urlsplit  # late: as above

    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or not text.isprintable() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def absolute_address(text: str, directory: str) -> str:
    """The same with an absolute path, where it has one."""
    return UNIX + os.path.join(directory, text.removeprefix(UNIX)) if text.startswith(UNIX) else text


# The text that declares a bearer token: its form, and its parts. Hashes nothing, compares nothing.


TOKEN_FORM: Final = "SUBJECT:SHA256[:SCOPE+SCOPE], with the SHA-256 of the token in 64 hex digits"
_DIGEST_DIGITS: Final = 64
_HEX: Final = frozenset("0123456789abcdef")


class TokenText(Struct, frozen=True):
    """The parts of a declared token. The digest is in lower case."""

    subject: str
    digest: str
    scopes: frozenset[str]


def read_token(text: str) -> TokenText | None:
    """The parts of `SUBJECT:SHA256[:SCOPE+SCOPE…]`; None for a text of another form."""
    subject, _, rest = text.partition(":")
    digest, _, scopes = rest.partition(":")
    digest = digest.lower()
    if not subject or len(digest) != _DIGEST_DIGITS or not _HEX.issuperset(digest):
        return None
    return TokenText(subject, digest, frozenset(filter(None, scopes.split("+"))))


OptionKind: TypeAlias = Literal[
    "switch",
    "integer",
    "seconds",
    "choice",
    "dialect",
    "directory",
    "file",
    "words",
    "tokens",
    "files",
    "apps",
    "imports",
    "object",
    "store",
    "readable",
    "address",
    "url",
    "word",
    "keys",
]

FoundFile: TypeAlias = Literal["yes", "lower", "no"]
"""What a file may do with a setting that nobody named, but that merely stands in the working directory: set it, set it to
less than the default, or nothing. It must neither run code nor loosen a limit, choose files, or disturb the client."""

PREFIX: Final = "DISCREET_"
MEMORY: Final = "memory"
SERVICES: Final = "services"
"""The group of settings that say what is served."""
SQLITE: Final = "sqlite:"
POSTGRES: Final = ("postgresql://", "postgres://")
REDIS: Final = ("redis://", "rediss://", "unix://")
_MAX_SHOWN: Final = 200
"""Characters of the name of an app in a message. Values of other settings are not shown."""
_LONGEST_INTEGER: Final = 18
"""Digits: more than any setting needs, and far below the limit of `int` itself."""
_SWITCH_WORDS: Final = {"1": True, "true": True, "yes": True, "on": True} | {
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@final
class UsageError(Exception):
    """A flag, variable or settings file is wrong. `str()` is one sentence for the user; the exit status is 2."""


class OptionInfo(Struct, frozen=True, kw_only=True):
    """What the type of a setting does not say. Part of the `Annotated[...]` of its field."""

    group: str
    help: str
    found_file: FoundFile
    """Without a default: every setting has to decide."""
    unit: str = ""
    minimum: float = 0
    maximum: float = 0
    kind: OptionKind | None = None
    """Needed where the type is ambiguous: a string is a `directory` or a `file`, a tuple holds `words` or `apps`."""
    key: str = ""
    """The name that users write, if it is not the field's."""
    variable: str = ""
    """The environment variable, if it is not made from the key."""
    presence_variable: str = ""
    """Another environment variable: any value that is not empty turns the switch on."""
    flag_aliases: tuple[str, ...] = ()
    synonyms: dict[str, str] = {}
    """Other words for a choice, by the word."""
    none_word: str = ""
    """The word for None. Zero means None too."""
    default_text: str = ""
    """The default in words, where its value would not explain itself."""


class Option(Struct, frozen=True, kw_only=True):
    """One row of the table of settings, with all its names."""

    field: str
    key: str
    kind: OptionKind
    choices: tuple[str, ...]
    default: Any  # of the field's type
    info: OptionInfo

    @property
    def flag(self) -> str:
        """The flag; for the positional argument, its name in the help."""
        return "APP" if self.kind == "apps" else f"--{self.key}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.info.variable or PREFIX + self.key.replace("-", "_").upper()

    @property
    def default_text(self) -> str:
        """The default as the documentation shows it."""
        if self.info.default_text:
            return self.info.default_text
        return str(self.default).lower() if self.kind == "switch" else str(self.default).removesuffix(".0")

    @property
    def expected(self) -> str:
        """What a value must be, as a phrase that follows "expected"."""
        bounds = f"from {self.info.minimum:.15g} to {self.info.maximum:.15g}"
        match self.kind:
            case "integer":
                return f"a whole number {bounds}"
            case "seconds":
                return f"seconds {bounds}" + (f", or {self.info.none_word}" if self.info.none_word else "")
            case "choice" | "dialect":
                return f"one of {', '.join(self.choices)}"
            case kind:
                return _EXPECTED[kind]

    def in_range(self, number: float) -> bool:
        """Whether a number is within the setting's limits; false for NaN."""
        return self.info.minimum <= number <= self.info.maximum


_EXPECTED: Final[dict[OptionKind, str]] = {
    "switch": "true or false",
    "directory": "an existing directory",
    "file": "a file name, or - for stderr",
    "words": "words without blanks or commas",
    "tokens": TOKEN_FORM,
    "files": "NAME=FILE",
    "apps": EXPECTED,
    "imports": "NAME=FILE or NAME=URL of an OpenAPI document",
    "object": EXPECTED,
    "store": "memory, sqlite:PATH, postgresql://..., or redis://...",
    "readable": "an existing file",
    "address": ADDRESS_FORM,
    "url": "an address that begins with http:// or https://",
    "word": "a word without blanks or commas",
    "keys": KEYS_FORM,
}


class RawValue(Struct, frozen=True):
    """A value as a source has it: text that is still to be parsed, or, with `typed`, a value of TOML."""

    value: object
    source: str
    typed: bool = False
    directory: str = ""
    """Where its relative paths start, if that is not the working directory."""


def option_from_field(field: str, annotation: object, default: object) -> Option:
    """The row of the field `field: Annotated[type, OptionInfo(...)] = default`."""
    declared, info = get_args(annotation)
    union = get_args(declared) if NoneType in get_args(declared) else (declared,)
    plain = next(member for member in union if member is not NoneType)
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    if info.kind == "dialect":
        choices = (*plugins.BUILT_IN["dialect"], plugins.AUTO)
    plain_kinds: dict[object, OptionKind] = {bool: "switch", int: "integer", float: "seconds"}
    kind: OptionKind = info.kind or ("choice" if choices else plain_kinds[plain])
    key = info.key or field.replace("_", "-")
    return Option(field=field, key=key, kind=kind, choices=choices, default=default, info=info)


def parse_value(option: Option, given: RawValue, directory: str) -> object:  # noqa: C901, PLR0912 - a table, one line a kind
    """The checked value, with absolute paths.

    Raises `UsageError`, which names the source and what was expected, and of values only the names of apps.
    """
    value = given.value if given.typed or isinstance(given.value, list) else _read(option.kind, str(given.value))
    directory = given.directory or directory
    match option.kind, value:
        case "switch", bool():
            return value
        case _, bool():
            pass  # Python counts a bool as an int
        case "seconds", 0 | option.info.none_word if option.info.none_word:
            return None
        case "integer", int() if option.in_range(value):
            return value
        case "seconds", int() | float() if option.in_range(value):
            return float(value)
        case "choice", str() if (word := _choice(option, value)) in option.choices:
            return word
        case "dialect", str() if (word := value.lower()) in option.choices:
            return word
        case "dialect", str() if plugins.is_known("dialect", value):
            return value
        case "directory", str() if value and os.path.isdir(absolute(value, directory)):
            return absolute(value, directory)
        case "file", "-":
            return ""
        case "file", str() if value:
            return absolute(value, directory)
        case ("words", list()) if all(_is_word(word) for word in value):
            return tuple(value)
        case ("tokens", list()) if all(map(_is_token, value)):
            return tuple(value)
        case ("files", list()) if all(map(_is_named_file, value)):
            return tuple(
                f"{name}={absolute(path, directory)}" for name, _, path in (word.partition("=") for word in value)
            )
        case ("imports", list()) if all(isinstance(word, str) and import_of_flag(word, directory) for word in value):
            imports = [found for word in value if (found := import_of_flag(word, directory)) is not None]
            names = [each.name for each in imports]
            if twice := [name for name in names if names.count(name) > 1]:
                raise UsageError(f"{given.source}: import {cut(twice[0], _MAX_SHOWN)} is given twice")
            return tuple(imports)
        case "imports", dict() if value:
            try:
                return imports_of_tables(value, directory)
            except WrongImport as exc:
                raise UsageError(f"{given.source}.{exc}") from None
        case "object", str() if read_reference(value):
            return absolute_reference(value, directory)
        case "store", str() if value == MEMORY:
            return value
        case "store", str() if value.startswith(SQLITE) and value != SQLITE:
            return SQLITE + absolute(value.removeprefix(SQLITE), directory)
        case "store", str() if value.startswith((*POSTGRES, *REDIS)) and value.split() == [value]:
            return value  # commas stand between hosts
        case "store", str() if _is_added_store(value):
            return value
        case "word", str() if _is_word(value):
            return value
        case "keys", str() if is_key_address(value):
            return value
        case "readable" | "keys", str() if value and os.path.isfile(absolute(value, directory)):
            return absolute(value, directory)
        case "address", str() if read_address(value) is not None:
            return absolute_address(value, directory)
        case "url", str() if value.startswith(("http://", "https://")) and _is_word(value):
            return value
        case ("apps", list()) if all(map(read_reference, value)):
            return tuple(absolute_reference(word, directory) for word in value)
        case _:
            pass
    if _is_array(option, given):
        raise UsageError(f"{given.source}: expected an array of {option.expected}{_as_array(option, given)}")
    if option.kind == "apps":
        raise UsageError(f"{given.source}: {_about_wrong_app(value)}")
    hint = about_wrong_address(str(value)) if option.kind == "address" else ""
    if option.kind in ("dialect", "store"):
        hint = f", or of installed packages {', '.join(added)}" if (added := plugins.added(option.kind)) else ""
    raise UsageError(f"{given.source}: expected {option.expected}{hint}")


def _about_wrong_app(value: object) -> str:
    """What was expected instead of the first word that names no app, and what it may stand for."""
    words = value if isinstance(value, list) else [value]
    wrong = next((word for word in words if isinstance(word, str) and word and not read_reference(word)), None)
    if wrong is None:
        return f"expected {EXPECTED}"
    from .meant_app import meant_by  # late: only errors need it

    return f"{cut(wrong, _MAX_SHOWN)}: expected {EXPECTED}{meant_by(wrong)}"


def _as_array(option: Option, given: RawValue) -> str:
    """How the value is written as an array, where it would be right in one. Only names of apps are shown: they are no secret."""
    fits = option.kind == "apps" and isinstance(given.value, str) and read_reference(given.value) is not None
    return f": {option.key} = [{msgspec.json.encode(given.value).decode()}]" if fits else ""


def absolute(path: str, directory: str) -> str:
    """The path relative to the directory. Links and `..` are kept: only the file system can resolve them."""
    return directory if path == os.curdir else os.path.join(directory, path)


def _read(kind: OptionKind, text: str) -> object:
    """The value that a text stands for; the text itself where it stands for none."""
    match kind:
        case "switch":
            return _SWITCH_WORDS.get(text.lower(), text)
        case "integer":
            return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_INTEGER else text
        case "seconds":
            try:
                return float(text)
            except ValueError:
                return text.lower()
        case "words" | "tokens" | "files" | "apps" | "imports":
            return text.replace(",", " ").split()
        case (
            "choice"
            | "dialect"
            | "directory"
            | "file"
            | "object"
            | "store"
            | "readable"
            | "address"
            | "url"
            | "word"
            | "keys"
        ):
            return text
        case _:
            assert_never(kind)


def _choice(option: Option, text: str) -> str:
    word = text.lower()
    return option.info.synonyms.get(word, word)


def _is_word(word: object) -> bool:
    return isinstance(word, str) and [word] == word.replace(",", " ").split()


def _is_token(word: object) -> bool:
    return isinstance(word, str) and _is_word(word) and read_token(word) is not None


def _is_named_file(word: object) -> bool:
    name, _, path = word.partition("=") if isinstance(word, str) and _is_word(word) else ("", "", "")
    return bool(name and path)


def _is_array(option: Option, given: RawValue) -> bool:
    return given.typed and option.kind in ("words", "tokens", "files", "apps", "imports")


def _is_added_store(value: str) -> bool:
    """Whether this is the address of a store that an installed package adds: `NAME:`, and anything in one line."""
    name, colon, _ = value.partition(":")
    return (
        bool(colon)
        and value.isprintable()
        and name not in plugins.BUILT_IN["store"]
        and plugins.is_known("store", name)
    )


def without_password(store: str) -> str:
    """The value of `store` as it may be shown: of an address, only whether it is one, and of which database; of a store of
    another package, only its name.
    """
    name = store.partition(":")[0]
    if name not in plugins.BUILT_IN["store"]:
        return f"{name}:[…]"
    if not store.startswith((*POSTGRES, *REDIS)):
        return store
    scheme, _, rest = store.partition("://")
    return f"{scheme}://[…]{rest.partition('?')[0].rpartition('@')[2]}" if "@" in rest or "?" in rest else store
