"""Signal's chats as signal-export writes them, JSON lines or Markdown, and signalbackup-tools, text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath
from typing import Any

from roomlore.core.audience import RoomFacts
from roomlore.core.models import Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position
from roomlore_importers.chat_lines import ChatText, Content, Head, by_length
from roomlore_importers.export_files import Options, Source, first_lines
from roomlore_importers.json_stream import Member, read_json_lines, sniff_objects
from roomlore_importers.shapes import (
    Said,
    attached,
    counted,
    first_name,
    id_at,
    local_time,
    obj,
    objects,
    spoken,
    words,
)
from roomlore_importers.written_dates import read_moment

_NAMELESS = ("data", "chat")
"""How signal-export calls the files of every chat, in a folder with the chat's name."""
_MARKDOWN = lazy_pattern(
    r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] (?P<sender>[^\n]{1,100}?): (?P<text>.*)", re.DOTALL
)
"""A message of signal-export's Markdown."""
_BACKUP = lazy_pattern(
    r"\[(?P<at>[^\d\s\]]{3,12} \d\d, \d{4} \d\d:\d\d:\d\d)\] (?:<(?P<sender>[^<>\n]{1,100})> (?P<text>.*)"
    r"|\*\*\* <(?P<who>[^<>\n]{1,100})> sent file ?(?P<file>.*)|\*\*\* (?P<notice>.*))",
    re.DOTALL,
)
"""A message, file or notice of signalbackup-tools."""
_REACTIONS = lazy_pattern(r"\(- (?P<reactions>[^\n]{3,300}) -\)")
"""The reactions to a message: who gave which."""
_QUOTE = lazy_pattern(r"\s*(?P<quote>> [^\n]*(?:\n> ?[^\n]*)*)\n\n")
"""The quote in front of an answer."""
_HELD = lazy_pattern(
    r"!?\[(?P<name>[^\[\]\n]{0,300})\]\(\.{1,2}/(?P<file>[^()\n]{0,400})\)\s*|\n?\(\( (?P<emoji>[^\n()]{1,20}) \)\)\s*"
    r"|\((?P<kind>media|attachment) not exported\)\s*"
)
"""A file or a sticker in the Markdown."""
_DELETED = "(This message was deleted)"
_NO_SENDER = "No-Sender"


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat. The room is the name of the folder in which signal-export puts the chat, and the
    person who exported is "Me". An answer is one to the latest message with the quoted words."""
    if sniff_objects(source) is None:
        yield from ChatText(source, options, resume_from, _Text(source)).items(resume_from)
        return
    said, facts, done = Said(by_words=True), dict[str, Any](), resume_from["offset"] if resume_from else -1
    for line in read_json_lines(source, None):  # from the beginning: a quote may be of any earlier message
        item = _parsed(line, source, options, facts) if isinstance(line, Member) else line
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
    sender, text = words(record.get("sender")).replace(_NO_SENDER, ""), words(record.get("body")).rstrip()
    quoted = re.sub(r"(?m)^> ?", "", words(record.get("quote")).strip())
    sticker = record.get("sticker")
    held = [
        attached(kind=item.get("missing_kind") or "file", name=item.get("name"), file=item.get("path"))
        for item in objects(record.get("attachments"))
    ]
    pairs = record.get("reactions") if isinstance(record.get("reactions"), list) else []
    return spoken(
        member.position,
        options,
        id=id_at(facts, words(record.get("date")), sender, text),
        room=options.id_of(room_name(source)),
        sender=sender,
        called=sender,
        role=Role.SYSTEM if record.get("call") is True or not sender else Role.USER,
        text=text,
        at=local_time(record.get("date"), options.timezone),
        deleted=record.get("deleted") is True,
        held=[
            *held,
            attached(kind="sticker", caption=first_name(obj(sticker).get("emoji"), sticker)) if sticker else {},
        ],
        quoted={"text": quoted} if quoted else {},
        reactions=counted(pair[-1] if isinstance(pair, list) and pair else "" for pair in pairs or []),
    )


class _Text:
    """The Markdown of signal-export, or the text of signalbackup-tools. Neither has ids."""

    facts: RoomFacts | None = None

    def __init__(self, source: Source) -> None:
        self.room = room_name(source)
        heads = (_MARKDOWN.fullmatch(line) or _BACKUP.fullmatch(line) for line in first_lines(source))
        self.names = by_length(match["sender"] or "" for match in heads if match)

    def head(self, text: str, chat: ChatText) -> Head | date | bool | None:
        if match := _MARKDOWN.fullmatch(text):
            return Head(match["sender"].replace(_NO_SENDER, ""), match["text"], read_moment(match["at"]))
        if (match := _BACKUP.fullmatch(text)) is None:
            return None
        about = (match["file"] or "").removeprefix("of type ").strip('"')
        said = f"[{about}](./)" if match["who"] else match["text"] or match["notice"] or ""
        return Head(match["sender"] or match["who"] or "", said, read_moment(match["at"]))

    def content(self, text: str) -> Content:
        if text.strip() == _DELETED:
            return Content("", metadata={"deleted": True})
        metadata: dict[str, Any] = {}
        if match := _REACTIONS.search(text):
            metadata["reactions"] = counted(each.rpartition(": ")[2] for each in match["reactions"].split(", "))
            text = text[: match.start()] + text[match.end() :]
        if match := _QUOTE.match(text):
            metadata["quoted"] = {"text": re.sub(r"(?m)^> ?", "", match["quote"])}
            text = text[match.end() :]
        if held := [_held(match) for match in _HELD.finditer(text)]:
            metadata["attachments"] = held
        return Content(_HELD.sub("", text).strip(), metadata=metadata)


def _held(match: re.Match[str]) -> dict[str, Any]:
    if match["emoji"]:
        return attached(kind="sticker", caption=match["emoji"])
    if "exported_stickers/" in (match["file"] or ""):
        return attached(kind="sticker", caption=match["name"], file=f"../{match['file']}")
    called = match["name"] or ""
    typed = not match["file"] and "/" in called  # signalbackup-tools tells the type of a file without a name
    about = {"mime_type": called} if typed else {"name": called, "file": match["file"]}
    return attached(kind="" if typed else match["kind"] or "file", **about) or attached(kind="file")


def is_text(lines: Sequence[str]) -> bool:
    """Return True for the first lines of signal-export's Markdown, whose messages end in two blanks, and of
    signalbackup-tools' text."""
    marked = [line for line in lines if _MARKDOWN.fullmatch(line)]
    signs = sum(line.endswith(("  ", _DELETED)) or "](./media/" in line for line in marked)
    backup = sum(_BACKUP.fullmatch(line) is not None for line in lines)
    return backup > 0.3 * len(lines) or (signs > 0.3 * len(marked) > 0 and len(marked) > 0.1 * len(lines))
