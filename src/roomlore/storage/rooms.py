"""Rooms with their counters, settings and people; API keys; and positions of imports."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Text,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    union,
    union_all,
    update,
)
from sqlalchemy import insert as sqlalchemy_insert
from sqlalchemy.dialects.postgresql import insert

from roomlore.core.audience import PastKind, Presence, RoomKind, RoomPeople, RoomStamp, Stay, Window
from roomlore.core.errors import Conflict, InvalidInput, NotFound, unknown_room
from roomlore.core.models import ApiKey, Room, Speaker, Voice
from roomlore.storage import schema
from roomlore.storage.engine import LockedRoom, Repository, Row, Statement, among, in_room, in_use, named_room
from roomlore.storage.rows import (
    containing,
    from_micros,
    from_micros_or_none,
    literal,
    mapping_text,
    names_text,
    to_micros,
    to_micros_or_none,
)
from roomlore.storage.shapes import KEY, ROOM, past_kinds_text, read_past_kinds
from roomlore.storage.values import VECTORS

_rooms, _people, _members, _m = schema.rooms, schema.participants, schema.room_members, schema.messages


def _people_before() -> Any:
    there = (in_room(_m), _m.c.deleted_at.is_(None), _m.c.arrival < bindparam("before"))
    named_at = func.max(case((_m.c.sender_name != literal_column("''"), _m.c.arrival)))
    first = func.min(_m.c.arrival)
    spoken = select(_m.c.room_key, _m.c.sender_id, first.label("first"), named_at.label("named_at")).where(*there)
    people = spoken.group_by(_m.c.room_key, _m.c.sender_id).subquery("people")
    latest = _m.alias("latest")
    its = (latest.c.room_key == people.c.room_key) & (latest.c.arrival == people.c.named_at)
    name = func.coalesce(latest.c.sender_name, literal_column("''"))
    return select(people.c.sender_id, name).select_from(people.outerjoin(latest, its)).order_by(people.c.first)


_FIND = Statement(lambda: select(*ROOM.columns).where(named_room()))
_REVISION = Statement(lambda: select(_rooms.c.revision, _rooms.c.created_at).where(named_room()))
_PAGE = Statement(
    lambda: (
        select(*ROOM.columns)
        .where(_rooms.c.tenant == bindparam("tenant"), _rooms.c.room_id > bindparam("after"), in_use)
        .order_by(_rooms.c.room_id)
        .limit(bindparam("count"))
    )
)
_CONFIGURE = Statement(lambda: _changed(settings=bindparam("new_settings")).returning(*ROOM.columns))
_LATEST_FIRST = (func.coalesce(_rooms.c.last_sent_at, literal_column("-9223372036854775808")).desc(), _rooms.c.room_id)
_USED_LAST = Statement(lambda: _used_last())
_NAMED_LIKE = Statement(lambda: _used_last().where(or_(_like(_rooms.c.room_id), _like(_rooms.c.room_name))))
_LATEST_VOICE = func.coalesce(_people.c.last_spoke_at, literal_column("-9223372036854775808"))
_SPOKE_LAST = Statement(lambda: _along_time(_people.c.last_spoke_at.is_not(None)))
_ONLY_ANSWERED = Statement(lambda: _along_time(_people.c.last_spoke_at.is_(None)))
_NAMES_OF = Statement(lambda: _names_of())
_VOICE_ROWS = 4
"""Rows that are read at first for each speaker of a page: a row is of one room."""
_VOICES = Statement(lambda: _voices())
_is_public = _rooms.c.kind == literal_column(f"'{RoomKind.PUBLIC}'")
_one_kind = _rooms.c.past_kinds == literal_column("''")
_PUBLIC = Statement(lambda: _used_last().where(_is_public, _one_kind))
_PARTLY_PUBLIC = Statement(
    lambda: (
        select(*ROOM.columns)
        .where(
            _rooms.c.tenant == bindparam("tenant"),
            _rooms.c.past_kinds != literal_column("''"),
            or_(_is_public, _rooms.c.past_kinds.contains(RoomKind.PUBLIC.value)),
        )
        .order_by(_rooms.c.room_id)
    )
)
_OF_PERSON = Statement(lambda: _of_person())


def _changed(**values: Any) -> Any:
    """Return an update of a room, which raises its revision."""
    return update(_rooms).where(named_room()).values(**values, revision=_rooms.c.revision + 1)


def _used_last() -> Any:
    chosen = select(*ROOM.columns).where(_rooms.c.tenant == bindparam("tenant"), in_use)
    return chosen.order_by(*_LATEST_FIRST).limit(bindparam("count")).offset(bindparam("start"))


def _like(column: Any) -> Any:
    return func.lower(column).like(func.lower(bindparam("pattern")), escape="!")


def _along_time(when: Any) -> Any:
    """Select senders along the index of when they spoke, the latest first, as `_spoke_last` does. They are ordered by
    an expression: SQLite would else read all people along the index of senders."""
    p = _people.c
    chosen = select(p.sender_id).where(p.tenant == bindparam("tenant"), when, p.messages > 0)
    by_id = p.sender_id.concat(literal_column("''"))
    return chosen.order_by(p.last_spoke_at.desc(), by_id).limit(bindparam("count"))


def _spoke_last(*conditions: Any) -> Any:
    """Select senders by when they spoke in some room, the latest first: one who spoke in several rooms comes several
    times. Grouping all people instead takes six times as long. The tenant is compared as an expression: SQLite would
    else read its people along an index, one by one, though few of them are wanted."""
    p = _people.c
    its = (p.tenant.concat(literal_column("''")) == bindparam("tenant"), p.messages > 0, *conditions)
    return select(p.sender_id).where(*its).order_by(_LATEST_VOICE.desc(), p.sender_id).limit(bindparam("count"))


def _speakers(*conditions: Any) -> Any:
    """Select these senders with the sums over their rooms."""
    p = _people.c
    columns = (func.max(p.name), func.count(), func.sum(p.messages), func.max(p.last_spoke_at))
    agent = func.max(case((p.answers, 1), else_=0))
    its = (p.tenant == bindparam("tenant"), p.messages > 0, among(p.sender_id, "senders"), *conditions)
    return select(p.sender_id, *columns, agent).where(*its).group_by(p.sender_id)


def _voices() -> Any:
    p = _people.c
    joined = _people.join(_rooms, _rooms.c.room_key == p.room_key)
    its = (_rooms.c.room_id, p.name, p.messages, p.last_arrival, p.last_spoke_at)
    chosen = select(p.sender_id, *its).select_from(joined)
    latest = func.coalesce(p.last_spoke_at, literal_column("-9223372036854775808")).desc()
    these = (p.tenant == bindparam("tenant"), among(p.sender_id, "senders"), p.messages > 0)
    return chosen.where(*these).order_by(latest, _rooms.c.room_id)


@cache
def _speaker_statements(*, named: bool, in_rooms: bool) -> tuple[Sequence[Statement], Statement]:
    """Return the statements that find speakers, one after the other, and the one that counts what they said. `named`:
    by a part of an id or a name; `in_rooms`: in these rooms only."""

    def conditions() -> list[Any]:
        p = _people.c
        these = select(_rooms.c.room_key).where(*_these_rooms)
        return [or_(_like(p.sender_id), _like(p.name))] * named + [p.room_key.in_(these)] * in_rooms

    statements = (
        (Statement(lambda: _spoke_last(*conditions())),) if named or in_rooms else (_SPOKE_LAST, _ONLY_ANSWERED)
    )
    return statements, Statement(lambda: _speakers(*conditions()))


def _names_of() -> Any:
    joined = _people.join(_rooms, _rooms.c.room_key == _people.c.room_key)
    its = (*_these_rooms, among(_people.c.sender_id, "senders"), _people.c.name != literal_column("''"))
    return select(_rooms.c.room_id, _people.c.sender_id, _people.c.name).select_from(joined).where(*its)


def _of_person() -> Any:
    its = (
        select(table.c.room_key).where(table.c.tenant == bindparam("tenant"), person == bindparam("person_id"))
        for table, person in ((_people, _people.c.sender_id), (_members, _members.c.person_id))
    )
    chosen = select(*ROOM.columns).where(_rooms.c.tenant == bindparam("tenant"), _rooms.c.room_key.in_(union(*its)))
    return chosen.order_by(_rooms.c.room_id)


_PEOPLE = Statement(
    lambda: select(_people.c.sender_id, _people.c.name).where(in_room(_people)).order_by(_people.c.first_arrival)
)
_PEOPLE_BEFORE = Statement(_people_before)
_LAST_SPOKEN = Statement(
    lambda: select(_people.c.last_arrival).where(in_room(_people), _people.c.sender_id == bindparam("sender_id"))
)
_ROOMS_OF = Statement(
    lambda: (
        select(_rooms.c.room_id)
        .select_from(_people.join(_rooms, _rooms.c.room_key == _people.c.room_key))
        .where(_people.c.tenant == bindparam("tenant"), _people.c.sender_id == bindparam("sender_id"))
        .order_by(_rooms.c.room_id)
    )
)
_SET_KIND = Statement(
    lambda: _changed(kind=bindparam("new_kind"), past_kinds=bindparam("past")).returning(*ROOM.columns)
)
_RENAME = Statement(lambda: _changed(room_name=bindparam("new_name")).returning(*ROOM.columns))
_TELL_MEMBERS = Statement(lambda: _changed(members_told=bindparam("all_told")))
_DROP_MEMBERS = Statement(lambda: delete(_members).where(in_room(_members)))
_ADD_MEMBERS = Statement(lambda: insert(_members))
_these_rooms = (_rooms.c.tenant == bindparam("tenant"), among(_rooms.c.room_id, "room_ids"), in_use)
_STAMPS = Statement(lambda: select(_rooms.c.room_id, _rooms.c.created_at, _rooms.c.revision).where(*_these_rooms))
_PEOPLE_OF = Statement(lambda: _people_of())
_PEOPLE_AMONG = Statement(lambda: _people_of("persons"))
_KIND, _SPEAKER, _STAY = range(3)
"""The parts of `_people_of`."""


def _people_of(persons: str | None = None) -> Any:
    """Select the kinds of rooms, who spoke there and the stays, in one statement. `persons`: a parameter, only they."""
    r, p, m = _rooms.c, _people.c, _members.c
    listing, answers = (case((column, 1), else_=0) for column in (r.members_told, p.answers))
    none = null()
    kinds = _part(_KIND, r.kind + literal_column("' '") + r.past_kinds, listing, none, none, none).where(*_these_rooms)
    spoke = _part(_SPEAKER, p.sender_id, answers, p.first_spoke_at, p.last_spoke_at, none)
    stays = _part(_STAY, m.person_id, m.number, m.told_at, m.joined_at, m.left_at)
    parts = [kinds]
    for part, table, person in ((spoke, _people, p.sender_id), (stays, _members, m.person_id)):
        joined = part.select_from(table.join(_rooms, r.room_key == table.c.room_key)).where(*_these_rooms)
        parts.append(joined if persons is None else joined.where(among(person, persons)))
    return union_all(*parts).order_by("part", "number")


def _part(part: int, name: Any, number: Any, *times: Any) -> Any:
    labels = ("name", "number", "one", "two", "three")
    columns: list[Any] = [cast(name, Text), *(cast(column, BigInteger) for column in (number, *times))]
    labelled = (column.label(label) for column, label in zip(columns, labels, strict=True))
    return select(_rooms.c.room_id, literal_column(str(part)).label("part"), *labelled)


keeps_vectors = exists().where(schema.index_states.c.name == VECTORS)
LOCK = Statement(
    lambda: (
        select(_rooms.c.room_key, keeps_vectors, _rooms.c.pending_from, *ROOM.columns)
        .where(named_room())
        .with_for_update()
    )
)
_BEING_DELETED = Statement(
    lambda: select(_rooms.c.room_id).where(
        _rooms.c.tenant == bindparam("tenant"), _rooms.c.room_id == bindparam("room_id"), ~in_use
    )
)
_MAKE = Statement(
    lambda: (
        insert(_rooms)
        .values(
            tenant=bindparam("tenant"),
            room_id=bindparam("room_id"),
            next_arrival=1,
            revision=0,
            messages=0,
            created_at=bindparam("now"),
            settings="{}",
        )
        .on_conflict_do_nothing()
    ),
    brief=True,
)


class Rooms(Repository):
    """The rooms of a tenant, their counters, settings and people."""

    async def find(self, *, room_id: str) -> Room | None:
        """Return the room as stored, or None."""
        rows = await self._sql.fetch(_FIND, tenant=self._tenant, room_id=room_id)
        return ROOM.read(rows[0]) if rows else None

    async def get(self, *, room_id: str) -> Room:
        """Return the room as stored. Raise `UnknownRoom`."""
        room = await self.find(room_id=room_id)
        if room is None:
            raise unknown_room(room_id)
        return room

    async def is_current(self, *, room: Room) -> bool:
        """Return True if nothing of the room changed since it was read."""
        rows = await self._sql.fetch(_REVISION, tenant=self._tenant, room_id=room.room_id)
        return bool(rows) and rows[0] == (room.revision, to_micros(room.created_at))

    async def page(self, *, after: str | None, limit: int) -> list[Room]:
        """Return rooms with an id above `after`, ascending by id."""
        rows = await self._sql.fetch(_PAGE, tenant=self._tenant, after=after or "", count=limit)
        return [ROOM.read(row) for row in rows]

    async def lock(self, *, room_id: str, now: datetime) -> Room:
        """Return the room, created if new, with its row locked until the unit of work ends. Only while writing. Raises
        `Conflict` while a room of this id is being deleted."""
        while (room := await self.lock_known(room_id=room_id)) is None:
            await self.check_not_deleted(room_id=room_id)
            await self._sql.fetch(_MAKE, now=to_micros(now), tenant=self._tenant, room_id=room_id)
        return room

    async def check_not_deleted(self, *, room_id: str) -> None:
        """Raise `Conflict` while a room of this id is being deleted."""
        if await self._sql.fetch(_BEING_DELETED, tenant=self._tenant, room_id=room_id):
            raise Conflict("room_being_deleted", room=repr(room_id))

    async def lock_known(self, *, room_id: str) -> Room | None:
        """Return the room with its row locked until the unit of work ends, None if there is no such room. Only while
        writing."""
        self._locks.check_writing()
        rows = await self._sql.fetch(LOCK, tenant=self._tenant, room_id=room_id)
        if not rows:
            return None
        key, keeps, pending_from, *room = rows[0]
        self._locks.take(LockedRoom(key, self._tenant, room_id, bool(keeps), pending_from))
        return ROOM.read(room)

    async def configure(self, *, room_id: str, settings: Mapping[str, Any]) -> Room:
        """Replace the room's own settings and raise its revision. Raises `NotFound` if there is no such room."""
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _CONFIGURE, tenant=self._tenant, room_id=room_id, new_settings=_settings_text(settings)
        )
        if not rows:
            raise NotFound("room_unknown_to_storage", room=repr(room_id))
        return ROOM.read(rows[0])

    async def participants(self, *, room_id: str) -> dict[str, str]:
        """Return sender id to last known name ('' if none) of everyone who has spoken, in order of first speaking."""
        rows = await self._sql.fetch(_PEOPLE, tenant=self._tenant, room_id=room_id)
        return dict(rows)

    async def names_of(self, *, room_ids: Collection[str], sender_ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return by room and sender id the last known names of these senders in these rooms, without empty ones."""
        if not (room_ids and sender_ids):
            return {}
        named = {"room_ids": names_text(sorted(room_ids)), "senders": names_text(sorted(sender_ids))}
        names: dict[str, dict[str, str]] = {}
        for room_id, sender, name in await self._sql.fetch(_NAMES_OF, tenant=self._tenant, **named):
            names.setdefault(room_id, {})[sender] = name
        return names

    async def participants_before(self, *, room_id: str, arrival: int) -> dict[str, str]:
        """Return the participants before the message with this arrival, by the messages that still exist. It reads all
        of these."""
        rows = await self._sql.fetch(_PEOPLE_BEFORE, tenant=self._tenant, room_id=room_id, before=arrival)
        return dict(rows)

    async def last_spoken(self, *, room_id: str, sender_id: str) -> int:
        """Return the arrival of the newest message that this sender wrote in the room, 0 if there is none."""
        named = {"tenant": self._tenant, "room_id": room_id, "sender_id": sender_id}
        rows = await self._sql.fetch(_LAST_SPOKEN, **named)
        return int(rows[0][0]) if rows else 0

    async def set_kind(self, *, room_id: str, kind: RoomKind | None, past: Sequence[PastKind] = ()) -> Room:
        """Set the kind of a locked room, None for unknown, and those it had before, and raise its revision."""
        held = self._locks.held(self._tenant, room_id)
        named = {"tenant": held.tenant, "room_id": room_id}
        values = {"new_kind": kind.value if kind else "", "past": past_kinds_text(past)}
        return ROOM.read((await self._sql.fetch(_SET_KIND, **values, **named))[0])

    async def rename(self, *, room_id: str, name: str) -> Room:
        """Name a locked room, '' for no name, and raise its revision."""
        held = self._locks.held(self._tenant, room_id)
        named = {"tenant": held.tenant, "room_id": room_id}
        return ROOM.read((await self._sql.fetch(_RENAME, new_name=name, **named))[0])

    async def set_members(self, *, room_id: str, stays: Mapping[str, Sequence[Stay]], complete: bool) -> None:
        """Replace the members of a locked room and raise its revision: by person, their stays in order. `complete`:
        they are all there are."""
        held = self._locks.held(self._tenant, room_id)
        named = {"tenant": self._tenant, "room_id": room_id}
        await self._sql.fetch(_TELL_MEMBERS, all_told=complete, **named)
        await self._sql.fetch(_DROP_MEMBERS, **named)
        rows = [
            (held.key, person, number, named["tenant"], *_stay_values(stay))
            for person, its in stays.items()
            for number, stay in enumerate(its, start=1)
        ]
        if rows:
            await self._sql.many(_ADD_MEMBERS, rows)

    async def people(
        self, *, room_ids: Collection[str], persons: Collection[str] | None = None
    ) -> dict[str, RoomPeople]:
        """Return the people of these rooms, by room, without unknown rooms: members and those who spoke, without agents
        (who spoke, and never with the role user). `persons`: only these; None is all."""
        if not room_ids:
            return {}
        where: dict[str, Any] = {"tenant": self._tenant, "room_ids": names_text(sorted(room_ids))}
        if persons is None:
            return _with_people(await self._sql.fetch(_PEOPLE_OF, **where))
        return _with_people(await self._sql.fetch(_PEOPLE_AMONG, persons=names_text(sorted(persons)), **where))

    async def stamps(self, *, room_ids: Collection[str]) -> dict[str, RoomStamp]:
        """Return the stamps of these rooms, without unknown rooms. While a room has the same stamp, `people` returns
        the same of it."""
        rows = await self._sql.fetch(_STAMPS, tenant=self._tenant, room_ids=names_text(sorted(room_ids)))
        return {name: (created_at, revision) for name, created_at, revision in rows}

    async def used_last(self, *, limit: int, public: bool = False, offset: int = 0) -> list[Room]:
        """Return rooms, or only those that were public at all times, those with the latest message first, then by id,
        after the first `offset`."""
        chosen = _PUBLIC if public else _USED_LAST
        rows = await self._sql.fetch(chosen, tenant=self._tenant, count=limit, start=offset)
        return [ROOM.read(row) for row in rows]

    async def partly_public(self) -> list[Room]:
        """Return the rooms that were public at some times and not at others, by id."""
        return [ROOM.read(row) for row in await self._sql.fetch(_PARTLY_PUBLIC, tenant=self._tenant)]

    async def named_like(self, *, part: str, limit: int, whole: bool = False) -> list[Room]:
        """Return rooms whose id or name contains `part`, whatever its case in ASCII, those with the latest message
        first. `whole`: only those whose id or name is the part."""
        pattern = literal(part) if whole else containing(part)
        rows = await self._sql.fetch(_NAMED_LIKE, tenant=self._tenant, pattern=pattern, count=limit, start=0)
        return [ROOM.read(row) for row in rows]

    async def speakers(
        self, *, part: str, room_ids: Collection[str] | None, limit: int, offset: int = 0
    ) -> list[Speaker]:
        """Return those who spoke and whose id or name contains `part` ('' for everybody), whatever its case in ASCII:
        who spoke last comes first, then by id. `room_ids`: in these rooms only; None is all."""
        statements, counted = _speaker_statements(named=bool(part), in_rooms=room_ids is not None)
        values: dict[str, Any] = {"tenant": self._tenant}
        if part:
            values["pattern"] = containing(part)
        if room_ids is not None:
            values["room_ids"] = names_text(sorted(room_ids))
        wanted, count, senders = offset + limit, _VOICE_ROWS * (offset + limit), list[str]()
        while len(senders) < wanted:
            rows: list[Row] = []
            for statement in statements:
                if len(rows) < count:
                    rows += await self._sql.fetch(statement, count=count - len(rows), **values)
            senders = list(dict.fromkeys(sender for (sender,) in rows))
            if len(rows) < count:
                break
            count *= _VOICE_ROWS
        shown = senders[offset:wanted]
        if not shown:
            return []
        made = map(_speaker, await self._sql.fetch(counted, senders=names_text(shown), **values))
        by_id = {voice.sender_id: voice for voice in made}
        return [by_id[sender] for sender in shown if sender in by_id]

    async def voices(self, *, sender_id: str) -> list[Voice]:
        """Return where this sender spoke, the room with the sender's latest message first, then by id."""
        return (await self.voices_of(sender_ids=[sender_id])).get(sender_id, [])

    async def voices_of(self, *, sender_ids: Collection[str]) -> dict[str, list[Voice]]:
        """Return by sender where these senders spoke, as `voices` does."""
        voices: dict[str, list[Voice]] = {}
        rows = await self._sql.fetch(_VOICES, tenant=self._tenant, senders=names_text(sorted(sender_ids)))
        for sender, room_id, name, messages, arrival, spoke in rows:
            voice = Voice(
                room_id=room_id,
                name=name,
                messages=messages,
                last_arrival=arrival,
                last_spoke_at=from_micros_or_none(spoke),
            )
            voices.setdefault(sender, []).append(voice)
        return voices

    async def of_person(self, *, person_id: str) -> list[Room]:
        """Return all rooms in which this person spoke or was told to be, ascending by id."""
        rows = await self._sql.fetch(_OF_PERSON, tenant=self._tenant, person_id=person_id)
        return [ROOM.read(row) for row in rows]

    async def of_sender(self, *, sender_id: str) -> list[str]:
        """Return the ids of the rooms in which this sender has spoken, ascending."""
        rows = await self._sql.fetch(_ROOMS_OF, tenant=self._tenant, sender_id=sender_id)
        return [room_id for (room_id,) in rows]


def _speaker(row: Row) -> Speaker:
    sender_id, name, rooms, messages, spoke, answers = row
    return Speaker(
        sender_id=sender_id,
        name=name,
        rooms=rooms,
        messages=int(messages),
        last_spoke_at=from_micros_or_none(spoke),
        is_agent=bool(answers) and spoke is None,
    )


def _stay_values(stay: Stay) -> tuple[int, int | None, int | None]:
    return to_micros(stay.told_at), to_micros_or_none(stay.joined_at), to_micros_or_none(stay.left_at)


_told_at = lru_cache(maxsize=1 << 10)(from_micros)
"""The members of a room are told together, so that many stays have the same times."""


def _with_people(rows: Sequence[Row]) -> dict[str, RoomPeople]:
    """Return the rooms with their people. Agents are those who answered, and never spoke with the role user. Whoever
    only sent notices of the platform is there if told."""
    kinds: dict[str, tuple[tuple[str, str, str], int]] = {}
    windows: dict[tuple[str, str], Window] = {}
    agents: set[tuple[str, str]] = set()
    stays_by_person: dict[tuple[str, str], list[Stay]] = {}
    for room_id, part, name, number, joined, two, three in rows:
        if part == _KIND:
            kinds[room_id] = name.partition(" "), number
        elif part == _STAY:
            stay = Stay(_told_at(joined), None if two is None else _told_at(two), from_micros_or_none(three))
            stays_by_person.setdefault((room_id, name), []).append(stay)
        elif joined is not None:
            windows[room_id, name] = Window(from_micros(joined), from_micros(two))
        elif number:
            agents.add((room_id, name))
    people: dict[str, dict[str, Presence]] = {room_id: {} for room_id in kinds}
    for where in (windows.keys() | stays_by_person.keys()) - agents:
        people[where[0]][where[1]] = Presence(tuple(stays_by_person.get(where, ())), windows.get(where))
    return {
        room_id: RoomPeople(
            room_id, RoomKind(kind) if kind else None, bool(complete), people[room_id], read_past_kinds(past)
        )
        for room_id, ((kind, _, past), complete) in kinds.items()
    }


def _settings_text(settings: Mapping[str, Any]) -> str:
    try:
        return mapping_text(settings)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput("room_settings_not_json", why=exc) from exc


_p = schema.import_positions
_own = (_p.c.tenant == bindparam("tenant")) & (_p.c.source == bindparam("source"))

_FIND_POSITION = Statement(lambda: select(_p.c.position).where(_own))
_SAVE = Statement(
    lambda: (
        insert(_p)
        .values(
            tenant=bindparam("tenant"),
            source=bindparam("source"),
            position=bindparam("position"),
            saved_at=bindparam("now"),
        )
        .on_conflict_do_update(
            index_elements=[_p.c.tenant, _p.c.source],
            set_={"position": bindparam("position"), "saved_at": bindparam("now")},
        )
    )
)
_FORGET = Statement(lambda: delete(_p).where(_own).returning(_p.c.source))


class ImportPositions(Repository):
    """A part of `Progress`: positions of imports."""

    async def import_position(self, *, source: str) -> str | None:
        """Return the last saved position of this source, or None."""
        rows = await self._sql.fetch(_FIND_POSITION, tenant=self._tenant, source=source)
        return rows[0][0] if rows else None

    async def save_import_position(self, *, source: str, position: str, now: datetime) -> None:
        """Store the position in place of an earlier one."""
        self._locks.check_writing()
        await self._sql.fetch(_SAVE, tenant=self._tenant, source=source, position=position, now=to_micros(now))

    async def forget_import_position(self, *, source: str) -> None:
        """Remove the position; no error if there is none."""
        self._locks.check_writing()
        await self._sql.fetch(_FORGET, tenant=self._tenant, source=source)


_k, _s = schema.api_keys, schema.signing_keys
_key_row = KEY.whole_row("secret_hash")
_of_tenant = _k.c.tenant == bindparam("tenant")
_in_force = _k.c.revoked_at.is_(None)


def _revoke() -> Any:
    chosen = update(_k).where(_k.c.key_id == bindparam("own_id"))
    first = func.coalesce(_k.c.revoked_at, bindparam("now"))
    return chosen.values(revoked_at=first).returning(_k.c.key_id)


_ADD = Statement(lambda: sqlalchemy_insert(_k))
_MATCH = Statement(lambda: select(*KEY.columns).where(_k.c.secret_hash == bindparam("hash"), _in_force))
_ALL = Statement(lambda: select(*KEY.columns).order_by(_k.c.created_at, _k.c.key_id))
_TENANT = Statement(lambda: select(*KEY.columns).where(_of_tenant).order_by(_k.c.created_at, _k.c.key_id))
_REVOKE_ANY = Statement(_revoke)
_REVOKE = Statement(lambda: _revoke().where(_of_tenant))
_FIRST = Statement(lambda: select(_k.c.key_id).limit(1))
_SIGNING = Statement(lambda: select(_s.c.secret).where(_s.c.name == bindparam("own_name")))
_SIGN = Statement(lambda: insert(_s).on_conflict_do_nothing())


class Keys(Repository):
    """API keys, by the SHA-256 of their secret."""

    async def add(self, *, key: ApiKey, secret_hash: str) -> None:
        """Add a key. Raises `Conflict` if the id or the hash exists."""
        self._locks.check_writing()
        await self._sql.many(_ADD, [_key_row(key, secret_hash)])

    async def match(self, *, secret_hash: str) -> ApiKey | None:
        """Return the key with this hash, unless revoked. The only call that finds the tenant instead of taking it."""
        rows = await self._sql.fetch(_MATCH, hash=secret_hash)
        return KEY.read(rows[0]) if rows else None

    async def page(self) -> list[ApiKey]:
        """Return all keys of the tenant (of all tenants if None, for the operator's own command line), oldest first."""
        if self._of is None:
            rows = await self._sql.fetch(_ALL)
        else:
            rows = await self._sql.fetch(_TENANT, tenant=self._tenant)
        return [KEY.read(row) for row in rows]

    async def revoke(self, *, key_id: str, now: datetime) -> bool:
        """Revoke the key. Return False if there is no such key."""
        self._locks.check_writing()
        params: dict[str, Any] = {"own_id": key_id, "now": to_micros(now)}
        if self._of is None:
            return bool(await self._sql.fetch(_REVOKE_ANY, **params))
        return bool(await self._sql.fetch(_REVOKE, tenant=self._tenant, **params))

    async def any(self) -> bool:
        """Return True if a key was ever made, for any tenant, including revoked ones."""
        return bool(await self._sql.fetch(_FIRST))

    async def signing_key(self, *, name: str) -> str | None:
        """Return the secret with this name, None if there is none. All processes of this database sign data that is
        stored elsewhere with it."""
        rows = await self._sql.fetch(_SIGNING, own_name=name)
        return rows[0][0] if rows else None

    async def keep_signing_key(self, *, name: str, secret: str) -> str:
        """Store the secret unless one with this name exists, and return the stored one. Only while writing."""
        self._locks.check_writing()
        await self._sql.many(_SIGN, [(name, secret)])
        return str((await self._sql.fetch(_SIGNING, own_name=name))[0][0])
