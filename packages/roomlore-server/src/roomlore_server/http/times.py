"""Times of queries."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import Field

from roomlore.core.dates import Edge, day_in, moment
from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.wiring import Lore
from roomlore_server.http import bodies

_UNCODED_PLUS = re.compile(r"(:\d\d(?:\.\d+)?) (\d\d(?::?\d\d)?)$")

Moment = Annotated[str, Field(json_schema_extra=dict(bodies.MOMENT))]
TIME_IN_QUERY = (
    "ISO 8601 or a Unix time, in UTC without a zone; or a day, such as `2024-05-01`, `yesterday` or `昨天`, of the "
    "setting time_zone"
)
MAX_WORDS = 200


def read_time(lore: Lore, name: str, text: str | None, *, edge: Edge = "start") -> datetime | None:
    """Return a time of a query; None if it is not given. A time without a zone is UTC; a day, as a date or in words, is
    one of the setting time_zone, and gives its first or last instant (`edge`). A `+` that was not percent-encoded
    arrives as a space and is read as `+`. Raise `InvalidInput`."""
    if text is None:
        return None
    given = _plussed(text)
    given_moment = None if day_in(given) else parse_time(given)
    if given_moment is not None:
        return given_moment
    if len(given) > MAX_WORDS:
        raise InvalidInput("time_words_too_long", name=name, count=len(given), most=MAX_WORDS)
    return moment(name, given, now=lore.now(), zone=lore.settings.search.zone, edge=edge)


def _plussed(text: str) -> str:
    return _UNCODED_PLUS.sub(r"\1+\2", text)
