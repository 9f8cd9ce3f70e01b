"""Measures how many bytes a message takes in each table, with its indexes, and what adding it costs.

Messages are those of a folder of rooms, or made up and about as long as those of busy channels; their vectors have the
given number of dimensions.
Sizes are taken after VACUUM. Processor times are those of this process, which links, and of PostgreSQL.
"""

import argparse
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

import roomlore
from bench import databases
from bench.chatter import chat
from bench.many_processes import family_ms, postmaster_of
from bench.predict_context import SUFFIX
from bench.predict_retrieval import messages
from roomlore import Message, Settings
from roomlore_testkit.embedding import HashEmbedder

_POSTGRESQL = """
SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC
"""
_SQLITE = """
SELECT tbl_name, sum(pgsize), sum(pgsize * (type = 'index')) FROM dbstat JOIN sqlite_master USING (name)
WHERE aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC
"""
_BATCH = 200
SHOWN = 10.0
"""Bytes a message from which a table is shown: an empty index has a page or two."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=int, default=10)
    parser.add_argument("--messages", type=int, default=2_000, help="messages of each room")
    parser.add_argument("--dimensions", type=int, default=384, help="of the vectors; 0 for none")
    parser.add_argument("--data", type=Path, help=f"a folder of rooms (*{SUFFIX}), none of which is made up then")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    count, length, rooms, dimensions = 0, 0, 0, arguments.dimensions
    settings = Settings(durable_work="process", vectors="sql")
    with ExitStack() as stack:
        url = stack.enter_context(databases.database(arguments.database or databases.EMBEDDED))
        embedder = HashEmbedder(dimensions=dimensions) if dimensions else None
        async with roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore:
            spent, stored = time.process_time(), _spent(url)
            for said in _rooms(arguments):
                rooms, count = rooms + 1, count + len(said)
                length += sum(len(message.text.encode()) for message in said)
                for start in range(0, len(said), _BATCH):
                    await lore.messages.add(said[start : start + _BATCH])
            adding, storing = time.process_time() - spent, _spent(url) - stored
            async for _ in lore.index.drain():
                pass
        sizes = tables(url)
    print(f"{count:,} messages of {length / count:.0f} bytes of text in {rooms} rooms;", end=" ")
    print(f"{dimensions} dimensions\n")
    print("| table | bytes a message | of them indexes |")
    print("|---|---:|---:|")
    for name, size, indexes in sizes:
        if size / count >= SHOWN:
            print(f"| `{name}` | {size / count:,.0f} | {indexes / count:,.0f} |")
    print(f"| all | {sum(size for _, size, _ in sizes) / count:,.0f} | {sum(row[2] for row in sizes) / count:,.0f} |")
    print(f"\nadding, {_BATCH} at a time: {1000 * adding / count:.2f} ms of processor time a message here,", end=" ")
    print(f"{storing / count:.2f} ms in PostgreSQL")


def _rooms(arguments: argparse.Namespace) -> Iterator[list[Message]]:
    if arguments.data:
        for path in sorted(arguments.data.glob("*" + SUFFIX)):
            yield list(messages(path))
        return
    for number in range(arguments.rooms):
        yield list(chat(f"room-{number}", arguments.messages, seed=number, words=7))


def tables(url: str) -> list[tuple[str, int, int]]:
    """Return the tables after VACUUM, the largest first, each with its bytes and those of its indexes in them."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM FULL ANALYZE")
            return connection.execute(_POSTGRESQL).fetchall()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
        file.execute("VACUUM")
        return file.execute(_SQLITE).fetchall()


def _spent(url: str) -> float:
    """Return the processor time so far of a PostgreSQL of the bench's own, in ms."""
    return sum(family_ms(postmaster_of(url)).values())
