"""Forgetting finds in the database what may tell of a person. Reading every row finds the same, and no more."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import roomlore
from forget_rig import CHINESE, ENGLISH, NOW, fill
from roomlore import Lore, Message, Role, Settings
from roomlore.core.privacy import ForgetReport
from roomlore.services.privacy.forget_memories import RowEraser
from roomlore.services.privacy.forget_messages import gather
from roomlore.storage import Storage, every_row
from roomlore.storage import messages as sql_messages
from roomlore.storage.values import Sought
from roomlore.wiring.work import make_forgetter
from roomlore_testkit import backends


class EveryRow:
    """A storage in which everything may tell of a person, so that all of it is read: as forgetting did at first."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @asynccontextmanager
    async def reading(self, tenant: str | None = None) -> AsyncIterator["_Unit"]:
        async with self._storage.reading(tenant) as work:
            yield _Unit(work)

    @asynccontextmanager
    async def writing(self, tenant: str | None = None, **how: Any) -> AsyncIterator["_Unit"]:
        async with self._storage.writing(tenant, **how) as work:
            yield _Unit(work)


class _Unit:
    def __init__(self, work: Any) -> None:
        self._work = work
        self.maintenance = _Maintenance(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


class _Maintenance:
    def __init__(self, work: Any) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work.maintenance, name)

    async def rooms_telling(self, **_: Any) -> list[str]:
        return [room.room_id for room in await self._work.rooms.page(after=None, limit=1_000)]

    async def messages_telling(self, *, room_id: str, user_id: str, after: int, limit: int, **_: Any):
        found = await self._work.messages.page(room_id=room_id, after=after, limit=1_000)
        return [message.arrival for message in found if message.sender_id != user_id][:limit]

    async def rooms_with(self, **_: Any) -> None:
        return None

    async def rows(self, *, table: str, after: Any, limit: int, **_: Any) -> Sequence[Any]:
        return await self._work.maintenance.rows(table=table, after=after, limit=limit)


async def forgetting(lore: Lore, who: str, *, same_words: bool = False) -> ForgetReport:
    """Count what would be forgotten, reading every row."""
    shared = lore._resources
    every_row: Any = EveryRow(shared.storage)
    through = replace(shared, storage=every_row)
    forgetter = make_forgetter(
        through, shared.storage, shared.durable, shared.sessions, shared.indexing, shared.archiver
    )
    return await forgetter.forget(tenant=lore.tenant, user_id=who, dry_run=True, same_words=same_words)


async def looked_through(lore: Lore, who: str, storage: Any) -> Mapping[str, int]:
    person = await gather(lore.storage, tenant=lore.tenant, user_id=who)
    return (await RowEraser(backends(storage=storage, ids=lore._resources.ids)).look_through(person))[1]


def untimed(report: ForgetReport) -> ForgetReport:
    return replace(report, started_at=NOW, finished_at=NOW)


NAMES = (
    "林",
    "小林",
    "1",
    "404",
    "will",
    "Will",
    "MIKE",
    "ßigi",
    "Éva",
    "İpek",
    "ΑΣ",
    "🙂",
    'a"b\\c',
    "user",
    "n_o%",
    "ann-7f3a",
)
SAID = (
    "the spare key hangs under the third flower pot",
    "备用钥匙挂在第三个花盆下面的钩子上",
    "“see you” at the old mill\nbring 100% of the_money",
    "ok good morning",
    'ＦＵＬＬ width, and \\ "both" 引号',
    "🙂🙂🙂🙂🙂🙂🙂",
    "ok",
)
AROUND = ("", "@", "> ", "id=", "，", "x", " ", "\n", '"', "“", "”", "王", "\u0307", "!", "\ud83d")
CHANGES = (str, str.upper, str.lower, str.casefold, str.title)


def messages(rng: Random, who: str, few: int = 8) -> list[Message]:
    """Messages in two rooms, in which the person and others say and quote the same things."""
    made: list[Message] = []
    for number in range(few):
        sender = rng.choice((who, "ben", "bot", "cai"))
        pieces = [rng.choice((*SAID, who, rng.choice(CHANGES)(who))) for _ in range(rng.randrange(1, 3))]
        text = "".join(rng.choice(AROUND) + piece + rng.choice(AROUND) for piece in pieces)
        more: dict[str, Any] = {}
        if made and rng.random() < 0.4:
            more["reply_to"] = rng.choice(made).id
        if rng.random() < 0.3:
            more["metadata"] = rng.choice([{"by": who}, {who: [1, text]}, {"n": 100_404}, {"q": [text]}])
        if rng.random() < 0.2:
            more["mentions"] = (who,)
        if rng.random() < 0.2:
            more["turn_id"] = rng.choice(["t", who])
        made.append(
            Message(
                id=rng.choice([f"{number}", f"{who}:{number}"]),
                room_id=rng.choice(["team", "team", "other"]),
                sender_id=sender,
                sender_name=rng.choice(["", "Lena", who]) if sender == who else "",
                text=text,
                role=Role.ASSISTANT if sender == "bot" else Role.USER,
                **more,
            )
        )
    return made


@pytest.fixture
async def lore(request: pytest.FixtureRequest) -> AsyncIterator[Lore]:
    url, quick = request.getfixturevalue(request.param), Settings(durable_work="process")
    async with roomlore.open(url, settings=quick, background=False) as opened:
        yield opened


on_sqlite = pytest.mark.parametrize("lore", ["sqlite_url"], indirect=True)
on_both = pytest.mark.parametrize("lore", ["sqlite_url", "postgres_url"], indirect=True)


@on_both
async def test_reading_every_row_finds_the_same(lore):
    for number in range(len(NAMES)):
        rng, who = Random(number), NAMES[number]
        here = lore.for_tenant(f"tenant-{number}")
        await here.messages.add(messages(rng, who))
        for same_words in (False, True):
            every = await forgetting(here, who, same_words=same_words)
            found = await here.privacy.forget(who, dry_run=True, same_words=same_words, is_id=True)
            assert (number, untimed(found)) == (number, untimed(every))
        assert (number, await looked_through(here, who, here.storage)) == (
            number, await looked_through(here, who, EveryRow(here.storage)),
        )  # fmt: skip


@on_sqlite
async def test_nothing_is_left_for_a_search_of_every_row(lore):
    for who in NAMES:
        here = lore.for_tenant(f"of {who}")
        await here.messages.add(messages(Random(who), who, few=20))
        report = await here.privacy.forget(who, is_id=True)
        left = {one.place: one.count for one in report.left}
        assert left.keys() <= {"messages"}, who  # ids of others' messages, which callers chose
        again = await forgetting(here, who)
        assert (who, again.places, again.retired, again.rewritten) == (who, {}, (), ())
        assert (who, await looked_through(here, who, EveryRow(here.storage))) == (who, left)


@pytest.mark.parametrize("who", [ENGLISH, CHINESE], ids=["en", "zh"])
@on_both
async def test_reading_every_row_finds_the_same_in_every_place(lore, who):
    await fill(lore, who)
    every, found = await forgetting(lore, who.user_id), await lore.privacy.forget(who.user_id, dry_run=True)
    assert untimed(found) == untimed(every)
    assert await looked_through(lore, who.user_id, lore.storage) == await looked_through(
        lore, who.user_id, EveryRow(lore.storage)
    )


@on_both
async def test_only_messages_that_may_tell_are_read(lore, monkeypatch):
    """A regression: every message of the store was read, several times."""
    others = [
        Message(id=f"{room}-{number}", room_id=f"room-{room}", sender_id="ben", text=f"who waters the garden? {number}")
        for room in range(3)
        for number in range(40)
    ]
    await lore.messages.add(others)
    await lore.messages.add(Message(id="w", room_id="room-1", sender_id="maria-7f3a", text=SAID[0]))
    await lore.messages.add(Message(id="q", room_id="room-2", sender_id="cai", text=f"> {SAID[0]}"))
    read: list[int] = []

    def noted(row: Any, *more: Any) -> Any:
        read.append(row)
        return to_row(row, *more)

    to_row, to_entries = every_row._to_row, sql_messages.to_entries
    monkeypatch.setattr(every_row, "_to_row", noted)
    monkeypatch.setattr(sql_messages, "to_entries", lambda room, rows: read.extend(rows) or to_entries(room, rows))
    report = await lore.privacy.forget("maria-7f3a")
    assert report.places == {"messages": 1, "messages of others": 1}
    assert report.checked["messages"] == len(others) + 2
    assert len(read) < 20


@on_both
async def test_who_said_very_much_is_searched_without_the_database(lore):
    """So many texts that comparing every row with each would take longer than reading all rows."""
    said = [f"my number {number} is known to nobody but my aunt" for number in range(300)]
    await lore.messages.add(
        [Message(id=f"{at}", room_id="team", sender_id="maria-7f3a", text=text) for at, text in enumerate(said)]
    )
    await lore.messages.add(Message(id="q", room_id="other", sender_id="cai", text=f"> {said[-1]}"))
    report = await lore.privacy.forget("maria-7f3a")
    assert report.places["messages of others"] == 1
    assert (await lore.messages.page("other"))[0].text == "> [forgotten]"


async def test_rooms_are_not_read_one_by_one_if_every_row_may_tell():
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add([Message(id="1", room_id="r", sender_id="bo", text="tea")])
        async with lore.storage.reading(lore.tenant) as work:

            async def found(count: int) -> list[int] | None:
                sought = Sought(texts=frozenset(f"{number} cups of 茶" for number in range(count)))
                return await work.maintenance.rooms_with(table="rooms", columns=["room_id"], sought=sought)

            assert (await found(2), await found(200)) == ([], None)
