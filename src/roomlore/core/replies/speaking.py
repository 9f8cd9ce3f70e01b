"""How the messages of a room are put before a model: what the agent said as its own, all else as what people said.

A text is data. Where several people talk it begins with its speaker, and none of its own lines can begin like that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from roomlore.core.memory.reading import own_words
from roomlore.core.models import Role, StoredMessage
from roomlore.core.text import fold, truncate

_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE_END = re.compile(f"[{_LINE_ENDS}]")
_MARK = re.compile(r"(?P<blank>(?<!\s)\s*+)<(?=memory)|<(?=/memory)", re.IGNORECASE)
"""What opens a block of memories begins a line: `#include <memory>` is nobody's memory."""
_SPLITS_A_NAME = re.compile(r"[\s:：<>]+")
_NAME_CHARACTERS = 64
_INDENT = "  "
_INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f"
    "\\ufe00-\\ufe0f\\ufeff\\ufff0-\\ufffb\\U000e0000-\\U000e0fff]"
)
_PARENTHESES = re.compile("[()（）]")
_ROLES = {"system", "assistant", "user", "tool", "memory", "summary", "系统", "助手", "用户", "工具", "历史摘要"}


def inert(text: str) -> str:
    """Return the text, which can neither open nor close a block of memories."""
    return _MARK.sub(_inert_mark, text) if "<" in text else text


def _inert_mark(mark: re.Match[str]) -> str:
    blank = mark["blank"]
    begins_a_line = blank is None or mark.start() == 0 or _LINE_END.search(blank)
    return f"{blank or ''}‹" if begins_a_line else mark[0]


def words(message: StoredMessage) -> str:
    """The text, else a picture's caption."""
    caption = message.metadata.get("caption")
    return message.text if message.text.strip() or not isinstance(caption, str) else caption


def said(message: StoredMessage) -> str:
    """What a message says: its text, else a picture's caption; '' for nothing, or nothing but what roomlore wrote."""
    text = words(message)
    return "" if text is message.text and not own_words(message) else text


def is_own(message: StoredMessage, agent_id: str) -> bool:
    """Whether the agent said it."""
    return message.role is Role.ASSISTANT and message.sender_id == agent_id


class Speakers:
    """What the people of a room are called, each by a name that is nobody else's.

    `people`: sender ids to names. `several`: whether a text needs its speaker named.
    """

    def __init__(self, people: Mapping[str, str], *, agent_id: str, agent_name: str, several: bool) -> None:
        names = {sender: _name(name) or _name(sender) for sender, name in people.items()}
        taken = {_looks(agent_id), _looks(_name(agent_name))} | _ROLES
        self._names = _apart(names, taken)
        self._several = several

    def name_of(self, sender_id: str) -> str:
        """What the sender is called; the id of a stranger."""
        return self._names.get(sender_id) or _name(sender_id)

    def line(self, message: StoredMessage, text: str) -> str:
        """The text as a model reads it."""
        if not self._several:
            return inert(text)
        name = self._names.get(message.sender_id) or _name(message.sender_name) or _name(message.sender_id)
        first, *others = inert(text).splitlines() or [""]
        return "\n".join([f"{name}: {first}", *(_INDENT + line for line in others)])


def people_of(messages: Iterable[StoredMessage], known: Mapping[str, str]) -> dict[str, str]:
    """The senders of these messages with their names: the room's, else the message's own."""
    return {message.sender_id: known.get(message.sender_id) or message.sender_name for message in messages}


def _name(name: str) -> str:
    return truncate(_SPLITS_A_NAME.sub(" ", name).strip(), _NAME_CHARACTERS)


def _looks(name: str) -> str:
    """The name as a reader sees it: what is invisible tells no one apart."""
    folded = fold(name)
    return folded if folded.isascii() and folded.isprintable() else _INVISIBLE.sub("", folded).strip()


def _apart(names: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """The names, with the sender's id beside each that somebody else has too, or that looks as if it had one."""
    looks = {sender: _looks(name) for sender, name in names.items()}
    often = Counter(looks.values())
    return {
        sender: f"{name} ({_PARENTHESES.sub('', _name(sender))})"
        if often[looks[sender]] > 1 or looks[sender] in taken or looks[sender].endswith(")")
        else name
        for sender, name in names.items()
    }
