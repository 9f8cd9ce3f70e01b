"""The verbs of one tenant that services call of each other."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from roomlore.core.context import Context
from roomlore.core.deletion import RoomReport
from roomlore.core.models import AddReport, Entry, Explanation, Message, StoredMessage
from roomlore.core.search.hits import SearchAnswer

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork


class MessageVerbs(Protocol):
    """Adding, changing and finding messages."""

    async def add(self, messages: Sequence[Message]) -> AddReport:
        """Store a batch in one transaction. Raise `Conflict` if an id exists with other content."""

    async def edit(
        self,
        room_id: str,
        message_id: str,
        *,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        mentions: Sequence[str] | None = None,
        edited_at: datetime | None = None,
    ) -> StoredMessage:
        """Change the given fields. Raise `Conflict` if the stored message was edited later, `NotFound`."""

    async def delete(self, room_id: str, message_ids: str | Sequence[str]) -> int:
        """Empty and hide these messages; return how many existed."""

    async def search(
        self, room_id: str | None = None, query: str = "", *, viewer: str | None = None, limit: int = 10
    ) -> SearchAnswer:
        """Return the messages that answer the query best, best first."""


class ContextVerbs(Protocol):
    """The contexts of messages."""

    async def build(self, room_id: str, message_id: str | None = None) -> Context:
        """Return what matters for a message, by default the newest one of a user in the room."""

    async def respond(self, context_id: str, text: str) -> None:
        """Record what the model answered with this context."""

    async def compare(self, room_id: str, message_id: str | None = None) -> list[Explanation]:
        """Return what each strategy takes for the message, and what it leaves. Nothing is recorded."""


class RoomDeletions(Protocol):
    """Deleting rooms, for all tenants."""

    async def would_delete(self, *, tenant: str, room_id: str) -> RoomReport:
        """Return what would go, and what would stay. Raise `UnknownRoom`, `Conflict` if it is being deleted."""

    async def delete(self, *, tenant: str, room_id: str) -> RoomReport:
        """Delete the room. What breaks off, or leaves something, background work goes on with. Raise `UnknownRoom`."""

    async def begin(self, *, tenant: str, room_id: str) -> tuple[RoomReport, str]:
        """Hide the room, submit the work that deletes it, and return what will go, and the id of the work. Raise
        `UnknownRoom`."""


class DueWork(Protocol):
    """A part of roomlore that has work to do after messages are written."""

    async def note(self, work: "UnitOfWork", room_id: str, entries: Sequence[Entry]) -> bool:
        """Note the work that these messages of a locked room make due, in the transaction that writes them. Return
        True if `announce` has to follow."""

    def announce(self) -> None:
        """Request the work, once the transaction is committed."""
