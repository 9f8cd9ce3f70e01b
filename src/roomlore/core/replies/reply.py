"""The events of a reply, the ids of its messages, and what is stored beside them; and the conversation that a client of
OpenAI's protocol sends, compared with what a room has stored.

Such a client sends the messages so far with every request, and none of them has an id. What is stored already is found
by its words and its order. The rest gets ids that follow from the message before it, so that the same request again
means the same messages.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roomlore.core.attachments import MOST_READ, count_of, kind_of
from roomlore.core.audience import RoomKind, RoomPeople
from roomlore.core.chat import FinishReason, ToolCall, Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import content_hash, normalised
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.text import truncate


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call. `parameters`: a JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as text for the model."""

    tool_call_id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted:
    """The event before the model is called: the prompt is ready. `context_id`: for feedback; None if no context was
    built.

    `messages`: how many of the room's messages the prompt contains. `prompt_tokens`: its size as counted locally.
    `truncated`: a part did not fit the model's window. `degraded`: the reason for a simpler context than asked for,
    None if there is none.
    """

    message_id: str
    reply_id: str
    model_id: str
    context_id: str | None
    messages: int
    prompt_tokens: int
    truncated: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class ReplyText:
    """The next piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolsWanted:
    """The event for requested tool calls. If the caller runs them, the reply continues when their results are given for
    the same message."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolDone:
    """The event for a tool that was called here."""

    call: ToolCall
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply, the last event of its stream; stored, unless `degraded` says otherwise.

    `text`: all of it, including the closing sentence of an interrupted one. `finish_reason`: 'tool_calls' if the caller
    has to call tools, and nothing is stored as a reply yet. `usage`: of all model calls for it, as the provider counts.
    `repeated`: the message was replied to before, and this is the earlier reply. `degraded`: the reason why the reply
    was made from less than asked for, or is not stored yet; None if there is none.
    """

    message_id: str
    reply_id: str
    text: str
    finish_reason: FinishReason | None
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model: str = ""
    context_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    repeated: bool = False
    degraded: str | None = None


ReplyEvent = ReplyStarted | ReplyText | ToolsWanted | ToolDone | Reply


REPLY = "roomlore_reply"
"""The metadata key of every message that the reply loop writes."""
BROKEN_OFF = "broken_off"
MAX_ROUNDS = 100
_GENERATIONS = 20


def reply_ids(message_id: str, agent_id: str) -> list[str]:
    """Return the ids that the agent's reply to a message may have: the first one, and those after a reply was
    deleted."""
    named = f"{message_id}\x00{agent_id}".encode("utf-8", "surrogatepass")
    first = "reply-" + hashlib.sha256(named).hexdigest()[:32]
    return [first, *(f"{first}-{again}" for again in range(2, _GENERATIONS + 1))]


def calls_id(reply_id: str, number: int) -> str:
    """Return the id of the message with the tool calls of a round, counted from 0."""
    return f"{reply_id}.{number}"


def result_id(reply_id: str, number: int, place: int) -> str:
    """Return the id of the message with the result of the tool at this index of a round."""
    return f"{reply_id}.{number}.{place}"


def about(message: StoredMessage) -> Mapping[str, Any]:
    """Return the reply loop's metadata of a message, {} if it wrote none."""
    reply_facts = message.metadata.get(REPLY)
    return reply_facts if isinstance(reply_facts, Mapping) else {}


def calls_as_json(calls: tuple[ToolCall, ...]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def calls_of(message: StoredMessage) -> tuple[ToolCall, ...]:
    """Return the tool calls of a message."""
    return tuple(ToolCall(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in about(message).get("calls", ()))


def usage_of(message: StoredMessage) -> Usage:
    kept = about(message)
    return Usage(int(kept.get("input_tokens", 0)), int(kept.get("output_tokens", 0)))


def said_before(message_id: str, reply: StoredMessage) -> Reply:
    """Return the stored reply to the message, for a repeated request."""
    kept = about(reply)
    return Reply(
        message_id=message_id,
        reply_id=reply.id,
        text=reply.text,
        finish_reason=kept.get("finish_reason"),
        usage=usage_of(reply),
        provider=str(kept.get("provider", "")),
        model=str(kept.get("model", "")),
        context_id=kept.get("context_id"),
        repeated=True,
    )


def is_same(stored: StoredMessage, given: Message) -> bool:
    """Return True if both are the same message. A turn or a time that one of them lacks is ignored: a bot may have
    stored the message before it asks for a reply, or its session added the missing values."""
    turn = given.turn_id if stored.turn_id and given.turn_id else stored.turn_id
    timeless = given.sent_at is None or stored.sent_at_estimated
    sent_at = stored.sent_at if timeless else given.sent_at
    completed = replace(given, turn_id=turn, sent_at=sent_at)
    if isinstance(completed, StoredMessage):
        completed = replace(completed, sent_at_estimated=False)
    return content_hash(normalised(completed)) == content_hash(replace(stored, sent_at_estimated=False))


_NO_AGENTS = {Role.SYSTEM.value, Role.TOOL.value}


def is_one_to_one(room: RoomPeople, spoke: Collection[str], agent_id: str) -> bool:
    """Return True for a direct room, and for one of unknown kind with one person and at most one agent. `spoke`: the
    ids of all who spoke, agents too. `agent_id`: the agent that replies, whose messages a bot may store without their
    role."""
    if room.kind is None:
        people = room.people.keys() - {agent_id}
        return len(people) == 1 and len({*spoke} - people - _NO_AGENTS) <= 1
    return room.kind is RoomKind.DIRECT


MAX_EARLIER = 200
"""The most earlier messages of a client that are compared; those before them are left out."""
_SYSTEM = ("system", "developer")
_BETWEEN = "\n\n"
_TEXTS = ("text", "refusal")
_LONGEST_FILE_NAME = 200


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as a client sent it. `name`: who said it, '' if the client does not say. `held`: its pictures,
    recordings and files, as `metadata.attachments` has them, without their content."""

    role: Role
    text: str
    name: str = ""
    held: tuple[Mapping[str, str], ...] = ()


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
        raise InvalidInput("messages_without_user")
    last = users[-1]
    after = [message for message in read[last + 1 :] if message["role"] not in _SYSTEM]
    if after and after[-1]["role"] != "tool":
        raise InvalidInput("messages_end_with_assistant")
    system = [str(message["text"]) for message in read if message["role"] in _SYSTEM]
    return Conversation(
        system=_BETWEEN.join(system) if system else None,
        earlier=tuple(_sent_of(read[:last])),
        asked=Sent(Role.USER, read[last]["text"], read[last]["name"], read[last]["held"]),
        results=tuple(ToolResult(part["call"], part["text"]) for part in after if part["role"] == "tool"),
    )


def _read(number: int, message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InvalidInput("messages_item_invalid", number=number)
    role, name = message.get("role"), message.get("name") or ""
    if role not in (*_SYSTEM, "user", "assistant", "tool"):
        raise InvalidInput("messages_role_unknown", number=number, role=f"{role!r:.60}")
    if not isinstance(name, str):
        raise InvalidInput("messages_name_not_text", number=number)
    call = message.get("tool_call_id") or ""
    if role == "tool" and not (isinstance(call, str) and call):
        raise InvalidInput("messages_call_missing", number=number)
    texts, held = _parts(number, message.get("content"))
    if role not in ("user", "assistant"):
        texts += [f"[{part['type']}]" for part in held]
    return {
        "role": role,
        "name": name,
        "text": "\n".join(texts),
        "held": tuple(held),
        "call": call,
        "calls": bool(message.get("tool_calls")),
    }


def _parts(number: int, content: Any) -> tuple[list[str], list[dict[str, str]]]:
    """Return the texts of a content, and what it holds beside them."""
    if content is None or isinstance(content, str):
        return [content or ""], []
    if not isinstance(content, list):
        raise InvalidInput("messages_content_invalid", number=number)
    texts, held = list[str](), list[dict[str, str]]()
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get(kind) if kind in _TEXTS else ""
        if not isinstance(kind, str) or not isinstance(text, str):
            raise InvalidInput("messages_part_invalid", number=number, part=f"{part!r:.60}")
        if kind in _TEXTS:
            texts.append(text)
        elif len(held) < MOST_READ:
            held.append(_held(kind, part.get(kind)))
    return texts, held


def _held(kind: str, content: Any) -> dict[str, str]:
    """Return a part that is no text as an attachment. Its content is left out."""
    file = content if isinstance(content, Mapping) else {}
    name = truncate(file["filename"], _LONGEST_FILE_NAME) if isinstance(file.get("filename"), str) else ""
    return {"type": kind_of(kind), **({"name": name} if name else {})}


def _sent_of(messages: Sequence[Mapping[str, Any]]) -> Iterator[Sent]:
    """Yield what people and the assistant said. The texts around tool calls are one answer, as they are stored."""
    answer: list[Mapping[str, Any]] = []
    calling = False
    for message in messages:
        there = bool(message["text"].strip() or message["held"])
        if message["role"] == "assistant":
            if answer and not calling:
                yield _answer(answer)
                answer = []
            answer += [message] if there else []
            calling = message["calls"]
        elif message["role"] == "user":
            if answer:
                yield _answer(answer)
            answer, calling = [], False
            if there:
                yield Sent(Role.USER, message["text"], message["name"], message["held"])
    if answer:
        yield _answer(answer)


def _answer(parts: Sequence[Mapping[str, Any]]) -> Sent:
    text = _BETWEEN.join(part["text"] for part in parts if part["text"].strip())
    return Sent(Role.ASSISTANT, text, held=tuple(held for part in parts for held in part["held"]))


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
    question = _message(conversation.asked, who, before, is_question=True)
    known = next((m for m in stored if m.id == question.id), None)
    if known is None and again and not who.message_id:
        known = _said_last(conversation.asked, talk, who.speaker_id)
    return Matched(known or question, tuple(new), tuple(shown))


def _message(sent: Sent, who: Speaking, before: str, *, is_question: bool = False) -> Message:
    """Return a message of its own, whose id follows from the message before it."""
    if sent.role is Role.ASSISTANT:
        sender, name = who.agent_id, who.agent_name
    elif is_question or not sent.name or sent.name == who.speaker_name:
        sender, name = who.speaker_id, who.speaker_name
    else:
        sender = name = sent.name
    identity = "\x00".join((before, sent.role.value, sender, sent.text, *(part["type"] for part in sent.held)))
    own = who.message_id if is_question else ""
    return Message(
        id=own or "chat-" + hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        room_id=who.room_id,
        sender_id=sender,
        sender_name=name,
        role=sent.role,
        text=sent.text,
        metadata={"attachments": list(sent.held)} if sent.held else {},
    )


def _said_last(sent: Sent, talk: Sequence[StoredMessage], speaker_id: str) -> StoredMessage | None:
    wanted = _words(sent.role, sent.text, len(sent.held))
    theirs = (m for m in reversed(talk) if m.sender_id == speaker_id)
    return next((m for m in theirs if _words(m.role, m.text, count_of(m)) == wanted), None)


def _words(role: Role, text: str, held: int) -> tuple[Role, str, int]:
    return role, " ".join(text.split()), held


def _places(earlier: Sequence[Sent], talk: Sequence[StoredMessage]) -> list[int | None]:
    """Return where each earlier message is stored: the longest common subsequence, as late as possible (the method of
    Hunt and Szymanski, from the end)."""
    # Places in falling order for each text, counted from the end, so that each text takes one place of a sequence.
    by_words: dict[tuple[Role, str, int], list[int]] = {}
    for place in range(len(talk)):
        words = _words(talk[place].role, talk[place].text, count_of(talk[place]))
        by_words.setdefault(words, []).append(len(talk) - 1 - place)
    ends: list[int] = []
    links: list[tuple[int, int, Any]] = []
    for number in reversed(range(len(earlier))):
        sent = earlier[number]
        for place in by_words.get(_words(sent.role, sent.text, len(sent.held)), ()):
            at = bisect_left(ends, place)
            link = (number, place, links[at - 1] if at else None)
            if at == len(ends):
                ends.append(place)
                links.append(link)
            else:
                ends[at], links[at] = place, link
    places: list[int | None] = [None] * len(earlier)
    chain = links[-1] if links else None
    while chain:
        number, place, chain = chain
        places[number] = len(talk) - 1 - place
    return places
