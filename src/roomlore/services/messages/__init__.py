"""Messages: added, changed, found, and exported."""

from roomlore.services.messages.due import AllDue, VectorsDue
from roomlore.services.messages.ingest import Ingest
from roomlore.services.messages.message_service import MessageService, OnConflict
from roomlore.services.messages.planning import by_room, report_of, results_of
from roomlore.services.messages.room_states import RoomCache
from roomlore.services.messages.search import FactsCache, MessageSearch, RoomsSearch, SearchFilters, Searching

__all__ = [
    "AllDue",
    "FactsCache",
    "Ingest",
    "MessageSearch",
    "MessageService",
    "OnConflict",
    "RoomCache",
    "RoomsSearch",
    "SearchFilters",
    "Searching",
    "VectorsDue",
    "by_room",
    "report_of",
    "results_of",
]
