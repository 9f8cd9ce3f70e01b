"""A conversation as turns, and turns as text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roomlore.core.models import Role, StoredMessage
from roomlore.core.sessions.models import Language, SessionMessage
from roomlore.core.text import language

_SUMMARY = {"zh": "历史摘要: ", "en": "Summary: "}
_LABELS = {
    "zh": {Role.USER: "用户", Role.ASSISTANT: "助手", Role.SYSTEM: "系统", Role.TOOL: "工具"},
    "en": {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.SYSTEM: "System", Role.TOOL: "Tool"},
}
_TAKEN = {name.casefold() for labels in _LABELS.values() for name in labels.values()} | {"summary", "历史摘要"}
_FIRST_MESSAGES = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that belong together, in order of arrival; never none."""

    messages: tuple[SessionMessage, ...]

    @property
    def first(self) -> int:
        """Arrival of its first message."""
        return self.messages[0].arrival

    @property
    def last(self) -> int:
        return self.messages[-1].arrival


def shown(message: StoredMessage) -> SessionMessage:
    """The message as a session shows it; a picture's caption stands for its missing text."""
    caption = message.metadata.get("caption", "")
    return SessionMessage(
        arrival=message.arrival,
        id=message.id,
        role=message.role,
        name=" ".join(message.sender_name.split()) if message.role is Role.USER else "",
        text=message.text or (caption if isinstance(caption, str) else ""),
        turn_id=message.turn_id,
    )


def turns_of(messages: Iterable[SessionMessage]) -> list[Turn]:
    """Messages in order of arrival as turns, in the order they began.

    Messages with one turn id are one turn, wherever they stand. Without an id a user's message begins a turn and
    everything else joins the turn that began last.
    """
    groups: list[list[SessionMessage]] = []
    by_id: dict[str, list[SessionMessage]] = {}
    for message in messages:
        group = by_id.get(message.turn_id) if message.turn_id else _open_turn(message, groups)
        if group is None:
            group = []
            groups.append(group)
        if message.turn_id:
            by_id[message.turn_id] = group
        group.append(message)
    return [Turn(tuple(group)) for group in groups]


def _open_turn(message: SessionMessage, groups: list[list[SessionMessage]]) -> list[SessionMessage] | None:
    return None if message.role is Role.USER or not groups else groups[-1]


def flat(turns: Iterable[Turn]) -> list[SessionMessage]:
    """The messages of the turns in order of arrival."""
    return sorted((message for turn in turns for message in turn.messages), key=lambda message: message.arrival)


def language_of(messages: Sequence[SessionMessage]) -> Language:
    """The language of a conversation, by its first messages, so that it does not change as the conversation goes on."""
    return language("\n".join(message.text[:2000] for message in messages[:_FIRST_MESSAGES]))


def summary_line(summary: str, tongue: Language) -> str:
    """The summary as it begins a history: 'Summary: ...' or '历史摘要: ...'."""
    return _SUMMARY[tongue] + summary


def speaker(message: SessionMessage, tongue: Language) -> str:
    """Who speaks: a user with a name is called by it, unless that is what others are called."""
    label = _LABELS[tongue][message.role]
    return label if not message.name or message.name.casefold() in _TAKEN else message.name


def lines(messages: Iterable[SessionMessage], tongue: Language) -> Iterator[str]:
    """Each message that has a text as 'Speaker: text'."""
    for message in messages:
        if message.text:
            yield f"{speaker(message, tongue)}: {message.text}"


def as_text(summary: str, messages: Iterable[SessionMessage], tongue: Language) -> str:
    """The summary, if any, and the messages, a line each."""
    head = [summary_line(summary, tongue), ""] if summary else []
    return "\n".join([*head, *lines(messages, tongue)])


def as_chat(summary: str, messages: Iterable[SessionMessage], tongue: Language) -> tuple[dict[str, str], ...]:
    """The same as role and content. What a tool said has the role `assistant`: chat models take the role `tool` only
    beside the call it answers. Some refuse a message without content, so one without a text is left out."""
    head = [{"role": "system", "content": summary_line(summary, tongue)}] if summary else []
    said = [{"role": _chat_role(message.role), "content": message.text} for message in messages if message.text]
    return (*head, *said)


def _chat_role(role: Role) -> str:
    return Role.ASSISTANT.value if role is Role.TOOL else role.value
