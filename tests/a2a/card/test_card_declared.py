"""What is refused when an agent is declared, and how an app with an agent is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet import DeclarationError, Service
from discreet.a2a.card import ApiKey, Extension, HttpAuth, Skill, requires
from discreet.agents.agent import Agent
from discreet.daemon.apps import AppError, hosted_of, load
from discreet.daemon.settings import Settings


class Executor:
    """Does nothing."""

    async def execute(self, context: object, events: object) -> None: ...

    async def cancel(self, context: object, events: object) -> None: ...


class Blocking(Executor):
    def execute(self, context: object, events: object) -> None: ...  # type: ignore[override]


class Generating(Executor):
    async def cancel(self, context: object, events: object) -> Any:  # type: ignore[override]
        yield 1


class Callables:
    """Methods may be any objects that can be called."""

    def __init__(self) -> None:
        self.execute = self.cancel = Ready()


class Ready:
    async def __call__(self, context: object, events: object) -> None: ...


SKILL = Skill(id="a", name="A", description="A.", tags=())


def skill(**more: Any) -> Skill:
    return Skill(**{"id": "a", "name": "A", "description": "A.", "tags": (), **more})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ""}, "name"),
    "a name that is none": ({"name": 3}, "name"),
    "no description": ({"description": ""}, "description"),
    "an option that is none": ({"skill": [SKILL]}, "skill"),
    "no version": ({"version": ""}, "version"),
    "an executor that is a class": ({"executor": Executor}, "Executor()"),
    "an executor that is none": ({"executor": object()}, "execute"),
    "an executor that blocks": ({"executor": Blocking()}, "execute"),
    "an executor that generates": ({"executor": Generating()}, "cancel"),
    "one skill": ({"skills": SKILL}, "skills"),
    "a skill that is text": ({"skills": ["a"]}, "skills"),
    "a skill twice": ({"skills": [SKILL, SKILL]}, "'a'"),
    "a skill without an id": ({"skills": [skill(id="")]}, "skills[0].id"),
    "a skill with one tag": ({"skills": [skill(tags="x")]}, "tags"),
    "a mode that is a list": ({"input_modes": "text/plain"}, "InputModes"),
    "a mode that is no media type": ({"output_modes": ["text"]}, "OutputModes"),
    "a provider that is text": ({"provider": "Example"}, "provider"),
    "an extension twice": ({"extensions": [Extension("u"), Extension("u")]}, "'u'"),
    "a type that JSON can't hold": ({"extensions": [Extension("u", params={"a": object()})]}, "object"),
    "a scheme that is text": ({"security_schemes": {"b": "Bearer"}}, "str"),
    "a place for keys that is none": (
        {"security_schemes": {"k": ApiKey(name="k", location="body")}},  # type: ignore[arg-type]
        "location",
    ),
    "an unknown scheme": ({"security": [requires({"b": []})]}, "'b'"),
    "an unknown scheme of a skill": (
        {
            "skills": [skill(security_requirements=(requires({"c": []}),))],
            "security_schemes": {"b": HttpAuth("Bearer")},
        },
        "'c'",
    ),
    "an extended card that is none": ({"extended": "more"}, "AgentCard"),
    "an interceptor without after": ({"interceptors": [object()]}, "before and after"),
    "streaming that is neither": ({"streaming": "yes"}, "streaming"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_declaration_is_one_line_that_names_the_agent_and_what_is_wrong(case: str) -> None:
    options, word = REFUSED[case]
    given = {"executor": Executor(), "name": "x", "description": "X.", **options}
    with pytest.raises(DeclarationError) as caught:
        Agent(given.pop("executor"), **given)
    message = str(caught.value)
    assert message.startswith("agent ")
    assert word in message
    assert "\n" not in message


def test_methods_may_be_any_objects_that_can_be_called() -> None:
    executor: Any = Callables()
    assert Agent(executor, name="x", description="X.").executor is executor


APP = """
from discreet import Service
from discreet.agents.agent import Agent
class Executor:
    async def execute(self, context, events): ...
    async def cancel(self, context, events): ...
files = Service("files")
agent = Agent(Executor(), name="One", description="One.")
other = Agent(Executor(), name="Other", description="Other.")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apps_agent.py").write_text(APP)
    return "apps_agent"


def test_an_agent_stands_beside_services(app: str) -> None:
    hosted = load([f"{app}:agent", f"{app}:files"])
    assert [service.namespace for service in hosted.services] == ["files"]
    assert hosted.agent is not None and hosted.agent.card.name == "One"
    assert hosted_of(Settings(apps=(f"{app}:agent",))).services == []


def test_a_daemon_hosts_one_agent(app: str) -> None:
    with pytest.raises(AppError, match="apps_agent:other") as caught:
        load([f"{app}:agent", f"{app}:files", f"{app}:other", f"{app}:none"])
    assert "apps_agent:none" in str(caught.value)


def test_services_alone_load_nothing_of_agents(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("from discreet import Service\napp = Service('plain')\n")
    program = (
        "import sys\n"
        "from discreet.daemon.apps import load\n"
        "assert load(['plain:app']).agent is None\n"
        "print([name for name in sys.modules if name.startswith('discreet.agents')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_service_is_no_agent(app: str) -> None:
    assert load([f"{app}:files"]).agent is None
    assert isinstance(load([f"{app}:files"]).services[0], Service)
