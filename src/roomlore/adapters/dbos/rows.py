"""What DBOS keeps of a piece of work -> `WorkState`; and how values are written there: as JSON, never pickled."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dbos import Serializer, WorkflowStatus

from roomlore.ports.durable import WorkState, WorkStatus

PREFIX = "roomlore."
"""Before each name: DBOS knows functions of the whole process by their names."""
_STATUSES: Mapping[str, WorkStatus] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}
_NEVER_ENDED = "Its process died each time it was begun. See what the work does to it, then retry it."


class JsonSerializer(Serializer):
    def serialize(self, data: Any) -> str:
        """An error is written by its type, but for our own, whose text is fit to be read."""
        return json.dumps(data, default=_by_type)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)

    def name(self) -> str:
        return "roomlore_json"


def _by_type(value: Any) -> str:
    return type(value).__name__


def theirs(status: WorkStatus | None) -> list[str] | None:
    """The statuses of DBOS that one of ours stands for."""
    return [name for name, ours in _STATUSES.items() if ours == status] if status else None


def state_of(row: WorkflowStatus) -> WorkState:
    notes = row.attributes or {}
    status = _STATUSES[row.status]
    return WorkState(
        work_id=row.workflow_id,
        name=row.name.removeprefix(PREFIX),
        partition=row.queue_partition_key or "",
        arguments=row.input["args"][0] if row.input else {},
        status=status,
        attempts=notes.get("before", 0) + (row.recovery_attempts or 0) + notes.get("again", 0),
        progress=notes.get("progress", ""),
        error=_error(row, notes) if status == "failed" else "",
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at or row.created_at),
    )


def _error(row: WorkflowStatus, notes: Mapping[str, Any]) -> str:
    return str(notes.get("error", "")) or (_NEVER_ENDED if row.status.startswith("MAX") else "It could not be begun.")


def _moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)


def fit(text: str) -> str:
    """What every engine can keep as JSON: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:1000]
