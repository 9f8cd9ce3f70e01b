"""The contracts of storages, as pytest classes. Inherit them with a fixture `storage` that gives an empty `Storage`:

class TestMessages(MessagesContract): ...

`VectorsContract` asks for a fixture `vectors` that gives an empty `VectorIndex` instead, `EmbedderContract` for a
fixture `embedder`, `SessionCacheContract` for `cache` and `let_pass`, `DurableWorkContract` and
`ForgottenWorkContract` for `make`.
"""

from roomlore.testing.contracts.durable import DurableWorkContract, ForgottenWorkContract
from roomlore.testing.contracts.evolutions import (
    EvolutionsContract,
    EvolutionTextsContract,
    LeasesContract,
    RoomsDueContract,
    WatermarksContract,
)
from roomlore.testing.contracts.memories import MemoriesContract, MemoryStoryContract, MemoryTextsContract
from roomlore.testing.contracts.memory_log import MemoryLogContract, MemoryPastContract
from roomlore.testing.contracts.messages import MessagesContract, WriterContract
from roomlore.testing.contracts.outbox import IndexedMemoriesContract, MemoryOutboxContract, OutboxContract
from roomlore.testing.contracts.rooms import ImportsContract, KeysContract, RoomsContract, UsageContract
from roomlore.testing.contracts.sessions import (
    SessionCacheContract,
    SessionDueContract,
    SessionHistoryContract,
    SessionsContract,
    SessionTextsContract,
)
from roomlore.testing.contracts.tenants import ArchivesContract, TenantLimitsContract
from roomlore.testing.contracts.texts import TextsContract
from roomlore.testing.contracts.threads import CorrectionsContract, ThreadsContract, TitlesContract
from roomlore.testing.contracts.transactions import TenantsContract, TransactionsContract
from roomlore.testing.contracts.vectors import EmbedderContract, VectorsContract
from roomlore.testing.contracts.words import FactsContract, IndexStatesContract, LexicalContract

__all__ = [
    "ArchivesContract",
    "CorrectionsContract",
    "DurableWorkContract",
    "EmbedderContract",
    "EvolutionTextsContract",
    "EvolutionsContract",
    "FactsContract",
    "ForgottenWorkContract",
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
    "SessionCacheContract",
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
    "VectorsContract",
    "WatermarksContract",
    "WriterContract",
]
