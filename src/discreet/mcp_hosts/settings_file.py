"""Reads and changes the settings file of a host: one entry of it, with a backup, and never half of a file."""

import os
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from .json_text import read_json, with_member, without_member
from .table import Format

BACKUP: Final = ".discreet-backup"
"""What the name of a backup ends with. There is one for each file: it holds what stood there before the last change."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""How large a settings file may be. Some hosts keep what was said in theirs."""


class SettingsFault(Exception):
    """A file can't be read or changed; the message says why, in a few words."""


def read_file(path: str) -> bytes | None:
    """What a file holds; None where there is none. Raises `SettingsFault`."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
            raise SettingsFault("it is no file")
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise SettingsFault(f"it can't be read: {os.strerror(exc.errno or 0)}") from exc
    if len(content) > MAX_BYTES:
        raise SettingsFault(f"it has more than {MAX_BYTES:,} bytes")
    return content


def decoded(content: bytes | None) -> str:
    """The text of a file, empty for none. Raises `SettingsFault`."""
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        raise SettingsFault("it is not in UTF-8") from None


def read_settings(text: str, format: Format) -> dict[str, Any]:  # Any: JSON or TOML
    """Read the settings in a text; there are none in an empty one. Raises `SettingsFault`."""
    try:
        if format == "toml":
            return tomllib.loads(text)
        node = read_json(text, comments=format == "jsonc")
    except (ValueError, RecursionError) as exc:  # tomllib raises both
        raise SettingsFault(f"it can't be read ({exc})") from exc
    data = {} if node is None else node.data
    if not isinstance(data, dict):
        raise SettingsFault("it holds no object")
    return data


def entries_at(settings: dict[str, Any], keys: Sequence[str]) -> dict[str, Any] | None:
    """The entries below these keys; None where there is no object. Raises `SettingsFault` where another value stands."""
    found: Any = settings
    for key in keys:
        if key not in found:
            return None
        found = found[key]
        if not isinstance(found, dict):
            raise SettingsFault(f"{key} is no object")
    entries: dict[str, Any] = found
    return entries


def edited(text: str, format: Format, keys: Sequence[str], name: str, entry: dict[str, Any] | None) -> str:
    """The text with this entry, or without it for None. Raises `SettingsFault`; also where anything else would change."""
    expected = read_settings(text, format)
    entries = _made_at(expected, keys)
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry
    try:
        if format == "toml":
            changed = _edited_toml(text, keys, name, entry)
        elif entry is None:
            changed = without_member(text, keys, name, comments=format == "jsonc")
        else:
            changed = with_member(text, keys, name, entry, comments=format == "jsonc")
    except (ValueError, KeyError, TypeError) as exc:
        raise SettingsFault(f"it can't be changed ({exc})") from exc
    found = read_settings(changed, format)
    _made_at(found, keys)  # TOML has no empty table that only holds others
    if found != expected:
        raise SettingsFault("it can't be changed without a loss: see what --print prints, and write it by hand")
    return changed


def _made_at(settings: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    for key in keys:
        settings = settings.setdefault(key, {})
        if not isinstance(settings, dict):
            raise SettingsFault(f"{key} is no object")
    return settings


def _edited_toml(text: str, keys: Sequence[str], name: str, entry: dict[str, Any] | None) -> str:
    try:
        import tomlkit
    except ImportError:
        raise SettingsFault("TOML needs tomlkit: pip install 'discreet[install]'") from None
    document = tomlkit.parse(text)
    table: Any = document
    for key in keys:
        if key not in table:
            table[key] = tomlkit.table(is_super_table=True)
        table = table[key]
    if entry is None:
        del table[name]
    else:
        new = tomlkit.table()
        new.update(entry)
        table[name] = new
    return document.as_string()


def change_file(file: str, edit: Callable[[str], str | None], *, private: bool = False) -> str | None:
    """Replace a file by what `edit` makes of its text, at once; with None the file goes.

    Returns the path of the backup; None where nothing was there, where nothing changes, and where the file goes.

    A symbolic link stays one: what it leads to is replaced. The file keeps its mode; a new one has that of the umask, or with
    `private` is the user's alone. Raises `SettingsFault`, and what `edit` raises; then the file is as it was.
    """
    path = os.path.realpath(file)
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        with _locked(folder):
            before = read_file(path)
            edited = edit(decoded(before))
            after = None if edited is None else edited.encode()
            if after == before:
                return None
            if after is None:
                os.unlink(path)
                return None
            if before is None:
                mode = 0o600 if private else 0o666 & ~_umask()
            else:
                mode = stat.S_IMODE(os.stat(path).st_mode)
                _replace(path + BACKUP, before, mode)
            if read_file(path) != before:
                raise SettingsFault("another program has just changed it; try again")
            _replace(path, after, mode)
    except OSError as exc:
        raise SettingsFault(f"it can't be written: {os.strerror(exc.errno or 0)}") from exc
    return None if before is None else path + BACKUP


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other runs of this out of the folder. The wait has no deadline: the lock ends with the process that holds it, which
    only writes a file. Windows and some network file systems have no such lock.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    fd = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _replace(path: str, content: bytes, mode: int) -> None:
    fd, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
