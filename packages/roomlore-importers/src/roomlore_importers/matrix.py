"""Matrix events: Element's export of a room as JSON, answers of the server, and lists of events, one a line or one
document."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Position
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    as_list,
    read_json_lines,
    read_members,
    sniff_objects,
)
from roomlore_importers.shapes import attached, first_name, joined, name, named, obj, objects, spoken, words

_LAYOUT = Layout(
    streams=lambda path: path[-1:] in (("messages",), ("chunk",), ("events",)),
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "sender" in value and "type" in value,
    home=("messages", 0),
)
_SPOKEN = ("m.room.message", "m.sticker", "m.poll.start", "org.matrix.msc3381.poll.start")
_TOLD = ("name", "topic", "membership", "reason")
_MOST = 100_000
"""The most edits, reactions and names that are known to messages."""
_FALLBACK = lazy_pattern(r"> (?:\* )?<[^<>\n]{1,300}>[^\n]*\n(?:>[^\n]*\n)*\n?")
"""The words of the answered message, which clients put in front of an answer."""
_MATRIX_TO = lazy_pattern(r"https://matrix\.to/#/(@[^\"'<>\s?]{1,255})")
"""The address of a person, to which a mention leads in the HTML of a message."""


@dataclass(slots=True)
class _Later:
    """What events say of other events and of the room: edits by the id of what was edited, counts of reactions, the
    names of people, and the room's name and kind."""

    edits: dict[str, dict[str, Any]] = field(default_factory=dict)
    reactions: dict[str, Counter[str]] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    name: str = ""
    kind: RoomKind | None = None

    def learn(self, event: dict[str, Any]) -> None:
        content, kind, relation = obj(event.get("content")), event.get("type"), _relation(event)
        about, person = name(relation.get("event_id")), words(event.get("state_key"))
        if kind == "m.room.member" and len(self.people) < _MOST:
            self.people[person] = words(content.get("displayname")) or self.people.get(person, "")
        elif kind == "m.room.join_rules":
            self.kind = RoomKind.PUBLIC if content.get("join_rule") == "public" else RoomKind.PRIVATE
        elif kind == "m.room.name":
            self.name = words(content.get("name"))
        elif relation.get("rel_type") == "m.replace" and len(self.edits) < _MOST:
            self.edits[about] = event
        elif relation.get("rel_type") == "m.annotation" and len(self.reactions) < _MOST:
            self.reactions.setdefault(about, Counter())[words(relation.get("key"))] += 1


def _relation(event: dict[str, Any]) -> dict[str, Any]:
    return obj(obj(event.get("content")).get("m.relates_to"))


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of the rooms; the room is the room's id. Edits and reactions are read first, so each message
    has its latest words; the events that brought them are no messages of their own."""
    later = _Later()
    with source.looked_at():
        for member in _members(source, None):
            if isinstance(member, Member):
                later.learn(_clear(member))
    for member in _members(source, resume_from):
        item = _parsed(member, source, options, later) if isinstance(member, Member) else member
        if item is not None:
            yield item


def _members(source: Source, resume_from: Position | None) -> Iterator[Member | Bad]:
    if sniff_objects(source) is not None:
        return read_json_lines(source, resume_from)
    return read_members(source, as_list(source, _LAYOUT), resume_from, _note)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path == ("room_name",):
        facts["name"] = name(event.value)


def _clear(member: Member) -> dict[str, Any]:
    """Return the event, of an encrypted one what was decrypted, where a client keeps both."""
    return obj(member.value.get("decrypted")) or member.value


def _parsed(member: Member, source: Source, options: Options, later: _Later) -> Item | None:
    event = _clear(member)
    kind, sender, own_id = words(event.get("type")), name(event.get("sender")), name(event.get("event_id"))
    content, unsigned, relation = obj(event.get("content")), obj(event.get("unsigned")), _relation(event)
    if not kind or not sender:
        return member.bad("neither type nor sender: not an event of Matrix")
    gone = bool(obj(unsigned.get("redacted_because")))
    if kind == "m.room.encrypted" and not gone:
        return member.bad("an encrypted event that the client could not read")
    if kind == "m.reaction" or relation.get("rel_type") == "m.replace":
        return None
    edit = later.edits.get(own_id) or obj(obj(unsigned.get("m.relations")).get("m.replace"))
    latest = obj(obj(edit.get("content")).get("m.new_content")) or content
    thread, is_said = relation.get("rel_type") == "m.thread", kind in _SPOKEN
    fallback = thread and relation.get("is_falling_back") is True
    answers = "" if fallback else name(obj(relation.get("m.in_reply_to")).get("event_id"))
    called = member.facts.get("name") or later.name
    return spoken(
        member.position,
        options,
        id=own_id or derived_id("matrix", event.get("origin_server_ts"), sender, content),
        room=name(event.get("room_id")) or source.stem,
        sender=sender,
        called=later.people.get(sender, ""),
        text=_text(latest, bool(answers)) if is_said else _notice(event, later),
        at=event.get("origin_server_ts"),
        role=Role.USER if is_said else Role.SYSTEM,
        deleted=gone,
        edited=None if gone else edit.get("origin_server_ts"),
        answers=answers,
        root=name(relation.get("event_id")) if thread else "",
        mentions=_mentions(latest),
        held=[_held(latest)] if is_said else [],
        facts=named(RoomFacts(later.kind) if later.kind else None, called),
        moves=_moves(event),
        deletes=first_name(event.get("redacts"), content.get("redacts")) if kind == "m.room.redaction" else "",
        reactions=dict(later.reactions.get(own_id, {})),
        action=content.get("msgtype") == "m.emote",
    )


def _poll(content: dict[str, Any]) -> dict[str, Any]:
    return obj(content.get("m.poll.start") or content.get("org.matrix.msc3381.poll.start"))


def _words_of(value: object) -> str:
    told = obj(value)
    return first_name(told.get("body"), told.get("org.matrix.msc1767.text"), told.get("m.text"))


def _text(content: dict[str, Any], answered: bool) -> str:
    body = words(content.get("body"))
    if answered and (fallback := _FALLBACK.match(body)):
        body = body[fallback.end() :]
    if _poll(content):
        return _words_of(_poll(content).get("question"))
    holds = content.get("url") or content.get("file") or content.get("geo_uri")
    return body if not holds or words(content.get("filename")) not in ("", body) else ""


def _held(content: dict[str, Any]) -> dict[str, Any]:
    if geo := words(content.get("geo_uri")):
        return attached(kind="location", caption=geo.removeprefix("geo:").partition(";")[0])
    if poll := _poll(content):
        return attached(kind="poll", caption=joined(map(_words_of, objects(poll.get("answers"))), ", "))
    if not (url := first_name(content.get("url"), obj(content.get("file")).get("url"))):
        return {}
    kind, called = (
        words(content.get("msgtype")).removeprefix("m."),
        first_name(content.get("filename"), content.get("body")),
    )
    return attached(kind=kind or "sticker", name=called, mime_type=obj(content.get("info")).get("mimetype"), url=url)


def _notice(event: dict[str, Any], later: _Later) -> str:
    """Return what happened, to whom, and its words."""
    content, person = obj(event.get("content")), words(event.get("state_key"))
    what = re.sub(r"[_.]", " ", words(event.get("type")).removeprefix("m.room.").removeprefix("m."))
    return joined((what, later.people.get(person) or person, *(words(content.get(key)) for key in _TOLD)))


def _mentions(content: dict[str, Any]) -> list[str]:
    mentioned = obj(content.get("m.mentions")).get("user_ids")
    if isinstance(mentioned, list):
        return [user for user in mentioned if isinstance(user, str)]
    html = words(content.get("formatted_body")).rpartition("</mx-reply>")[2]
    return _MATRIX_TO.findall(html.replace("%40", "@").replace("%3A", ":"))


def _moves(event: dict[str, Any]) -> list[Move]:
    """Return who came or went: a change of name is a member event too."""
    earlier = first_name(
        *(obj(obj(place).get("prev_content")).get("membership") for place in (event.get("unsigned"), event))
    )
    now, person = obj(event.get("content")).get("membership"), words(event.get("state_key"))
    if event.get("type") != "m.room.member" or now == earlier:
        return []
    came, went = now == "join", now in ("leave", "ban") and earlier in ("join", "")
    return [Move(person, came)] if came or went else []
