"""Rooms that some work is due for, noted with the messages that made it so."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DueRoom:
    """A room that was claimed. `noted`: how often it had been noted by then."""

    tenant: str
    room_id: str
    noted: int


class RoomsDue(Protocol):
    """What is due where, until it is done. Only while writing; any call may raise `StorageUnavailable`."""

    async def note(self, *, tenant: str, room_id: str, work: str, now: datetime) -> None:
        """Notes that the work is due for the room; once more, and free to be claimed, where it was noted already."""

    async def claim(self, *, work: str, now: datetime, lease_until: datetime, limit: int) -> Sequence[DueRoom]:
        """Takes up to `limit` rooms of any tenant, the longest waiting first. Nobody else gets them before
        `lease_until`, unless they are noted again, and after that they are free again; so what a killed process took is
        not lost."""

    async def put_off(self, *, room: DueRoom, work: str, until: datetime) -> None:
        """The work is under way: the room is free again at `until`, or now where it was noted since."""

    async def done(self, *, room: DueRoom, work: str) -> bool:
        """The work is done as far as it was noted then; False, and the room is free again, where it was noted since."""

    async def any(self, *, work: str) -> bool:
        """Whether a room is noted, claimed or not. While reading too."""
