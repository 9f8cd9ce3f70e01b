"""The contracts of the storage, as pytest classes, for each engine. Inherit them with a fixture `storage` that gives an
empty `Storage`:

class TestMessages(MessagesContract): ...
"""

from storage_contracts.evolutions import (
    EvolutionsContract,
    EvolutionTextsContract,
    LeasesContract,
    RoomsDueContract,
    WatermarksContract,
)
from storage_contracts.memories import MemoriesContract, MemoryStoryContract, MemoryTextsContract
from storage_contracts.memory_log import MemoryLogContract, MemoryPastContract
from storage_contracts.messages import MessagesContract
from storage_contracts.outbox import IndexedMemoriesContract, MemoryOutboxContract, OutboxContract
from storage_contracts.rooms import ImportsContract, KeysContract, RoomsContract, UsageContract
from storage_contracts.sessions import (
    SessionDueContract,
    SessionHistoryContract,
    SessionsContract,
    SessionTextsContract,
)
from storage_contracts.tenants import ArchivesContract, TenantLimitsContract
from storage_contracts.texts import TextsContract
from storage_contracts.threads import CorrectionsContract, ThreadsContract, TitlesContract
from storage_contracts.transactions import TenantsContract, TransactionsContract
from storage_contracts.words import FactsContract, IndexStatesContract, LexicalContract
from storage_contracts.writer import WriterContract

__all__ = [
    "ArchivesContract",
    "CorrectionsContract",
    "EvolutionTextsContract",
    "EvolutionsContract",
    "FactsContract",
    "ImportsContract",
    "IndexStatesContract",
    "IndexedMemoriesContract",
    "KeysContract",
    "LeasesContract",
    "LexicalContract",
    "MemoriesContract",
    "MemoryLogContract",
    "MemoryOutboxContract",
    "MemoryPastContract",
    "MemoryStoryContract",
    "MemoryTextsContract",
    "MessagesContract",
    "OutboxContract",
    "RoomsContract",
    "RoomsDueContract",
    "SessionDueContract",
    "SessionHistoryContract",
    "SessionTextsContract",
    "SessionsContract",
    "TenantLimitsContract",
    "TenantsContract",
    "TextsContract",
    "ThreadsContract",
    "TitlesContract",
    "TransactionsContract",
    "UsageContract",
    "WatermarksContract",
    "WriterContract",
]
