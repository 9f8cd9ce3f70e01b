"""Where sessions and their checkpoints live.

A session belongs to a room. What is said in it are the room's messages; what is kept here is the rest.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from roomlore.core.sessions.models import Checkpoint, Due, Session

SESSIONS = "session-checkpoints"
"""The background job that makes the checkpoints that are due."""


class Sessions(Protocol):
    """The sessions of a tenant. Every call may raise `StorageUnavailable`."""

    async def find(self, *, tenant: str, conversation_id: str) -> Session | None:
        """The session with its checkpoint and the point at which its room stands, in one round trip.

        A room without a session of its own gives one of version 0, made and updated when the room was; None where there
        is no such room.
        """

    async def page(self, *, tenant: str, after: str | None, limit: int) -> list[Session]:
        """Sessions of version 1 and more with a conversation id above `after`, ascending by it."""

    async def save(self, *, session: Session) -> None:
        """Keeps the session in the place of what is stored; its room must be locked by this unit of work.

        `revision`, `next_arrival`, `due` and all but the number of `checkpoint` are not written: others do that. A
        session that is saved for the first time is not due.
        """

    async def mark(self, *, tenant: str, checkpoint: Checkpoint) -> None:
        """Adds a checkpoint or a reset to the history of its conversation, whose room is locked; `Conflict` where its
        number is taken."""

    async def history(self, *, tenant: str, conversation_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """The newest `limit` checkpoints and resets with a number below `before`, newest first."""

    async def due(self, *, now: datetime, lease_until: datetime, limit: int) -> Sequence[tuple[str, str, Due]]:
        """Takes up to `limit` sessions of any tenant that are due by `now`, the longest waiting first: tenant,
        conversation id, and what was due. They are due again at `lease_until`, so that what a killed process took is
        not lost; two that ask at once never get the same one. Only while writing."""

    async def schedule(self, *, tenant: str, conversation_id: str, due: Due | None, was: datetime | None) -> bool:
        """Sets or clears when the session is due, if `was` is when it was due so far (None: it was not); whether it
        did. Only while writing. Takes no lock on the room and leaves the version as it is."""
