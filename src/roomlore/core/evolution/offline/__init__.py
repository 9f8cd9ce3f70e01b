"""What a group has come to be, found without a model: what several people said on several days.

Measured in docs/explanation/evolution.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

from roomlore.core.evolution.models import Answer
from roomlore.core.evolution.offline.finding import Finder
from roomlore.core.evolution.offline.reading import read
from roomlore.core.memory.models import Memory, Source
from roomlore.core.models import StoredMessage

__all__ = ["MOST_EARLIER", "offline_answer"]

MOST_EARLIER = 800
"""How many messages before the new ones are read at most."""
_MOST_NEW = 1_000


def offline_answer(
    messages: Sequence[StoredMessage],
    memories: Mapping[str, Memory],
    *,
    handles: Mapping[str, Source],
    zone: tzinfo,
    earlier: Sequence[StoredMessage] = (),
    people: Mapping[str, str] | None = None,
    deleted: Sequence[str] = (),
) -> Answer:
    """What the messages would change, to be handed to `plan` with the same memories and handles.

    `messages`: the new ones, oldest first; of more than 1,000 the latest. `earlier`: what the room said before them,
    oldest first, read by an earlier evolution; the latest 800 are used, and without them nothing can be seen to come
    again. Nothing is found in `earlier` alone: each wish has a new message among its evidence. `handles`:
    `message_handles` of the sources of `(*earlier, *messages)`; a message that has no handle is not read. `memories`:
    the active ones, by handle. `zone`: whose days and weekdays count. `people`: sender ids to names, where a message
    bears none. `deleted`: statements that somebody deleted, which are not made again.

    At most 5 creates. For each memory that new messages say again an update with the memory's own statement, which the
    plan makes a confirmation; with a new one only where this engine made the statement and it has come to hold for
    twice as many days. Never deletes. The same input gives the same answer; no text makes it raise.
    """
    names = {source: handle for handle, source in handles.items()}
    given = [*((one, False) for one in earlier[-MOST_EARLIER:]), *((one, True) for one in messages[-_MOST_NEW:])]
    reading = read(list(_handled(given, names)), zone=zone, people=people or {})
    finder = Finder(reading, memories, deleted=deleted, names=names)
    return Answer(tuple(finder.wishes()), ())


def _handled(
    given: Sequence[tuple[StoredMessage, bool]], names: Mapping[Source, str]
) -> Iterator[tuple[str, StoredMessage, bool]]:
    for message, fresh in given:
        if handle := names.get(Source(message.room_id, message.id)):
            yield handle, message, fresh
