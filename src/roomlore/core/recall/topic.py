"""What a conversation is about just now, as far as facts can help with it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from roomlore.core.memory.reading import CHECKPOINT_MARK
from roomlore.core.recall.models import Said

_OLDER = 0.25
_ANSWER = 0.5
_CLOSE = r"</memory(?:_context)?>"
_BLOCK = re.compile(rf"<memory(?:_context)?\b[^>]{{0,200}}>.*?{_CLOSE}", re.DOTALL | re.IGNORECASE)
_END = re.compile(_CLOSE, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """Something said, and how much it counts."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Topic:
    """`parts`: what counts, the oldest first. `asked`: the user's last message, '' where there is none."""

    parts: tuple[Part, ...] = ()
    asked: str = ""

    @property
    def text(self) -> str:
        """All of it as one text, the newest last."""
        return "\n".join(part.text for part in self.parts)


def topic_of(messages: Sequence[Said], max_turns: int) -> Topic:
    """The user's last `max_turns` messages and the final answers between and after them.

    What tools said, messages that call them, system messages and memory blocks are left out. Each turn back counts a
    quarter of the one after it, and an answer half of a question: each message counts for itself, so that a long
    answer does not drown the question that follows it.
    """
    parts: list[Part] = []
    asked, turn = "", 0
    for message in reversed(messages if max_turns > 0 else ()):
        text = _own(message)
        if not text:
            continue
        user = message.role == "user"
        parts.append(Part(text, _OLDER**turn * (1.0 if user else _ANSWER)))
        if user:
            asked, turn = asked or text, turn + 1
            if turn >= max_turns:
                break
    return Topic(tuple(reversed(parts)), asked)


def _own(message: Said) -> str:
    if message.role not in ("user", "assistant") or (message.role == "assistant" and message.has_tool_calls):
        return ""
    if message.text.lstrip().startswith(CHECKPOINT_MARK):
        return ""
    return _without_blocks(message.text).strip()


def _without_blocks(text: str) -> str:
    """What is opened and never closed is no block: C++ has a header <memory>."""
    end = max((close.end() for close in _END.finditer(text)), default=0)
    return _BLOCK.sub(" ", text[:end]) + text[end:]
