"""Signal's chats as signal-export writes them, JSON lines or Markdown, and signalbackup-tools, text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath
from typing import Any

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position
from roomlore_importers.chat_lines import ChatText, Content, Head, first_lines, spoken
from roomlore_importers.export_files import Options, Source
from roomlore_importers.json_stream import Member, read_json_lines, sniff_objects
from roomlore_importers.shapes import Said, attached, first_name, id_at, kept, local_time, name, obj, objects, words
from roomlore_importers.written_dates import read_moment

_NAMELESS = ("data", "chat")
"""How signal-export calls the files of every chat, in a folder with the chat's name."""
_MARKDOWN = lazy_pattern(r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] (?P<sender>[^\n]{1,100}?): (?P<text>.*)", re.DOTALL)
"""A message of signal-export's Markdown."""
_BACKUP = lazy_pattern(
    r"\[(?P<at>[^\d\s\]]{3,12} \d\d, \d{4} \d\d:\d\d:\d\d)\] (?:<(?P<sender>[^<>\n]{1,100})> (?P<text>.*)"
    r"|\*\*\* <(?P<who>[^<>\n]{1,100})> sent file(?: (?P<file>.*))?|\*\*\* (?P<notice>.*))",
    re.DOTALL,
)
"""A message, file or notice of signalbackup-tools."""
_REACTIONS = lazy_pattern(r"\s*\n?\(- (?P<reactions>[^\n]{3,1000}) -\)|\s*\(Reactions?: (?P<backup>[^\n()]{1,1000})\)\Z")
"""The reactions behind a message: who gave which."""
_LINK = lazy_pattern(r"!?\[(?P<name>[^\[\]\n]{0,300})\]\(\.{1,2}/(?P<file>[^()\n]{1,400})\)\s*")
"""A file beside the Markdown."""
_STICKER = lazy_pattern(r"\n?\(\( (?P<emoji>[^\n()]{1,20}) \)\)\s*|\((?P<kind>media|attachment) not exported\)\s*")
"""A sticker or file that the Markdown does not have."""
_DELETED = "(This message was deleted)"
_NO_SENDER = "No-Sender"
_QUOTE = lazy_pattern(r"\s*\n?(?P<quote>> [^\n]*(?:\n> ?[^\n]*)*)\n\n")
"""The quote in front of an answer."""


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat. The room is the name of the folder in which signal-export puts the chat, and the
    person who exported is "Me". An answer is one to the latest message with the quoted words."""
    if sniff_objects(source) is None:
        yield from ChatText(source, options, resume_from, _Text(source)).items(resume_from)
        return
    said, facts, done = Said(by_words=True), dict[str, Any](), resume_from["offset"] if resume_from else -1
    for line in read_json_lines(source, None):  # from the beginning: a quote may be of any earlier message
        item = line if not isinstance(line, Member) else _parsed(line, source, options, facts)
        if isinstance(item, Parsed):
            item = replace(item, message=said.answered(item.message))
        if item.position["offset"] > done:
            yield item


def room_name(source: Source) -> str:
    """Return the name of the chat: that of its folder."""
    if source.stem not in _NAMELESS:
        return re.sub(r" \(_id\d{1,9}\)$", "", source.stem)
    inside = PurePosixPath(source.member).parent.name if source.member else ""
    return inside or source.path.resolve().parent.name


def _parsed(member: Member, source: Source, options: Options, facts: dict[str, Any]) -> Item:
    record = member.value
    if "sender" not in record or "body" not in record:
        return member.bad("neither sender nor body: not a message of signal-export")
    sender, text = words(record.get("sender")), words(record.get("body")).rstrip()
    quoted = "\n".join(line.removeprefix("> ") for line in words(record.get("quote")).strip().split("\n"))
    deleted, moment = record.get("deleted") is True, local_time(record.get("date"), options.timezone)
    room = options.room_id or options.id_of(room_name(source))
    system = record.get("call") is True or sender in ("", _NO_SENDER)
    message = Message(
        id=id_at(facts, words(record.get("date")), sender, text),
        room_id=room,
        sender_id="system" if sender in ("", _NO_SENDER) else sender,
        sender_name="" if sender == _NO_SENDER else sender,
        role=Role.SYSTEM if system else Role.USER,
        text="" if deleted else text,
        sent_at=moment,
        metadata=kept(
            {
                "deleted": deleted,
                "quoted": {"text": quoted} if quoted else {},
                "reactions": _reactions(record.get("reactions")),
                "attachments": _attachments(record),
            }
        ),
    )
    return Parsed(message, member.position)


def _reactions(value: object) -> dict[str, int]:
    """Return the counts of reactions, which are pairs of a name and an emoji."""
    pairs = value if isinstance(value, list) else []
    given = (pair[1] if isinstance(pair, list) and len(pair) == 2 else obj(pair).get("emoji") for pair in pairs)
    return dict(Counter(emoji for emoji in given if isinstance(emoji, str)))


def _attachments(record: dict[str, Any]) -> list[dict[str, Any]]:
    files = [
        attached(kind=item.get("missing_kind") or "file", name=item.get("name"), file=item.get("path"))
        for item in objects(record.get("attachments"))
    ]
    sticker = record.get("sticker")
    return files + ([attached(kind="sticker", caption=first_name(obj(sticker).get("emoji"), sticker))] if sticker else [])


class _Text:
    """The Markdown of signal-export, or the text of signalbackup-tools. Neither has ids or says whom a quote is of."""

    def __init__(self, source: Source) -> None:
        self.room = room_name(source)
        self.facts: RoomFacts | None = None
        heads = (_MARKDOWN.fullmatch(line) or _BACKUP.fullmatch(line) for line in first_lines(source))
        self.names: Sequence[str] = spoken(match["sender"] or "" for match in heads if match)
        if len(self.names) > 2:
            self.facts = RoomFacts(RoomKind.PRIVATE)

    def head(self, text: str, chat: ChatText) -> Head | date | bool | None:
        if match := _MARKDOWN.fullmatch(text):
            sender = "" if match["sender"] == _NO_SENDER else match["sender"]
            return Head(sender, match["text"], read_moment(match["at"]))
        if (match := _BACKUP.fullmatch(text)) is None:
            return None
        told = match["text"] or match["notice"] or ""
        about = (match["file"] or "").removeprefix("of type ").strip('"')
        return Head(match["sender"] or match["who"] or "", f"[{about}](./)" if match["who"] else told, read_moment(match["at"]))

    def content(self, text: str) -> Content:
        if text.strip() == _DELETED:
            return Content("", metadata={"deleted": True})
        metadata: dict[str, Any] = {}
        if match := _REACTIONS.search(text):
            given = re.split(r", ", match["reactions"] or match["backup"])
            metadata["reactions"] = dict(Counter(each.rpartition(":")[2].strip() or each for each in given))
            text = text[: match.start()] + text[match.end() :]
        if match := _QUOTE.match(text):
            metadata["quoted"] = {"text": re.sub(r"(?m)^> ?", "", match["quote"])}
            text = text[match.end() :]
        held = [attached(kind="file", name=name(found["name"]), file=found["file"]) for found in _LINK.finditer(text)]
        held += [attached(kind=found["kind"] or "sticker", caption=found["emoji"]) for found in _STICKER.finditer(text)]
        if text.startswith("[") and text.endswith("](./)"):
            held, text = [attached(kind="file", name=text[1:-5] if "/" not in text[1:-5] else "", mime_type=text[1:-5] if "/" in text[1:-5] else "")], ""
        return Content(_STICKER.sub("", _LINK.sub("", text)).strip(), metadata=metadata | ({"attachments": held} if held else {}))


def is_text(lines: Sequence[str]) -> bool:
    """Return True for the first lines of signal-export's Markdown, whose messages end in two blanks, and of
    signalbackup-tools' text."""
    marked = [line for line in lines if _MARKDOWN.fullmatch(line)]
    signs = sum(line.endswith(("  ", _DELETED)) or "](./media/" in line for line in marked)
    backup = sum(_BACKUP.fullmatch(line) is not None for line in lines)
    return backup > 0.3 * len(lines) or (signs > 0.3 * len(marked) > 0 and len(marked) > 0.1 * len(lines))
