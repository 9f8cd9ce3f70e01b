"""The verbs of `lore.privacy`."""

from typing import Protocol

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.privacy.report import ForgetReport


class Forgetting(Protocol):
    """Takes a person out of everything stored of one tenant."""

    async def forget(self, *, tenant: str, user_id: str, dry_run: bool) -> ForgetReport: ...


class PrivacyService:
    """What one tenant keeps of people."""

    def __init__(self, *, tenant: str, forgetting: Forgetting) -> None:
        self._tenant = tenant
        self._forgetting = forgetting

    async def forget(self, user_id: str, *, dry_run: bool = False) -> ForgetReport:
        """Removes what a person said and what follows from it: messages, features, vectors, sessions, facts, raw
        answers of models, finished work; memories that rest on the person alone are retired, others lose their part.

        It cannot be undone: ask first. `dry_run` changes nothing and says what would go. Broken off, or with something
        left (`report.left`), the same call goes on. Raises `InvalidInput`, `StorageUnavailable`.
        """
        return await self._forgetting.forget(tenant=self._tenant, user_id=_checked(user_id), dry_run=dry_run)


def _checked(user_id: object) -> str:
    if not isinstance(user_id, str) or not user_id.strip():
        raise InvalidInput(f"The person is {user_id!r:.60}; give the sender id that the messages have.")
    if len(user_id) > MAX_ID_CHARS:
        raise InvalidInput(f"The sender id has {len(user_id)} characters; at most {MAX_ID_CHARS}.")
    return user_id
