"""The contracts of backends, as pytest classes. Inherit that of your port with a fixture that gives an empty backend:

class TestMine(VectorsContract): ...

`VectorsContract` asks for a fixture `vectors` that gives an empty `VectorIndex`, `EmbedderContract` for a fixture
`embedder`, `SessionCacheContract` for `cache` and `let_pass`, `DurableWorkContract` and `ForgottenWorkContract` for
`make`.
"""

from roomlore_testkit.contracts.durable import DurableWorkContract, ForgottenWorkContract
from roomlore_testkit.contracts.session_cache import SessionCacheContract
from roomlore_testkit.contracts.vectors import EmbedderContract, VectorsContract

__all__ = [
    "DurableWorkContract",
    "EmbedderContract",
    "ForgottenWorkContract",
    "SessionCacheContract",
    "VectorsContract",
]
