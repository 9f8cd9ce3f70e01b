"""Matrix events: Element's export of a room as JSON, answers of the server, and lists of events, one a line or one
document."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source
from roomlore_importers.json_stream import Event, Facts, Layout, Member, read_json_lines, read_members, sniff_objects
from roomlore_importers.shapes import attached, first_name, joined, kept, name, named, obj, words

_LAYOUT = Layout(
    streams=lambda path: path[-1:] in (("messages",), ("chunk",), ("events",)) or path == (),
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "sender" in value and "type" in value,
    home=("messages", 0),
)
_INSIDE = Layout(
    streams=lambda path: path[-1:] in (("messages",), ("chunk",), ("events",)),
    start=_LAYOUT.start,
    plausible=_LAYOUT.plausible,
    home=_LAYOUT.home,
)
_SPOKEN = ("m.room.message", "m.sticker", "m.poll.start", "org.matrix.msc3381.poll.start")
_TOLD = ("name", "topic", "membership", "displayname", "join_rule", "alias")
_MOST = 100_000
"""The most edits, reactions and names that are known to messages."""
_FALLBACK = lazy_pattern(r"> (?:\* )?<[^<>\n]{1,300}>[^\n]*\n(?:>[^\n]*\n)*\n?")
"""The words of the answered message, which clients put in front of an answer."""
_MATRIX_TO = lazy_pattern(r"https://matrix\.to/#/(@[^\"'<>\s?]{1,255})")
"""The address of a person, to which a mention leads in the HTML of a message."""


@dataclass(slots=True)
class _Later:
    """What events say of other events and of the room: edits by the id of what was edited, counts of reactions, the
    names of people, and the room's kind."""

    edits: dict[str, dict[str, Any]] = field(default_factory=dict)
    reactions: dict[str, Counter[str]] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    name: str = ""
    kind: RoomKind | None = None

    def learn(self, event: dict[str, Any]) -> None:
        content, kind = obj(event.get("content")), words(event.get("type"))
        relation, sender = _relation(content), words(event.get("sender"))
        about = name(relation.get("event_id"))
        if kind == "m.room.member" and len(self.people) < _MOST:
            self.people.setdefault(words(event.get("state_key")) or sender, "")
            if called := words(content.get("displayname")):
                self.people[words(event.get("state_key")) or sender] = called
        elif kind == "m.room.join_rules":
            self.kind = RoomKind.PUBLIC if content.get("join_rule") == "public" else RoomKind.PRIVATE
        elif kind == "m.room.name":
            self.name = words(content.get("name"))
        elif relation.get("rel_type") == "m.replace" and len(self.edits) < _MOST:
            self.edits[about] = event
        elif relation.get("rel_type") == "m.annotation" and len(self.reactions) < _MOST:
            self.reactions.setdefault(about, Counter())[words(relation.get("key"))] += 1


def _relation(content: dict[str, Any]) -> dict[str, Any]:
    return obj(content.get("m.relates_to"))


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of the rooms; the room is the room's id. Edits and reactions are read first, so each message
    has its latest words; the events that brought them are no messages of their own."""
    later = _Later()
    before = source.bytes_read, source.repaired
    for member in _members(source, None):
        if isinstance(member, Member):
            later.learn(_clear(member.value))
    source.bytes_read, source.repaired = before
    for member in _members(source, resume_from):
        item = _parsed(member, source, options, later) if isinstance(member, Member) else member
        if item is not None:
            yield item


def _members(source: Source, resume_from: Position | None) -> Iterator[Member | Bad]:
    if sniff_objects(source) is not None:
        return read_json_lines(source, resume_from)
    with source.open() as file:
        is_list = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return read_members(source, _LAYOUT if is_list else _INSIDE, resume_from, _note)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path == ("room_name",):
        facts["name"] = name(event.value)


def _clear(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event that was decrypted, where a client keeps both."""
    return obj(event.get("decrypted")) or event


def _parsed(member: Member, source: Source, options: Options, later: _Later) -> Item | None:
    event = _clear(member.value)
    content, kind, sender = obj(event.get("content")), words(event.get("type")), name(event.get("sender"))
    if not kind or not sender:
        return member.bad("neither type nor sender: not an event of Matrix")
    relation, own_id = _relation(content), name(event.get("event_id"))
    if kind == "m.reaction" or relation.get("rel_type") == "m.replace":
        return None
    room = options.room_id or name(event.get("room_id")) or member.facts.get("room") or source.stem
    redacts = first_name(event.get("redacts"), content.get("redacts")) if kind == "m.room.redaction" else ""
    gone = bool(obj(obj(event.get("unsigned")).get("redacted_because"))) and not content.get("body")
    edit = later.edits.get(own_id) or obj(obj(obj(event.get("unsigned")).get("m.relations")).get("m.replace"))
    latest = obj(obj(edit.get("content")).get("m.new_content")) or content
    spoken = kind in _SPOKEN
    if kind == "m.room.encrypted" and not gone:
        return member.bad("an encrypted event that the client could not read")
    thread = relation.get("rel_type") == "m.thread"
    answered = "" if thread and relation.get("is_falling_back") is True else name(obj(relation.get("m.in_reply_to")).get("event_id"))
    text = _text(latest, answered=bool(answered)) if spoken else _told(event, content, later)
    message = Message(
        id=own_id or f"{event.get('origin_server_ts')}-{sender}",
        room_id=room,
        sender_id=sender,
        sender_name=later.people.get(sender, ""),
        role=Role.USER if spoken and content.get("msgtype") != "m.server_notice" else Role.SYSTEM,
        text="" if gone else text,
        sent_at=parse_time(event.get("origin_server_ts")),
        reply_to=answered or None,
        root_id=name(relation.get("event_id")) or None if thread else None,
        mentions=_mentions(latest),
        metadata=kept({"deleted": gone} | _metadata(latest, later.reactions.get(own_id))) if spoken or gone else {},
    )
    facts = None if options.room_id else named(RoomFacts(later.kind) if later.kind else None, member.facts.get("name") or later.name)
    edited = parse_time(edit.get("origin_server_ts")) if edit and not gone else None
    return Parsed(message, member.position, edited_at=edited, room=facts, moves=_moves(event, content), deletes=redacts or None)


def _text(content: dict[str, Any], *, answered: bool) -> str:
    body = words(content.get("body"))
    if answered and (fallback := _FALLBACK.match(body)):
        body = body[fallback.end() :]
    if content.get("url") or content.get("file") or content.get("geo_uri"):
        called = words(content.get("filename"))
        return body if called and body != called else ""
    poll = obj(content.get("m.poll.start") or content.get("org.matrix.msc3381.poll.start"))
    return _words_of(poll.get("question")) if poll else body


def _words_of(value: object) -> str:
    question = obj(value)
    return first_name(question.get("body"), question.get("org.matrix.msc1767.text"), question.get("m.text"))


def _told(event: dict[str, Any], content: dict[str, Any], later: _Later) -> str:
    """Return a notice: what happened, to whom, and its words."""
    what = words(event.get("type")).removeprefix("m.room.").removeprefix("m.").replace("_", " ").replace(".", " ")
    person = words(event.get("state_key")) if event.get("state_key") != event.get("sender") else ""
    return joined((what, later.people.get(person) or person, *(words(content.get(key)) for key in _TOLD[:3]), words(content.get("reason"))))


def _mentions(content: dict[str, Any]) -> tuple[str, ...]:
    mentioned = obj(content.get("m.mentions")).get("user_ids")
    listed = [user for user in mentioned if isinstance(user, str)] if isinstance(mentioned, list) else None
    html = re.sub(r"<mx-reply>.*?</mx-reply>", "", words(content.get("formatted_body")), flags=re.DOTALL)
    return tuple(dict.fromkeys(listed if listed is not None else _MATRIX_TO.findall(html.replace("%40", "@").replace("%3A", ":"))))


def _metadata(content: dict[str, Any], reactions: Counter[str] | None) -> dict[str, Any]:
    kind, info = words(content.get("msgtype")), obj(content.get("info"))
    called = first_name(content.get("filename"), content.get("body"))
    held = []
    if content.get("url") or content.get("file"):
        url = first_name(content.get("url"), obj(content.get("file")).get("url"))
        held = [attached(kind=kind.removeprefix("m.") or "sticker", name=called, mime_type=info.get("mimetype"), url=url)]
    elif geo := words(content.get("geo_uri")):
        held = [attached(kind="location", caption=geo.removeprefix("geo:").partition(";")[0])]
    poll = obj(content.get("m.poll.start") or content.get("org.matrix.msc3381.poll.start"))
    if poll:
        held = [attached(kind="poll", caption=joined(map(_words_of, poll.get("answers") or ()), ", "))]
    caption = called if held and held[0].get("name") else ""
    return {"attachments": held, "caption": caption, "reactions": dict(reactions or {}), "action": kind == "m.emote"}


def _moves(event: dict[str, Any], content: dict[str, Any]) -> tuple[Move, ...]:
    """Return who came or went: a change of name is a member event too."""
    if event.get("type") != "m.room.member":
        return ()
    earlier = obj(obj(event.get("unsigned")).get("prev_content") or event.get("prev_content")).get("membership")
    now, person = content.get("membership"), words(event.get("state_key"))
    if not person or now == earlier or now not in ("join", "leave", "ban") or (now != "join" and earlier == "invite"):
        return ()
    return (Move(person, now == "join"),)
