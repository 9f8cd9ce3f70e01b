"""The times of a cron expression: the last one before a moment and the next one after it."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from roomlore.core.errors import InvalidInput


class Cron:
    """A cron expression of five fields in a time zone. Raises `InvalidInput` for an invalid one and one that never
    matches."""

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._expression = expression
        self._zone = zone
        try:
            CronSim(expression, datetime(2000, 1, 1, tzinfo=zone))
        except CronSimError as error:
            raise InvalidInput("cron_invalid", value=f"{expression!r:.60}") from error

    def last(self, now: datetime) -> datetime:
        """Return the last time at or before `now`, UTC, to the minute.

        A time in an hour that a clock change skips is moved to right after it. A time in an hour that comes twice
        counts once, unless the expression matches every hour.
        """
        after = (now.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)).astimezone(self._zone)
        return next(CronSim(self._expression, after, reverse=True)).astimezone(UTC)

    def next(self, now: datetime) -> datetime:
        """Return the first time after `now`, UTC, to the minute."""
        return next(CronSim(self._expression, now.astimezone(self._zone))).astimezone(UTC)
