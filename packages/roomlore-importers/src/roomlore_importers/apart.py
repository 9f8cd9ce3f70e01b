"""Exports of one run that call their rooms alike: are they the same chat, and what are their rooms called if not.

Some programs write no id of a chat, only its name, and two chats may have the same one: a WhatsApp group "Family" of
two phones, the channel "#general" of two IRC networks. Their rooms get a label made of what differs in their paths.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Parsed
from roomlore.ports.exports import ExportFile
from roomlore_importers import irc, slack, whatsapp
from roomlore_importers.export_files import UNREADABLE, Options, Source, derived_id, plain_name
from roomlore_importers.formats import ENDINGS, FORMATS, beginning, form_of

_HEAD = 100
"""Messages at the beginning of an export by which it is found in another one of the same chat."""
_LONGEST_LABEL = 120
_OFTEN_NAMED = ("qq-text", "qq-exporter", "chatlab", "line", "kakaotalk", "signal")
"""Formats that may have the name of a chat inside and no id. A room that has an id keeps it."""
_ENDING = lazy_pattern(rf"(?:{'|'.join(map(re.escape, (*ENDINGS, '.zip')))})$", re.I)
_DATE = lazy_pattern(r"(?<!\d)(?:19|20)\d\d(?:[-_.]?[01]\d(?:[-_.]?[0-3]\d)?)?(?!\d)")
_SHORT_NUMBER = lazy_pattern(r"\d\d?")
_EDGES = "-_. ()[]"
_Key = tuple[str, str, str]


def keep_apart(files: Sequence[ExportFile]) -> list[dict[str, str]]:
    """Return for each export the ids for those of its rooms of which it has no id, by their names. The id is the name
    unless another export has another chat of that name.

    Exports are of the same chat if one has most of the first messages of the other, or if their paths differ in dates
    alone; these keep one room.
    """
    rooms = [{name: name for name in _rooms_by_name(file)} for file in files]
    by_name: dict[str, list[int]] = {}
    for place, names in enumerate(rooms):
        for name in names:
            by_name.setdefault(name, []).append(place)
    for name, places in by_name.items():
        if len(places) > 1:
            for place, label in zip(places, _labels([files[place] for place in places], name), strict=True):
                if label:
                    rooms[place][name] = f"{name} ({label})"
    return rooms


def _rooms_by_name(file: ExportFile) -> set[str]:
    """Return the names of the rooms of which the export has no id."""
    try:
        source = Source(file.path, file.member)
        form = file.format or form_of(source)
        if form == "slack":
            return slack.rooms_by_name(source)
        if form == "whatsapp":
            return {whatsapp.room_name(source)}
        if form == "irc":
            return {irc.room_name(source)}
        room = _first_room(file, form, source.stem)
        name = room if form in _OFTEN_NAMED else source.stem
        follows = room.startswith(name) and _first_room(file, form, name, called=f"{name}.") != room
    except (*UNREADABLE, InvalidInput):
        return set()
    return {name} if follows else set()


def _first_room(file: ExportFile, form: str, name: str, *, called: str | None = None) -> str:
    """Return the room of the first message, '' if there is none. `called`: call the room of this name so."""
    source, options = Source(file.path, file.member), Options()
    if called is not None:
        options = Options(rooms=((name, called),))
        source.stem = options.id_of(source.stem)
    first = beginning(FORMATS[form], source, options, 1)
    return next((item.message.room_id for item in first if isinstance(item, Parsed)), "")


def _labels(files: Sequence[ExportFile], name: str) -> list[str]:
    """Return a label for each export; equal ones are of the same chat."""
    labels = _differences([_parts(file) for file in files], name)
    if len(set(labels)) < 2:
        return [""] * len(files)
    firsts = {label: files[labels.index(label)] for label in dict.fromkeys(labels)}
    same = _same_chats(list(firsts.values()))
    names = list(firsts)
    meant = {label: names[same[place]] for place, label in enumerate(names)}
    chosen = [meant[label] for label in labels]
    return [""] * len(files) if len(set(chosen)) < 2 else chosen


def _parts(file: ExportFile) -> tuple[str, ...]:
    inside = (file.member or "").rstrip("/")
    return (*file.path.resolve().parts[1:], *(inside.split("/") if inside else ()))


def _differences(paths: Sequence[tuple[str, ...]], name: str) -> list[str]:
    """Return what differs in the paths, without dates and the name of the room."""
    start = _common(paths)
    left = [path[start:] for path in paths]
    end = _common([path[::-1] for path in left])
    dated = any(map(_DATE.fullmatch, paths[0][:start]))
    return [_label(path[: len(path) - end], name, dated=dated) for path in left]


def _common(paths: Sequence[tuple[str, ...]]) -> int:
    """Return how many parts at their beginning the paths have in common."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def _label(parts: Sequence[str], name: str, *, dated: bool) -> str:
    """Return what is left of these parts. `dated`: a year precedes them."""
    kept: list[str] = []
    for part in parts:
        plain = _ENDING.sub("", plain_name(part))
        if whatsapp.STEM.fullmatch(plain) or (dated and _SHORT_NUMBER.fullmatch(plain)):
            continue
        dated = dated or _DATE.search(plain) is not None
        plain = _DATE.sub("", re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", "", plain)).strip(_EDGES)
        kept += [plain] if plain else []
    label = "/".join(kept)
    return label if len(label) <= _LONGEST_LABEL else f"{label[:_LONGEST_LABEL]}… {derived_id(label)[1:7]}"


def _same_chats(files: Sequence[ExportFile]) -> list[int]:
    """Return for each export the place of the first one that is of the same chat: most of the messages at the beginning
    of one are in the other."""
    heads = [set(islice(_keys(file), _HEAD)) for file in files]
    same = list(range(len(files)))
    for place, file in enumerate(files):
        missing = [head if other != place else set[_Key]() for other, head in enumerate(heads)]
        wanted = set[_Key]().union(*missing)
        shared = {key for key in _keys(file) if key in wanted} if wanted else set()
        for other, head in enumerate(missing):
            if len(head & shared) * 2 > len(head):
                first, second = sorted((same[place], same[other]))
                same = [first if key == second else key for key in same]
    return same


def _keys(file: ExportFile) -> Iterator[_Key]:
    """Yield what tells the messages of an export, without those of the program."""
    try:
        source = Source(file.path, file.member)
        items = FORMATS[file.format or form_of(source)].read(source, Options(), None)
        for item in items:
            if isinstance(item, Parsed) and item.message.role is not Role.SYSTEM:
                yield _key(item.message)
    except (*UNREADABLE, InvalidInput):
        return


def _key(message: Message) -> _Key:
    return str(message.sent_at), message.sender_id, message.text


def other_ids(rooms: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return other ids of rooms as `Options` takes them."""
    return tuple(sorted((rooms or {}).items()))
