"""Taking messages in, changing them, and giving them back."""

from roomlore.services.messages.ingest import Ingest
from roomlore.services.messages.room_cache import RoomCache
from roomlore.services.messages.service import MessageService, OnConflict

__all__ = ["Ingest", "MessageService", "OnConflict", "RoomCache"]
