"""Tests services: a peer to a daemon in memory or in a process, and checks of contracts and recordings."""

from .contract import ContractBroken, ContractReport, Example, Scenario, Violation, check_contract
from .memory import in_memory, spawned
from .recordings import RecordingDiffers, replayed

__all__ = [
    "ContractBroken",
    "ContractReport",
    "Example",
    "RecordingDiffers",
    "Scenario",
    "Violation",
    "check_contract",
    "in_memory",
    "replayed",
    "spawned",
]
