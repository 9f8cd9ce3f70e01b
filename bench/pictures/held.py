"""A roomlore whose time stands still and whose ids count, so that the same run gives the same picture."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from unittest.mock import patch

import roomlore
from roomlore import Lore, Settings
from roomlore.ports.language import Summarizer
from roomlore.services.sessions import automatic
from roomlore.wiring import resources
from roomlore_testkit import FrozenClock

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)


class CountedIds:
    """Ids that look as roomlore's do, in the order in which they are made, and the same in each run."""

    def __init__(self) -> None:
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self._count:016x}{sha256(str(self._count).encode()).hexdigest()[:16]}"


@asynccontextmanager
async def held(
    settings: Settings | None = None,
    *,
    url: str = "sqlite://",
    summarizer: Summarizer | None = None,
    summary_tokens: int = automatic.SUMMARY_TOKENS,
) -> AsyncIterator[tuple[Lore, FrozenClock]]:
    """It is midnight of 1 June 2026 until the clock is moved; nothing runs behind the calls."""
    clock = FrozenClock(BEGIN)
    with (
        patch.object(resources, "SystemClock", lambda: clock),
        patch.object(resources, "TimeOrderedIds", CountedIds),
        patch.object(automatic, "SUMMARY_TOKENS", summary_tokens),
    ):
        async with roomlore.open(url, settings=settings, summarizer=summarizer, background=False) as lore:
            yield lore, clock
