"""Taking messages in, changing them, finding them, and giving them back."""

from roomlore.services.messages.due import AllDue, Due, VectorsDue
from roomlore.services.messages.facts_cache import FactsCache
from roomlore.services.messages.ingest import Ingest
from roomlore.services.messages.room_cache import RoomCache
from roomlore.services.messages.search import MessageSearch
from roomlore.services.messages.service import MessageService, OnConflict

__all__ = [
    "AllDue",
    "Due",
    "FactsCache",
    "Ingest",
    "MessageSearch",
    "MessageService",
    "OnConflict",
    "RoomCache",
    "VectorsDue",
]
