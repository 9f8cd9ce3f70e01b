"""The contracts of storages, as pytest classes. Inherit them with a fixture `storage` that gives an empty `Storage`:

class TestMessages(MessagesContract): ...

`VectorsContract` asks for a fixture `vectors` that gives an empty `VectorIndex` instead, `EmbedderContract` for a
fixture `embedder`, `SessionCacheContract` for `cache` and `let_pass`, `DurableWorkContract` and
`ForgottenWorkContract` for `make`.
"""

from roomlore_testkit.contracts.durable import DurableWorkContract, ForgottenWorkContract
from roomlore_testkit.contracts.evolutions import (
    EvolutionsContract,
    EvolutionTextsContract,
    LeasesContract,
    RoomsDueContract,
    WatermarksContract,
)
from roomlore_testkit.contracts.memories import MemoriesContract, MemoryStoryContract, MemoryTextsContract
from roomlore_testkit.contracts.memory_log import MemoryLogContract, MemoryPastContract
from roomlore_testkit.contracts.messages import MessagesContract
from roomlore_testkit.contracts.outbox import IndexedMemoriesContract, MemoryOutboxContract, OutboxContract
from roomlore_testkit.contracts.rooms import ImportsContract, KeysContract, RoomsContract, UsageContract
from roomlore_testkit.contracts.sessions import (
    SessionCacheContract,
    SessionDueContract,
    SessionHistoryContract,
    SessionsContract,
    SessionTextsContract,
)
from roomlore_testkit.contracts.tenants import ArchivesContract, TenantLimitsContract
from roomlore_testkit.contracts.texts import TextsContract
from roomlore_testkit.contracts.threads import CorrectionsContract, ThreadsContract, TitlesContract
from roomlore_testkit.contracts.transactions import TenantsContract, TransactionsContract
from roomlore_testkit.contracts.vectors import EmbedderContract, VectorsContract
from roomlore_testkit.contracts.words import FactsContract, IndexStatesContract, LexicalContract
from roomlore_testkit.contracts.writer import WriterContract

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
