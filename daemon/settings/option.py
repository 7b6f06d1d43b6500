"""One setting: its names, its kind, and how a user's text becomes its value. Knows no setting by name."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, final, get_args, get_origin

import msgspec
from msgspec import Struct

from ...errors.printable import cut
from .. import plugins

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
    """Return the place that a text refers to; None if it is no reference."""
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
    """Return a reference with an absolute path, if it has a path."""
    found = read_reference(text)
    if isinstance(found, FileReference):
        return f"{os.path.normpath(os.path.join(directory, found.path))}:{found.attribute}"
    return text


def without_folder(text: str) -> str:
    """Return a reference without the folder of its file, for readers who must not learn it."""
    found = read_reference(text)
    return f"./{os.path.basename(found.path)}:{found.attribute}" if isinstance(found, FileReference) else text


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


# Where to listen, as users write it: `HOST:PORT`, `[ADDRESS]:PORT`, or `unix:PATH`. Reads text, opens nothing.


ADDRESS_FORM: Final = "HOST:PORT or unix:PATH"
KEYS_FORM: Final = "an existing file, or an address that begins with https:// (http:// on this machine alone)"
UNIX: Final = "unix:"

MAX_PORT: Final = 65535

_HOST: Final = r"[\w.-]*"
_IPV6: Final = r"[0-9A-Fa-f:.]+"


@final
class Address(Struct, frozen=True):
    """An address to listen on: a unix socket if `path` is set."""

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
    elif not re.fullmatch(_HOST, host):
        return None
    return Address(host or "127.0.0.1", int(port))


def _about_wrong_address(text: str) -> str:
    """The end of a message on a text that is no address: what is wrong with it; empty for no idea. Repeats nothing of it."""
    host, colon, _ = text.rpartition(":")
    hints = {
        "": not text,
        "; the path is missing": text.startswith(UNIX),
        "; without http://, and without a path": "://" in text,
        "; the path of a unix socket is written unix:PATH": text.startswith((os.sep, os.curdir)),
        "; without a path": "/" in text,
        "; the host is missing, such as 127.0.0.1:8000": text.isdecimal(),
        "; an IPv6 address stands in brackets, such as [::1]:8000": ":" in host and re.fullmatch(_IPV6, text),
        "; the port is missing, such as 127.0.0.1:8000": not colon or text.endswith((":", "]")),
        "; all addresses of this machine are 0.0.0.0": host == "*",
        f"; the port is a number from 0 to {MAX_PORT}": re.fullmatch(_HOST, host) or host.endswith("]"),
    }
    return next((hint for hint, applies in hints.items() if applies), "")


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
    """Whether public keys may be fetched from here: they must not be changed on their way."""
    from urllib.parse import urlsplit  # late: as above

    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or not text.isprintable() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


# The text that declares a bearer token: its form, and its parts. Hashes nothing, compares nothing.


TOKEN_FORM: Final = "SUBJECT:SHA256[:SCOPE+SCOPE], with the SHA-256 of the token in 64 hex digits"
_TOKEN: Final = r"(?s)([^:]+):([0-9A-Fa-f]{64})(?::(.*))?"


class TokenText(Struct, frozen=True):
    """The parts of a declared token. The digest is in lower case."""

    subject: str
    digest: str
    scopes: frozenset[str]


def read_token(text: str) -> TokenText | None:
    """The parts of `SUBJECT:SHA256[:SCOPE+SCOPE…]`; None for a text of another form."""
    found = re.fullmatch(_TOKEN, text)
    scopes = frozenset(filter(None, (found[3] or "").split("+"))) if found else frozenset()
    return TokenText(found[1], found[2].lower(), scopes) if found else None


FoundFile: TypeAlias = Literal["yes", "lower", "no"]
"""The right of a file that was only found in the working directory over a setting: to set it, to set it lower than the default,
or none. Such a file must neither run code nor loosen a limit, choose files, or disturb the client."""

PREFIX: Final = "DISCREET_"
MEMORY: Final = "memory"
SERVICES: Final = "services"
"""The group of settings that say what is served."""
SQLITE: Final = "sqlite:"
URL_SCHEMES: Final = ("http://", "https://")
POSTGRES: Final = ("postgresql://", "postgres://")
REDIS: Final = ("redis://", "rediss://", "unix://")
NONE_WORD: Final = "none"
_MAX_SHOWN: Final = 200
"""Characters of the name of an app in a message. Values of other settings are not shown."""
_LONGEST_INTEGER: Final = 18
"""Digits: more than any setting needs, and far below the limit of `int` itself."""
_SWITCH_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@final
class UsageError(Exception):
    """A flag, variable or settings file is wrong. `str()` is one sentence for the user; the exit status is 2."""


MANY: Final = ("words", "tokens", "files", "apps", "imports")
"""The kinds whose values are tuples."""

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "switch": ("", "true or false"),
    "integer": ("N", "a whole number from {} to {}"),
    "seconds": ("SECONDS", "seconds from {} to {}"),
    "choice": ("", "one of "),
    "dialect": ("", "one of "),
    "directory": ("DIR", "an existing directory"),
    "file": ("FILE", "a file name, or - for stderr"),
    "readable": ("FILE", "an existing file"),
    "word": ("WORD", "a word without blanks or commas"),
    "words": ("WORD", "words without blanks or commas"),
    "tokens": ("WORD", TOKEN_FORM),
    "files": ("NAME=FILE", "NAME=FILE"),
    "object": ("APP", EXPECTED),
    "apps": ("APP", EXPECTED),
    "imports": ("NAME=SOURCE", "NAME=FILE or NAME=URL of an OpenAPI document"),
    "store": ("STORE", "memory, sqlite:PATH, postgresql://..., or redis://..."),
    "address": ("ADDRESS", ADDRESS_FORM),
    "url": ("URL", "an address that begins with http:// or https://"),
    "keys": ("URL|FILE", KEYS_FORM),
}
"""The stand-in for a value in the help, and the expected value, as a phrase that follows "expected"."""

_KIND_OF_TYPE: Final = {bool: "switch", int: "integer", float: "seconds", str: "word", tuple: "words"}


class Row(Struct, frozen=True):
    """The facts of a setting beside its type. Part of the `Annotated[...]` of its field."""

    help: str
    group: str = ""
    """The title of the group that begins here; empty for that of the row before."""
    found_file: FoundFile = "no"
    limits: tuple[float, float] = (0, 0)
    """The least and the greatest number."""
    kind: str = ""
    """One of `KINDS`, where the type does not say it."""
    variable: str = ""
    """The environment variable, if it is not made from the key."""
    presence_variable: str = ""
    """Another environment variable: any value that is not empty turns the switch on."""
    flag_aliases: tuple[str, ...] = ()
    synonyms: dict[str, str] = {}
    """Other words for a choice, by the word."""
    default: str = ""
    """The default in words, where its value would not explain itself."""


class Option(Struct, frozen=True, kw_only=True):
    """One setting, with all its names. `optional`: it may be None, which zero and the word `none` mean for seconds."""

    field: str
    key: str
    kind: str
    group: str
    choices: tuple[str, ...]
    default: Any  # of the field's type
    optional: bool
    row: Row

    @property
    def flag(self) -> str:
        """The flag; for the positional argument, its name in the help."""
        return "APP" if self.kind == "apps" else f"--{self.key}"

    @property
    def flags(self) -> tuple[str, ...]:
        """All its flags."""
        return self.flag, *self.row.flag_aliases

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.row.variable or PREFIX + self.key.replace("-", "_").upper()

    @property
    def default_text(self) -> str:
        """The default as the documentation shows it."""
        if self.row.default or self.default in (None, ()):
            return self.row.default or NONE_WORD
        return str(self.default).lower() if self.kind == "switch" else str(self.default).removesuffix(".0")

    @property
    def has_none_word(self) -> bool:
        """Whether zero and the word `none` stand for None."""
        return self.optional and self.kind == "seconds"

    @property
    def expected(self) -> str:
        """Describe a valid value, as a phrase that follows "expected"."""
        phrase = KINDS[self.kind][1].format(*(f"{limit:.15g}" for limit in self.row.limits))
        return phrase + ", ".join(self.choices) + (f", or {NONE_WORD}" if self.has_none_word else "")

    def in_range(self, number: float) -> bool:
        """Whether a number is within the setting's limits; false for NaN."""
        least, most = self.row.limits
        return least <= number <= most


class RawValue(Struct, frozen=True):
    """A value as a source has it: text that is still to be parsed, or, with `typed`, a value of TOML."""

    value: object
    source: str
    typed: bool = False
    directory: str = ""
    """The folder of its relative paths, if that is not the working directory."""


def options_of(settings: Any) -> Iterator[Option]:  # Any: a struct of defaults
    """The options of the fields `field: Annotated[type, Row(...)] = default`."""
    group = ""
    for field in settings.__struct_fields__:
        declared, row = get_args(type(settings).__annotations__[field])
        types = [each for each in (get_args(declared) or (declared,)) if each is not NoneType]
        optional = NoneType in get_args(declared)
        plain = types[0] if optional else declared
        choices = get_args(plain) if get_origin(plain) is Literal else ()
        if row.kind == "dialect":
            choices = (*plugins.BUILT_IN["dialect"], plugins.AUTO)
        kind = row.kind or ("choice" if choices else _KIND_OF_TYPE[get_origin(plain) or plain])
        key = field.replace("_", "-")
        if kind in MANY and kind != "apps":
            key = key.removesuffix("s")  # it is given once for each
        group = row.group or group
        yield Option(
            field=field,
            key=key,
            kind=kind,
            group=group,
            choices=choices,
            default=getattr(settings, field),
            optional=optional,
            row=row,
        )


_LIKE_SECRETS: Final = frozenset({"token", "credential"})
"""Keys of options behind which the scrubber takes the word after a colon for a secret."""


def parse_value(option: Option, given: RawValue, directory: str) -> object:
    """The checked value, with absolute paths.

    Raises `UsageError`, which names the source and what was expected, and of values only the names of apps.
    """
    is_text = not given.typed and not isinstance(given.value, list)
    value = _read_text(option.kind, str(given.value)) if is_text else given.value
    if option.has_none_word and value in (0, NONE_WORD) and not isinstance(value, bool):
        return None
    if option.kind == "imports":
        found = plugins.load("service", "import-settings")(value, given.directory or directory, given.source)
    else:
        found = _checked(option, value, given.directory or directory)
    if found is None:
        like_secret = option.key in _LIKE_SECRETS and not given.typed
        joint = ", which is wrong:" if like_secret else ":"
        raise UsageError(f"{given.source}{joint} {_about_wrong(option, given, value)}")
    return found


def _read_text(kind: str, text: str) -> object:
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
        case _:
            return text.replace(",", " ").split() if kind in MANY else text


def _checked(option: Option, value: Any, directory: str) -> Any:  # Any: a value of TOML, and one of the field's type
    """The value of the field's type; None for a wrong one."""
    match option.kind, value:
        case ("switch", bool()):
            return value
        case (_, bool()):
            return None  # Python counts a bool as an int
        case ("integer", int()) | ("seconds", int() | float()) if option.in_range(value):
            return float(value) if option.kind == "seconds" else value
        case (("choice" | "dialect"), str()):
            word = option.row.synonyms.get(value.lower(), value.lower())
            if word in option.choices:
                return word
            return value if option.kind == "dialect" and plugins.is_known("dialect", value) else None
        case kind, list() if kind in MANY:
            read = tuple(_read_one(kind, text, directory) if isinstance(text, str) else None for text in value)
            return None if None in read else read
        case kind, str() if kind not in MANY:
            return _read_one(kind, value, directory)
        case _:
            return None


def _read_one(kind: str, text: str, directory: str) -> Any:
    """The value of one text; None for a wrong one."""
    path = absolute(text, directory)
    name, _, rest = text.partition("=")
    is_word = [text] == text.replace(",", " ").split()
    match kind:
        case "directory":
            return path if text and os.path.isdir(path) else None
        case "file":
            return "" if text == "-" else path if text else None
        case "keys" if is_key_address(text):
            return text
        case "readable" | "keys":
            return path if text and os.path.isfile(path) else None
        case "url":
            return text if is_word and text.startswith(URL_SCHEMES) else None
        case "word" | "words":
            return text if is_word else None
        case "tokens":
            return text if is_word and read_token(text) else None
        case "files":
            return f"{name}={absolute(rest, directory)}" if is_word and name and rest else None
        case "object" | "apps":
            return absolute_reference(text, directory) if read_reference(text) else None
        case "store":
            return _read_store(text, directory)
        case "address" if found := read_address(text):
            return UNIX + os.path.join(directory, found.path) if found.path else text
        case _:
            return None


def _read_store(text: str, directory: str) -> str | None:
    """The address of a store: in memory, in a file, on a server, or `NAME:` and a line for one of an installed package."""
    name, colon, path = text.partition(":")
    if text.startswith(SQLITE):
        return SQLITE + absolute(path, directory) if path else None
    if text.startswith((*POSTGRES, *REDIS)):
        return text if text.split() == [text] else None  # commas stand between hosts
    is_added = (
        colon and text.isprintable() and name not in plugins.BUILT_IN["store"] and plugins.is_known("store", name)
    )
    return text if text == MEMORY or is_added else None


def _about_wrong(option: Option, given: RawValue, value: object) -> str:
    """Describe the value that was expected instead of this one."""
    if given.typed and option.kind in MANY:
        return f"expected an array of {option.expected}{_as_array(option, given)}"
    hint = ""
    match option.kind:
        case "apps":
            return _about_wrong_app(value)
        case "address":
            hint = _about_wrong_address(str(value))
        case "dialect" | "store" if added := plugins.added("store" if option.kind == "store" else "dialect"):
            hint = f", or of installed packages {', '.join(added)}"
        case _:  # the rest is said by `expected`
            pass
    return f"expected {option.expected}{hint}"


def _about_wrong_app(value: object) -> str:
    """Describe what was expected instead of the first word that names no app, and the app that it may mean."""
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
