"""Attachments, which a message holds beside its text: pictures, stickers, voice messages, videos, files, polls,
locations and contacts, and how a model reads of them.

`metadata.attachments` lists them, each an object with `type`, `name`, `mime_type`, `caption`, `url`, `file` and
`description`, as far as these are known. `metadata.caption` has the words that search finds, and reads as the message's
own; those of polls, places and contacts are found too, but nobody said them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from roomlore.core.models import Message
from roomlore.core.patterns import lazy_pattern

M = TypeVar("M", bound=Message)
Kind = Literal["sticker", "picture", "voice", "video", "file", "poll", "location", "contact", ""]
# The kind of a file by what an export calls it, or by the end of its name; the first that matches.
_SIGNS: Sequence[tuple[Kind, re.Pattern[str]]] = (
    ("poll", lazy_pattern(r"\A(poll|投票)\Z")),
    ("location", lazy_pattern(r"\A(location|位置)\Z")),
    ("contact", lazy_pattern(r"\A(contact|名片)\Z|\.vcf$", re.IGNORECASE)),
    ("sticker", lazy_pattern(r"sticker|emoji|emotion|表情|贴纸|貼圖|\.(tgs|webp)$", re.IGNORECASE)),
    (
        "picture",
        lazy_pattern(r"photo|image|picture|foto|bild|图片|照片|圖片|写真|\.(jpe?g|png|gif|heic|bmp)$", re.IGNORECASE),
    ),
    ("voice", lazy_pattern(r"voice|audio|record|语音|語音|\.(ogg|opus|mp3|m4a|amr|wav)$", re.IGNORECASE)),
    ("video", lazy_pattern(r"video|animation|视频|影片|動画|\.(mp4|mov|webm|avi)$", re.IGNORECASE)),
)
_KINDS: tuple[Kind, ...] = ("sticker", "picture", "voice", "video", "file", "poll", "location", "contact")
_TELLING = ("media_type", "type", "mime_type", "photo", "file", "caption")
_FIELDS = ("name", "mime_type", "caption", "url", "file", "description")
_FOUND: tuple[Kind, ...] = ("poll", "location", "contact")
_VOTES = lazy_pattern(r" \(\d{1,9}\)(?=, |\Z)")
"""The counts behind the options of a poll."""
_OWN = ("description", "file")
"""The fields that do not belong to what was said."""
_MOST_TOLD = 200
MOST_READ = 20
_MOST_SHOWN = 4
LONGEST_DESCRIPTION = 8_000
"""Characters of a description that are kept."""
_BEGINNINGS: Sequence[tuple[str, str, Sequence[tuple[int, bytes]]]] = (
    ("image/png", "png", [(0, b"\x89PNG\r\n\x1a\n")]),
    ("image/jpeg", "jpg", [(0, b"\xff\xd8\xff")]),
    ("image/gif", "gif", [(0, b"GIF8")]),
    ("image/webp", "webp", [(0, b"RIFF"), (8, b"WEBP")]),
    ("audio/ogg", "ogg", [(0, b"OggS")]),
    ("audio/wav", "wav", [(0, b"RIFF"), (8, b"WAVE")]),
    ("audio/flac", "flac", [(0, b"fLaC")]),
    ("audio/mp4", "m4a", [(4, b"ftypM4A")]),
    ("video/mp4", "mp4", [(4, b"ftyp")]),
    ("video/webm", "webm", [(0, b"\x1a\x45\xdf\xa3")]),
    ("audio/mpeg", "mp3", [(0, b"ID3")]),
    *(("audio/mpeg", "mp3", [(0, b"\xff" + second)]) for second in (b"\xfb", b"\xf3", b"\xf2")),
)
"""The media types that models read, with the ending of a name that tells each, and what stands at which places of such
a file."""
_LABELS = {
    "en": {
        "sticker": "sticker", "picture": "picture", "voice": "voice message", "video": "video", "file": "file",
        "poll": "poll", "location": "location", "contact": "contact",
    },
    "zh": {
        "sticker": "表情", "picture": "图片", "voice": "语音", "video": "视频", "file": "文件", "poll": "投票",
        "location": "位置", "contact": "名片",
    },
}  # fmt: skip
_BRACKETED = {
    kind: tuple(
        f"[{label}"
        for label in (*(words[kind] for words in _LABELS.values()), *(("动画表情",) if kind == "sticker" else ()))
    )
    for kind in _KINDS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """One of the things that a message holds. `type`: "sticker", "picture", "voice", "video", "file", "poll",
    "location", "contact", or '' if nothing says so.

    `caption`: what the sender or the program wrote about it. `file`: its place in the export, or below the folder of
    live messages. `description`: what a `Describer` said of its content, such as what a picture shows or what is said
    in a voice message.
    """

    type: Kind = ""
    name: str = ""
    mime_type: str = ""
    caption: str = ""
    url: str = ""
    file: str = ""
    description: str = ""

    @property
    def words(self) -> str:
        """Return the caption and the description on one line."""
        return " ".join(f"{self.caption} {self.description}".split())


def kind_of(*descriptions: object) -> Kind:
    """Return of what kind an attachment is, by the words of its program, its MIME type and the endings of its names;
    "file" if these tell nothing else, '' if there are none."""
    words = [
        description[-_MOST_TOLD:]
        for description in descriptions
        if isinstance(description, str) and description.strip()
    ]
    return next((kind for kind, sign in _SIGNS if any(sign.search(word) for word in words)), "file" if words else "")


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    """Return what the message holds, at most 20."""
    listed = message.metadata.get("attachments")
    return tuple(map(_read, listed[:MOST_READ])) if isinstance(listed, list) else ()


def _read(value: object) -> Attachment:
    about: Mapping[str, Any] = value if isinstance(value, dict) else {"name": value}
    given = {key: value_given for key in _FIELDS if isinstance(value_given := about.get(key), str)}
    named = about.get("type")
    known = next((kind for kind in _KINDS if kind == named and kind != "file"), None)
    kind = known or kind_of(named, *(given.get(key) for key in ("mime_type", "name", "file")))
    return Attachment(type=kind, **given)


def media_type_of(content: bytes) -> tuple[str, str]:
    """Return the media type of a file that models read, and the ending of its name, by how the file begins; ('', '')
    for any other file, whatever it is called."""
    known = (
        (media, ending)
        for media, ending, signs in _BEGINNINGS
        if all(content.startswith(sign, at) for at, sign in signs)
    )
    return next(known, ("", ""))


def undescribed(message: Message, kinds: Collection[Kind], *, files: bool) -> dict[int, Attachment]:
    """Return the attachments of these kinds for which a description was not tried, by their places in the metadata.
    One that could not be described has an empty one. `files`: True if files can be read, else only addresses."""
    listed = message.metadata.get("attachments") if message.metadata else None
    if not isinstance(listed, list):
        return {}
    return {
        place: attached
        for place, attached in enumerate(attachments_of(message))
        if attached.type in kinds
        and (attached.url or (files and attached.file))
        and not isinstance(listed[place].get("description"), str)
    }


def attachment(message: Message) -> tuple[Kind, str]:
    """Return what a message without words holds, as its export says: of what kind it is, and its caption or name; ('',
    '') if nothing says so."""
    about = message.metadata
    first = next(iter(attachments_of(message)), Attachment())
    descriptions = [about.get(key) for key in _TELLING]
    words = [
        description[:_MOST_TOLD]
        for description in (*descriptions, first.name)
        if isinstance(description, str) and description.strip()
    ]
    caption = about.get("caption") if isinstance(about.get("caption"), str) else first.name
    shown = (caption[:_MOST_TOLD] if isinstance(caption, str) else "").strip() or first.description[:_MOST_TOLD]
    return first.type if first.type not in ("", "file") else kind_of(*words), shown


def caption_of(message: Message) -> str:
    """Return the words beside the text: the caption, and what was said of the attachments."""
    if not message.metadata:
        return ""
    caption = message.metadata.get("caption")
    descriptions = (attached.description for attached in attachments_of(message))
    return "\n".join(line for line in (caption, *descriptions) if isinstance(line, str) and line)


def found_words(message: Message) -> str:
    """Return the words beside the text by which a message is found: the caption, what was said of the attachments, the
    options of polls, and the names of places and contacts. Counts of votes and coordinates are none."""
    if not message.metadata:
        return ""
    caption = caption_of(message)
    texts = (
        part
        for attached in attachments_of(message)
        if attached.type in _FOUND
        for part in (attached.name, _options(attached))
    )
    own = (part for part in texts if part not in caption and any(map(str.isalpha, part)))
    return "\n".join(part for part in (caption, *own) if part)


def _options(attached: Attachment) -> str:
    return _VOTES.sub("", attached.caption) if attached.type == "poll" else attached.caption


def descriptions_of(message: Message, language: Literal["zh", "en"] = "en") -> str:
    """Return the attachments that were described, as a model reads them."""
    return " ".join(_note(attached, language) for attached in attachments_of(message) if attached.description.strip())


def with_attachments(message: Message, language: Literal["zh", "en"]) -> str:
    """Return the text with what the message holds behind it: "look [picture map.jpg: the way to the hut]". '' if it
    holds nothing."""
    text = message.text.strip()
    if not message.metadata:
        return text
    held = attachments_of(message)
    shown = text or _rest(message, held)
    silent = bool(shown) and not text  # the caption says what there is
    notes = [
        _note(attached, language)
        for attached in held[:_MOST_SHOWN]
        if not _is_told(attached, shown) and not (silent and not (attached.name or attached.words))
    ]
    more = f"[+{len(held) - _MOST_SHOWN}]" if len(held) > _MOST_SHOWN else ""
    return " ".join(part for part in (shown, *notes, more) if part)


def _rest(message: Message, held: Sequence[Attachment]) -> str:
    """Return the caption of a message without words, without what the notes on its attachments say."""
    caption = message.metadata.get("caption")
    rest = caption if isinstance(caption, str) else ""
    for part in (part for attached in held[:_MOST_SHOWN] for part in (attached.name, attached.caption) if part):
        rest = rest.replace(part, "", 1)
    return rest.strip()


def _is_told(attached: Attachment, text: str) -> bool:
    """Return True if the text says as much of it."""
    return not attached.words and bool(
        text
        and (
            (attached.name and attached.name in text)
            or any(label in text for label in _BRACKETED.get(attached.type, ()))
        )
    )


def _note(attached: Attachment, language: Literal["zh", "en"]) -> str:
    label, colon = _LABELS[language][attached.type or "file"], "：" if language == "zh" else ": "
    name = " ".join(attached.name.split())
    head, words = (f"{label} {name}", attached.words) if name and attached.words else (label, attached.words or name)
    return f"[{head}{colon}{words}]" if words else f"[{head}]"


def with_descriptions(message: M, descriptions: Mapping[int, str]) -> M:
    """Return the message with these descriptions, by the places of the attachments in its metadata."""
    listed = list(message.metadata.get("attachments", ()))
    for place, text in descriptions.items():
        listed[place] = {**listed[place], "description": text[:LONGEST_DESCRIPTION]}
    return replace(message, metadata={**message.metadata, "attachments": listed})


def as_submitted(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata without descriptions, which may read otherwise each time they are made, and without the
    places of files, which an export may leave out."""
    listed = metadata.get("attachments")
    if not isinstance(listed, list) or not any(
        isinstance(attached, dict) and not attached.keys().isdisjoint(_OWN) for attached in listed
    ):
        return metadata
    left = [
        {key: value for key, value in attached.items() if key not in _OWN} if isinstance(attached, dict) else attached
        for attached in listed
    ]
    return {**metadata, "attachments": left}


_CHANGING = ("attachments", "location", "pinned", "quoted", "reactions")


def lasting(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata by which a message is known again. Without what changes after it was said, such as reactions
    and pins, and without what each program tells otherwise of the files: their addresses, the names that it made for
    them, and the name of the file of a sticker."""
    if metadata.keys().isdisjoint(_CHANGING):
        return metadata
    listed = metadata.get("attachments")
    sticker = isinstance(listed, list) and any(isinstance(one, dict) and one.get("type") == "sticker" for one in listed)
    left_out = (*_CHANGING, "caption") if sticker else _CHANGING
    return {key: value for key, value in metadata.items() if key not in left_out}


def counted_text(message: Message) -> str:
    """Return the text whose tokens count for the message: as a model reads it, or its words and what was said of all
    that it holds, whichever is longer."""
    caption = caption_of(message)
    counted = f"{message.text}\n{caption}" if caption else message.text
    shown = with_attachments(message, "en") if attachments_of(message) else ""
    return shown if len(shown) > len(counted) else counted


def count_of(message: Message) -> int:
    """Return how many things the message holds."""
    listed = message.metadata.get("attachments")
    return len(listed) if isinstance(listed, list) else 0
