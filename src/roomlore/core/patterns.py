"""Regular expressions that are compiled when they are first used."""

import re
from typing import Any, AnyStr, cast


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, compiled at its first use: a process uses few of the nine hundred patterns, and
    compiling all of them takes a sixth of its start. A pattern that cannot be compiled raises `re.error` then."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern, self._flags), name)
        # The next time this method is found without a call.
        setattr(self, name, found)
        return found
