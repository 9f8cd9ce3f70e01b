"""ChatGPT's data export: `conversations.json`, each conversation a tree whose `current_node` is the end in use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore.importers.export_files import Options, Source, derived_id, excerpt
from roomlore.importers.json_stream import Event, JsonPath, Layout, Walker, place_of, walking
from roomlore.importers.shapes import attached, first_name, joined, kept, name, named, obj, objects, role, words

_HIDDEN = ("user_editable_context", "model_editable_context")
_LAYOUT = Layout(
    streams=lambda path: path[-1:] == ("mapping",),
    start=re.compile(r'\{\s*"(?:id|message|parent|children)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "message" in value and "parent" in value,
    home=(0, "mapping", ""),
    head=re.compile(r'\{\s*"(?:title|id|create_time)"\s*:[^{}\[\]]{0,2000}?"mapping"\s*:\s*\{'),
    head_home=(None,),
)

_ALONE = RoomFacts(RoomKind.DIRECT)
_Nodes: TypeAlias = dict[str, dict[str, Any]]


@dataclass(slots=True)
class _Conversation:
    """A conversation while its parts are read."""

    number: int
    before: dict[str, Any]
    facts: dict[str, str] = field(default_factory=dict)
    nodes: _Nodes = field(default_factory=dict)
    broken: list[Bad] = field(default_factory=list)
    whole: bool = False


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages on the way to each conversation's current node; the room is the conversation's id.

    Branches replaced by edits are left out, as are empty hidden messages.
    """
    start = {key: value for key, value in (resume_from or {}).items() if key != "skip"}
    skip = resume_from.get("skip", 0) if resume_from else 0
    with walking(source, _LAYOUT, start or None) as walker:
        for talk, after in _conversations(walker, source, start.get("number", 1)):
            yield from _positioned(list(_items(talk, source, options)), talk.before, after, skip)
            skip = 0


def _positioned(items: list[Item], before: Position, after: Position, skip: int) -> Iterator[Item]:
    for count, item in enumerate(items, 1):
        if count > skip:
            yield replace(item, position=after if count == len(items) else {**before, "skip": count})


def _conversations(walker: Walker, source: Source, number: int) -> Iterator[tuple[_Conversation, Position]]:
    """Yield conversations with the position after each; `number`: of the first, unless its index in a list tells."""
    before = {**walker.place(), "number": number}
    talk = _Conversation(number, before)
    for event in walker.events():
        source.bytes_read = event.end
        if _starts_talk(event) or (talk.whole and event.kind == "member"):
            if talk.nodes or talk.broken:
                yield talk, before
            talk = _Conversation(place_of(event.path), before)
        _gather(event, talk)
        ends = event.kind == "leave" and _is_talk(event.path)
        before = {**walker.place(), "number": talk.number + ends}
        if ends:
            yield talk, before
            talk = _Conversation(talk.number + 1, before)
    source.repaired += walker.window.repaired
    if talk.nodes or talk.broken:
        yield talk, before


def _starts_talk(event: Event) -> bool:
    return event.kind == "enter" and event.value == "{" and _is_talk(event.path)


def _is_talk(path: JsonPath) -> bool:
    return all(isinstance(key, int) for key in path)


def _gather(event: Event, talk: _Conversation) -> None:
    if event.kind == "member" and isinstance(event.value, dict):
        key = name(event.value.get("id")) or str(event.path[-1])
        talk.nodes[key] = event.value
    elif event.kind in ("broken", "member"):
        reason = str(event.value) if event.kind == "broken" else "not a JSON object"
        talk.broken.append(Bad({}, talk.number, reason, excerpt(event.text)))
    elif event.kind == "leave" and event.path[-1:] == ("mapping",):
        talk.whole = True
    elif event.kind == "scalar" and event.path and _is_talk(event.path[:-1]):
        talk.facts[str(event.path[-1])] = name(event.value)


def _items(talk: _Conversation, source: Source, options: Options) -> Iterator[Item]:
    yield from talk.broken
    own = first_name(talk.facts.get("conversation_id"), talk.facts.get("id"))
    room = own or f"{source.stem}-{talk.number}"
    for path in _paths(talk):
        yield from _along(path, talk.nodes, room, options, talk.facts.get("title", ""))


def _along(path: list[str], nodes: _Nodes, room: str, options: Options, title: str) -> Iterator[Parsed]:
    """Yield the messages of a path. Each replies to the one before it; a question and the answer without tool calls
    share a turn."""
    parent: str | None = None
    asked: str | None = None
    for key in path:
        message = _message(obj(nodes[key].get("message")), key, room, options)
        if message is None:
            continue
        answers = message.role is Role.ASSISTANT and not message.has_tool_calls
        asked = message.id if message.role is Role.USER else asked
        turn = asked if answers or message.role is Role.USER else None
        yield Parsed(
            replace(message, reply_to=parent, turn_id=turn), {}, room=named(_ALONE, "" if options.room_id else title)
        )
        parent, asked = message.id, None if answers else asked


def _paths(talk: _Conversation) -> Iterator[list[str]]:
    """Yield node ids from a root to the end in use, for each tree; there is more than one only if links are damaged."""
    nodes = talk.nodes
    above = {child: key for key, node in nodes.items() for child in _children(node)}
    current, taken = talk.facts.get("current_node"), set[str]()
    for tree in _trees(nodes, above):
        path: list[str] = []
        key: str | None = current if current in tree else _last_leaf(tree, nodes)
        while key is not None and key not in taken:
            path.append(key)
            taken.add(key)
            key = _parent(key, nodes, above)
        yield path[::-1]


def _trees(nodes: _Nodes, above: dict[str, str]) -> list[list[str]]:
    """Return the nodes of each tree, in the order of the file."""
    tops: dict[str, str] = {}
    for start in nodes:
        trail: dict[str, None] = {}
        key, up = start, _parent(start, nodes, above)
        while key not in tops and up is not None and up not in trail:
            trail[key] = None
            key, up = up, _parent(up, nodes, above)
        top = tops.get(key, key)
        tops.update(dict.fromkeys((*trail, key), top))
    return [[key for key in nodes if tops[key] == top] for top in dict.fromkeys(tops.values())]


def _parent(key: str, nodes: _Nodes, above: dict[str, str]) -> str | None:
    """Return the node before this one; if it is missing, the node that lists this one as a child."""
    named = nodes[key].get("parent", "")
    if named is None:
        return None
    candidates = (named, above.get(key), above.get(named) if isinstance(named, str) else None)
    return next((one for one in candidates if isinstance(one, str) and one in nodes and one != key), None)


def _children(node: dict[str, Any]) -> list[str]:
    children = node.get("children")
    return [one for one in children if isinstance(one, str)] if isinstance(children, list) else []


def _last_leaf(tree: list[str], nodes: _Nodes) -> str:
    """Return the last leaf below the newest node."""
    places = {key: place for place, key in enumerate(tree)}
    key = max(tree, key=lambda key: (_seconds(nodes[key]), places[key]))
    passed = {key}
    while below := [child for child in _children(nodes[key]) if child in places and child not in passed]:
        key = below[-1]
        passed.add(key)
    return key


def _seconds(node: dict[str, Any]) -> float:
    moment = parse_time(obj(node.get("message")).get("create_time"))
    return moment.timestamp() if moment else 0.0


def _message(said: dict[str, Any], key: str, room: str, options: Options) -> Message | None:
    """Return None for a node without text: the root, or an empty hidden one."""
    author, content = obj(said.get("author")), obj(said.get("content"))
    text, caption = _text(content)
    kind = words(content.get("content_type"))
    if not said or kind in _HIDDEN or not (text or caption or said.get("role")):
        return None
    who = role(author.get("role")) or Role.USER
    own = name(said.get("id")) or key or derived_id("chatgpt", room, said)
    return Message(
        id=f"{room}/{own}" if options.room_id else own,
        room_id=options.room_id or room,
        sender_id=first_name(author.get("name"), author.get("role")) or "unknown",
        sender_name=name(author.get("name")),
        role=who,
        text=text,
        sent_at=parse_time(said.get("create_time")),
        has_tool_calls=who is Role.ASSISTANT and said.get("recipient") not in (None, "all"),
        metadata=_metadata(said, kind, caption),
    )


def _text(content: dict[str, Any]) -> tuple[str, str]:
    """Return (text, names of pictures and files)."""
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else []
    said = [one if isinstance(one, str) else words(obj(one).get("text")) for one in listed]
    thoughts = [words(one.get("content")) for one in objects(content.get("thoughts"))]
    text = joined((*said, words(content.get("text")), words(content.get("result")), *thoughts), "\n")
    return text, joined(map(_pointed, objects(listed)))


def _pointed(part: dict[str, Any]) -> str:
    """Return the name of a picture or file."""
    return first_name(part.get("name"), part.get("asset_pointer"))


def _metadata(said: dict[str, Any], kind: str, caption: str) -> dict[str, Any]:
    about = obj(said.get("metadata"))
    files = objects(about.get("attachments"))
    shown = objects(obj(said.get("content")).get("parts"))
    pictures = [attached(kind="image", name=_pointed(one)) for one in shown if _pointed(one)]
    listed = [attached(kind="file", name=one.get("name"), mime_type=one.get("mime_type")) for one in files]
    return kept(
        {
            "caption": joined((caption, *(name(one.get("name")) for one in files))),
            "attachments": [*pictures, *(one for one in listed if one.get("name"))],
            "content_type": "" if kind == "text" else kind,
            "model": about.get("model_slug"),
            "recipient": "" if said.get("recipient") == "all" else said.get("recipient"),
        }
    )
