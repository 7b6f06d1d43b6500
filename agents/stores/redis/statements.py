"""Writes push targets and requests to owners. Each function is one transaction of its own."""

from __future__ import annotations

from ..interface import OwnerRequest, PushTarget
from .reader import packed_text
from .script import packed_bytes
from .writer import Run, WriteRequest, packed_request


def put_push_target(run: Run, task_id: str, push_target: PushTarget, body: bytes) -> bool:
    operation = ("put_target", packed_text(task_id), packed_text(push_target.config.id or ""), packed_bytes(body))
    done: bool = run(WriteRequest(operation, bool, grows=True))
    return done


def delete_push_target(run: Run, task_id: str, config_id: str) -> bool:
    done: bool = run(WriteRequest(("delete_target", packed_text(task_id), packed_text(config_id)), bool))
    return done


def insert_owner_request(run: Run, request: OwnerRequest) -> bool:
    operation = ("request", packed_text(request.task_id), packed_request(request))
    done: bool = run(WriteRequest(operation, bool, grows=True))
    return done
