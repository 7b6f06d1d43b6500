"""An open directory on Windows, where Python can't open a name relative to a directory.

Each object is opened by its full path, without following a reparse point at its end. It is used only if the final path
of its handle is the path that was opened: a junction or link anywhere on the way makes the two differ. The check is made
on the open handle, so nothing can be exchanged after it. Directories are opened without FILE_SHARE_DELETE: while one is
open, neither it nor a directory above it can be renamed.

Paths have the prefix `\\\\?\\`, which disables device names (`NUL`, `COM1`) and the removal of trailing dots and blanks.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":
    raise ImportError("root_windows works on Windows only")

import ctypes
import errno
import msvcrt
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from ctypes import wintypes
from typing import Self, final

from .directory import FileInfo
from .types import FileKind

_LIST_DIRECTORY = 0x0001
_READ_ATTRIBUTES = 0x0080
_GENERIC_READ = 0x8000_0000
_GENERIC_WRITE = 0x4000_0000
_SHARE_ALL = 0x7
_SHARE_NO_DELETE = 0x3
_CREATE_NEW = 1
_OPEN_EXISTING = 3
_NO_FOLLOW = 0x0200_0000 | 0x0020_0000  # FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT
_FOLLOW = 0x0200_0000
_FULL_DIRECTORY_INFO = 14
_FULL_DIRECTORY_RESTART_INFO = 15
_NO_MORE_FILES = (18, 2)  # the second one in the root of an empty volume, which has not even `.` and `..`
_LONGEST_PATH = 32_768  # characters, with the prefix \\?\
_LISTING_BYTES = 65_536
# FILE_FULL_DIR_INFO: the next entry's distance at 0, the name's length in bytes at 60, the name itself at 68.
_NEXT = struct.Struct("<I")
_NAME_BYTES_AT = 60
_NAME_AT = 68

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.CreateFileW.argtypes = (
    wintypes.LPCWSTR,
    wintypes.DWORD,
    wintypes.DWORD,
    wintypes.LPVOID,
    wintypes.DWORD,
    wintypes.DWORD,
    wintypes.HANDLE,
)
_kernel32.CreateFileW.restype = wintypes.HANDLE
_kernel32.GetFinalPathNameByHandleW.argtypes = (wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD)
_kernel32.GetFinalPathNameByHandleW.restype = wintypes.DWORD
_kernel32.GetFileInformationByHandleEx.argtypes = (wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD)
_kernel32.GetFileInformationByHandleEx.restype = wintypes.BOOL
_kernel32.CloseHandle.argtypes = (wintypes.HANDLE,)
_INVALID_HANDLE = wintypes.HANDLE(-1).value


def open_root(path: str) -> WindowsDirectory:
    """Open the root itself; the operator named it, so links in `path` are followed. Raises `OSError`."""
    fd = _open(os.path.abspath(path), _LIST_DIRECTORY | _READ_ATTRIBUTES, _SHARE_NO_DELETE, flags=_FOLLOW)
    return _directory(fd, _final_path(fd))


@final
class WindowsDirectory:
    """A `Directory` on a descriptor that it owns, and the final path that the descriptor had when it was opened."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def open_directory(self, name: str) -> WindowsDirectory:
        fd = self._open_below(name, _LIST_DIRECTORY | _READ_ATTRIBUTES, _SHARE_NO_DELETE)
        return _directory(fd, self._path_of(name))

    def open_file(self, name: str) -> int:
        return self._open_regular(name, _GENERIC_READ)

    def info(self, name: str) -> FileInfo:
        fd = self._open_below(name, _READ_ATTRIBUTES, _SHARE_ALL)
        try:
            return _info(os.fstat(fd))
        finally:
            os.close(fd)

    def list_names(self) -> Iterator[str]:
        # Listed by handle: a path could have become a junction since it was checked.
        buffer = ctypes.create_string_buffer(_LISTING_BYTES)
        handle, what = msvcrt.get_osfhandle(self._fd), _FULL_DIRECTORY_RESTART_INFO
        while _kernel32.GetFileInformationByHandleEx(handle, what, buffer, _LISTING_BYTES):
            yield from _names_in(buffer.raw)
            what = _FULL_DIRECTORY_INFO
        if ctypes.get_last_error() not in _NO_MORE_FILES:
            raise ctypes.WinError(ctypes.get_last_error())

    def write_file(self, name: str, data: bytes, *, create: bool) -> tuple[FileInfo, bool]:
        created = self._is_new(name)
        if create and not created:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary = f".discreet-{os.urandom(8).hex()}"
        try:
            info = self._write_new(temporary, data)
            # By path, which is safe: this directory is open, and one that holds a file can't become a junction.
            move = os.rename if create else os.replace  # rename fails if the name is taken, replace does not
            move(self._path_of(temporary), self._path_of(name))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._path_of(temporary))
        return info, created

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path_of(self, name: str) -> str:
        if name == ".":
            return self._path
        if ":" in name or "\\" in name:  # a colon would name an alternate data stream
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return self._path.rstrip("\\") + "\\" + name

    def _open_below(self, name: str, access: int, share: int, disposition: int = _OPEN_EXISTING) -> int:
        path = self._path_of(name)
        fd = _open(path, access, share, disposition=disposition)
        try:
            # `lower`, since the system returns the case of the stored name.
            if _final_path(fd).lower() != path.lower():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        except OSError:
            os.close(fd)
            raise
        return fd

    def _open_regular(self, name: str, access: int) -> int:
        fd = self._open_below(name, access, _SHARE_ALL)
        kind = _info(os.fstat(fd)).kind
        if kind == "file":
            return fd
        os.close(fd)
        reason = {"directory": errno.EISDIR, "symlink": errno.ELOOP}.get(kind, errno.ENXIO)
        raise OSError(reason, os.strerror(reason))

    def _is_new(self, name: str) -> bool:
        try:
            os.close(self._open_regular(name, _GENERIC_WRITE))
        except FileNotFoundError:
            return True
        return False

    def _write_new(self, name: str, data: bytes) -> FileInfo:
        fd = self._open_below(name, _GENERIC_WRITE | _READ_ATTRIBUTES, _SHARE_NO_DELETE, _CREATE_NEW)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
            return _info(os.fstat(fd))
        finally:
            os.close(fd)


def _open(path: str, access: int, share: int, *, disposition: int = _OPEN_EXISTING, flags: int = _NO_FOLLOW) -> int:
    handle = _kernel32.CreateFileW(path, access, share, None, disposition, flags, None)
    if handle == _INVALID_HANDLE:
        raise ctypes.WinError(ctypes.get_last_error())
    mode = os.O_RDWR if access & _GENERIC_WRITE else os.O_RDONLY
    try:
        return msvcrt.open_osfhandle(handle, mode | os.O_BINARY | os.O_NOINHERIT)
    except OSError:  # no descriptor is left
        _kernel32.CloseHandle(handle)
        raise


def _final_path(fd: int) -> str:
    buffer = ctypes.create_unicode_buffer(_LONGEST_PATH)
    length = _kernel32.GetFinalPathNameByHandleW(msvcrt.get_osfhandle(fd), buffer, _LONGEST_PATH, 0)
    if not 0 < length < _LONGEST_PATH:
        raise ctypes.WinError(ctypes.get_last_error())
    return buffer.value


def _directory(fd: int, path: str) -> WindowsDirectory:
    kind = _info(os.fstat(fd)).kind
    if kind == "directory":
        return WindowsDirectory(fd, path)
    os.close(fd)
    reason = errno.ELOOP if kind == "symlink" else errno.ENOTDIR
    raise OSError(reason, os.strerror(reason))


def _info(found: os.stat_result) -> FileInfo:
    kind: FileKind = "other"
    if found.st_file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
        kind = "symlink"  # junctions and every other reparse point too
    elif stat.S_ISDIR(found.st_mode):
        kind = "directory"
    elif stat.S_ISREG(found.st_mode):
        kind = "file"
    return FileInfo(kind, found.st_size if kind == "file" else 0, found.st_mtime_ns)


def _names_in(listing: bytes) -> Iterator[str]:
    at = 0
    while True:
        (length,) = _NEXT.unpack_from(listing, at + _NAME_BYTES_AT)
        name = listing[at + _NAME_AT : at + _NAME_AT + length].decode("utf-16-le", "surrogatepass")
        if name not in (".", ".."):
            yield name
        (step,) = _NEXT.unpack_from(listing, at)
        if not step:
            return
        at += step
