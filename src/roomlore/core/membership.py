"""The members of a room as a chat export tells them: who is there, and who came and went when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from roomlore.core.audience import Member, RoomKind, Stay, Stays, all_members


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """The kind and members of a room by an export. `kind`: None if it does not say. `members`: all people who are in
    it, None if the export does not list them. `since`: when they came, in a chat whose people never change. `name`:
    what the platform calls it, '' if the export does not say."""

    kind: RoomKind | None = None
    members: tuple[str, ...] | None = None
    since: datetime | None = None
    name: str = ""


NOTHING_TOLD = RoomFacts()


@dataclass(frozen=True, slots=True)
class Move:
    """A person came or went. `by_name`: `person` is a display name, since the export gives no id there."""

    person: str
    came: bool
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class TimedMove:
    """A move with its time."""

    person: str
    came: bool
    at: datetime


def kind_learned(known: RoomKind | None, told: RoomKind | None) -> RoomKind | None:
    """Return the kind of a room after an export told one. An export never opens a room: what is known stays, unless it
    is `public` and the export says otherwise; then it counts for all times."""
    return told or known if known in (None, RoomKind.PUBLIC) else known


def moves_by_id(move: Move, at: datetime, names: Mapping[str, str]) -> list[TimedMove]:
    """Return the move with the id of the person. `names`: display names by id. If several have the name, all of them
    went, and none came; if nobody has it, the name is the id."""
    if not move.by_name or move.person in names:
        return [TimedMove(move.person, move.came, at)]
    found = [one for one, name in names.items() if name == move.person] or [move.person]
    return [] if move.came and len(found) > 1 else [TimedMove(one, move.came, at) for one in found]


def stays_learned(
    known: Stays,
    facts: RoomFacts,
    moves: Iterable[TimedMove],
    now: datetime,
) -> dict[str, tuple[Stay, ...]]:
    """Return the stays after an export was read. `known`: of all who are known, without a stay for those who only
    spoke. If the export lists the members, whoever is not among them is gone."""
    found = {person: tuple(stays) for person, stays in known.items()}
    for move in sorted(moves, key=lambda move: move.at):
        stays = found.get(move.person, ())
        found[move.person] = _came(stays, move.at, now) if move.came else _went(stays, move.at, now)
    if facts.members is None:
        return {person: stays for person, stays in found.items() if stays}
    return all_members(found, [Member(person, facts.since) for person in facts.members], now)


def _came(stays: tuple[Stay, ...], at: datetime, now: datetime) -> tuple[Stay, ...]:
    """Return the stays with one from `at`. An open stay of unknown start began then."""
    if any(stay.joined_at == at or _holds(stay, at) for stay in stays if stay.joined_at):
        return stays
    unknown = next((stay for stay in stays if stay.left_at is None), None)
    if unknown is None or unknown.joined_at is not None:
        return (*stays, Stay(now, at))
    return tuple(replace(stay, joined_at=at) if stay is unknown else stay for stay in stays)


def _went(stays: tuple[Stay, ...], at: datetime, now: datetime) -> tuple[Stay, ...]:
    """Return the stays with the one that holds `at` ended then."""
    over = [stay for stay in stays if _holds(stay, at)]
    if not over and not any(stay.left_at == at for stay in stays):
        return (*stays, Stay(now, None, at))
    return tuple(replace(stay, left_at=at) if stay in over else stay for stay in stays)


def _holds(stay: Stay, at: datetime) -> bool:
    """Return True if the stay is known to have gone on at that time. Of one that ended nobody knows if its start is
    unknown."""
    if stay.left_at is None:
        return stay.joined_at is None or stay.joined_at <= at
    return stay.joined_at is not None and stay.joined_at <= at < stay.left_at
