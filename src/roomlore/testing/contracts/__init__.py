"""What every storage must do, as pytest classes. Inherit them where a fixture `storage` gives an empty `Storage`:

class TestMessages(MessagesContract): ...

`VectorsContract` asks for a fixture `vectors` that gives an empty `VectorIndex` instead, `EmbedderContract` for a
fixture `embedder`, `SessionCacheContract` for `cache` and `let_pass`, `DurableWorkContract` and
`ForgottenWorkContract` for `make`.
"""

from roomlore.testing.contracts.due_sessions import SessionDueContract
from roomlore.testing.contracts.durable import DurableWorkContract
from roomlore.testing.contracts.embedding import EmbedderContract
from roomlore.testing.contracts.evolutions import EvolutionsContract, EvolutionTextsContract, WatermarksContract
from roomlore.testing.contracts.facts import FactsContract
from roomlore.testing.contracts.forgotten_work import ForgottenWorkContract
from roomlore.testing.contracts.imports import ImportsContract
from roomlore.testing.contracts.index_states import IndexStatesContract
from roomlore.testing.contracts.keys import KeysContract
from roomlore.testing.contracts.leases import LeasesContract
from roomlore.testing.contracts.lexical import LexicalContract
from roomlore.testing.contracts.memories import MemoriesContract, MemoryStoryContract, MemoryTextsContract
from roomlore.testing.contracts.memory_log import MemoryLogContract
from roomlore.testing.contracts.memory_outbox import IndexedMemoriesContract, MemoryOutboxContract
from roomlore.testing.contracts.memory_past import MemoryPastContract
from roomlore.testing.contracts.messages import MessagesContract
from roomlore.testing.contracts.outbox import OutboxContract
from roomlore.testing.contracts.rooms import RoomsContract
from roomlore.testing.contracts.rooms_due import RoomsDueContract
from roomlore.testing.contracts.session_cache import SessionCacheContract
from roomlore.testing.contracts.sessions import SessionHistoryContract, SessionsContract, SessionTextsContract
from roomlore.testing.contracts.tenants import TenantsContract
from roomlore.testing.contracts.texts import TextsContract
from roomlore.testing.contracts.threads import ThreadsContract
from roomlore.testing.contracts.transactions import TransactionsContract
from roomlore.testing.contracts.usage import UsageContract
from roomlore.testing.contracts.vectors import VectorsContract
from roomlore.testing.contracts.writer import WriterContract

__all__ = [
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
    "TenantsContract",
    "TextsContract",
    "ThreadsContract",
    "TransactionsContract",
    "UsageContract",
    "VectorsContract",
    "WatermarksContract",
    "WriterContract",
]
