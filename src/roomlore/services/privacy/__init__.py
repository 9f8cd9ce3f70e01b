"""Forgetting a person, deleting a room, and checking the integrity of what is stored."""

from roomlore.services.privacy.forget_memories import MemoryEraser, RowEraser
from roomlore.services.privacy.forget_messages import MessageEraser, VectorEraser
from roomlore.services.privacy.forgetter import Forgetter
from roomlore.services.privacy.forgettings import Forgettings
from roomlore.services.privacy.privacy_service import PrivacyService
from roomlore.services.privacy.room_deletions import RoomDeletions
from roomlore.services.privacy.room_memories import RoomMemories
from roomlore.services.privacy.verify import IndexChecks, Verifier

__all__ = [
    "Forgetter",
    "Forgettings",
    "IndexChecks",
    "MemoryEraser",
    "MessageEraser",
    "PrivacyService",
    "RoomDeletions",
    "RoomMemories",
    "RowEraser",
    "VectorEraser",
    "Verifier",
]
