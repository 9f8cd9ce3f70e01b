"""Regular expressions that are compiled when they are first used."""

import re
from typing import Any, AnyStr, cast


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern with the methods of a compiled one, compiled at its first use: a process uses few of the six
    hundred patterns, and compiling all of them takes a sixth of its start. Use its methods: functions such as `re.sub`
    do not take it. A pattern that cannot be compiled raises `re.error` at its first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))


class LazyPattern:
    """A pattern of `lazy_pattern`."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy has no pattern yet when it is asked for these
            raise AttributeError(name)
        attribute = getattr(re.compile(self.pattern, self._flags), name)
        # The next time this method is found without a call.
        setattr(self, name, attribute)
        return attribute
