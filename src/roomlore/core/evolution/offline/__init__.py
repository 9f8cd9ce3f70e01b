"""Find group memories without a model: what people decided, ruled, planned and said of themselves.

Measured by `python -m bench meaning --only offline_weeks`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

from roomlore.core.evolution.offline.finding import Finder
from roomlore.core.evolution.offline.reading import read
from roomlore.core.evolution.requests import Answer
from roomlore.core.memory.memory import Memory, Source
from roomlore.core.models import StoredMessage

MOST_EARLIER = 800
"""The most messages before the new ones that are read."""
_MAX_NEW = 1_000


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
    """Return the operations for these messages, to be passed to `plan` with the same memories and handles.

    `messages`: the new ones, oldest first; of more than 1,000 the latest. `earlier`: what the room said before them,
    oldest first, read by an earlier evolution; the latest 800 are read to know what the new ones refer to. Nothing is
    found in `earlier` alone: each operation has a new message among its evidence. `handles`: `message_handles` of the
    sources of `(*earlier, *messages)`; a message without a handle is not read. `memories`: the active ones, by handle.
    `zone`: the time zone of days. `people`: sender ids to names, for messages without a name. `deleted`: statements
    that somebody deleted, which are not made again.

    At most 8 creates. A memory that new messages change or cancel gets an update with what they say; one that they
    repeat gets an update with its own statement, which the plan turns into a confirmation. Where there is no room for
    something that is likelier to matter, a known memory is deleted. The result is deterministic; no text makes it
    raise.
    """
    names = {source: handle for handle, source in handles.items()}
    given = [
        *((message, False) for message in earlier[-MOST_EARLIER:]),
        *((message, True) for message in messages[-_MAX_NEW:]),
    ]
    lines = read(list(_handled(given, names)), zone=zone, people=people or {})
    return Answer(tuple(Finder(lines, memories, deleted=deleted).operations()), ())


def _handled(
    given: Sequence[tuple[StoredMessage, bool]], names: Mapping[Source, str]
) -> Iterator[tuple[str, StoredMessage, bool]]:
    for message, fresh in given:
        if handle := names.get(Source(message.room_id, message.id)):
            yield handle, message, fresh
