"""What every storage must do, as pytest classes. Inherit them where a fixture `storage` gives an empty `Storage`:

class TestMessages(MessagesContract): ...

`VectorsContract` asks for a fixture `vectors` that gives an empty `VectorIndex` instead.
"""

from roomlore.testing.contracts.imports import ImportsContract
from roomlore.testing.contracts.keys import KeysContract
from roomlore.testing.contracts.messages import MessagesContract
from roomlore.testing.contracts.rooms import RoomsContract
from roomlore.testing.contracts.tenants import TenantsContract
from roomlore.testing.contracts.texts import TextsContract
from roomlore.testing.contracts.threads import ThreadsContract
from roomlore.testing.contracts.transactions import TransactionsContract
from roomlore.testing.contracts.usage import UsageContract
from roomlore.testing.contracts.vectors import VectorsContract
from roomlore.testing.contracts.writer import WriterContract

__all__ = [
    "ImportsContract",
    "KeysContract",
    "MessagesContract",
    "RoomsContract",
    "TenantsContract",
    "TextsContract",
    "ThreadsContract",
    "TransactionsContract",
    "UsageContract",
    "VectorsContract",
    "WriterContract",
]
