"""When it was last time, in zones whose clocks change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from roomlore.adapters.cron import Cron
from roomlore.core.errors import InvalidInput

BERLIN, SHANGHAI = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Shanghai")


def at(text: str, zone: ZoneInfo) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("now", "last"),
    [
        ("2026-11-20 02:00:00", "2026-11-20 02:00"),
        ("2026-11-20 02:00:59", "2026-11-20 02:00"),
        ("2026-11-20 01:59:59", "2026-11-19 02:00"),
        ("2026-11-20 23:00:00", "2026-11-20 02:00"),
        ("2026-01-01 00:00:00", "2025-12-31 02:00"),
    ],
)
def test_the_last_time_is_at_or_before_now(now, last):
    found = Cron("0 2 * * *", SHANGHAI).last(at(now, SHANGHAI).astimezone(UTC))
    assert found == at(last, SHANGHAI)
    assert found.tzinfo is UTC


def test_the_next_time_is_after_now():
    cron = Cron("0 2 * * *", SHANGHAI)
    assert cron.next(at("2026-11-20 02:00:00", SHANGHAI)) == at("2026-11-21 02:00", SHANGHAI)
    assert cron.next(at("2026-11-20 01:59:59", SHANGHAI).astimezone(UTC)) == at("2026-11-20 02:00", SHANGHAI)


def test_days_of_the_week_and_steps():
    assert Cron("30 9 * * MON", BERLIN).last(at("2026-11-20 12:00", BERLIN)) == at("2026-11-16 09:30", BERLIN)
    assert Cron("*/15 * * * *", BERLIN).last(at("2026-11-20 12:44", BERLIN)) == at("2026-11-20 12:30", BERLIN)


def test_an_hour_that_the_clocks_leave_out_is_made_up():
    """On 29 March 2026 Berlin goes from 01:59 to 03:00."""
    last = Cron("30 2 * * *", BERLIN).last(at("2026-03-29 12:00", BERLIN))
    assert last is not None
    assert last >= at("2026-03-29 00:00", BERLIN)


def test_an_hour_that_comes_twice_counts_once():
    """On 25 October 2026 Berlin has 02:30 twice."""
    cron = Cron("30 2 * * *", BERLIN)
    seen = {cron.last(datetime(2026, 10, 24, 12 + hour // 60, hour % 60, tzinfo=UTC)) for hour in range(720)}
    night = {cron.last(datetime(2026, 10, 25, minute // 60, minute % 60, tzinfo=UTC)) for minute in range(600)}
    assert len([one for one in night | seen if one and one.date() == datetime(2026, 10, 25).date()]) == 1


WRONG = ["", "daily", "0 2 * *", "61 2 * * *", "0 25 * * *", "每天两点", "0 2 30 2 *"]


@pytest.mark.parametrize("expression", WRONG)
def test_what_is_no_cron_expression_is_refused(expression):
    with pytest.raises(InvalidInput, match="cron"):
        Cron(expression, SHANGHAI)


@pytest.mark.parametrize("minute", [5, 35])
@pytest.mark.parametrize("hour", [4, 5, 6, 7])
def test_every_ten_minutes_goes_on_through_an_hour_that_comes_twice(hour, minute):
    now = datetime(2026, 11, 1, hour, minute, 30, tzinfo=UTC)
    last = Cron("*/10 * * * *", ZoneInfo("America/New_York")).last(now)
    assert last == now.replace(minute=minute - 5, second=0)
