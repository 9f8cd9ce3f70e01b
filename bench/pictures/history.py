"""The memory of a group over a week of nights, drawn like a log of git: versions, a merge, a delete and a revert."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from bench.pictures import nights
from bench.pictures.held import held
from bench.pictures.svg import LARGE, SMALL, WIDTH, Sheet
from roomlore.core.memory.memory import Action, Change
from roomlore_testkit.model_server import ModelServer

NAME = "evolution-history.svg"

_TOP, _HEADING, _ROW = 92, 34, 46
_LANES, _LANE, _TEXT = 36, 25, 196
_LOOKS = ("c0", "c1", "c2", "c3", "c4", "c5")
_TAGS: Mapping[Action, tuple[str, str]] = {
    Action.CREATE: ("new", "c2"),
    Action.UPDATE: ("changed", "c0"),
    Action.MERGE: ("merged", "c3"),
    Action.DELETE: ("deleted", "grave"),
    Action.REVERT: ("reverted", "c1"),
}


async def run() -> tuple[list[Change], Mapping[str, int]]:
    """The log of the group, and how many messages each evolution read."""
    async with ModelServer(nights.Script()) as server, held(nights.settings(server)) as (lore, clock):
        await nights.live(lore, clock)
        scope = f"group:{nights.ROOM}"
        evolutions = await lore.memories.evolutions(scope)
        return await lore.memories.changes(scope), {
            evolution.evolution_id: evolution.messages for evolution in evolutions
        }


async def draw() -> str:
    log, read = await run()
    moments = [list(changes) for _, changes in groupby(log, key=lambda one: one.at)]
    sheet = Sheet(
        _TOP + _HEADING * len(moments) + _ROW * len(log) + 48,
        title="The memory of a group over a week, with every version it ever had",
        alternative=_alternative_text(log),
    )
    sheet.text(24, 34, "What a group has come to be, night after night", size=LARGE, bold=True)
    caption = "A dot is a version, a column a memory. Nothing is overwritten: what ends stays in the log."
    sheet.text(24, 56, caption, colour="soft")
    places, end = _headings(sheet, moments, read)
    _Graph(sheet, log, places, end=end).draw()
    for change in log:
        _words(sheet, change, places[change.number])
    caption = "The answers of the model are a script; versions, checks and log are roomlore's."
    sheet.text(24, end + 28, caption, size=SMALL, colour="soft")
    return sheet.drawn()


def _headings(
    sheet: Sheet, moments: Sequence[Sequence[Change]], read: Mapping[str, int]
) -> tuple[dict[int, float], float]:
    """A heading for each moment; how far down each change stands below it, and where all end."""
    places: dict[int, float] = {}
    y = float(_TOP)
    for changes in moments:
        _heading(sheet, f"{changes[0].at:%-d %B, %H:%M}", changes, read, y + 6)
        y += _HEADING
        for change in changes:
            places[change.number] = y
            y += _ROW
    return places, y


def _heading(sheet: Sheet, when: str, changes: Sequence[Change], read: Mapping[str, int], y: float) -> None:
    messages = read.get(changes[0].evolution_id or "")
    what = f"an evolution read {messages} messages" if messages else "a person took the evolution back"
    sheet.rect(_TEXT - 10, y - 17, WIDTH - _TEXT - 6, 25, "band", round_by=5)
    sheet.text(_TEXT, y, when, size=SMALL, bold=True)
    sheet.text(WIDTH - 26, y, what, size=SMALL, colour="soft", anchor="end")


def _words(sheet: Sheet, change: Change, y: float) -> None:
    tag, colour = _TAGS[change.action]
    gone = change.action is Action.DELETE
    sheet.text(_TEXT, y + 5, tag, size=SMALL, bold=True, colour=colour)
    begin = _TEXT + 74
    sheet.text(begin, y + 5, change.memory.statement, room=WIDTH - begin - 54, struck=gone, bold=False)
    sheet.text(WIDTH - 26, y + 5, f"v{change.memory.version}", size=SMALL, colour="soft", anchor="end")
    sheet.text(begin, y + 24, change.reason, size=SMALL, colour="soft")


class _Graph:
    """Dots and the lines between them. `places`: where each change stands; `end`: where what is in force ends."""

    def __init__(self, sheet: Sheet, log: Sequence[Change], places: Mapping[int, float], *, end: float) -> None:
        self._sheet = sheet
        self._log = log
        self._places = places
        self._end = end
        self._lanes: dict[str, int] = {}
        self._at: dict[str, tuple[int, float]] = {}
        """Lane and row of each version, by its id."""
        for change in log:
            lane = self._lanes.setdefault(change.memory.lineage_id, len(self._lanes))
            self._at.setdefault(change.memory.memory_id, (lane, places[change.number]))

    def draw(self) -> None:
        for change in self._log:
            self._came(change)
        closed = {close for change in self._log for close in change.closes}
        closed |= {one.memory.memory_id for one in self._log if one.action is Action.DELETE}
        again = {change.memory.memory_id for change in self._log if change.action is Action.REVERT}
        for version, (lane, y) in self._at.items():
            if version not in closed - again:
                self._line(lane, self._last(version, y), lane, self._end + 6)
        for change in self._log:
            self._dot(change)

    def _last(self, version: str, y: float) -> float:
        return max([y, *(self._places[change.number] for change in self._log if change.memory.memory_id == version)])

    def _came(self, change: Change) -> None:
        """The lines to what this change made, from what it took the place of."""
        lane, _ = self._at[change.memory.memory_id]
        y = self._places[change.number]
        if change.action is Action.REVERT:
            _, back = self._at[change.memory.memory_id]
            x = _x(lane)
            self._sheet.path(f"M{x} {back}C{x - 24} {back + 30} {x - 24} {y - 30} {x} {y}", _look(lane), dashed=True)
            for close in change.closes:
                from_lane, from_y = self._at[close]
                self._sheet.line(_x(from_lane), from_y, _x(from_lane), from_y + 17, "grave", width=3)
                _cross(self._sheet, _x(from_lane), from_y + 17)
        elif change.action is Action.DELETE:
            self._line(lane, self._at[change.memory.memory_id][1], lane, y)
        else:
            for parent in change.memory.parents:
                from_lane, from_y = self._at[parent]
                self._line(from_lane, self._last_before(parent, change.number, from_y), lane, y)

    def _last_before(self, version: str, number: int, y: float) -> float:
        earlier = (change for change in self._log if change.memory.memory_id == version and change.number < number)
        return max([y, *(self._places[change.number] for change in earlier)])

    def _line(self, from_lane: int, from_y: float, lane: int, y: float) -> None:
        x, to_x = _x(from_lane), _x(lane)
        if x == to_x:
            self._sheet.line(x, from_y, x, y, _look(from_lane), width=3)
        else:
            self._sheet.line(x, from_y, x, y - 44, _look(from_lane), width=3)
            self._sheet.path(f"M{x} {y - 44}C{x} {y - 8} {to_x} {y - 40} {to_x} {y}", _look(from_lane), width=3)

    def _dot(self, change: Change) -> None:
        lane, _ = self._at[change.memory.memory_id]
        y = self._places[change.number]
        if change.action is Action.DELETE:
            _cross(self._sheet, _x(lane), y)
        else:
            self._sheet.circle(_x(lane), y, 8, _look(lane))


def _cross(sheet: Sheet, x: float, y: float) -> None:
    sheet.line(x - 6, y - 6, x + 6, y + 6, "grave", width=3)
    sheet.line(x - 6, y + 6, x + 6, y - 6, "grave", width=3)


def _x(lane: int) -> float:
    return _LANES + lane * _LANE


def _look(lane: int) -> str:
    return _LOOKS[lane % len(_LOOKS)]


def _alternative_text(log: Sequence[Change]) -> str:
    entries = (
        f"{change.at:%-d %B}: {_TAGS[change.action][0]}, version {change.memory.version}, “{change.memory.statement}”, "
        f"because: {change.reason}"
        for change in log
    )
    return "The log of a group's memory, a line for each change. " + "; ".join(entries) + "."
