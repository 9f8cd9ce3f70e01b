"""Stamps of rooms: while a room has the same stamp, nothing of it changed in the database."""

from collections.abc import Collection
from typing import Any

Stamp = tuple[Any, int, int]
"""The connection that writes, its number for what other connections committed, and the last write of this process that
may have changed the room."""
_MOST = 10_000


class RoomWrites:
    """The units of work of this process that may have changed each room, numbered in the order in which they wrote."""

    def __init__(self) -> None:
        self._last = 0
        self._any = 0
        """The last one of which no rooms are known, and which may have changed every room."""
        self._by_room: dict[tuple[str | None, str], int] = {}

    def note(self, tenant: str | None, rooms: Collection[str] | None) -> None:
        """Note that a unit of work begins to write to these rooms alone, None for any."""
        self._last += 1
        if rooms is None or len(self._by_room) + len(rooms) > _MOST:
            self._any = self._last
            self._by_room.clear()
        else:
            self._by_room.update(((tenant, room_id), self._last) for room_id in rooms)

    def last(self, tenant: str, room_id: str) -> int:
        """Return the number of the last one that may have changed the room."""
        return self._by_room.get((tenant, room_id), self._any)
