"""The numbers a page is asked for with."""

from roomlore.core.errors import InvalidInput

_MOST = 2**63 - 1


def check_page(*, limit: int, after: int = 0) -> None:
    """Raises `InvalidInput` unless `limit` is a whole number from 1 and `after` one from 0, neither above 2**63 - 1."""
    for name, value, least in (("limit", limit, 1), ("after", after, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise InvalidInput(f"{name} is {value!r}; it must be a whole number from {least} to {_MOST}.")
