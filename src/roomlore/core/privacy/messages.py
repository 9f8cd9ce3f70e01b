"""What others said, without what it takes over from one person."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roomlore.core.models import MessageFeatures, ReplyInfo, StoredMessage
from roomlore.core.plain import is_id
from roomlore.core.privacy.copies import without_copies
from roomlore.core.privacy.traces import Traces, cut_out, mark


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed, names of fields too; a number that may be an id where it is one."""
    if isinstance(value, str):
        return change(value)
    if is_id(value):
        changed = change(str(value))
        return value if changed == str(value) else changed
    if isinstance(value, Mapping):
        return {change(name): each_text(one, change) for name, one in value.items()}
    return [each_text(one, change) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Taken:
    """What one message of somebody else has taken over from the person.

    `answered`: texts of the person's that the platform, a turn or a quotation links it to. `counts`: whether a passage
    was the person's by then. `linked`: passages count wherever they stand, else in quotations alone. `called`: it
    mentions the person by '@name'. `named`: its mentions or its reply link name the person.
    """

    answered: Sequence[str] = ()
    counts: Callable[[str], bool] = lambda _: True
    linked: bool = False
    called: bool = False
    named: bool = False

    def redact(self, text: str, traces: Traces) -> str:
        """Return the text with a mark in the place of what was taken over."""
        text = without_copies(text, self.answered)
        passages = traces.repeats if self.linked else traces.quotes
        calls = traces.calls(text) if self.called else ()
        return cut_out(text, [*traces.ids(text, named=self.named), *calls, *passages(text, self.counts)])


def without_person(message: StoredMessage, traces: Traces, *, taken: Taken, gone: Container[str]) -> StoredMessage:
    """Somebody else's message without the person.

    `gone`: ids of the person's messages in its room, which nothing refers to any more.
    """

    def change(text: str) -> str:
        return mark(text) if traces.is_named(text) else taken.redact(text, traces)

    return replace(
        message,
        text=taken.redact(message.text, traces),
        metadata=each_text(message.metadata, change),
        mentions=tuple(one for one in message.mentions if one != traces.user_id),
        reply_to=_kept(message.reply_to, traces, gone),
        root_id=_kept(message.root_id, traces, gone),
        turn_id=_kept(message.turn_id, traces, gone),
    )


def features_without(features: MessageFeatures, traces: Traces, *, gone: Container[str]) -> MessageFeatures:
    """What was read of somebody else's message, without the person."""
    return replace(
        features,
        mentions=_others(features.mentions, traces),
        addressed=_others(features.addressed, traces),
        partners=_others(features.partners, traces),
        reply=_reply_without(features.reply, traces, gone),
    )


def _kept(name: str | None, traces: Traces, gone: Container[str]) -> str | None:
    return None if name is None or name in gone or traces.named_in(name) else name


def _others(sender_ids: Sequence[str], traces: Traces) -> tuple[str, ...]:
    return tuple(one for one in sender_ids if one != traces.user_id)


def _reply_without(reply: ReplyInfo | None, traces: Traces, gone: Container[str]) -> ReplyInfo | None:
    if reply is None:
        return None
    theirs = reply.sender_id == traces.user_id or _kept(reply.message_id, traces, gone) != reply.message_id
    return replace(reply, message_id=None, sender_id=None) if theirs else reply
