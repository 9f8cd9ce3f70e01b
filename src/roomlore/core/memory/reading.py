"""Render messages for a model that extracts memories: speakers and texts, without blocks that roomlore inserted."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from roomlore.core.attachments import descriptions_of
from roomlore.core.mentions import Quotation, named_author, split_quotes, with_names
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.prompt import neutral
from roomlore.core.text import fold, truncate

CHECKPOINT_MARK = "[MEMORY_CHECKPOINT]"
MEMORY_BLOCK = "memory"
INJECTED_NAME = "memory_context"
INJECTED = "roomlore_injected"
"""The metadata field of a message that roomlore wrote for a model."""
CONVERSATION_CHARACTERS = 12_000
"""The most characters read of a conversation: the space that a small model has."""

# A tag of the block of memories, which a message must not forge.
_TAG = lazy_pattern(rf"<(?P<closing>/)?{MEMORY_BLOCK}(?:_context)?(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
# The label of a summary.
_LABELLED = lazy_pattern(r"\s*(?:历史摘要|对话摘要|Summary)\s*[:：]")
_QUOTED_CHARACTERS = 200
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# The time that begins a line as the model sees it.
_STAMP = lazy_pattern(rf"^\[(?:{'|'.join(_DAYS)}) \d{{4}}-\d\d-\d\d \d\d:\d\d\] ", re.MULTILINE)
_NAME_CHARACTERS = 64


def own_words(message: Message) -> str:
    """Return the text without blocks that roomlore injected: memory blocks, checkpoints, summaries given to a model;
    behind it what was said of its pictures and voice messages. '' if nothing is left."""
    if is_injected(message):
        return ""
    described = descriptions_of(message) if message.metadata else ""
    return _without_blocks(f"{message.text} {described}" if described else message.text).strip()


def as_conversation(
    messages: Sequence[StoredMessage],
    *,
    quoted: Mapping[str, StoredMessage],
    people: Mapping[str, str],
    zone: tzinfo | None = None,
) -> str:
    """Return a line 'name: text' for each message with content of its own; the total length is bounded.

    Quoted text is attributed to its author, never to the sender. `quoted`: messages by id that others reply to.
    `people`: sender ids to names. `zone`: each line begins with its time in this zone; None shows no times.
    """
    most = _share([len(message.text) for message in messages], CONVERSATION_CHARACTERS)
    lines = ((message, _line(message, quoted, people, most)) for message in messages)
    return neutral(
        "\n".join(f"[{stamp(message.at, zone)}] {line}" if zone else line for message, line in lines if line)
    )


def stamp(at: datetime, zone: tzinfo) -> str:
    """Return the time as a model reads it, with the day of the week."""
    local = at.astimezone(zone)
    return f"{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}"


def without_times(conversation: str) -> str:
    """Return the lines of `as_conversation` without their times."""
    return _STAMP.sub("", conversation)


def _share(lengths: Sequence[int], whole: int) -> int:
    """Return the length up to which each text is shown, so that all of them together keep within `whole`. What short
    ones leave goes to the long ones in equal parts."""
    left = whole
    for place, length in enumerate(sorted(lengths)):
        even = left // (len(lengths) - place)
        if length > even:
            return even
        left -= length
    return whole


def name_of(message: StoredMessage, people: Mapping[str, str]) -> str:
    """Return the sender's name: that of the message, else of the room, else the id."""
    known = people.get(message.sender_id, "")
    name = message.sender_name or (known if known != INJECTED_NAME else "") or message.sender_id
    return truncate(_flat(name), _NAME_CHARACTERS)


def is_injected(message: Message) -> bool:
    """Return True if roomlore wrote it for a model."""
    if (message.metadata and message.metadata.get(INJECTED)) or message.sender_name == INJECTED_NAME:
        return True
    return _is_summary(message.text, labelled=message.role is Role.SYSTEM)


def _is_summary(text: str, *, labelled: bool) -> bool:
    """Return True if the text is a summary. `labelled`: True if a label alone is enough; a person may begin a text with
    it."""
    return text.lstrip().startswith(CHECKPOINT_MARK) or (labelled and bool(_LABELLED.match(text)))


def _without_blocks(text: str) -> str:
    """Remove blocks of memories, which begin and end with a tag. One without an end extends to the end of the text if
    it begins a line; otherwise it is ordinary text such as `#include <memory>`."""
    if "<" not in text:
        return text
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
    text = with_names(own_words(message), people, message.mentions)
    parts = split_quotes(truncate(text, characters))
    first = next((part for part in parts if isinstance(part, Quotation)), None)
    original = quoted.get(message.reply_to or "")
    shown = [_shown(part, original if part is first else None, people) for part in parts]
    name, quotation = name_of(message, people), shown.pop(0) if parts[0] is first else ""
    rest = " ".join(filter(None, shown))
    who = f"{name} {quotation}" if quotation else name
    return f"{who}: {rest}" if rest else who if quotation else ""


def _shown(part: Quotation | str, original: StoredMessage | None, people: Mapping[str, str]) -> str:
    """Return a part of a message as shown; '' for a quotation of what roomlore wrote."""
    if isinstance(part, str):
        return _flat(part)
    ours = original is not None and bool(original.text) and not own_words(original)
    if ours or _is_summary(part.text, labelled=False):
        return ""
    author, text = _credited(part, original, people)
    inside = truncate(_flat(text), _QUOTED_CHARACTERS).replace('"', "'")
    return f'(re {author}: "{inside}")' if inside else ""


def _credited(quotation: Quotation, original: StoredMessage | None, people: Mapping[str, str]) -> tuple[str, str]:
    """Return the author and text of a quotation: the author of the message replied to, the one the quotation names,
    else "somebody"."""
    if original is not None:
        return name_of(original, people), quotation.text
    if quotation.author:
        return _flat(quotation.author), quotation.text
    author, rest = named_author(quotation.text)
    known = {fold(name) for pair in people.items() for name in pair if name}
    return (author, rest) if author and fold(author) in known else ("somebody", quotation.text)


def _flat(text: str) -> str:
    return " ".join(text.split())
