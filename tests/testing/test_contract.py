"""The check of a contract: each thing that it promises to find is found, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from discreet import CallFailed, Context, OperationError, Service
from discreet.client import OperationFailed, Peer
from discreet.daemon.operations.service import Changes
from discreet.schemas.documents import snapshot, snapshot_text
from discreet.testing import ContractBroken, Example, Violation, check_contract
from discreet.testing.contract import OperationObserver


class Book(Struct):
    title: str
    pages: int = 1


class Missing(OperationError, code="MISSING", http_status=404):
    """There is no such book."""

    title: str


class Burnt(OperationError, code="BURNT"):
    """It is burnt."""

    title: str


DECLARED = {
    "namespace": "shelf",
    "description": "Books.",
    "uses": ["library/read"],
    "authority": ["books:read"],
    "version": "1.2.3",
    "dialect": "auto",
    "credentials": ["CATALOGUE_TOKEN"],
    "capabilities": {"bookProvider": True},
    "lifespan": nullcontext,
}
"""A value for each thing that a service declares beside its operations."""


def test_a_service_that_is_observed_declares_all_that_it_declared() -> None:
    assert set(DECLARED) == set(inspect.signature(Service).parameters)
    service, bare = Service(**DECLARED), Service("")  # type: ignore[arg-type]
    service.changes, service.enters_late = Changes(), True
    service.query()(found)
    twin = OperationObserver().observed(service)
    for name, value in vars(service).items():
        if name.startswith("_"):
            continue  # how it is made, and nothing that it declares
        assert value != vars(bare)[name], f"{name} is declared in this test"
        assert name == "operations" or vars(twin)[name] == value
    for spec, other in zip(service.operations, twin.operations, strict=True):
        assert {name for name in spec.__struct_fields__ if getattr(spec, name) != getattr(other, name)} == {"invoke"}


def found(title: str) -> bool:
    """Whether there is such a book."""
    return bool(title)


def library() -> Service:
    service = Service("library")

    @service.query(errors=[Missing], inline=True)
    def read(title: str) -> Book:
        """Read a book."""
        if title == "none":
            raise Missing(title=title)
        return Book(title, 7)

    @service.query(errors=[Missing])
    def read_in_a_thread(title: str) -> Book:
        """Read a book, slowly."""
        raise Missing(title=title)

    @service.subscription(errors=[Burnt])
    async def pages(title: str) -> AsyncIterator[int]:
        """Turn its pages."""
        yield 1
        yield 2
        if title == "burnt":
            raise Burnt(title=title)

    return service


WHOLE = (
    Example("library/read", {"title": "x"}, result=Book("x", 7)),
    Example("/library/read", {"title": "x"}, result={"title": "x", "pages": 7}),
    Example("library/read", {"title": "none"}, error=Missing),
    Example("library/read", {"title": 3}, error="INVALID_INPUT"),
    Example("library/read_in_a_thread", {"title": "none"}, error="MISSING"),
    Example("library/pages", {"title": "x"}, events=[1, 2]),
    Example("library/pages", {"title": "x"}, events=[1]),
    Example("library/pages", {"title": "x"}),
    Example("library/pages", {"title": "burnt"}, events=[1, 2], error=Burnt),
)


UNPROVOKED = (Missing, Burnt)


def violations(*services: Service, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(ContractBroken) as broken:
        check_contract(*services, **options)
    for violation in broken.value.report.violations:
        assert f"- {violation}" in str(broken.value).splitlines()
    return [(violation.where, violation.what) for violation in broken.value.report.violations]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_service_that_keeps_its_word_is_reported_and_nothing_raised(backend: str) -> None:
    report = check_contract(library(), examples=WHOLE, backend=backend)
    assert report.violations == ()
    assert report.errors == (
        ("library/pages", "BURNT"),
        ("library/read", "MISSING"),
        ("library/read_in_a_thread", "MISSING"),
    )
    assert report.exercised == ("library/pages", "library/read", "library/read_in_a_thread")
    assert report.unexercised == ()


def test_each_declared_error_that_no_example_raised_is_found() -> None:
    found = violations(library(), examples=WHOLE[:3])
    assert found == [
        ("library/read_in_a_thread", "no example raised its error MISSING; add one, or list the error in unprovoked"),
        ("library/pages", "no example raised its error BURNT; add one, or list the error in unprovoked"),
    ]


def test_an_error_that_nobody_can_provoke_is_excused() -> None:
    report = check_contract(library(), examples=WHOLE[:5], unprovoked=[Burnt])
    assert report.unexercised == ("library/pages",)


def test_without_examples_every_declared_error_is_missing_unless_none_are_wanted() -> None:
    assert len(violations(library())) == 3
    assert check_contract(library(), examples=None).errors == ()


@pytest.mark.anyio
async def test_a_check_in_an_event_loop_is_refused_with_what_to_write() -> None:
    with pytest.raises(RuntimeError, match="in a plain function"):
        check_contract(library(), examples=WHOLE)


def test_all_findings_are_told_at_once() -> None:
    examples = (
        *WHOLE,
        Example("library/read", {"title": "x"}, result=Book("y")),
        Example("library/read", {"title": "x"}, result={"pages": "many"}),
        Example("library/read", {"title": "x"}, error=Missing),
        Example("library/read", {"title": "none"}),
        Example("library/read", {"title": "none"}, error=Burnt),
        Example("library/read", {"titel": "x"}),
        Example("library/lend"),
        Example("library/pages", {"title": "x"}, events=[2]),
    )
    found = violations(library(), examples=examples)
    assert [where.split()[0] for where, _ in found] == ["library/read"] * 6 + ["library/lend", "library/pages"]
    told = [what for _, what in found]
    assert told[0] == 'gave {"title":"x","pages":7}, not {"title":"y","pages":1}'
    assert told[1].startswith("the expected value is not of the declared type")
    assert told[2] == "succeeded, and did not fail with MISSING"
    assert told[3].startswith("ended with MISSING")
    assert told[4].endswith("not BURNT")
    assert "INVALID_INPUT" in told[5]
    assert "NOT_FOUND" in told[6]
    assert told[7] == "gave [1], not [2]"


def test_a_result_of_another_type_than_declared_is_found() -> None:
    service = Service("lies")

    @service.query(inline=True)
    def count() -> int:
        """Count."""
        return "three"  # type: ignore[return-value]

    ((where, what),) = violations(service, examples=[Example("lies/count")])
    assert where == "lies/count"
    assert "INTERNAL" in what


def test_an_error_that_is_not_declared_is_found_even_where_nobody_looks() -> None:
    service = Service("shelf", uses=["shelf/inner"])

    @service.query(visibility="internal")
    async def inner() -> None:
        raise Missing(title="x")

    @service.query()
    async def outer(ctx: Context) -> str:
        """Ask the other."""
        try:
            await ctx.call("shelf/inner")
        except CallFailed:
            return "well"
        return "better"

    found = violations(service, examples=[Example("shelf/outer", result="well")])
    assert found == [("shelf/inner", "raised MISSING, which it does not declare")]


def test_facts_of_another_type_are_found() -> None:
    service = Service("shelf")

    @service.query(errors=[Missing])
    async def get() -> None:
        """Get it."""
        raise Missing(title=3)  # type: ignore[arg-type]

    found = violations(service, examples=[Example("shelf/get", error="INTERNAL")])
    assert ("shelf/get", "raised MISSING with details of other types than it declares") in found
    assert ("shelf/get", "no example raised its error MISSING; add one, or list the error in unprovoked") in found


def test_an_error_alone_in_a_group_counts_as_the_error() -> None:
    service = Service("shelf")

    @service.query(errors=[Missing])
    async def get() -> None:
        """Get it."""
        raise ExceptionGroup("", [Missing(title="x")])

    assert check_contract(service, examples=[Example("shelf/get", error=Missing)]).errors == (("shelf/get", "MISSING"),)


def test_a_scenario_shows_what_takes_more_than_one_call() -> None:
    async def reading(peer: Peer) -> None:
        for title in ("none", "x"):
            try:
                await peer.call("library/read", {"title": title})
            except OperationFailed as exc:
                assert title == "none", exc

    report = check_contract(library(), examples=[reading, *WHOLE[4:]])
    assert ("library/read", "MISSING") in report.errors


def test_an_operation_without_a_description_is_found_unless_that_is_wanted() -> None:
    service = Service("bare")
    service.query(name="op")(lambda: None)
    service.query(name="inner", visibility="internal")(lambda: None)
    assert violations(service) == [("bare/op", "has no description")]
    assert check_contract(service, descriptions=False).violations == ()


def kept(path: Path, service: Service) -> Path:
    path.write_bytes(snapshot_text(snapshot(service.operations)))
    return path


def test_what_breaks_callers_of_the_snapshot_is_found(tmp_path: Path) -> None:
    path = kept(tmp_path / "kept.json", library())
    assert check_contract(library(), examples=None, snapshot=path).additions == ()
    changed = Service("library")
    changed.query(name="read", errors=[Missing], description="Read.")(lambda: None)
    told = violations(changed, examples=None, snapshot=path)
    assert {where for where, _ in told} == {str(path)}
    assert any("library/pages: is gone" in what for _, what in told)


def test_what_is_new_is_reported_and_does_no_harm(tmp_path: Path) -> None:
    path = kept(tmp_path / "kept.json", Service("library"))
    report = check_contract(library(), examples=None, snapshot=path)
    assert {change.operation for change in report.additions} == {
        "library/pages",
        "library/read",
        "library/read_in_a_thread",
    }


def test_a_snapshot_that_is_missing_or_is_none_is_found(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    ((where, what),) = violations(library(), examples=None, snapshot=path)
    assert where == str(path)
    assert "discreet schema" in what
    path.write_text("{}")
    assert [where for where, _ in violations(library(), examples=None, snapshot=path)] == [str(path)]


def test_what_a_service_announces_is_announced_while_it_is_checked() -> None:
    service = Service("hints", capabilities={"hoverProvider": True})

    async def initializing(peer: Peer) -> None:
        result: Any = await peer.call("initialize", {"processId": None, "capabilities": {}})
        assert result["capabilities"]["hoverProvider"] is True

    check_contract(service, examples=[initializing])


def test_settings_reach_the_daemon_that_runs_the_examples() -> None:
    service = Service("guarded")
    service.query(name="op", scopes=["some"], description="Do it.")(lambda: None)
    report = check_contract(service, examples=[Example("guarded/op", error="FORBIDDEN")], scopes=[])
    assert report.unexercised == ("guarded/op",)


def test_a_finding_reads_as_one_line() -> None:
    assert str(Violation("a/b", "is gone")) == "a/b: is gone"


# -- examples and scenarios: what they must state ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "example",
    [
        Example("library/pages", {"title": "x"}, result=[1, 2]),
        Example("library/read", {"title": "x"}, events=[1]),
        Example("library/pages", {"title": "burnt"}, events=[1], error="BURNT"),
        Example("library/pages", {"title": "burnt"}, events=[1, 2], error="OTHER"),
    ],
)
def test_an_example_that_states_another_outcome_is_a_finding(example: Example) -> None:
    assert len(violations(library(), examples=[example], unprovoked=UNPROVOKED)) == 1


def test_a_scenario_that_fails_is_found_with_its_line() -> None:
    async def counting(peer: Peer) -> None:
        await peer.call("version")
        raise AssertionError

    line = counting.__code__.co_firstlineno + 2
    [(where, what)] = violations(library(), examples=[counting], unprovoked=UNPROVOKED)
    assert (where, what) == ("counting", f"test_contract.py:{line}: AssertionError: raise AssertionError")


def test_pytest_is_not_shown_the_inside_of_the_check() -> None:
    with pytest.raises(ContractBroken) as broken:
        check_contract(library(), examples=[])
    assert broken.traceback[-1].ishidden(broken)


def test_an_example_has_one_outcome() -> None:
    with pytest.raises(ValueError, match="or"):
        Example("m", result=1, error="X")


@pytest.mark.parametrize(
    ("services", "options"),
    [
        (("./a.py:s",), {}),
        ((None,), {}),
        ((), {"examples": 5}),
        ((), {"examples": Example("m")}),
        ((), {"examples": [5]}),
        ((), {"examples": [lambda peer: None]}),
        ((), {"unprovoked": [ValueError]}),
        ((), {"unprovoked": Burnt}),
        ((), {"examples": [], "scope": "x"}),
    ],
)
def test_arguments_of_other_types_are_refused(services: Any, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        check_contract(*services, **options)
