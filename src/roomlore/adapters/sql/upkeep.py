"""What a database keeps of rows that are gone, given back."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import text

from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.schema import metadata
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.store import SqlStorage
from roomlore.core.errors import StorageUnavailable

_TRIES = 20
_PAUSE_SECONDS = 0.25
_MERGE_WORDS = "INSERT INTO message_index (message_index) VALUES ('optimize')"
_EMPTY_LOG = Statement(lambda: text("PRAGMA wal_checkpoint(TRUNCATE)"))


class SqlUpkeep:
    """The port `Upkeep`. SQLite writes its file anew and empties its log; PostgreSQL gives the space of dead rows back
    to the tables, where new rows take it."""

    def __init__(self, storage: SqlStorage) -> None:
        self._storage = storage

    async def compact(self) -> None:
        async with self._storage.outside() as connection:
            if connection.dialect.name == "sqlite":
                await connection.run(_MERGE_WORDS)
                await connection.run("VACUUM")
                await _empty_log(connection)
            else:
                await connection.run(f"VACUUM {', '.join(_tables())}")


def _tables() -> Sequence[str]:
    return [table.name for table in metadata.sorted_tables]


async def _empty_log(connection: Connection) -> None:
    """Who reads just then holds it up for a moment."""
    for _ in range(_TRIES):
        busy, *_rest = (await connection.fetch(_EMPTY_LOG))[0]
        if not busy:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise StorageUnavailable("The write-ahead log could not be emptied: another program is reading. Try again later.")
