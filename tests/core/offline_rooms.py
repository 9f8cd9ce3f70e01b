"""Made-up rooms for the evolution without a model."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from roomlore.core.evolution.offline import offline_answer
from roomlore.core.evolution.prompt import handles_of, message_handles
from roomlore.core.evolution.requests import Answer
from roomlore.core.memory.memory import Memory, MemoryKind, Source
from roomlore.core.models import StoredMessage

MONDAY = datetime(2026, 3, 2, 20, tzinfo=UTC)
ROOM = "r"
Said = tuple[int, str, str]


def said_in(room: Iterable[Said], **fields: Any) -> list[StoredMessage]:
    """`room`: day from Monday 2 March 2026, sender, text; a minute between messages."""
    return [
        StoredMessage(
            id=f"{ROOM}-{number}",
            room_id=ROOM,
            sender_id=sender.lower(),
            sender_name=sender,
            text=text,
            sent_at=MONDAY + timedelta(days=day, minutes=number),
            arrival=number,
            **fields,
        )
        for number, (day, sender, text) in enumerate(room, start=1)
    ]


def memory(statement: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {"memory_id": "m", "lineage_id": "m", "scope": "group:r", "kind": MemoryKind.GROUP}
    times = dict.fromkeys(("created_at", "updated_at", "supported_at"), MONDAY)
    return Memory(**{**given, **times, **fields}, statement=statement)


def answer(
    messages: Sequence[StoredMessage],
    *,
    fresh: int = 4,
    memories: Sequence[Memory] = (),
    **options: Any,
) -> Answer:
    """With the last `fresh` messages as the new ones."""
    at = max(len(messages) - fresh, 0)
    handles = message_handles(Source(one.room_id, one.id) for one in messages)
    return offline_answer(
        messages[at:],
        handles_of(memories),
        handles=handles,
        zone=options.pop("zone", UTC),
        earlier=messages[:at],
        **options,
    )
