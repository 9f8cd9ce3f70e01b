"""Read big JSON documents and JSON lines piece by piece, with little memory."""

import codecs
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, BinaryIO, Literal, TypeAlias

from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Position, parse_time
from roomlore_importers.export_files import TOO_LONG, Line, Options, Source, excerpt, read_lines

LONGEST_VALUE = 64 << 20
_CHUNK = 1 << 18
_SPACE = lazy_pattern(r"[ \t\r\n\ufeff]*")
_ESCAPED = lazy_pattern("[\udc80-\udcff]+")
_NEAR_END = 16
_DEEPEST = 64
_TOO_DEEP = lazy_pattern(r'(?:[\[{]\s*(?:"[^"\\]*"\s*:\s*)?){' f"{_DEEPEST}}}")
_LATE = "unfinished: "


class BrokenError(Exception):
    """The text at the cursor is not the expected JSON."""


class Window:
    """The text from `offset` (bytes) on; `offset` is always the byte offset of the cursor. `repaired`: the number of
    values in which broken bytes were replaced."""

    def __init__(self, file: BinaryIO, *, encoding: str = "utf-8", offset: int = 0) -> None:
        file.seek(offset)
        self.offset = offset
        self.repaired = 0
        self._file = file
        self._encoding = encoding
        self._errors = "surrogateescape" if encoding == "utf-8" else "replace"
        self._decoder = codecs.getincrementaldecoder(encoding)(self._errors)
        self._json = json.JSONDecoder(strict=False, parse_constant=str)
        self._text = ""
        self._cursor = 0
        self._damaged = False
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not white space, '' at the end; the cursor moves to it."""
        while True:
            match = _SPACE.match(self._text, self._cursor)
            self._advance(match.end() if match else self._cursor)
            if self._cursor < len(self._text):
                return self._text[self._cursor]
            if not self._fill():
                return ""

    def take(self, characters: str) -> str:
        """Move past the next character if it is one of these and return it, else ''."""
        next_character = self.peek()
        if not next_character or next_character not in characters:
            return ""
        self._advance(self._cursor + 1)
        return next_character

    def value(self) -> Any:
        """Decode the JSON value at the cursor and move past it; `BrokenError` leaves the cursor in place."""
        self.peek()
        value, end = self._decode()
        self._advance(end)
        return value

    def search(self, pattern: re.Pattern[str], accepts: Callable[[re.Match[str]], bool], *, overlap: int) -> bool:
        """Move to the next match that is accepted; False at the text's end. Matches are shorter than `overlap`."""
        while True:
            known = len(self._text) if self._ended else len(self._text) - overlap
            match = pattern.search(self._text, self._cursor)
            if match is None or match.start() > known:
                self._advance(max(self._cursor, known))
                if not self._fill():
                    return False
            elif match.start() > self._cursor:
                self._advance(match.start())
            elif accepts(match):
                return True
            else:
                self._advance(self._cursor + 1)

    def skip(self) -> None:
        """Move one character on."""
        if self._cursor < len(self._text) or self._fill():
            self._advance(self._cursor + 1)

    def ahead(self, characters: int = 120) -> str:
        """Return some text from the cursor on, for a report."""
        return self._text[self._cursor : self._cursor + characters]

    def readable(self) -> Any:
        """Return the JSON value at the cursor without moving, None if there is none.

        A run of opening brackets is not decoded: it would be decoded again from each of them.
        """
        if _TOO_DEEP.match(self._text, self._cursor):
            return None
        try:
            return self._decode()[0]
        except BrokenError:
            return None

    def _decode(self) -> tuple[Any, int]:
        while True:
            reason = self._try()
            if not isinstance(reason, str):
                return reason
            if not self._may_continue(reason) or not self._fill():
                raise BrokenError(self._explain(reason))

    def _explain(self, reason: str) -> str:
        if not reason.startswith(_LATE):
            return reason
        return "the document ends in the middle" if self._ended else f"longer than {LONGEST_VALUE >> 20} MiB"

    def _try(self) -> "tuple[Any, int] | str":
        """Return (value, its end), or why there is none."""
        try:
            value, end = self._json.raw_decode(self._text, self._cursor)
            if self._damaged:
                value = self._repaired(value, end)
        except json.JSONDecodeError as error:
            late = error.pos >= len(self._text) - _NEAR_END or error.msg.startswith("Unterminated")
            return f"{_LATE if late else ''}{error.msg}"
        except (ValueError, RecursionError) as error:
            return f"not readable as JSON: {str(error)[:80]}"
        return _LATE if end == len(self._text) and not self._ended else (value, end)

    def _may_continue(self, reason: str) -> bool:
        return reason.startswith(_LATE) and not self._ended and len(self._text) - self._cursor < LONGEST_VALUE

    def _repaired(self, value: Any, end: int) -> Any:
        raw = self._text[self._cursor : end]
        mended, places = _ESCAPED.subn("\ufffd", raw)
        if not places:
            return value
        self.repaired += 1
        return self._json.decode(mended)

    def _fill(self) -> bool:
        """Read on and drop what lies before the cursor; False at the end of the file."""
        if self._ended:
            return False
        rest = self._text[self._cursor :]
        raw = self._file.read(max(_CHUNK, len(rest)))
        self._ended = not raw
        more = self._decoder.decode(raw, self._ended)
        self._damaged = self._damaged or (self._errors == "surrogateescape" and _ESCAPED.search(more) is not None)
        self._text, self._cursor = rest + more, 0
        return True

    def _advance(self, to: int) -> None:
        if to > self._cursor:
            passed = self._text[self._cursor : to]
            self.offset += len(passed) if self._single(passed) else len(passed.encode(self._encoding, self._errors))
            self._cursor = to

    def _single(self, passed: str) -> bool:
        return self._encoding == "utf-8" and passed.isascii()


JsonPath: TypeAlias = tuple[str | int, ...]
Stack: TypeAlias = list[list[Any]]

_OVERLAP = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The location and form of the members.

    `streams`: True for the path of a container whose members are wanted whole. `start`: how a member's text begins.
    `plausible`: True for a value that could be a member. `home`: path of the first member, for use if the way to it is
    damaged. `head`: how an object that holds such a container begins, up to the container; `head_home`: the path of
    that object, None for an unknown index.
    """

    streams: Callable[[JsonPath], bool]
    start: re.Pattern[str]
    plausible: Callable[[Any], bool]
    home: JsonPath
    head: re.Pattern[str] | None = None
    head_home: tuple[str | int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """A value that was read. `path` leads to it. `start`, `end`: byte offsets. For "broken", `value` is the reason."""

    kind: Literal["scalar", "member", "enter", "leave", "broken"]
    path: JsonPath
    value: Any
    start: int
    end: int
    text: str = ""


class Walker:
    """Walk the document(s) in a file from its start, or from a result of `place`."""

    def __init__(
        self, file: BinaryIO, layout: Layout, *, encoding: str = "utf-8", place: Mapping[str, Any] | None = None
    ) -> None:
        place = place or start_at(0)
        self.window = Window(file, encoding=encoding, offset=place["offset"])
        self._layout = layout
        self._stack: Stack = [list(frame) for frame in place["stack"]]
        steps = {"value": self._value, "after": self._after, "first": self._first}
        self._step: Callable[[], Event | None] = steps.get(place["next"], self._value)

    def place(self) -> dict[str, Any]:
        """Return where to continue, right after an event: the offset, the open containers as [kind, key or index], and
        the next token."""
        stack = [list(frame) for frame in self._stack]
        return {"offset": self.window.offset, "stack": stack, "next": self._step.__name__.removeprefix("_")}

    @property
    def path(self) -> JsonPath:
        return tuple(frame[1] for frame in self._stack)

    def events(self) -> Iterator[Event]:
        while self.window.peek() or self._stack:
            start = self.window.offset
            try:
                event = self._step()
            except BrokenError as error:
                text, path = self.window.ahead(), self.path
                match = self._recover()
                yield Event("broken", path, str(error), start, self.window.offset, text)
                if not match:
                    return
            else:
                if event is not None:
                    yield event

    def _value(self) -> Event | None:
        opening = self.window.peek()
        start = self.window.offset
        if self._stack and self._layout.streams(self.path[:-1]):
            return self._whole("member", start)
        if opening in ("{", "[") and len(self._stack) < _DEEPEST:
            self.window.take(opening)
            self._stack.append([opening, 0 if opening == "[" else ""])
            self._step = self._first
            return Event("enter", self.path[:-1], opening, start, self.window.offset)
        return self._whole("scalar", start)

    def _whole(self, kind: Literal["member", "scalar"], start: int) -> Event:
        value = self.window.value()
        self._step = self._after
        return Event(kind, self.path, value, start, self.window.offset)

    def _first(self) -> Event | None:
        if self.window.peek() in ("]", "}"):
            return self._leave()
        return self._next()

    def _next(self) -> Event | None:
        if self._stack[-1][0] == "{":
            self._stack[-1][1] = self._key()
        self._step = self._value
        return None

    def _key(self) -> str:
        if self.window.peek() != '"':
            raise BrokenError(self._missing("a key"))
        key = self.window.value()
        if not self.window.take(":"):
            raise BrokenError(self._missing("a colon"))
        return str(key)

    def _after(self) -> Event | None:
        if not self._stack:
            self._step = self._value
            return None
        if not self.window.take(","):
            return self._leave()
        if self.window.peek() in ("]", "}"):
            return self._leave()
        if self._stack[-1][0] == "[":
            self._stack[-1][1] += 1
        return self._next()

    def _leave(self) -> Event:
        closing = "]" if self._stack[-1][0] == "[" else "}"
        start = self.window.offset
        if not self.window.take(closing):
            raise BrokenError(self._missing(f"a comma or {closing}"))
        self._stack.pop()
        self._step = self._after
        return Event("leave", self.path, None, start, self.window.offset)

    def _missing(self, wanted: str) -> str:
        return f"{wanted} was expected" if self.window.peek() else "the document ends in the middle"

    def _recover(self) -> bool:
        if self._step == self._value:
            self.window.skip()
        patterns = [self._layout.start.pattern]
        if self._layout.head is not None:
            patterns.insert(0, self._layout.head.pattern)
        match = self.window.search(re.compile("|".join(patterns)), self._accept, overlap=_OVERLAP)
        if not match:
            self._stack = []
            self._step = self._value
        return match

    def _accept(self, match: re.Match[str]) -> bool:
        layout = self._layout
        if layout.head is not None and layout.head.fullmatch(match.group()):
            self._stack = _frames(layout.head_home, self.path)
        elif layout.plausible(self.window.readable()):
            self._go_home()
        else:
            return False
        self._step = self._value
        return True

    def _go_home(self) -> None:
        """Enter the container whose members are wanted: the current one, the one above, or the first."""
        while self._stack and not self._layout.streams(self.path[:-1]):
            self._stack.pop()
        if not self._stack:
            self._stack = _frames(self._layout.home, ())
        elif self._stack[-1][0] == "[":
            self._stack[-1][1] += 1


def start_at(offset: int) -> dict[str, Any]:
    """Return the place at the start of a document."""
    return {"offset": offset, "stack": [], "next": "value"}


def _frames(path: tuple[str | int | None, ...], known: JsonPath) -> Stack:
    keys = [
        key if key is not None else _following(known[place] if place < len(known) else None)
        for place, key in enumerate(path)
    ]
    return [["{" if isinstance(key, str) else "[", key] for key in keys]


def _following(index: object) -> int:
    return index + 1 if isinstance(index, int) else 0


Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A member. `number`: its index in its container, from 1. `facts`: collected by `note` before it; additions by the
    importer remain for the next member. `before`: the position to read it again."""

    value: dict[str, Any]
    path: JsonPath
    number: int
    facts: Facts
    before: Position
    position: Position

    def bad(self, reason: str) -> Bad:
        return Bad(self.position, self.number, reason, excerpt(str(self.value)))


@contextmanager
def walking(source: Source, layout: Layout, place: Position | None) -> Iterator[Walker]:
    """Return a walker over the source's document, which counts its repairs."""
    encoding, mark = source.encoding()
    encoding = encoding if encoding.startswith("utf-16") else "utf-8"
    with source.open() as file:
        walker = Walker(file, layout, encoding=encoding, place=place or start_at(mark))
        yield walker


def no_facts(event: Event, facts: Facts) -> None:
    """Ignore the data around the members."""


def read_members(
    source: Source, layout: Layout, resume_from: Position | None, note: Callable[[Event, Facts], None] = no_facts
) -> Iterator[Member | Bad]:
    """Yield members in the document's order; `note` sees every other event and collects in the facts what members
    need."""
    with walking(source, layout, resume_from) as walker:
        facts: Facts = resume_from["facts"] if resume_from else {}
        before: Position = {**walker.place(), "facts": facts}
        for event in walker.events():
            source.bytes_read = event.end
            facts = dict(facts)
            position = {**walker.place(), "facts": facts}
            if event.kind in ("member", "broken"):
                yield _member_of(event, before, position)
                source.repaired += walker.window.repaired
                walker.window.repaired = 0
            else:
                note(event, facts)
            before = position


def _member_of(event: Event, before: Position, position: Position) -> Member | Bad:
    number = place_of(event.path)
    if event.kind == "broken":
        return Bad(position, number, str(event.value), excerpt(event.text))
    if not isinstance(event.value, dict):
        return Bad(position, number, "not a JSON object", excerpt(str(event.value)))
    return Member(event.value, event.path, number, position["facts"], before, position)


def as_list(source: Source, layout: Layout) -> Layout:
    """Return the layout of a document that is a bare list if this one is, else the same layout."""
    with source.open() as file:
        in_list = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return replace(layout, streams=lambda path: path == (), home=(0,)) if in_list else layout


_PIECE = 4096
"""Members of a list with the newest first that are read at once."""


def oldest_first(
    source: Source,
    layout: Layout,
    resume_from: Position | None,
    note: Callable[[Event, Facts], None],
    when: Callable[[dict[str, Any]], object],
) -> Iterator[Member | Bad]:
    """Yield members as `read_members` does, but those of a list that has the newest first from its end on. Only their
    places are kept: the file is read a second time, in pieces. `when`: what tells the time of a member."""
    done, count = resume_from["offset"] if resume_from else 0, 0
    for run in _runs(source, layout, note, when):
        for item in run:
            count += 1
            if count > done:
                yield replace(item, position={"offset": count})
    source.bytes_read = source.total_bytes


@dataclass(slots=True)
class _Run:
    """The places of the members of one list, and what was told before the first one."""

    path: JsonPath
    facts: Facts
    first: datetime | None = None
    last: datetime | None = None
    places: "array[int]" = field(default_factory=lambda: array("Q"))
    bad: list[Bad] = field(default_factory=list)

    def members(self, source: Source) -> Iterator[Member | Bad]:
        pairs = list(range(0, len(self.places), 2))
        backwards = self.first is not None and self.last is not None and self.first > self.last
        pieces = [pairs[start : start + _PIECE] for start in range(0, len(pairs), _PIECE)]
        with source.open() as file:
            for piece in reversed(pieces) if backwards else pieces:
                begin = self.places[piece[0]]
                file.seek(begin)
                data = file.read(self.places[piece[-1] + 1] - begin)
                for place in reversed(piece) if backwards else piece:
                    raw = data[self.places[place] - begin : self.places[place + 1] - begin]
                    value = parse_object(raw.decode("utf-8", "replace").strip(", \t\r\n"))
                    if isinstance(value, dict):
                        yield Member(value, (*self.path, place // 2), place // 2 + 1, self.facts, {}, {})
        yield from self.bad


def _runs(
    source: Source, layout: Layout, note: Callable[[Event, Facts], None], when: Callable[[dict[str, Any]], object]
) -> Iterator[Iterator[Member | Bad]]:
    told: Facts = {}
    run: _Run | None = None
    for member in read_members(source, layout, None, lambda event, _: note(event, told)):
        path = member.path[:-1] if isinstance(member, Member) else run.path if run else ()
        if run is None or path != run.path:
            if run is not None:
                yield run.members(source)
            run = _Run(path, dict(told))
        if isinstance(member, Bad):
            run.bad.append(member)
            continue
        moment = parse_time(when(member.value))
        run.first, run.last = (moment if run.first is None else run.first), (run.last if moment is None else moment)
        run.places.extend((member.before["offset"], member.position["offset"]))
    if run is not None:
        run.facts.update(told)
        yield run.members(source)


def place_of(path: JsonPath) -> int:
    """Return the innermost index of the path, counted from 1; 1 if there is none."""
    return next((key + 1 for key in reversed(path) if isinstance(key, int)), 1)


ReadPart: TypeAlias = Callable[[Source, Options, Position | None], Iterator[Item]]


def lines_or_document(
    source: Source, options: Options, resume_from: Position | None, in_lines: ReadPart, in_document: ReadPart
) -> Iterator[Item]:
    """Yield the items of JSON lines or of one document, whichever the file is. Positions say which."""
    lines = resume_from["lines"] if resume_from else sniff_objects(source) is not None
    for item in (in_lines if lines else in_document)(source, options, resume_from):
        yield replace(item, position={**item.position, "lines": lines})


def holds_list(source: Source, key: str) -> bool:
    """Return True if the beginning of the file has a list under this key."""
    with source.open() as file:
        return re.search(rb'"%b"\s*:\s*\[' % key.encode(), file.read(1 << 16)) is not None


_SNIFFED_LINES = 200
_SNIFFED_BYTES = 1 << 20
_JSON = json.JSONDecoder(strict=False, parse_constant=str)


def read_json_lines(source: Source, resume_from: Position | None) -> Iterator[Member | Bad]:
    """Yield an object for each line that holds one, numbered by line; blank lines are skipped."""
    start = resume_from or {"offset": 0, "line": 0}
    for line in read_lines(source, offset=start["offset"], number=start["line"]):
        if line.text and not line.text.isspace():
            yield _member(line)


def _member(line: Line) -> Member | Bad:
    position = {"offset": line.end, "line": line.number}
    value = parse_object(line.text) if line.whole else TOO_LONG
    if isinstance(value, str):
        return Bad(position, line.number, value, excerpt(line.text))
    return Member(value, (), line.number, {}, line.before, position)


def parse_object(text: str) -> "dict[str, Any] | str":
    """Return the object, or why there is none."""
    try:
        value = _JSON.decode(text.strip("\ufeff \t\r\n"))
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return f"not readable as JSON: {str(error)[:80]}"
    return value if isinstance(value, dict) else "not a JSON object"


def sniff_objects(source: Source) -> list[dict[str, Any]] | None:
    """Return the objects on the first lines, if more of those lines hold one each than are parts of a formatted
    document."""
    with source.looked_at():
        texts = [text for line in islice(_short_lines(source), _SNIFFED_LINES) if (text := line.text.strip())]
    read = [value for text in texts if isinstance(value := parse_object(text), dict)]
    pieces = sum(text.endswith((",", "[", "{")) for text in texts)
    return read if len(read) > pieces else None


def _short_lines(source: Source) -> Iterator[Line]:
    """Yield the first lines that end within the sampled part of the file."""
    with source.open() as file:
        if b"\n" not in file.read(_SNIFFED_BYTES) and source.total_bytes > _SNIFFED_BYTES:
            return
    for line in read_lines(source):
        yield line
        if line.end > _SNIFFED_BYTES:
            return


def spread(member: Member, items: Iterable[Item], resume_from: Position | None) -> Iterator[Item]:
    """Yield the items of one record that holds many, each with a position between them."""
    everything = list(items)
    skipped = _skipped(member, resume_from)
    for count, item in enumerate(everything, 1):
        if count > skipped:
            inside = {**member.before, "skip": count}
            yield replace(item, position=member.position if count == len(everything) else inside)


def _skipped(member: Member, resume_from: Position | None) -> int:
    """Return how many items of this record were taken before; only the first record after resuming has any."""
    if not resume_from or "skip" not in resume_from:
        return 0
    return int(resume_from["skip"]) if member.before["offset"] == resume_from["offset"] else 0
