"""A conversation as a client of OpenAI's protocol sends it, and its comparison with what a room has stored.

Such a client sends the messages so far with every request, and none of them has an id. What is stored already is found
by its words and its order. The rest gets ids that follow from the message before it, so that the same request again
means the same messages.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.replies.reply import ToolResult

MAX_EARLIER = 200
"""The most earlier messages of a client that are compared; those before them are left out."""
_SYSTEM = ("system", "developer")
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as a client sent it. `name`: who said it, '' if the client does not say."""

    role: Role
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A client's messages. `system`: its instructions, None if it sent none. `earlier`: what was said before the
    message to answer, `asked`. `results`: of the tools that were called for the answer."""

    system: str | None
    earlier: tuple[Sent, ...]
    asked: Sent
    results: tuple[ToolResult, ...]


def read_conversation(messages: Sequence[Any]) -> Conversation:
    """Read the `messages` of a request. Raise `InvalidInput` if they cannot be answered."""
    read = [_read(number, message) for number, message in enumerate(messages)]
    users = [number for number, message in enumerate(read) if message["role"] == "user"]
    if not users:
        raise InvalidInput("messages has none with the role user; send the message to answer.")
    last = users[-1]
    after = [message for message in read[last + 1 :] if message["role"] not in _SYSTEM]
    if after and after[-1]["role"] != "tool":
        raise InvalidInput(
            "The last of the messages is the assistant's; end with the user's, or with the results of tools."
        )
    system = [str(message["text"]) for message in read if message["role"] in _SYSTEM]
    return Conversation(
        system=_BETWEEN.join(system) if system else None,
        earlier=tuple(_said(read[:last])),
        asked=Sent(Role.USER, read[last]["text"], read[last]["name"]),
        results=tuple(ToolResult(one["call"], one["text"]) for one in after if one["role"] == "tool"),
    )


def _read(number: int, message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InvalidInput(f"messages[{number}] must be an object with role and content.")
    role, name = message.get("role"), message.get("name") or ""
    if role not in (*_SYSTEM, "user", "assistant", "tool"):
        raise InvalidInput(
            f"messages[{number}].role is {role!r:.60}; it is system, developer, user, assistant or tool."
        )
    if not isinstance(name, str):
        raise InvalidInput(f"messages[{number}].name must be a text.")
    call = message.get("tool_call_id") or ""
    if role == "tool" and not (isinstance(call, str) and call):
        raise InvalidInput(f"messages[{number}].tool_call_id is missing: name the call that this is the result of.")
    text = _text(number, message.get("content"))
    return {"role": role, "name": name, "text": text, "call": call, "calls": bool(message.get("tool_calls"))}


def _text(number: int, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidInput(f"messages[{number}].content must be a text or a list of parts.")
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get(kind) if kind in ("text", "refusal") else None
        if not isinstance(text, str):
            raise InvalidInput(
                f"messages[{number}].content has a part of the type {kind!r:.60}; only parts of text are understood. "
                "Put what a picture or a file says into words."
            )
        texts.append(text)
    return "\n".join(texts)


def _said(messages: Sequence[Mapping[str, Any]]) -> Iterator[Sent]:
    """Yield what people and the assistant said. The texts around tool calls are one answer, as they are stored."""
    answer: list[str] = []
    calling = False
    for message in messages:
        if message["role"] == "assistant":
            if answer and not calling:
                yield Sent(Role.ASSISTANT, _BETWEEN.join(answer))
                answer = []
            answer += [message["text"]] if message["text"].strip() else []
            calling = message["calls"]
        elif message["role"] == "user":
            if answer:
                yield Sent(Role.ASSISTANT, _BETWEEN.join(answer))
            answer, calling = [], False
            if message["text"].strip():
                yield Sent(Role.USER, message["text"], message["name"])
    if answer:
        yield Sent(Role.ASSISTANT, _BETWEEN.join(answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaking:
    """The room, the person who speaks there, and the agent that answers. `message_id`: the caller's own for the message
    to answer, '' if there is none."""

    room_id: str
    speaker_id: str
    speaker_name: str = ""
    agent_id: str
    agent_name: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """A conversation beside its room. `asked`: the message to answer, the stored one if it is there. `new`: earlier
    messages to store before it. `shown`: the ids of all earlier messages that the room has, or will have."""

    asked: Message
    new: tuple[Message, ...]
    shown: tuple[str, ...]


def matched(
    conversation: Conversation, stored: Sequence[StoredMessage], who: Speaking, *, whole: bool, again: bool
) -> Matched:
    """Compare a conversation with the newest messages of its room, in order of arrival.

    `whole`: these are all the room has; otherwise earlier messages that come before the first match may be stored
    further back, and are not stored again. `again`: the request was sent before, or continues one with the results of
    tools, so the message to answer is stored already if the room has it.
    """
    talk = [m for m in stored if m.role in (Role.USER, Role.ASSISTANT) and not m.has_tool_calls]
    earlier = conversation.earlier[-MAX_EARLIER:]
    places = _places(earlier, talk)
    first = min((number for number, place in enumerate(places) if place is not None), default=len(places))
    new: list[Message] = []
    shown: list[str] = []
    before = "" if earlier or not stored else stored[-1].id
    for number, (sent, place) in enumerate(zip(earlier, places, strict=True)):
        if place is not None:
            before = talk[place].id
            shown.append(before)
            continue
        made = _message(sent, who, before)
        before = made.id
        if whole or number > first:
            new.append(made)
            shown.append(made.id)
    asked = _message(conversation.asked, who, before, asked=True)
    known = next((m for m in stored if m.id == asked.id), None)
    if known is None and again and not who.message_id:
        known = _said_last(conversation.asked, talk, who.speaker_id)
    return Matched(known or asked, tuple(new), tuple(shown))


def _message(sent: Sent, who: Speaking, before: str, *, asked: bool = False) -> Message:
    """Return a message of its own, whose id follows from the message before it."""
    if sent.role is Role.ASSISTANT:
        sender, name = who.agent_id, who.agent_name
    elif asked or not sent.name or sent.name == who.speaker_name:
        sender, name = who.speaker_id, who.speaker_name
    else:
        sender = name = sent.name
    told = "\x00".join((before, sent.role.value, sender, sent.text)).encode("utf-8", "surrogatepass")
    own = who.message_id if asked else ""
    return Message(
        id=own or "chat-" + hashlib.sha256(told).hexdigest()[:32],
        room_id=who.room_id,
        sender_id=sender,
        sender_name=name,
        role=sent.role,
        text=sent.text,
    )


def _said_last(sent: Sent, talk: Sequence[StoredMessage], speaker_id: str) -> StoredMessage | None:
    wanted = _words(sent.role, sent.text)
    theirs = (m for m in reversed(talk) if m.sender_id == speaker_id)
    return next((m for m in theirs if _words(m.role, m.text) == wanted), None)


def _words(role: Role, text: str) -> tuple[Role, str]:
    return role, " ".join(text.split())


def _places(earlier: Sequence[Sent], talk: Sequence[StoredMessage]) -> list[int | None]:
    """Return where each earlier message is stored: the longest common subsequence, as late as possible (the method of
    Hunt and Szymanski, from the end)."""
    # Places in falling order for each text, counted from the end, so that each text takes one place of a sequence.
    by_words: dict[tuple[Role, str], list[int]] = {}
    for place in range(len(talk)):
        by_words.setdefault(_words(talk[place].role, talk[place].text), []).append(len(talk) - 1 - place)
    ends: list[int] = []
    links: list[tuple[int, int, Any]] = []
    for number in reversed(range(len(earlier))):
        for place in by_words.get(_words(earlier[number].role, earlier[number].text), ()):
            at = bisect_left(ends, place)
            link = (number, place, links[at - 1] if at else None)
            if at == len(ends):
                ends.append(place)
                links.append(link)
            else:
                ends[at], links[at] = place, link
    found: list[int | None] = [None] * len(earlier)
    chain = links[-1] if links else None
    while chain:
        number, place, chain = chain
        found[number] = len(talk) - 1 - place
    return found
