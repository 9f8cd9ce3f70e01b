"""Messages as a model reads them that is to remember something: who said what, and nothing roomlore put there."""

import re
from collections.abc import Mapping, Sequence

from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.quotes import Quotation, named_author, split_quotes
from roomlore.core.text import fold, truncate

CHECKPOINT_MARK = "[MEMORY_CHECKPOINT]"
MEMORY_BLOCK = "memory"
INJECTED_NAME = "memory_context"
INJECTED = "roomlore_injected"
"""In the metadata of a message: roomlore wrote it for a model to read."""
CONVERSATION_CHARACTERS = 12_000
"""What of a conversation is read at most: what a small model has room for."""

_TAG = re.compile(rf"<(?P<closing>/)?{MEMORY_BLOCK}(?:_context)?(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_LABELLED = re.compile(r"\s*(?:历史摘要|对话摘要|Summary)\s*[:：]")
_FENCE = re.compile(r"[<＜](?=\s*+(?:[/／]\s*+)?conversation)", re.IGNORECASE)
_QUOTED_CHARACTERS = 200
_NAME_CHARACTERS = 64


def own_words(message: Message) -> str:
    """Return the text without what roomlore injected: memory blocks, checkpoints, summaries handed to a model. '' where
    nothing else is left."""
    if is_injected(message):
        return ""
    return _without_blocks(message.text).strip()


def as_conversation(
    messages: Sequence[StoredMessage], *, quoted: Mapping[str, StoredMessage], people: Mapping[str, str]
) -> str:
    """A line 'name: text' for each message that says something of its own; all of one length at most.

    What a message quotes is named as its author's, never as the sender's own. `quoted`: messages by id that others
    reply to. `people`: sender ids to names.
    """
    most = CONVERSATION_CHARACTERS // max(len(messages), 1)
    lines = (_line(message, quoted, people, most) for message in messages)
    return _FENCE.sub("‹", "\n".join(line for line in lines if line))


def name_of(message: StoredMessage, people: Mapping[str, str]) -> str:
    """What the sender is called: the name of the message, else of the room, else the id."""
    known = people.get(message.sender_id, "")
    name = message.sender_name or (known if known != INJECTED_NAME else "") or message.sender_id
    return truncate(_flat(name), _NAME_CHARACTERS)


def is_injected(message: Message) -> bool:
    """Whether roomlore wrote it for a model to read."""
    if message.metadata.get(INJECTED) or message.sender_name == INJECTED_NAME:
        return True
    return _is_summary(message.text, labelled=message.role is Role.SYSTEM)


def _is_summary(text: str, *, labelled: bool) -> bool:
    """`labelled`: whether a label alone tells. A person may well begin with it."""
    return text.lstrip().startswith(CHECKPOINT_MARK) or (labelled and bool(_LABELLED.match(text)))


def _without_blocks(text: str) -> str:
    """Blocks of memories begin and end with a tag. One without an end goes on to the end of the text if it begins a
    line; else it is somebody's `#include <memory>`."""
    kept: list[str] = []
    at, begun = 0, None
    for tag in _TAG.finditer(text):
        if begun is None and not tag["closing"]:
            begun = tag.start()
        elif begun is not None and tag["closing"]:
            kept.append(text[at:begun])
            at, begun = tag.end(), None
    begins_a_line = begun is not None and not text[text.rfind("\n", 0, begun) + 1 : begun].strip()
    kept.append(text[at : begun if begins_a_line else None])
    return " ".join(kept) if len(kept) > 1 else kept[0]


def _line(
    message: StoredMessage, quoted: Mapping[str, StoredMessage], people: Mapping[str, str], characters: int
) -> str:
    parts = split_quotes(truncate(own_words(message), characters))
    first = next((part for part in parts if isinstance(part, Quotation)), None)
    original = quoted.get(message.reply_to or "")
    shown = [_shown(part, original if part is first else None, people) for part in parts]
    name, quotation = name_of(message, people), shown.pop(0) if parts[0] is first else ""
    said = " ".join(filter(None, shown))
    who = f"{name} {quotation}" if quotation else name
    return f"{who}: {said}" if said else who if quotation else ""


def _shown(part: Quotation | str, original: StoredMessage | None, people: Mapping[str, str]) -> str:
    """A part of a message as it is read; '' for a quotation of what roomlore wrote."""
    if isinstance(part, str):
        return _flat(part)
    ours = original is not None and bool(original.text) and not own_words(original)
    if ours or _is_summary(part.text, labelled=False):
        return ""
    author, text = _credited(part, original, people)
    inside = truncate(_flat(text), _QUOTED_CHARACTERS).replace('"', "'")
    return f'(re {author}: "{inside}")' if inside else ""


def _credited(quotation: Quotation, original: StoredMessage | None, people: Mapping[str, str]) -> tuple[str, str]:
    """The author of a quotation and its text: the message replied to, whom the quotation names, else somebody."""
    if original is not None:
        return name_of(original, people), quotation.text
    if quotation.author:
        return _flat(quotation.author), quotation.text
    author, rest = named_author(quotation.text)
    known = {fold(name) for pair in people.items() for name in pair if name}
    return (author, rest) if author and fold(author) in known else ("somebody", quotation.text)


def _flat(text: str) -> str:
    return " ".join(text.split())
