"""Ports for the files of archived messages, and for the messages in them."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from roomlore.storage.values import Archive


class ArchiveFiles(Protocol):
    """Files by name. A name has one part for the tenant and one for the archive. Calls block."""

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file. When it returns, the file outlives a crash of the machine; before, there is none under
        this name. Raise `StorageUnavailable`."""

    def read(self, name: str) -> bytes:
        """Return the file. Raise `NotFound`, `StorageUnavailable`."""

    def delete(self, name: str) -> None:
        """Delete the file and what a broken write left of it; nothing happens if there is none. Raise
        `StorageUnavailable`."""


class ArchivedMessages(Protocol):
    """Messages in archives, for changing, forgetting and checking them."""

    async def kept(self, tenant: str, room_id: str | None = None) -> list[Archive]:
        """Return the archives of the tenant, or of one room, the oldest first."""

    async def damage(self, archive: Archive) -> str:
        """Return what is wrong with the file of an archive, in a sentence; '' if nothing is."""

    async def messages_of(self, *, tenant: str, user_id: str) -> int:
        """Return how many messages of the person are in archives."""

    async def bring_back(
        self, *, tenant: str, user_id: str, names: Collection[str], tells: Callable[[str], bool]
    ) -> int:
        """Bring back every archive that may hold something of the person, or about them, and delete its file. Return
        how many there were. `names`, `tells`: the names that are known, and a test for texts."""

    async def delete_all(self, *, tenant: str, room_id: str) -> None:
        """Delete every archive of a room that nobody sees any more, with its file. Raise `Conflict` if another process
        archives for long, `StorageUnavailable`."""

    async def bring_back_messages(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> int:
        """Bring back the archives that hold these messages. Return how many there were."""
