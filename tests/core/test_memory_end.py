"""The end of a fact: the last day that it holds, where it ends at a midnight."""

from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from recall_facts import fact
from roomlore.core.memory.memory import last_day
from roomlore.core.recall.recollection import text_of

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("ends", "zone", "day"),
    [
        (datetime(2026, 12, 1, tzinfo=UTC), UTC, date(2026, 11, 30)),
        (datetime(2026, 11, 30, 16, tzinfo=UTC), SHANGHAI, date(2026, 11, 30)),
        (datetime(2026, 12, 1, tzinfo=UTC), SHANGHAI, None),
        (datetime(2026, 12, 1, 9, 30, tzinfo=UTC), UTC, None),
        (datetime.min.replace(tzinfo=UTC), UTC, None),
        (datetime.max.replace(tzinfo=UTC), SHANGHAI, None),
    ],
)
def test_what_ends_at_midnight_holds_to_the_end_of_the_day_before(ends, zone, day):
    assert last_day(ends, zone) == day


@pytest.mark.parametrize(
    ("begins", "ends", "times"),
    [
        (None, None, ""),
        (None, datetime(2026, 12, 1, tzinfo=UTC), " (until the end of 2026-11-30)"),
        (None, datetime(2026, 12, 1, 9, tzinfo=UTC), " (until 2026-12-01 09:00 UTC)"),
        (
            datetime(2026, 11, 1, 8, tzinfo=UTC),
            datetime(2026, 12, 1, tzinfo=UTC),
            " (from 2026-11-01 08:00 UTC until the end of 2026-11-30)",
        ),
    ],
)
def test_a_block_says_how_long_a_fact_holds(begins, ends, times):
    memory = replace(fact(1, "Anna is in Rome"), valid_from=begins, valid_until=ends)
    assert text_of(memory) == f"Anna is in Rome{times}"
