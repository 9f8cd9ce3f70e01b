"""When a cron expression last said that it is time, and when it will again."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from roomlore.core.errors import InvalidInput


class Cron:
    """A cron expression of five fields in a time zone. Raises `InvalidInput` for what is none, or never comes."""

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._expression = expression
        self._zone = zone
        try:
            CronSim(expression, datetime(2000, 1, 1, tzinfo=zone))
        except CronSimError as error:
            raise InvalidInput(
                f"{expression!r:.60} is no cron expression; '0 2 * * *' is every day at two o'clock."
            ) from error

    def last(self, now: datetime) -> datetime:
        """The last time at or before `now`, UTC, to the minute.

        An hour that a change of the clocks leaves out is made up right after; one that comes twice counts once, unless
        the expression names every hour.
        """
        after = (now.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)).astimezone(self._zone)
        return next(CronSim(self._expression, after, reverse=True)).astimezone(UTC)

    def next(self, now: datetime) -> datetime:
        """The first time after `now`, UTC, to the minute."""
        return next(CronSim(self._expression, now.astimezone(self._zone))).astimezone(UTC)
