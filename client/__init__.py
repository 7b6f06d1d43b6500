"""Spawn a server, call it, and get typed results and errors back."""

from .connect import connect
from .failures import (
    AuthenticationRequired,
    ClientError,
    ConnectionFailed,
    InsufficientPermissions,
    InternalError,
    InvalidParams,
    InvalidReply,
    InvalidRequest,
    Loss,
    MethodNotFound,
    OperationFailed,
    OperationTimedOut,
    OperationTypeMismatch,
    Overloaded,
    ParseFailed,
    RemoteError,
    RequestCancelled,
    RequestTimeout,
    StreamOverrun,
    Unavailable,
)
from .peer import Peer, attach
from .process import EndBounds, ServerProcess, spawn
from .restart import RestartPolicy
from .retry import Attempt, AttemptHook, RetryPolicy
from .subscription import Subscription

__all__ = [
    "Attempt",
    "AttemptHook",
    "AuthenticationRequired",
    "ClientError",
    "ConnectionFailed",
    "EndBounds",
    "InsufficientPermissions",
    "InternalError",
    "InvalidParams",
    "InvalidReply",
    "InvalidRequest",
    "Loss",
    "MethodNotFound",
    "OperationFailed",
    "OperationTimedOut",
    "OperationTypeMismatch",
    "Overloaded",
    "ParseFailed",
    "Peer",
    "RemoteError",
    "RequestCancelled",
    "RequestTimeout",
    "RestartPolicy",
    "RetryPolicy",
    "ServerProcess",
    "StreamOverrun",
    "Subscription",
    "Unavailable",
    "attach",
    "connect",
    "spawn",
]
