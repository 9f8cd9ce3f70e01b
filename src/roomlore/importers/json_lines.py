"""Files with one JSON object a line."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from roomlore.core.exports import Bad, Item, Position
from roomlore.importers.items import excerpt
from roomlore.importers.lines import TOO_LONG, Line, read_lines
from roomlore.importers.members import Member
from roomlore.importers.source import Source

_SNIFFED_LINES = 200
_SNIFFED_BYTES = 1 << 20
_JSON = json.JSONDecoder(strict=False, parse_constant=str)


def read_json_lines(source: Source, resume_from: Position | None) -> Iterator[Member | Bad]:
    """An object for each line that holds one, numbered by line; blank lines are passed over."""
    start = resume_from or {"offset": 0, "line": 0}
    for line in read_lines(source, offset=start["offset"], number=start["line"]):
        if line.text and not line.text.isspace():
            yield _member(line)


def _member(line: Line) -> Member | Bad:
    position = {"offset": line.end, "line": line.number}
    value = parse_object(line.text) if line.whole else TOO_LONG
    if isinstance(value, str):
        return Bad(position, line.number, value, excerpt(line.text))
    return Member(value, (), line.number, {}, {"offset": line.start, "line": line.number - 1}, position)


def parse_object(text: str) -> "dict[str, Any] | str":
    """The object, or why there is none."""
    try:
        value = _JSON.decode(text.strip("\ufeff \t\r\n"))
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return f"not readable as JSON: {str(error)[:80]}"
    return value if isinstance(value, dict) else "not a JSON object"


def sniff_objects(source: Source) -> list[dict[str, Any]] | None:
    """The objects on the first lines, if more of those hold one each than are pieces of a laid-out document."""
    before = source.bytes_read, source.repaired
    texts = [text for line in islice(_short_lines(source), _SNIFFED_LINES) if (text := line.text.strip())]
    source.bytes_read, source.repaired = before
    found = [value for text in texts if isinstance(value := parse_object(text), dict)]
    pieces = sum(text.endswith((",", "[", "{")) for text in texts)
    return found if len(found) > pieces else None


def _short_lines(source: Source) -> Iterator[Line]:
    """The first lines, as far as they end within the part of the file that is sniffed."""
    with source.open() as file:
        if b"\n" not in file.read(_SNIFFED_BYTES) and source.total_bytes > _SNIFFED_BYTES:
            return
    for line in read_lines(source):
        yield line
        if line.end > _SNIFFED_BYTES:
            return


def spread(member: Member, items: Iterable[Item], resume_from: Position | None) -> Iterator[Item]:
    """The items of one record that holds many, each with a position between them."""
    everything = list(items)
    skipped = _skipped(member, resume_from)
    for count, item in enumerate(everything, 1):
        if count > skipped:
            inside = {**member.before, "skip": count}
            yield replace(item, position=member.position if count == len(everything) else inside)


def _skipped(member: Member, resume_from: Position | None) -> int:
    """How many items of this record were taken before; only the first record after resuming has any."""
    if not resume_from or "skip" not in resume_from:
        return 0
    return int(resume_from["skip"]) if member.before["offset"] == resume_from["offset"] else 0
