"""The members of a big JSON export with what the document said of their surroundings."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from roomlore.core.exports import Bad, Position
from roomlore.importers.documents import Event, Layout, Path, Walker, start_at
from roomlore.importers.items import excerpt
from roomlore.importers.source import Source

Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """`number`: its place in its container from 1. `facts`: what `note` gathered before it; what the importer adds to
    them while it handles the member is there for the next. `before`: the position to read it again."""

    value: dict[str, Any]
    path: Path
    number: int
    facts: Facts
    before: Position
    position: Position

    def bad(self, reason: str) -> Bad:
        return Bad(self.position, self.number, reason, excerpt(str(self.value)))


@contextmanager
def walking(source: Source, layout: Layout, place: Position | None) -> Iterator[Walker]:
    """A walker over the source's document, which counts what it repairs."""
    encoding, mark = source.encoding()
    encoding = encoding if encoding.startswith("utf-16") else "utf-8"
    with source.open() as file:
        walker = Walker(file, layout, encoding=encoding, place=place or start_at(mark))
        yield walker


def read_members(
    source: Source, layout: Layout, resume_from: Position | None, note: Callable[[Event, Facts], None]
) -> Iterator[Member | Bad]:
    """Members in the document's order; `note` sees every other event and keeps in the facts what members need."""
    with walking(source, layout, resume_from) as walker:
        facts: Facts = resume_from["facts"] if resume_from else {}
        before: Position = {**walker.place(), "facts": facts}
        for event in walker.events():
            source.bytes_read = event.end
            facts = dict(facts)
            position = {**walker.place(), "facts": facts}
            if event.kind in ("member", "broken"):
                yield _found(event, before, position)
                source.repaired += walker.window.repaired
                walker.window.repaired = 0
            else:
                note(event, facts)
            before = position


def _found(event: Event, before: Position, position: Position) -> Member | Bad:
    number = place_of(event.path)
    if event.kind == "broken":
        return Bad(position, number, str(event.value), excerpt(event.text))
    if not isinstance(event.value, dict):
        return Bad(position, number, "not a JSON object", excerpt(str(event.value)))
    return Member(event.value, event.path, number, position["facts"], before, position)


def place_of(path: Path) -> int:
    """The innermost index on the way, counted from 1; 1 where there is none."""
    return next((key + 1 for key in reversed(path) if isinstance(key, int)), 1)
