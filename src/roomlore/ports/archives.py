"""Where archived messages are kept, and bringing back those of a person who is to be forgotten."""

from typing import Protocol


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


class ArchivedPeople(Protocol):
    """The messages of people in archives, for forgetting them."""

    async def messages_of(self, *, tenant: str, user_id: str) -> int:
        """Return how many messages of the person are in archives."""

    async def bring_back(self, *, tenant: str, user_id: str) -> int:
        """Bring back every archive that may hold something of the person, or about them, and delete its file. Return
        how many messages came back."""
