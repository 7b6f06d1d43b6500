"""Stores tasks in this process's memory."""

from .limits import StoreLimits
from .store import MemoryStore

__all__ = ["MemoryStore", "StoreLimits"]
