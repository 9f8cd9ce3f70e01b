"""Messages as a model reads them that is to remember something: who said what, and nothing roomlore put there."""

import re
from collections.abc import Iterable, Mapping, Sequence

from roomlore.core.models import Role, StoredMessage
from roomlore.core.quotes import Quotation, named_author, split_quote
from roomlore.core.text import fold, truncate

CHECKPOINT_MARK = "[MEMORY_CHECKPOINT]"
MEMORY_BLOCK = "memory"
INJECTED_NAME = "memory_context"
INJECTED = "roomlore_injected"
"""In the metadata of a message: roomlore wrote it for a model to read."""

_BLOCK = re.compile(r"<memory(?:_context)?\b[^>]{0,200}>.*?(?:</memory(?:_context)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABELLED = re.compile(r"\s*(?:历史摘要|对话摘要|Summary)\s*[:：]")
_QUOTED_CHARACTERS = 200


def own_words(message: StoredMessage) -> str:
    """The text without what roomlore injected: memory blocks, checkpoints, summaries handed to a model. '' where
    nothing else is left."""
    if _is_injected(message):
        return ""
    text = _BLOCK.sub(" ", message.text) if "<" in message.text else message.text
    return text.strip()


def _is_injected(message: StoredMessage) -> bool:
    if message.metadata.get(INJECTED) or message.sender_name == INJECTED_NAME:
        return True
    if message.text.lstrip().startswith(CHECKPOINT_MARK):
        return True
    return message.role is Role.SYSTEM and bool(_LABELLED.match(message.text))


def as_conversation(
    messages: Iterable[StoredMessage], *, quoted: Mapping[str, StoredMessage], people: Mapping[str, str]
) -> str:
    """A line 'name: text' for each message that says something of its own.

    What a message quotes is named as its author's, never as the sender's own. `quoted`: messages by id that others
    reply to. `people`: sender ids to names.
    """
    lines = (_line(message, quoted, people) for message in messages)
    return "\n".join(line for line in lines if line)


def _line(message: StoredMessage, quoted: Mapping[str, StoredMessage], people: Mapping[str, str]) -> str:
    words = own_words(message)
    if not words:
        return ""
    quotation, rest = split_quote(words)
    name = name_of(message, people)
    if quotation is None:
        return f"{name}: {_flat(words)}"
    author, text = _credited(quotation, message, quoted, people)
    return f'{name} (re {author}: "{truncate(_flat(text), _QUOTED_CHARACTERS)}"): {_flat(rest)}'.rstrip(" :")


def name_of(message: StoredMessage, people: Mapping[str, str]) -> str:
    """What the sender is called: the name of the message, else of the room, else the id."""
    return message.sender_name or people.get(message.sender_id) or message.sender_id


def _credited(
    quotation: Quotation, message: StoredMessage, quoted: Mapping[str, StoredMessage], people: Mapping[str, str]
) -> tuple[str, str]:
    """The author of a quotation and its text: the message replied to, whom the quotation names, else somebody."""
    original = quoted.get(message.reply_to or "")
    if original is not None:
        return name_of(original, people), quotation.text
    if quotation.author:
        return quotation.author, quotation.text
    author, rest = named_author(quotation.text)
    known = {fold(name) for pair in people.items() for name in pair if name}
    return (author, rest) if author and fold(author) in known else ("somebody", quotation.text)


def _flat(text: str) -> str:
    return " ".join(text.split())


def senders(messages: Sequence[StoredMessage]) -> set[str]:
    """Who says something of their own."""
    return {message.sender_id for message in messages if own_words(message)}
