"""For the tests of services: a peer to a daemon in memory or in a process, and a check of what a service declares."""

from .contract import ContractBroken, ContractReport, Finding, check_contract
from .examples import Example, Scenario
from .peers import in_memory, spawned
from .recordings import RecordingDiffers, replayed

__all__ = [
    "ContractBroken",
    "ContractReport",
    "Example",
    "Finding",
    "RecordingDiffers",
    "Scenario",
    "check_contract",
    "in_memory",
    "replayed",
    "spawned",
]
