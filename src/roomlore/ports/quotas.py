"""The port through which the quotas of tenants are checked and their use is counted."""

from typing import TYPE_CHECKING, Protocol

from roomlore.core.quotas import Quotas

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork


class QuotaChecks(Protocol):
    """The quotas of all tenants. Nothing is counted for a limit that a tenant does not have."""

    async def of(self, tenant: str) -> Quotas:
        """Return the limits of a tenant."""

    async def count_messages(self, work: "UnitOfWork", quotas: Quotas, *, added: int, refuses: bool = True) -> None:
        """Count messages in the transaction that adds them, after they are added. Raise `QuotaExceeded` if they are too
        many and `refuses` is True."""

    async def check(self, tenant: str) -> None:
        """Raise `QuotaExceeded` if the tenant may add no message, or use no model. While the database is down, nothing
        is refused."""

    async def check_tokens(self, tenant: str) -> None:
        """Raise `TokensExceeded` if the tenant may use no model today. While the database is down, none is refused."""

    async def check_attachments(self, tenant: str) -> None:
        """Raise `QuotaExceeded` if the tenant may have no attachment described today."""

    async def charge_attachment(self, tenant: str, size: int) -> None:
        """Count an attachment of so many bytes that a model is asked about. Raise `QuotaExceeded`, and count nothing,
        if it is too much for today, `InvalidInput` if it is too much for any day."""

    async def refund_attachment(self, tenant: str, size: int) -> None:
        """Take back what was counted for an attachment: no model answered."""

    async def charge_tokens(self, tenant: str, tokens: int) -> None:
        """Count tokens that a model took. While the database is down, they are counted with the next ones."""
