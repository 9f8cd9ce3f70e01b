"""A roomlore whose time stands still and whose ids count, so that the same run gives the same picture."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from unittest.mock import patch

import roomlore
from roomlore import Lore, Settings
from roomlore.ports.language import Summarizer
from roomlore.testing import FrozenClock, SequentialIds
from roomlore.wiring import resources

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)


@asynccontextmanager
async def held(
    settings: Settings | None = None, *, url: str = "sqlite://", summarizer: Summarizer | None = None
) -> AsyncIterator[tuple[Lore, FrozenClock]]:
    """It is midnight of 1 June 2026 until the clock is moved; nothing runs behind the calls."""
    clock = FrozenClock(BEGIN)
    with (
        patch.object(resources, "SystemClock", lambda: clock),
        patch.object(resources, "TimeOrderedIds", SequentialIds),
    ):
        async with roomlore.open(url, settings=settings, summarizer=summarizer, background=False) as lore:
            yield lore, clock
