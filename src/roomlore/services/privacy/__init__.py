"""Forgetting a person, and checking what is stored."""

from roomlore.services.privacy.forget import Forgetter
from roomlore.services.privacy.memories import MemoriesWithout
from roomlore.services.privacy.messages import MessagesWithout
from roomlore.services.privacy.rows import RowsWithout
from roomlore.services.privacy.service import PrivacyService
from roomlore.services.privacy.vectors import VectorsGone
from roomlore.services.privacy.verify import Verifier
from roomlore.services.privacy.verify_indexes import IndexChecks

__all__ = [
    "Forgetter",
    "IndexChecks",
    "MemoriesWithout",
    "MessagesWithout",
    "PrivacyService",
    "RowsWithout",
    "VectorsGone",
    "Verifier",
]
