"""What messages say to whoever is to remember it."""

from collections.abc import Sequence

from roomlore.core.memory.reading import as_conversation
from roomlore.core.models import StoredMessage
from roomlore.ports.storage import UnitOfWork


async def conversation_of(work: UnitOfWork, *, tenant: str, room_id: str, messages: Sequence[StoredMessage]) -> str:
    """Messages of one room in order, with those they reply to and what people are called looked up."""
    here = {"tenant": tenant, "room_id": room_id}
    replied = [message.reply_to for message in messages if message.reply_to]
    answered = await work.messages.by_id(**here, message_ids=replied)
    people = await work.rooms.participants(**here)
    quoted = {entry.message.id: entry.message for entry in answered}
    return as_conversation(messages, quoted=quoted, people=people)
