"""The cost of a console page for the database does not grow with the stored data."""

import sqlite3
from dataclasses import dataclass, field

import httpx
import pytest

import roomlore
from roomlore import Message, Settings
from roomlore_console import live
from roomlore_server.http import create_app
from roomlore_testkit import START

FIRST, COPIES = 200, 100
ROOMS = 2_000
STEPS = 50
SHIFTED = {"arrival", "thread", "parent", "sent_at"}
PAGES = {
    "today": "/console",
    "rooms": "/console/rooms",
    "rooms later": "/console/rooms?offset=1",
    "room": "/console/room?id=tea",
    "room earlier": "/console/room?id=tea&before=150",
    "live": "/console/room/live?id=tea&after=1",
    "threads": "/console/room/threads?id=tea",
    "thread": "/console/thread?id=tea&message=0",
    "suggest": "/console/suggest?q=u1",
    "people": "/console/people",
    "person": "/console/person?id=u1",
    "context": "/console/context?room=tea&message=150",
    "memories": "/console/memories",
    "memory": "/console/memory?id=tea",
    "sessions": "/console/sessions",
    "jobs": "/console/jobs",
    "health": "/console/health",
}
TWICE = ("today", "rooms", "rooms later", "sessions", "memories")
WALKED = {name: (24 if name in TWICE else 12) * ROOMS // STEPS for name in PAGES}
"""Beside every page are the rooms used last, and all rooms are walked over to find them, at some steps each; on the
first page and the list of rooms twice, and on the lists of sessions and of memories once more."""
WALKED["suggest"] *= 4
"""Without the header of a script it has the rooms beside it, too, and it compares names and ids of all rooms."""
for name in ("rooms", "rooms later"):
    WALKED[name] += 500
"""The small store has two rooms to list, the large one 50: of each the newest message and 14 days are read."""
WALKED["today"] += 3_000
"""Of a room the newest 1,200 messages are read; the small store has 200."""
WALKED["person"] += 600
"""At most 100 messages of a person are read; the small store has 20 of them there."""


class Unhurried(sqlite3.Connection):
    """Leaves the one progress handler that SQLite has to the count of steps. roomlore's own looks at the clock and
    interrupts a slow read, which would then count twice."""

    def set_progress_handler(self, handler, steps):
        """Do nothing."""


@dataclass(slots=True)
class Work:
    """Count the work of this process's SQLite connections: statements, and steps of its virtual machine in fifties."""

    statements: int = 0
    steps: int = 0
    connections: list[sqlite3.Connection] = field(default_factory=list)

    def begin(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.set_trace_callback(self._stated)
        sqlite3.Connection.set_progress_handler(connection, self._stepped, STEPS)
        return connection

    def _stated(self, statement: str) -> None:
        # The limits of tenants are read anew every few seconds, whichever page is asked for then.
        self.statements += "tenant_limits" not in statement

    def _stepped(self) -> int:
        self.steps += 1
        return 0


@pytest.fixture
def work(monkeypatch):
    told, connect = Work(), sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: told.begin(connect(*given, factory=Unhurried, **named))
    )
    return told


async def costs(url: str, work: Work) -> dict[str, tuple[int, int]]:
    """Statements and steps of each page's second visit."""
    found = {}
    async with roomlore.open(url, settings=Settings(embeddings="off"), background=False) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for name, path in PAGES.items():
                assert (await http.get(path)).status_code == 200, name
                before = work.statements, work.steps
                assert (await http.get(path)).status_code == 200, name
                found[name] = work.statements - before[0], work.steps - before[1]
    return found


async def fill(url: str) -> None:
    async with roomlore.open(url, settings=Settings(embeddings="off"), background=False) as lore:
        said = [
            Message(id=str(n), room_id="tea", sender_id=f"u{n % 5}", text=f"@u{(n + 1) % 5} 周五 round {n % 40} of tea")
            for n in range(FIRST)
        ]
        await lore.messages.add(Message(id="0", room_id="cocoa", sender_id="u1", text="earlier", sent_at=START))
        await lore.messages.add(said)
        await lore.memories.add("group:tea", "they drink tea on Fridays")


def multiply(path: str) -> None:
    """The room a hundred times over, and 2,000 rooms more: as if all of it had been said."""
    with sqlite3.connect(path) as store:
        for table in ("messages", "message_features"):
            names = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
            for copy in range(1, COPIES):
                by = copy * FIRST
                taken = [_copied(name, by) for name in names]
                store.execute(
                    f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(taken)} FROM {table} "
                    f"WHERE arrival <= {FIRST}"
                )
        total = FIRST * COPIES
        store.execute("UPDATE rooms SET messages = ?, next_arrival = ? WHERE room_id = 'tea'", (total, total + 1))
        names = [row[1] for row in store.execute("PRAGMA table_info(rooms)") if row[1] != "room_key"]
        taken = ["room_id || '-' || n" if name == "room_id" else name for name in names]
        store.execute(
            f"WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < {ROOMS}) "
            f"INSERT INTO rooms ({', '.join(names)}) SELECT {', '.join(taken)} FROM rooms, many WHERE room_id = 'tea'"
        )


def _copied(name: str, by: int) -> str:
    if name in SHIFTED:
        return f"{name} + {by}"
    return f"message_id || '-' || {by}" if name == "message_id" else name


async def test_twenty_thousand_messages_cost_no_more_than_two_hundred(tmp_path, work, monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.0)
    path = str(tmp_path / "store.db")
    await fill(f"sqlite:///{path}")
    small = await costs(f"sqlite:///{path}", work)
    multiply(path)
    large = await costs(f"sqlite:///{path}", work)
    assert {name: count for name, (count, _) in large.items()} == {name: count for name, (count, _) in small.items()}
    allowed = {name: 3 * steps + 100 + WALKED.get(name, 0) for name, (_, steps) in small.items()}
    grown = {name: steps for name, (_, steps) in large.items() if steps > allowed[name]}
    assert grown == {}
    assert small["room"][1] > 10
