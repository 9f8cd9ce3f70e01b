"""One big JSON document read piece by piece: every scalar on the way, and the members of chosen containers whole.

Damage costs what it touches: it is reported, then reading goes on at the next thing that looks like a member, or like
the head of another container (another chat, say).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeAlias

from roomlore.importers.window import BrokenError, Window

Path: TypeAlias = tuple[str | int, ...]
Stack: TypeAlias = list[list[Any]]

_OVERLAP = 1 << 12
_DEEPEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the members are and what they look like.

    `streams`: is the container at this path one whose members are wanted whole? `start`: how a member's text begins.
    `plausible`: could this value be a member? `home`: path of the first member, for use when the way to it is damaged.
    `head`: how an object that holds such a container begins, up to the container; `head_home`: the path of that object,
    None for an index that is not known.
    """

    streams: Callable[[Path], bool]
    start: re.Pattern[str]
    plausible: Callable[[Any], bool]
    home: Path
    head: re.Pattern[str] | None = None
    head_home: tuple[str | int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """`path` leads to the value. `start`, `end`: byte offsets. For "broken", `value` is the reason."""

    kind: Literal["scalar", "member", "enter", "leave", "broken"]
    path: Path
    value: Any
    start: int
    end: int
    text: str = ""


class Walker:
    """Walks the document(s) in a file from its start, or from what `place` gave."""

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
        """Where to go on from, right after an event: the offset, the open containers as [kind, key or index], and what
        comes next."""
        stack = [list(frame) for frame in self._stack]
        return {"offset": self.window.offset, "stack": stack, "next": self._step.__name__.removeprefix("_")}

    @property
    def path(self) -> Path:
        return tuple(frame[1] for frame in self._stack)

    def events(self) -> Iterator[Event]:
        while self.window.peek() or self._stack:
            start = self.window.offset
            try:
                event = self._step()
            except BrokenError as error:
                text, path = self.window.ahead(), self.path
                found = self._recover()
                yield Event("broken", path, str(error), start, self.window.offset, text)
                if not found:
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
        found = self.window.search(re.compile("|".join(patterns)), self._accept, overlap=_OVERLAP)
        if not found:
            self._stack = []
            self._step = self._value
        return found

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
        """Into the container whose members are wanted: the one we are in, the one above, or the first."""
        while self._stack and not self._layout.streams(self.path[:-1]):
            self._stack.pop()
        if not self._stack:
            self._stack = _frames(self._layout.home, ())
        elif self._stack[-1][0] == "[":
            self._stack[-1][1] += 1


def start_at(offset: int) -> dict[str, Any]:
    """The place where a document begins."""
    return {"offset": offset, "stack": [], "next": "value"}


def _frames(path: tuple[str | int | None, ...], known: Path) -> Stack:
    keys = [
        key if key is not None else _following(known[place] if place < len(known) else None)
        for place, key in enumerate(path)
    ]
    return [["{" if isinstance(key, str) else "[", key] for key in keys]


def _following(index: object) -> int:
    return index + 1 if isinstance(index, int) else 0
