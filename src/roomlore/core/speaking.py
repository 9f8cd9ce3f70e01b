"""How the messages of a room are put before a model: what the agent said as its own, all else as what people said.

A text is data. Where several people talk it begins with its speaker, and none of its own lines can begin like that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from roomlore.core.memory.reading import own_words
from roomlore.core.models import Message, Role
from roomlore.core.text import fold, truncate

_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_MARK = re.compile(rf"((?:\A|(?<=[{_LINE_ENDS}]))[^\S{_LINE_ENDS}]*)<(?=memory)|<(?=/memory)", re.IGNORECASE)
"""What opens a block of memories begins a line: `#include <memory>` is nobody's memory."""
_CLOSES = re.compile(r"(\A\s*)<(?=\s{0,9}/)")
"""What closes a tag at the beginning of a line: a prompt may stand between tags of the caller's own."""
_SPLITS_A_NAME = re.compile(r"[\s:：<>\[\]]+")
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
    return _MARK.sub(r"\1‹", text) if "<" in text else text


def words(message: Message) -> str:
    """Return the text, else a picture's caption."""
    caption = message.metadata.get("caption")
    return message.text if message.text.strip() or not isinstance(caption, str) else caption


def said(message: Message) -> str:
    """Return the text, else a picture's caption; '' for nothing, or nothing but what roomlore wrote."""
    text = words(message)
    return "" if text is message.text and not own_words(message) else text


def is_own(message: Message, agent_id: str) -> bool:
    """Return whether the agent said it."""
    return message.role is Role.ASSISTANT and message.sender_id == agent_id


class Speakers:
    """Calls each of the people of a room by a name that is nobody else's.

    `people`: sender ids to names. `agents`: ids and names that nobody among the people may be taken for. `several`:
    whether a text needs its speaker named.
    """

    def __init__(self, people: Mapping[str, str], *, agents: Iterable[str] = (), several: bool = True) -> None:
        names = {sender: _name(name) or _name(sender) for sender, name in people.items()}
        self._names = _apart(names, {_looks(_name(agent)) for agent in agents} | _ROLES)
        self.several = several

    def name_of(self, sender_id: str) -> str:
        """Return what the sender is called; the id of a stranger."""
        return self._names.get(sender_id) or _name(sender_id)

    def line(self, message: Message, text: str, *, at: str = "", about: str = "") -> str:
        """Return the text as a model reads it.

        `at`: the time in front of the name. `about`: what is told of the message behind the name.
        """
        if not self.several:
            return f"({about}) {inert(text)}" if about else inert(text)
        name = self._names.get(message.sender_id) or _name(message.sender_name) or _name(message.sender_id)
        head = f"{name} ({about}):" if about else f"{name}:"
        first, *others = map(_unclosing, inert(text).splitlines() or [""])
        return "\n".join([f"[{at}] {head} {first}" if at else f"{head} {first}", *(_INDENT + line for line in others)])


def people_of(messages: Iterable[Message], known: Mapping[str, str]) -> dict[str, str]:
    """Return the senders of these messages with their names: the room's, else the last one they were seen with."""
    people: dict[str, str] = {}
    for message in messages:
        people[message.sender_id] = (
            known.get(message.sender_id) or message.sender_name or people.get(message.sender_id, "")
        )
    return people


def _unclosing(line: str) -> str:
    return _CLOSES.sub(r"\1‹", line) if "<" in line else line


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
