"""Call an agent of A2A with typed messages and tasks, over stdin and stdout or by HTTP."""

from ...a2a.card.model import AgentCard
from ...a2a.results import TaskArtifactUpdate, TaskStatusUpdate
from ...a2a.types import (
    Artifact,
    Authentication,
    Message,
    Part,
    PushConfig,
    Role,
    SendConfiguration,
    Task,
    TaskState,
    TaskStatus,
)
from .client import AgentClient
from .connect import connect_agent
from .content import Content, text_of
from .stream import AgentEvent, EventStream

__all__ = [
    "AgentCard",
    "AgentClient",
    "AgentEvent",
    "Artifact",
    "Authentication",
    "Content",
    "EventStream",
    "Message",
    "Part",
    "PushConfig",
    "Role",
    "SendConfiguration",
    "Task",
    "TaskArtifactUpdate",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdate",
    "connect_agent",
    "text_of",
]
