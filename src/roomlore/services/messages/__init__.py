"""Messages: added, changed, found, and exported."""

from roomlore.services.messages.ingest import AllDue, Due, Ingest, RoomCache, VectorsDue
from roomlore.services.messages.message_service import MessageService, OnConflict
from roomlore.services.messages.search import FactsCache, MessageSearch, Searching
from roomlore.services.messages.search_rooms import RoomsSearch

__all__ = [
    "AllDue",
    "Due",
    "FactsCache",
    "Ingest",
    "MessageSearch",
    "MessageService",
    "OnConflict",
    "RoomCache",
    "RoomsSearch",
    "Searching",
    "VectorsDue",
]
