"""ChatGPT's data export: `conversations.json`, each conversation a tree whose `current_node` is the end in use.

The files of the conversations lie beside it or in folders. Their names begin with the id by which a message names them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source, derived_id, excerpt
from roomlore_importers.json_stream import Event, JsonPath, Layout, Walker, place_of, walking
from roomlore_importers.shapes import attached, first_name, joined, kept, name, named, obj, objects, role, words

_HIDDEN = ("user_editable_context", "model_editable_context")
_LAYOUT = Layout(
    streams=lambda path: path[-1:] == ("mapping",),
    start=lazy_pattern(r'\{\s*"(?:id|message|parent|children)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "message" in value and "parent" in value,
    home=(0, "mapping", ""),
    head=lazy_pattern(r'\{\s*"(?:title|id|create_time)"\s*:[^{}\[\]]{0,2000}?"mapping"\s*:\s*\{'),
    head_home=(None,),
)

_FILE_ID = lazy_pattern(r"file[-_][A-Za-z0-9]{8,64}")
"""The id of a file, as its name and what points to it have it."""

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
    files = _Files(source)
    with walking(source, _LAYOUT, start or None) as walker:
        for talk, after in _conversations(walker, source, start.get("number", 1)):
            yield from _positioned(list(_items(talk, source, options, files)), talk.before, after, skip)
            skip = 0


class _Files:
    """The files of an export by their ids; looked for when a message names the first one."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @cached_property
    def _places(self) -> dict[str, str]:
        named = ((_FILE_ID.match(place.rpartition("/")[2]), place) for place in self._source.names_beside())
        return {match[0]: place for match, place in named if match}

    def place(self, *pointers: object) -> str:
        """Return the place of the file that one of these names by its id; '' if it is not in the export."""
        ids = (match[0] for pointer in pointers if isinstance(pointer, str) and (match := _FILE_ID.search(pointer)))
        return next((self._places[file_id] for file_id in ids if file_id in self._places), "")


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


def _items(talk: _Conversation, source: Source, options: Options, files: _Files) -> Iterator[Item]:
    yield from talk.broken
    own = first_name(talk.facts.get("conversation_id"), talk.facts.get("id"))
    room = own or f"{source.stem}-{talk.number}"
    for path in _paths(talk):
        yield from _along(path, talk, room, options, files)


def _along(path: list[str], talk: _Conversation, room: str, options: Options, files: _Files) -> Iterator[Parsed]:
    """Yield the messages of a path. Each replies to the one before it; a question and the answer without tool calls
    share a turn."""
    title = "" if options.room_id else talk.facts.get("title", "")
    parent: str | None = None
    question: str | None = None
    for key in path:
        message = _message(obj(talk.nodes[key].get("message")), key, room, options, files)
        if message is None:
            continue
        answers = message.role is Role.ASSISTANT and not message.has_tool_calls
        question = message.id if message.role is Role.USER else question
        turn = question if answers or message.role is Role.USER else None
        yield Parsed(replace(message, reply_to=parent, turn_id=turn), {}, room=named(_ALONE, title))
        parent, question = message.id, None if answers else question


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
    return next(
        (
            candidate
            for candidate in candidates
            if isinstance(candidate, str) and candidate in nodes and candidate != key
        ),
        None,
    )


def _children(node: dict[str, Any]) -> list[str]:
    children = node.get("children")
    return [child for child in children if isinstance(child, str)] if isinstance(children, list) else []


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


def _message(record: dict[str, Any], key: str, room: str, options: Options, files: _Files) -> Message | None:
    """Return None for a node without text: the root, or an empty hidden one."""
    author, content = obj(record.get("author")), obj(record.get("content"))
    text, shown = _text(content), [part for part in _parts(content) if _pointed(part)]
    kind = words(content.get("content_type"))
    if not record or kind in _HIDDEN or not (text or shown or record.get("role")):
        return None
    who = role(author.get("role")) or Role.USER
    own = name(record.get("id")) or key or derived_id("chatgpt", room, record)
    return Message(
        id=f"{room}/{own}" if options.room_id else own,
        room_id=options.room_id or room,
        sender_id=first_name(author.get("name"), author.get("role")) or "unknown",
        sender_name=name(author.get("name")),
        role=who,
        text=text,
        sent_at=parse_time(record.get("create_time")),
        has_tool_calls=who is Role.ASSISTANT and record.get("recipient") not in (None, "all"),
        metadata=_metadata(record, kind, shown, files),
    )


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else []
    pieces = [piece if isinstance(piece, str) else words(obj(piece).get("text")) for piece in listed]
    thoughts = [words(thought.get("content")) for thought in objects(content.get("thoughts"))]
    return joined((*pieces, words(content.get("text")), words(content.get("result")), *thoughts), "\n")


def _parts(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts that are no text. One of a talk with voice and picture holds its recording."""
    return [obj(part.get("audio_asset_pointer")) or part for part in objects(content.get("parts"))]


def _pointed(part: dict[str, Any]) -> str:
    """Return the name of a picture or file, or what points to it."""
    return first_name(part.get("name"), part.get("asset_pointer"))


def _metadata(record: dict[str, Any], kind: str, shown: list[dict[str, Any]], files: _Files) -> dict[str, Any]:
    about = obj(record.get("metadata"))
    held = _attachments(shown, objects(about.get("attachments")), files)
    return kept(
        {
            "caption": joined(attachment.get("name") for attachment in held),
            "attachments": held,
            "content_type": "" if kind == "text" else kind,
            "model": about.get("model_slug"),
            "recipient": "" if record.get("recipient") == "all" else record.get("recipient"),
        }
    )


def _attachments(shown: list[dict[str, Any]], listed: list[dict[str, Any]], files: _Files) -> list[dict[str, Any]]:
    """Return what a message shows, then what else it lists. A file that it shows and lists is one."""
    ids = {name(attachment.get("id")): attachment for attachment in listed if name(attachment.get("id"))}
    held, seen = [], set[str]()
    for part in shown:
        pointer = _pointed(part)
        match = _FILE_ID.search(name(part.get("asset_pointer")))
        seen |= {match[0]} if match else set()
        listed_file = ids.get(match[0], {}) if match else {}
        place = files.place(part.get("asset_pointer"))
        # What is told of it here is surer than the ending of its name, which may be that of a sticker.
        kind = "voice" if "audio" in words(part.get("content_type")) else "picture"
        told_of = attached(
            kind=kind, name=name(listed_file.get("name")) or pointer, mime_type=_mime_type(listed_file), file=place
        )
        held.append({**told_of, "type": kind})
    for attachment in listed:
        if name(attachment.get("name")) and name(attachment.get("id")) not in seen:
            place = files.place(attachment.get("id"))
            held.append(
                attached(kind="file", name=attachment.get("name"), mime_type=_mime_type(attachment), file=place)
            )
    return held


def _mime_type(attachment: dict[str, Any]) -> str:
    return first_name(attachment.get("mime_type"), attachment.get("mimeType"))
