"""Labels that people gave messages, for tuning: which earlier messages matter for which."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry


@dataclass(frozen=True, slots=True)
class RoomLabels:
    """Of one room: message id to the ids that matter for it, and message id to the name of its thread."""

    relevant: Mapping[str, frozenset[str]]
    thread: Mapping[str, str]

    def wanted(self, target: Entry, pool: Sequence[Entry]) -> frozenset[str] | None:
        """The ids that matter for the target; None where it has no label."""
        message_id = target.message.id
        if message_id in self.relevant:
            return self.relevant[message_id]
        if message_id not in self.thread:
            return None
        mine = self.thread[message_id]
        return frozenset(entry.message.id for entry in pool if self.thread.get(entry.message.id) == mine)

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys((*self.relevant, *self.thread)))


def read_labels(rows: Iterable[Mapping[str, Any]]) -> dict[str, RoomLabels]:
    """By room, from rows of two kinds.

    `{"room_id", "message_id", "relevant": [ids]}` says what matters for one message, `{"room_id", "message_id",
    "thread": name}` which thread a message is in. Raises `InvalidInput` naming the row.
    """
    relevant: dict[str, dict[str, frozenset[str]]] = {}
    thread: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 1):
        room_id, message_id = row.get("room_id"), row.get("message_id")
        if not isinstance(room_id, str) or not isinstance(message_id, str):
            raise InvalidInput(f"Label {number} needs room_id and message_id, both strings.")
        if isinstance(row.get("relevant"), list):
            relevant.setdefault(room_id, {})[message_id] = frozenset(map(str, row["relevant"]))
        elif row.get("thread") is not None:
            thread.setdefault(room_id, {})[message_id] = str(row["thread"])
        else:
            raise InvalidInput(f"Label {number} needs relevant (a list of message ids) or thread (a name).")
    return {room: RoomLabels(relevant.get(room, {}), thread.get(room, {})) for room in {**relevant, **thread}}
