"""What callers hand in as a conversation, as what was said."""

from collections.abc import Mapping, Sequence
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.reading import INJECTED_NAME, is_injected
from roomlore.core.models import Message
from roomlore.core.recall.models import Said

SaidBefore = Said | Message | Mapping[str, Any]
"""A message of a conversation: `Said`, a room's message, or one as OpenAI's protocol has it."""

_NOT_SAID = "system"
_ROLES = {"user", "assistant", "system", "tool", "developer", "function"}


def said_of(messages: Sequence[SaidBefore]) -> list[Said]:
    """The conversation in its order. Raises `InvalidInput` for what is no message."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages is a list of messages, such as [{'role': 'user', 'content': '...'}].")
    return [_said(message, place) for place, message in enumerate(messages)]


def _said(message: SaidBefore, place: int) -> Said:
    if isinstance(message, Said):
        return _checked(message, place)
    if isinstance(message, Message):
        return Said(_NOT_SAID if is_injected(message) else message.role.value, message.text, message.has_tool_calls)
    if isinstance(message, Mapping):
        return _of_protocol(message, place)
    raise InvalidInput(
        f"messages[{place}] is a {type(message).__name__}; give Said, Message or a mapping with role and content."
    )


def _checked(message: Said, place: int) -> Said:
    if not isinstance(message.text, str):
        raise InvalidInput(f"messages[{place}] has a text that is none: {message.text!r:.40}.")
    _role(message.role, place)
    return message


def _role(role: Any, place: int) -> str:
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidInput(f"messages[{place}] has the role {role!r:.40}; it is one of {', '.join(sorted(_ROLES))}.")
    return role


def _of_protocol(message: Mapping[str, Any], place: int) -> Said:
    role = _role(message.get("role"), place)
    if message.get("name") == INJECTED_NAME:
        role = _NOT_SAID
    calls = bool(message.get("tool_calls") or message.get("function_call"))
    return Said(role, _text(message.get("content"), place), calls)


def _text(content: Any, place: int) -> str:
    """Of several parts those that are text; pictures and the like say nothing here."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence) or not all(isinstance(part, str | Mapping) for part in content):
        raise InvalidInput(f"messages[{place}] has content that is neither a text nor a list of parts.")
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))
