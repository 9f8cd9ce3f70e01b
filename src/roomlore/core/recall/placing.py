"""Where a block of memory stands among the messages that go to a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.reading import INJECTED_NAME

Placement = Literal["system", "trailing"]

_LEADING = ("system", "developer")


def check_placement(placement: Placement) -> Placement:
    """The placement as it is; `InvalidInput` unless it is one."""
    if placement not in get_args(Placement):
        raise InvalidInput(f"placement is {placement!r:.40}; it is one of {', '.join(get_args(Placement))}.")
    return placement


def place_among(roles: Sequence[str], placement: Placement) -> int:
    """The index at which the block goes in. 'system': behind the system messages that come first. 'trailing': before
    the last message of the role user, so that whatever comes before it stays as it was; without one, as 'system'."""
    if placement == "trailing" and "user" in roles:
        return len(roles) - 1 - list(reversed(roles)).index("user")
    return next((place for place, role in enumerate(roles) if role not in _LEADING), len(roles))


def with_memory(
    messages: Sequence[Mapping[str, Any]], block: str, *, placement: Placement = "system"
) -> list[dict[str, Any]]:
    """OpenAI-style messages with the block as one message named `memory_context`, in place of an earlier one.

    `block`: what `lore.recall.memory_prompt` gives; '' leaves the messages without one. `placement`: 'system', a system
    message behind the system prompt, or 'trailing', a user message just before the user's last one. The messages given
    are not changed. Raises `InvalidInput` for another placement.
    """
    check_placement(placement)
    others = [dict(message) for message in messages if not _is_block(message)]
    if not block:
        return others
    at = place_among([str(message.get("role")) for message in others], placement)
    role = "system" if placement == "system" else "user"
    return [*others[:at], {"role": role, "name": INJECTED_NAME, "content": block}, *others[at:]]


def _is_block(message: Mapping[str, Any]) -> bool:
    """Agents and tools may have that name, too."""
    return message.get("name") == INJECTED_NAME and message.get("role") in (*_LEADING, "user")
