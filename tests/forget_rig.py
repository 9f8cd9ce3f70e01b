"""A store in which a person has left something in every place there is, and looks for what is left of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from roomlore import Lore, MemoryKind, Message, NewMemory, Role, Source
from roomlore.core.memory.log import replay
from roomlore.core.memory.memory import Change, Evolution
from roomlore.ports.durable import work_name

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
ROOM, OTHER_ROOM = "tea", "garden"


@dataclass(frozen=True)
class Figure:
    """A person: `secret`, `part` are what they say, `told` what others make of it."""

    user_id: str
    name: str
    secret: str
    part: str
    private: str
    told: str
    shared: str
    plain: str

    @property
    def traces(self) -> tuple[str, ...]:
        return self.user_id, self.secret, self.part, self.private, self.told


ENGLISH = Figure(
    "maria-7f3a9c",
    "Maria",
    "my blood pressure pills are in the blue tin behind the flour",
    "the spare key hangs under the third flower pot",
    "please remember that I was fired from the mill last winter",
    "Maria takes pills for her blood pressure",
    "Maria and Ben share the garden on Sundays",
    "who waters the garden on Sundays?",
)
CHINESE = Figure(
    "小林-7f3a9c",
    "小林",
    "我的降压药放在面粉后面那个蓝色的铁盒子里",
    "备用钥匙挂在第三个花盆下面的钩子上",
    "请记住我去年冬天被磨坊开除了这件事",
    "小林长期服用降压药",
    "小林和阿本星期天一起打理花园",
    "星期天谁来给花园浇水？",
)


async def fill(lore: Lore, who: Figure) -> None:
    """Everything that can hold something of the person."""
    await lore.messages.add(_messages(who))
    await lore.links.correct(ROOM, "ben-4", answers="ben-1", by=who.name)
    await lore.links.correct(ROOM, "ben-10", answers=None, by=who.user_id)
    await lore.links.correct(ROOM, f"{who.user_id}-9", answers="ben-1")
    await lore.rooms.rename(ROOM, f"{who.name} and Ben")
    await _remember(lore, who)
    await lore.sessions.create_session(
        who.user_id,
        who.user_id,
        patient_id=who.user_id,
        session={"user_snapshot": {"name": who.name, "allergies": [who.secret]}},
    )
    turn = await lore.sessions.write_turn(who.user_id, who.user_id, "bot", who.private, f"noted: {who.private}")
    await lore.sessions.checkpoint(who.user_id, f"summary: {who.private}", covers_through=turn.message_ids[-1])
    await lore.sessions.create_session(ROOM, "ben", session={"global_state": {"shared": {"note": who.secret}}})
    await lore.sessions.checkpoint(ROOM, f"summary: {who.told}", covers_through="ben-4")
    for room_id in (who.user_id, ROOM):
        await lore.sessions.query_context(room_id)
    context = await lore.context.build(ROOM, "ben-4")
    await lore._resources.recorder.settle()
    await lore.context.respond(context.context_id, f"They said: {who.secret}")
    await lore.context.feedback(context.context_id, text=f"too much about {who.user_id}", score=0.1)
    await lore.keys.create(f"phone of {who.user_id}")
    await _leave_marks(lore, who)


def _messages(who: Figure) -> list[Message]:
    def said(number: int, text: str, sender: str, **more: Any) -> Message:
        name = {who.user_id: who.name, "ben": "Ben"}.get(sender, "")
        return Message(
            **{
                "id": f"{sender}-{number}", "room_id": ROOM, "sender_id": sender, "sender_name": name, "text": text,
                "sent_at": NOW, **more,
            }
        )  # fmt: skip

    return [
        said(1, who.plain, "ben"),
        said(2, f"{who.secret}\n{who.part}", who.user_id, turn_id="t1", metadata={"device": who.user_id}),
        said(3, f"noted: {who.secret[:-3]}", "bot", role=Role.ASSISTANT, turn_id="t1", metadata={"q": who.secret}),
        said(4, f"> {who.secret}\n> {who.part}\n\nok @{who.user_id}", "ben", reply_to=f"{who.user_id}-2"),
        said(5, "", who.user_id, mentions=("ben",)),
        said(6, who.plain + " 2", "ben", mentions=(who.user_id,)),
        said(7, f"{who.name} says: {who.part}", "cid", room_id=OTHER_ROOM),
        said(8, f"fine, {who.user_id}", who.user_id, room_id=f"dm:{who.user_id}"),
        said(9, "good morning", who.user_id),
        said(10, "good morning", "ben"),
    ]


async def _remember(lore: Lore, who: Figure) -> None:
    mine, others = Source(ROOM, f"{who.user_id}-2"), Source(ROOM, "ben-1")
    group: dict[str, Any] = {"scope": f"group:{ROOM}", "kind": MemoryKind.GROUP}
    await lore.memories.add_all(
        [
            NewMemory(scope=f"user:{who.user_id}", statement=who.told, tags=[who.name], reason=who.secret),
            NewMemory(**group, statement=who.told, sources=[mine], memory_id="alone"),
            NewMemory(**group, statement=who.shared, sources=[mine, others], memory_id="both"),
            NewMemory(**group, statement=who.plain, sources=[others], memory_id="others"),
            NewMemory(scope="agent:bot", kind=MemoryKind.SHORT, statement=who.told, sources=[mine], memory_id="short"),
            NewMemory(scope=f"group:{OTHER_ROOM}", statement=f"{who.name}: {who.part}", memory_id="copy"),
        ]
    )
    await lore.memories.update("alone", statement=f"{who.told}!", reason=who.told)
    await lore.memories.update("others", statement=f"{who.plain}!")


async def _leave_marks(lore: Lore, who: Figure) -> None:
    storage = lore.storage
    record = Evolution(
        evolution_id="evolution-1", scope=f"group:{ROOM}", kind="evolution", status="applied", room_id=ROOM,
        first_arrival=1, last_arrival=4, messages=4, raw_answer=who.told, quarantined=((who.told, "no JSON"),),
        facts={"mode": "llm", "rejected": [who.told]}, started_at=NOW, finished_at=NOW,
    )  # fmt: skip
    async with storage.writing(lore.tenant) as work:
        await work.memories.add_evolution(evolution=record)
        await work.progress.move_mark(room_id=ROOM, name=f"facts:{who.user_id}", arrival=4, was=0, now=NOW)
        await work.progress.move_mark(room_id=ROOM, name="facts:ben", arrival=4, was=0, now=NOW)
        await work.progress.note_room(room_id=who.user_id, work="extraction", now=NOW)
        await work.progress.take_lease(name=f"user:{who.user_id}", holder="h", now=NOW, until=NOW)
        await work.progress.save_import_position(source=f"exports/{who.user_id}.json", position="1", now=NOW)
    durable = lore._resources.durable
    name = work_name(lore.tenant, "extraction", "one")
    await durable.start("nobody", work_id=name, partition=name, arguments={"room_id": ROOM, "said": who.secret})
    name = work_name(lore.tenant, "extraction", "two")
    await durable.start("nobody", work_id=name, partition=name, arguments={"room_id": OTHER_ROOM})


async def everything(lore: Lore) -> dict[str, list[Any]]:
    """Every row of the tenant."""
    async with lore.storage.reading(lore.tenant) as work:
        return {
            table: await work.maintenance.rows(table=table, after=None, limit=10_000)
            for table in await work.maintenance.tables()
        }


async def replays(lore: Lore) -> bool:
    """Return True if the log of every scope gives the tables back."""
    async with lore.storage.reading(lore.tenant) as work:
        scopes = await work.memories.scopes(after=None, limit=1_000)
        stored = [memory for _, memory in await work.maintenance.versions(after=0, limit=10_000)]
        logs: list[Change] = []
        for scope in scopes:
            logs += await work.memories.changes(scope=scope.scope, after=0, limit=10_000)
    return replay(logs) == {memory.memory_id: memory for memory in stored}


def in_files(folder: Path, who: Figure) -> list[tuple[str, str]]:
    """Return the places in files where something of the person stands, as it is or as JSON spells it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [(path.name, trace) for path in files for trace, form in _forms(who) if form in path.read_bytes()]


def _forms(who: Figure) -> Iterator[tuple[str, bytes]]:
    for trace in who.traces:
        yield trace, trace.encode()
        yield trace, trace.encode("ascii", "backslashreplace")


def in_postgres(url: str, who: Figure) -> list[tuple[str, str]]:
    """Return the rows, of all tables of all schemas, where something of the person stands. A row as text doubles its
    backslashes."""
    found = []
    with psycopg.connect(make_url(url).render_as_string(hide_password=False)) as connection:
        asked = (
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        for schema, table in connection.execute(asked).fetchall():
            for (row,) in connection.execute(f'SELECT its::text FROM "{schema}"."{table}" its').fetchall():
                found += [(table, trace) for trace, form in _forms(who) if form.decode() in row.replace("\\\\", "\\")]
    return found
