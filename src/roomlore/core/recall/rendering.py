"""The block of facts as a model reads it, and its place among the messages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Memory
from roomlore.core.memory.reading import INJECTED_NAME
from roomlore.core.prompt import neutral
from roomlore.core.text import truncate

HEAD, TAIL = "<memory>\n", "</memory>"
_SCOPE_CHARACTERS = 64
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff]+"
)


def line_of(statement: str, scope: str = "") -> str:
    """Return a fact's line, which neither opens nor closes a block. `scope`: named if the block may contain several
    scopes, else ''."""
    whose = f"[{truncate(_flat(scope), _SCOPE_CHARACTERS).replace(']', ')')}] " if scope else ""
    return f"- {neutral(whose + _flat(statement))}\n"


def text_of(memory: Memory) -> str:
    """Return the statement, with since when it holds and when it ends, if that is known."""
    span = (("from", memory.valid_from), ("until", memory.valid_until))
    told = " ".join(f"{name} {at:%Y-%m-%d %H:%M} UTC" for name, at in span if at is not None)
    return f"{memory.statement} ({told})" if told else memory.statement


def block_of(lines: Sequence[str]) -> str:
    """Return the block, '' if there is no line."""
    return f"{HEAD}{''.join(lines)}{TAIL}" if lines else ""


def _flat(text: str) -> str:
    """Return the text on one line, without invisible and unsendable characters."""
    return " ".join(_UNSEEN.sub(" ", text).split())


Placement = Literal["system", "trailing"]

_LEADING = ("system", "developer")


def check_placement(placement: Placement) -> Placement:
    """Return the placement. Raises `InvalidInput` if it is not one."""
    if placement not in get_args(Placement):
        raise InvalidInput(f"placement is {placement!r:.40}; it is one of {', '.join(get_args(Placement))}.")
    return placement


def place_among(roles: Sequence[str], placement: Placement) -> int:
    """Return the index of the block. 'system': behind the leading system messages. 'trailing': before the last message
    of the role user, so that everything before it stays unchanged; without one, as 'system'."""
    if placement == "trailing" and "user" in roles:
        return len(roles) - 1 - list(reversed(roles)).index("user")
    return next((place for place, role in enumerate(roles) if role not in _LEADING), len(roles))


def with_memory(
    messages: Sequence[Mapping[str, Any]], block: str, *, placement: Placement = "system"
) -> list[dict[str, Any]]:
    """Return OpenAI-style messages with the block as one message named `memory_context`, in place of an earlier one.

    `block`: the result of `lore.recall.memory_prompt`; '' leaves the messages without one. `placement`: 'system', a
    system message behind the system prompt, or 'trailing', a user message just before the user's last one. The given
    messages are not changed. Raises `InvalidInput` for another placement.
    """
    check_placement(placement)
    others = [dict(message) for message in messages if not _is_block(message)]
    if not block:
        return others
    at = place_among([str(message.get("role")) for message in others], placement)
    role = "system" if placement == "system" else "user"
    return [*others[:at], {"role": role, "name": INJECTED_NAME, "content": block}, *others[at:]]


def _is_block(message: Mapping[str, Any]) -> bool:
    """Return True if the message is the block. Agents and tools may have the same name."""
    return message.get("name") == INJECTED_NAME and message.get("role") in (*_LEADING, "user")
