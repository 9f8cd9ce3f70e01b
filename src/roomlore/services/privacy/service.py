"""The verbs of `lore.privacy`."""

from collections.abc import Callable
from typing import Protocol

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.models import check_scope
from roomlore.core.privacy.report import ForgetReport
from roomlore.core.soundness.report import VerifyProgress, VerifyReport


class Forgetting(Protocol):
    """Takes a person out of everything stored of one tenant."""

    async def forget(self, *, tenant: str, user_id: str, dry_run: bool, same_words: bool) -> ForgetReport: ...


class Verifying(Protocol):
    """Checks what is stored of one tenant."""

    async def verify(
        self, *, tenant: str, scope: str | None, progress: Callable[[VerifyProgress], None] | None
    ) -> VerifyReport: ...


class PrivacyService:
    """What one tenant keeps of people."""

    def __init__(self, *, tenant: str, forgetting: Forgetting, verifying: Verifying) -> None:
        self._tenant = tenant
        self._forgetting = forgetting
        self._verifying = verifying

    async def forget(self, user_id: str, *, dry_run: bool = False, same_words: bool = False) -> ForgetReport:
        """Removes what a person said and what follows from it: messages, features, vectors, sessions, facts, raw
        answers of models, finished work; memories that rest on the person alone are retired, others lose their part.

        It cannot be undone: ask first. `dry_run` changes nothing and says what would go. Of others only what is linked
        to the person is redacted: quotes, replies, mentions. What merely has the same words is counted
        (`report.same_words`) and stays; `same_words` redacts it too, in rooms that both spoke in, where it was said
        later. Broken off, or with something left (`report.left`), the same call goes on. Raises `InvalidInput`,
        `StorageUnavailable`.
        """
        return await self._forgetting.forget(
            tenant=self._tenant, user_id=_checked(user_id), dry_run=dry_run, same_words=same_words
        )

    async def verify(
        self, scope: str | None = None, *, progress: Callable[[VerifyProgress], None] | None = None
    ) -> VerifyReport:
        """Reads everything that is remembered of the tenant, or of one scope, and says what does not hold together: in
        the logs, the memories, what made them, what they rest on and the indexes; of a whole tenant also in the marks
        of work, and in what is derived of messages: features, words, counters. Changes nothing.

        It may run beside writers. `progress`: is told after each scope and each page of messages. `report.sound` is
        False where there is a fault: then the command line ends with 1. Raises `InvalidInput`, `StorageUnavailable`.
        """
        if scope is not None:
            check_scope(scope)
        return await self._verifying.verify(tenant=self._tenant, scope=scope, progress=progress)


def _checked(user_id: object) -> str:
    if not isinstance(user_id, str) or not user_id.strip():
        raise InvalidInput(f"The person is {user_id!r:.60}; give the sender id that the messages have.")
    if len(user_id) > MAX_ID_CHARS:
        raise InvalidInput(f"The sender id has {len(user_id)} characters; at most {MAX_ID_CHARS}.")
    return user_id
