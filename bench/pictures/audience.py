"""Four statements of Ann in four rooms, and the rooms in which each may be shown."""

from dataclasses import dataclass

import roomlore
from bench.pictures.svg import LARGE, SMALL, Sheet
from roomlore import Member, Message, Source
from roomlore_testkit import START

NAME = "audience.svg"
_ROOMS = {
    "dm": ("Direct: Ann, bot", "ann"),
    "team": ("Team: Ann, Bo, 小李", "ann bo 小李"),
    "pair": ("Pair: Ann, Bo", "ann bo"),
    "lobby": ("Lobby: public", "ann bo 小李 eve"),
}
_SAID = {
    "dm": "I want another job",
    "team": "I am allergic to nuts",
    "pair": "周五我请假",
    "lobby": "I live in Kyiv",
}
_TOP, _HIGH, _LEFT, _WIDE = 116, 62, 228, 118


@dataclass(frozen=True)
class Cell:
    """A memory in a room. `said`: it was said there. `shown`: it may be shown there."""

    said: bool
    shown: bool


async def run() -> dict[str, dict[str, Cell]]:
    """For each room in which something was said, each room in which it may be shown or not."""
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as lore:
        for room, (_, people) in _ROOMS.items():
            text = _SAID[room]
            await lore.messages.add(
                [
                    Message(id=f"{room}-{who}", room_id=room, sender_id=who, text=text, sent_at=START)
                    for who in people.split()
                ]
            )
            await lore.rooms.set_members(room, [Member(who, START) for who in people.split()])
            await lore.rooms.set_kind(room, {"dm": "direct", "lobby": "public"}.get(room, "private"))
            await lore.memories.add("user:ann", text, sources=[Source(room, f"{room}-ann")])
        cells_by_room: dict[str, dict[str, Cell]] = {room: {} for room in _ROOMS}
        for where in _ROOMS:
            seen = {
                memory_seen.memory.statement: memory_seen.shown
                for memory_seen in await lore.memories.visible(f"room:{where}")
            }
            for room, text in _SAID.items():
                cells_by_room[room][where] = Cell(room == where, seen[text])
    return cells_by_room


async def draw() -> str:
    cells_by_room = await run()
    sheet = Sheet(
        _TOP + _HIGH * len(_ROOMS) + 66,
        title="Where what Ann said may be shown",
        alternative=_alternative_text(cells_by_room),
    )
    sheet.text(24, 34, "A room is shown what everybody in it heard", size=LARGE, bold=True)
    sheet.text(24, 58, "Rows: what Ann said, and where. Columns: where the bot may speak of it.", colour="soft")
    for number, (name, _) in enumerate(_ROOMS.values()):
        first, _, rest = name.partition(": ")
        x = _LEFT + _WIDE * (number + 0.5)
        sheet.text(x, _TOP - 26, first, size=SMALL, bold=True, anchor="middle")
        sheet.text(x, _TOP - 8, rest, size=SMALL, colour="soft", anchor="middle", room=_WIDE)
    for row, (room, cells) in enumerate(cells_by_room.items()):
        y = _TOP + _HIGH * row
        sheet.text(24, y + 28, _SAID[room], bold=True, room=_LEFT - 36)
        sheet.text(24, y + 47, _ROOMS[room][0], size=SMALL, colour="soft", room=_LEFT - 36)
        for number, cell in enumerate(cells.values()):
            _cell(sheet, _LEFT + _WIDE * number, y, cell)
    below = _TOP + _HIGH * len(_ROOMS) + 40
    sheet.rect(24, below - 12, 14, 14, "c2", round_by=3)
    sheet.text(46, below, "shown", size=SMALL, colour="soft")
    sheet.rect(130, below - 12, 14, 14, "band", edge="grave", round_by=3)
    sheet.text(152, below, "withheld: somebody there did not hear it", size=SMALL, colour="soft")
    return sheet.drawn()


def _cell(sheet: Sheet, x: float, y: float, cell: Cell) -> None:
    word = "said here" if cell.said else "shown" if cell.shown else "withheld"
    colour = "c2" if cell.shown else "grave"
    sheet.rect(x + 4, y + 8, _WIDE - 8, _HIGH - 12, "band", edge=colour, round_by=8)
    sheet.text(x + _WIDE / 2, y + 38, word, size=SMALL, colour=colour, bold=cell.shown, anchor="middle")


def _alternative_text(cells_by_room: dict[str, dict[str, Cell]]) -> str:
    lines = []
    for room, cells in cells_by_room.items():
        shown = ", ".join(_ROOMS[where][0] for where, cell in cells.items() if cell.shown)
        lines.append(f"“{_SAID[room]}”, said in “{_ROOMS[room][0]}”, may be shown in: {shown}.")
    return " ".join(lines)
