"""ChatGPT's data export: `conversations.json`, each conversation a tree whose `current_node` is the end in use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from roomlore.core.models import Message, Role
from roomlore.core.records import parse_time
from roomlore.importers.documents import Event, Layout, Path, Walker
from roomlore.importers.items import Bad, Item, Options, Parsed, Position, derived_id, excerpt
from roomlore.importers.members import place_of, walking
from roomlore.importers.shapes import first_name, joined, kept, name, obj, objects, role, words
from roomlore.importers.source import Source

_HIDDEN = ("user_editable_context", "model_editable_context")
_LAYOUT = Layout(
    streams=lambda path: path[-1:] == ("mapping",),
    start=re.compile(r'\{\s*"(?:id|message|parent|children)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "message" in value and "parent" in value,
    home=(0, "mapping", ""),
    head=re.compile(r'\{\s*"(?:title|id|create_time)"\s*:[^{}\[\]]{0,2000}?"mapping"\s*:\s*\{'),
    head_home=(None,),
)


@dataclass(slots=True)
class _Talk:
    """A conversation while its parts come in."""

    number: int
    before: dict[str, Any]
    facts: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: list[Bad] = field(default_factory=list)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """The messages on the way to each conversation's current node; the room is the conversation's id.

    Branches that were edited away are left out, as are empty hidden messages.
    """
    start = {key: value for key, value in (resume_from or {}).items() if key != "skip"}
    skip = resume_from.get("skip", 0) if resume_from else 0
    with walking(source, _LAYOUT, start or None) as walker:
        for talk, after in _talks(walker, source):
            yield from _positioned(list(_items(talk, source, options)), talk.before, after, skip)
            skip = 0


def _positioned(items: list[Item], before: Position, after: Position, skip: int) -> Iterator[Item]:
    for count, item in enumerate(items, 1):
        if count > skip:
            yield replace(item, position=after if count == len(items) else {**before, "skip": count})


def _talks(walker: Walker, source: Source) -> Iterator[tuple[_Talk, Position]]:
    """Conversations with the position after each."""
    before = walker.place()
    talk = _Talk(1, before)
    for event in walker.events():
        source.bytes_read = event.end
        if _starts_talk(event):
            if talk.nodes or talk.broken:
                yield talk, before
            talk = _Talk(place_of(event.path), before)
        _gather(event, talk)
        before = walker.place()
        if event.kind == "leave" and _is_talk(event.path):
            yield talk, before
            talk = _Talk(talk.number + 1, before)
    source.repaired += walker.window.repaired
    if talk.nodes or talk.broken:
        yield talk, before


def _starts_talk(event: Event) -> bool:
    return event.kind == "enter" and event.value == "{" and _is_talk(event.path)


def _is_talk(path: Path) -> bool:
    return all(isinstance(key, int) for key in path)


def _gather(event: Event, talk: _Talk) -> None:
    if event.kind == "member" and isinstance(event.value, dict):
        key = name(event.value.get("id")) or str(event.path[-1])
        talk.nodes[key] = event.value
    elif event.kind in ("broken", "member"):
        reason = str(event.value) if event.kind == "broken" else "not a JSON object"
        talk.broken.append(Bad({}, talk.number, reason, excerpt(event.text)))
    elif event.kind == "scalar" and event.path and _is_talk(event.path[:-1]):
        talk.facts[str(event.path[-1])] = name(event.value)


def _items(talk: _Talk, source: Source, options: Options) -> Iterator[Item]:
    yield from talk.broken
    own = first_name(talk.facts.get("conversation_id"), talk.facts.get("id"))
    room = own or f"{source.stem}-{talk.number}"
    parent, asked = None, None
    for key in _path(talk):
        message = _message(obj(talk.nodes[key].get("message")), key, room, options)
        if message is None:
            continue
        message = replace(message, reply_to=parent)
        if message.role is Role.USER:
            asked = message.id
            message = replace(message, turn_id=asked)
        elif message.role is Role.ASSISTANT and not message.has_tool_calls:
            message, asked = replace(message, turn_id=asked), None
        parent = message.id
        yield Parsed(message, {})


def _path(talk: _Talk) -> list[str]:
    """Node ids from the root to the current node; where a node is missing, the one above it goes on."""
    nodes = talk.nodes
    order = list(nodes)
    above = {child: key for key in order for child in nodes[key].get("children") or [] if isinstance(child, str)}
    key: str | None = talk.facts.get("current_node")
    if key not in nodes:
        key = _last_leaf(order, nodes)
    path: dict[str, None] = {}
    while key is not None and key not in path:
        if key in nodes:
            path[key] = None
            parent = nodes[key].get("parent")
            key = parent if isinstance(parent, str) else above.get(key)
        else:
            key = above.get(key)
    return list(reversed(path))


def _last_leaf(order: list[str], nodes: dict[str, dict[str, Any]]) -> str | None:
    """The newest node with nothing after it."""
    leaves = [key for key in order if not any(child in nodes for child in nodes[key].get("children") or [])]
    newest = sorted(leaves or order, key=lambda key: _seconds(nodes[key]))
    return newest[-1] if newest else None


def _seconds(node: dict[str, Any]) -> float:
    moment = parse_time(obj(node.get("message")).get("create_time"))
    return moment.timestamp() if moment else 0.0


def _message(said: dict[str, Any], key: str, room: str, options: Options) -> Message | None:
    """None for a node without words: the root, or an empty hidden one."""
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
    """(words, names of pictures and files)"""
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else []
    said = [one if isinstance(one, str) else words(obj(one).get("text")) for one in listed]
    thoughts = [words(one.get("content")) for one in objects(content.get("thoughts"))]
    text = joined((*said, words(content.get("text")), words(content.get("result")), *thoughts), "\n")
    pointers = (first_name(one.get("name"), one.get("asset_pointer")) for one in objects(listed))
    return text, joined(pointers)


def _metadata(said: dict[str, Any], kind: str, caption: str) -> dict[str, Any]:
    about = obj(said.get("metadata"))
    files = [name(one.get("name")) for one in objects(about.get("attachments"))]
    return kept(
        {
            "caption": joined((caption, *files)),
            "content_type": "" if kind == "text" else kind,
            "model": about.get("model_slug"),
            "recipient": "" if said.get("recipient") == "all" else said.get("recipient"),
        }
    )
