"""Holds services to what they declare: errors, types, descriptions, and schemas that callers know already.

Runs examples, compares, and reports all findings at once. Never changes a service or a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, final

import anyio
import msgspec

from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec
from ..daemon.schemas.compatibility import ContractChange, additions, breaking_changes
from ..daemon.schemas.documents import Snapshot, read_snapshot, snapshot
from ..errors.exceptions import OperationError
from .examples import Example, Mismatch, Scenario, run_example, run_scenario
from .peers import in_memory
from .recorder import ContractRecorder

StrPath: TypeAlias = "str | os.PathLike[str]"


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as declared. `where` is an operation, the name of a scenario, or the snapshot's file."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ContractReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a check has seen.

    `exercised` are the operations that ran, `unexercised` the others. `errors` are the declared errors that were raised
    (operation, code). `additions` are what the snapshot does not hold and what breaks nobody: time to write a new one.
    """

    findings: tuple[Finding, ...]
    exercised: tuple[str, ...]
    unexercised: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    additions: tuple[ContractChange, ...]


@final
class ContractBroken(AssertionError):
    """A service is not as it declares; the message holds one line per finding, `report` all that was seen."""

    def __init__(self, report: ContractReport) -> None:
        super().__init__("\n".join(["the contract is broken", *(f"- {finding}" for finding in report.findings)]))
        self.report = report


def check_contract(
    *services: Service,
    examples: Iterable[Example | Scenario] | None = None,
    snapshot: StrPath | None = None,
    descriptions: bool = True,
    unprovoked: Sequence[type[OperationError]] = (),
    **options: Any,  # those of `in_memory`
) -> ContractReport:
    """Check what services declare; for plain tests, as it runs an event loop of its own.

        def test_the_contract_holds() -> None:
            check_contract(
                notes,
                examples=[
                    Example("notes/add", {"title": "Milk"}, result={"id": 1, "title": "Milk"}),
                    Example("notes/read", {"id": 2}, error=NoSuchNote),
                ],
                snapshot="notes.schema.json",
            )

    - Each of the `examples` goes as it says. They run in order against one daemon in memory, each when the one before
      has ended; `options` are the settings and the rest that `in_memory` takes. A scenario is a coroutine function that
      takes the peer.
    - Every declared error of an external operation was raised by some example or scenario, but for those `unprovoked`,
      which no test can bring about. No error was raised that is not declared. Without `examples` (None) nothing is said
      of errors.
    - Nothing has changed for callers of the operations in the file `snapshot`, which `discreet schema APP -o FILE`
      writes. What is new is reported and does no harm.
    - Every external operation has a description, unless `descriptions` is False.

    Raises `ContractBroken` (an `AssertionError`) with all findings, and what `in_memory` raises.
    """
    external = {spec.name: spec for service in services for spec in service.operations if spec.visibility == "external"}
    seen = ContractRecorder()
    findings: list[Finding] = []
    if examples is not None:
        findings += anyio.run(_run, services, tuple(examples), seen, options, backend=options.get("backend", "asyncio"))
        findings += _errors(external.values(), seen, unprovoked)
    if descriptions:
        findings += [Finding(name, "has no description") for name, spec in external.items() if not spec.description]
    added: tuple[ContractChange, ...] = ()
    if snapshot is not None:
        broken, added = _compared(snapshot, external.values())
        findings += broken
    report = ContractReport(
        findings=tuple(findings),
        exercised=tuple(sorted(seen.exercised)),
        unexercised=tuple(sorted(external.keys() - seen.exercised)),
        errors=tuple(sorted(seen.raised)),
        additions=added,
    )
    if findings:
        raise ContractBroken(report)
    return report


async def _run(
    services: Sequence[Service], examples: Sequence[Example | Scenario], seen: ContractRecorder, options: dict[str, Any]
) -> list[Finding]:
    specs = {spec.name: spec for service in services for spec in service.operations}
    findings: list[Finding] = []
    async with in_memory(*map(seen.recorded, services), **options) as peer:
        for example in examples:
            try:
                if isinstance(example, Example):
                    await run_example(peer, example, specs.get(example.operation.removeprefix("/")))
                else:
                    await run_scenario(peer, example)
            except Mismatch as exc:
                findings.append(Finding(_name(example), str(exc)))
    return findings


def _name(example: Example | Scenario) -> str:
    if isinstance(example, Example):
        params = "" if example.params is None else f" {msgspec.json.encode(example.params).decode()}"
        return f"{example.operation}{params}"
    return getattr(example, "__name__", "a scenario")


def _errors(
    specs: Iterable[OperationSpec], seen: ContractRecorder, unprovoked: Sequence[type[OperationError]]
) -> Iterator[Finding]:
    excused = {cls.definition.code for cls in unprovoked}
    for name, code in sorted(seen.undeclared):
        yield Finding(name, f"raised {code}, which it does not declare")
    for name, code in sorted(seen.unfit):
        yield Finding(name, f"raised {code} with facts of other types than it declares")
    for spec in specs:
        for cls in spec.errors:
            code = cls.definition.code
            if code not in excused and (spec.name, code) not in seen.raised:
                yield Finding(spec.name, f"no example raised its error {code}")


def _compared(path: StrPath, specs: Iterable[OperationSpec]) -> tuple[list[Finding], tuple[ContractChange, ...]]:
    """What broke since the snapshot was taken, and what is new."""
    where = os.fspath(path)
    kept = _read(where)
    if isinstance(kept, Finding):
        return [kept], ()
    current = snapshot(specs)
    return [Finding(where, str(change)) for change in breaking_changes(kept, current)], additions(kept, current)


def _read(path: str) -> Snapshot | Finding:
    try:
        with open(path, "rb") as file:
            return read_snapshot(file.read())
    except FileNotFoundError:
        return Finding(path, "there is no snapshot; `discreet schema APP -o FILE` writes one")
    except ValueError as exc:
        return Finding(path, str(exc))
