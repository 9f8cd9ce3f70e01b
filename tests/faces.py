"""For tests that go over all routes, tools and commands."""

from collections.abc import Mapping
from typing import Any


def filled(given: Any, names: Mapping[str, str]) -> Any:
    """Return a request, or a part of one, with the ids in place of their names, which stand in braces."""
    if isinstance(given, dict):
        return {key: filled(value, names) for key, value in given.items()}
    return names.get(given[1:-1], given) if isinstance(given, str) and given[:1] == "{" else given


def commands_of(command: Any, name: str = "") -> dict[str, set[str]]:
    """Return the options of every command."""
    below = getattr(command, "commands", None)
    if not below:
        return {name.strip(): {option for one in command.params for option in one.opts}}
    found = {}
    for part in below:
        found |= commands_of(command.get_command(None, part), f"{name} {part}")
    return found
