"""mem0's filters on what is kept beside a memory."""

from collections.abc import Callable, Mapping
from typing import Any

from roomlore import InvalidInput

Fields = Mapping[str, Any]
_MISSING = object()


def check_filters(filters: Any) -> None:
    """Raises `InvalidInput` for what `matches` cannot follow."""
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"filters is {filters!r:.60}; give a mapping such as {{'user_id': 'anna'}}.")
    for name, wanted in filters.items():
        if name in _JOINTS:
            _check_joint(name, wanted)
        elif isinstance(wanted, Mapping):
            _check_operators(name, wanted)


def matches(fields: Fields, filters: Fields) -> bool:
    """Whether every condition holds; `filters` were checked."""
    return all(_holds(fields, name, wanted) for name, wanted in filters.items())


def _check_joint(name: str, wanted: Any) -> None:
    if not isinstance(wanted, list) or not wanted:
        raise InvalidInput(f"{name} is {wanted!r:.60}; give a list of filters.")
    for one in wanted:
        check_filters(one)


def _check_operators(name: str, wanted: Fields) -> None:
    for operator, value in wanted.items():
        if operator not in _OPERATORS:
            raise InvalidInput(
                f"The filter of {name!r:.60} asks for {operator!r:.60}; there are {', '.join(_OPERATORS)}."
            )
        if operator in ("in", "nin") and not isinstance(value, list | tuple):
            raise InvalidInput(f"The filter of {name!r:.60} wants a list for {operator!r}, not {value!r:.60}.")


def _holds(fields: Fields, name: str, wanted: Any) -> bool:
    if name in _JOINTS:
        return _JOINTS[name](matches(fields, one) for one in wanted)
    value = fields.get(name, _MISSING)
    if isinstance(wanted, Mapping):
        return all(_OPERATORS[operator](value, given) for operator, given in wanted.items())
    return value is not _MISSING if wanted == "*" else _equal(value, wanted)


def _equal(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) or (isinstance(value, list) and wanted in value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """What cannot be compared does not hold."""

    def holds(value: Any, wanted: Any) -> bool:
        try:
            return bool(compare(value, wanted))
        except TypeError:
            return False

    return holds


def _contains(value: Any, wanted: Any) -> bool:
    return wanted in value if isinstance(value, str | list) else False


def _contains_in_any_case(value: Any, wanted: Any) -> bool:
    return isinstance(value, str) and str(wanted).casefold() in value.casefold()


_JOINTS: Mapping[str, Callable[[Any], bool]] = {
    "AND": all,
    "OR": any,
    "NOT": lambda conditions: not any(conditions),
}
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda value, wanted: not _equal(value, wanted),
    "in": lambda value, wanted: any(_equal(value, one) for one in wanted),
    "nin": lambda value, wanted: not any(_equal(value, one) for one in wanted),
    "gt": _ordered(lambda value, wanted: value > wanted),
    "gte": _ordered(lambda value, wanted: value >= wanted),
    "lt": _ordered(lambda value, wanted: value < wanted),
    "lte": _ordered(lambda value, wanted: value <= wanted),
    "contains": _ordered(_contains),
    "icontains": _contains_in_any_case,
}
