"""The public API for agents: `from discreet.agents import Agent`. Defines nothing; imports each name on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .daemon.agents.agent import Agent
    from .daemon.agents.card.model import (
        AgentCard,
        AgentInterface,
        ApiKey,
        AuthorizationCode,
        Capabilities,
        ClientCredentials,
        DeviceCode,
        Extension,
        HttpAuth,
        Implicit,
        MutualTls,
        OAuth2,
        OAuthFlows,
        OpenIdConnect,
        Password,
        Provider,
        SecurityRequirement,
        Signature,
        Skill,
        requires,
    )
    from .daemon.agents.errors import InvalidStateTransition, NotCancelable
    from .daemon.agents.interceptor import AgentCall, CallResult, Interceptor
    from .daemon.agents.model.types import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
    from .daemon.agents.requests import SendRequest
    from .daemon.agents.stores.interface import EventLog, TaskStore
    from .daemon.agents.tasks.executor import (
        AgentExecutor,
        RequestContext,
        SupportsCancel,
        SupportsCheck,
        SupportsResume,
    )
    from .daemon.agents.tasks.task_events import TaskEvents

_EXPORTS = {
    "agent": ("Agent",),
    "card.model": (
        "AgentCard",
        "AgentInterface",
        "ApiKey",
        "AuthorizationCode",
        "Capabilities",
        "ClientCredentials",
        "DeviceCode",
        "Extension",
        "HttpAuth",
        "Implicit",
        "MutualTls",
        "OAuth2",
        "OAuthFlows",
        "OpenIdConnect",
        "Password",
        "Provider",
        "SecurityRequirement",
        "Signature",
        "Skill",
        "requires",
    ),
    "tasks.task_events": ("TaskEvents",),
    "tasks.executor": ("AgentExecutor", "RequestContext", "SupportsCancel", "SupportsCheck", "SupportsResume"),
    "interceptor": ("AgentCall", "CallResult", "Interceptor"),
    "errors": ("InvalidStateTransition", "NotCancelable"),
    "model.types": ("Artifact", "Message", "Part", "Role", "Task", "TaskState", "TaskStatus"),
    "requests": ("SendRequest",),
    "stores.interface": ("EventLog", "TaskStore"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [
    "Agent",
    "AgentCall",
    "AgentCard",
    "AgentExecutor",
    "AgentInterface",
    "ApiKey",
    "Artifact",
    "AuthorizationCode",
    "CallResult",
    "Capabilities",
    "ClientCredentials",
    "DeviceCode",
    "EventLog",
    "Extension",
    "HttpAuth",
    "Implicit",
    "Interceptor",
    "InvalidStateTransition",
    "Message",
    "MutualTls",
    "NotCancelable",
    "OAuth2",
    "OAuthFlows",
    "OpenIdConnect",
    "Part",
    "Password",
    "Provider",
    "RequestContext",
    "Role",
    "SecurityRequirement",
    "SendRequest",
    "Signature",
    "Skill",
    "SupportsCancel",
    "SupportsCheck",
    "SupportsResume",
    "Task",
    "TaskEvents",
    "TaskState",
    "TaskStatus",
    "TaskStore",
    "requires",
]


def __getattr__(name: str) -> Any:  # PEP 562: an executor alone does not load the card, nor a card the store
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".daemon.agents.{_MODULE_OF[name]}", "discreet"), name)
    globals()[name] = value
    return value
