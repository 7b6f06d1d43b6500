"""The public API for agents: `from discreet.agents import Agent`. Defines nothing; imports each name on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..a2a.card import (
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
    from ..a2a.errors import InvalidStateTransition, NotCancelable
    from ..a2a.types import Artifact, Message, Part, Role, SendRequest, Task, TaskState, TaskStatus
    from .agent import Agent, AgentCall, CallResult, Interceptor
    from .executor import (
        AgentExecutor,
        RequestContext,
        SupportsCancel,
        SupportsCheck,
        SupportsResume,
        TaskEvents,
    )
    from .steps import Retry, StepError
    from .stores.interface import EventLog, TaskStore

_EXPORTS = {
    "agents.agent": "Agent AgentCall CallResult Interceptor",
    "a2a.card": (
        "AgentCard AgentInterface ApiKey AuthorizationCode Capabilities ClientCredentials DeviceCode Extension "
        "HttpAuth Implicit MutualTls OAuth2 OAuthFlows OpenIdConnect Password Provider SecurityRequirement "
        "Signature Skill requires"
    ),
    "agents.executor": ("AgentExecutor RequestContext SupportsCancel SupportsCheck SupportsResume TaskEvents"),
    "agents.steps": "Retry StepError",
    "a2a.errors": "InvalidStateTransition NotCancelable",
    "a2a.types": "Artifact Message Part Role SendRequest Task TaskState TaskStatus",
    "agents.stores.interface": "EventLog TaskStore",
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names.split()}

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
    "Retry",
    "Role",
    "SecurityRequirement",
    "SendRequest",
    "Signature",
    "Skill",
    "StepError",
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

    value = getattr(import_module(f"discreet.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
