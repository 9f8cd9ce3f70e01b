"""Compare a message of an export with the stored one that has its id, and a chat of an export with stored rooms."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from itertools import chain, count
from typing import Any

from roomlore.core.attachments import as_submitted, attachments_of, caption_of
from roomlore.core.intake import is_estimated
from roomlore.core.json_values import texts_in
from roomlore.core.models import Message, Origin, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.privacy import count_marks


class Again(Enum):
    """The relation of an exported message to the stored one.

    `SAME`: the stored one has all that an edit changes. `EDITED`: its sender edited it since. `OLDER`: the stored one
    was edited since. `REDACTED`: words of a forgotten person were removed from the stored one. `OTHER`: another
    message, or nobody can tell.
    """

    SAME = auto()
    EDITED = auto()
    OLDER = auto()
    REDACTED = auto()
    OTHER = auto()


def compared(stored: StoredMessage, message: Message) -> Again:
    """Return what a message of an export is to the stored one with its id and another content."""
    if stored.sender_id != message.sender_id or not _same_time(_sent_at_of(stored), _sent_at_of(message)):
        return Again.OTHER
    if _marks(stored) > _marks(message):
        return Again.REDACTED
    was, edited = stored.edited_at, message.edited_at if isinstance(message, StoredMessage) else None
    if edited is not None and (was is None or was < edited):
        return Again.EDITED
    if was is not None and was != edited:
        return Again.OLDER
    same = stored.text == message.text and (bool(message.text.strip()) or caption_of(stored) == caption_of(message))
    return Again.SAME if same or _is_read_anew(stored, message) else Again.OTHER


def _is_read_anew(stored: StoredMessage, message: Message) -> bool:
    """Return True if another reader or an earlier importer had the same before it: it is a notice of the platform,
    which a bot and an export word otherwise, its id was made of what stands there, or words were kept that are an
    attachment."""
    if stored.role is message.role is Role.SYSTEM or _DERIVED.fullmatch(message.id):
        return True
    held = bool(attachments_of(message)) and not message.text.strip()
    return held and _words(caption_of(message)) <= _words(f"{stored.text} {caption_of(stored)}")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def metadata_after(stored: StoredMessage, message: Message) -> Mapping[str, Any]:
    """Return the metadata of an edited message. What was said here of attachments stays if they are the same."""
    kept, new = ({"attachments": version.metadata.get("attachments")} for version in (stored, message))
    return (
        {**message.metadata, **kept}
        if kept["attachments"] and as_submitted(kept) == as_submitted(new)
        else message.metadata
    )


def _marks(message: Message) -> int:
    return sum(map(count_marks, (message.text, *texts_in(message.metadata))))


def _sent_at_of(message: Message) -> datetime | None:
    """Return when the message was sent, None if that is an estimate."""
    return None if is_estimated(message) else message.sent_at


def _same_time(moment: datetime | None, other: datetime | None) -> bool:
    return moment is None or other is None or moment == other


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """A stored room compared with a chat of an export.

    `read`: messages that were read of the chat. `shared`: those of them that the room has or had. `meanwhile`: messages
    of the room from the time of the export. `speakers`: how many people spoke in the room or in the export, whichever
    is less. `common`: people who spoke in both. `earlier`: True if the room has messages from before the chat was
    created, as the export tells.
    """

    read: int
    shared: int
    meanwhile: int
    speakers: int = 0
    common: int = 0
    earlier: bool = False

    @property
    def is_same(self) -> bool:
        """True if the room holds this chat: they share most of the messages that both could have."""
        return self.shared * 2 > min(self.read, self.meanwhile)

    @property
    def may_continue(self) -> bool:
        """True if the room may be an earlier or later part of the chat."""
        return self.meanwhile == 0 and not self.earlier and (self.common > 0 or self.speakers < _STRANGERS)

    @property
    def is_known(self) -> bool:
        """True if most of the people who spoke are the same: the room has another part of the chat."""
        return self.may_continue and self.common * 2 > self.speakers


_STRANGERS = 3
"""If at least as many people spoke in each of two rooms, and nobody in both, these are of different chats."""


def room_for(name: str, wanted: str, stored: Mapping[str, Likeness], taken: Collection[str]) -> str:
    """Return the id of the room for a chat of which an export has no id, only a name.

    It is the stored room that holds the chat, else the one that has another part of it by its people. Else it is the
    first of `wanted`, 'Family (2)', 'Family (3)' and so on that is new or may be continued. `taken`: rooms of other
    chats, which are not continued.
    """
    same = [room_id for room_id, likeness in stored.items() if likeness.is_same]
    if same:
        return max(same, key=lambda room_id: (stored[room_id].shared, room_id == wanted))
    known = [room_id for room_id, likeness in stored.items() if likeness.is_known and room_id not in taken]
    if known:
        return max(known, key=lambda room_id: (stored[room_id].common, room_id == wanted))
    numbered = (f"{name} ({number})" for number in count(2))
    return next(
        room_id
        for room_id in chain((wanted,), numbered)
        if room_id not in taken and (room_id not in stored or stored[room_id].may_continue)
    )


_DERIVED = lazy_pattern(r"x[0-9a-f]{24}(-\d+)?")
"""An id that an importer makes of the message itself."""
# A run of letters and figures.
_WORD = lazy_pattern(r"\w+")


def is_shared(message: Message, stored: Origin | None) -> bool:
    """Return True if a message of an export is the stored one that has its id. Many exports have ids such as 1 and 2,
    so the sender and the time, if it is told, must be equal too."""
    if stored is None or _DERIVED.fullmatch(message.id):
        return stored is not None
    return message.sender_id == stored.sender_id and message.sent_at in (None, stored.at)
