"""The check for pgvector in a database, which creates the extension if it may."""

from sqlalchemy import func, select, text

from roomlore.adapters.sql.engine import Statement
from roomlore.adapters.sql.store import SqlStorage
from roomlore.adapters.sql.vectors import reading, writing
from roomlore.core.errors import Conflict, InvalidInput, RoomloreError, VectorsUnavailable

_HAS_PGVECTOR = Statement(lambda: select(func.to_regtype("halfvec").is_not(None)))
_OFFERS_PGVECTOR = Statement(lambda: text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"))
_INSTEAD = "or keep the vectors as BLOBs (`vectors: sql`)."


async def pgvector_error(storage: SqlStorage) -> RoomloreError | None:
    """Return None if the database has pgvector or it was created now, else the error."""
    async with reading(storage) as sql:
        if sql.dialect.name != "postgresql":
            return InvalidInput(f"pgvector is part of PostgreSQL: use a PostgreSQL database, {_INSTEAD}")
        if (await sql.fetch(_HAS_PGVECTOR))[0][0]:
            return None
        if not (await sql.fetch(_OFFERS_PGVECTOR))[0][0]:
            return VectorsUnavailable(f"This PostgreSQL server has no pgvector: install it there, {_INSTEAD}")
    return await _make_extension(storage)


async def _make_extension(storage: SqlStorage) -> RoomloreError | None:
    """Create the extension. If another process creates it at the same moment, this statement fails although it exists
    then."""
    refused: RoomloreError | None = None
    try:
        async with writing(storage) as sql:
            await sql.run("CREATE EXTENSION IF NOT EXISTS vector")
    except (Conflict, VectorsUnavailable) as exc:
        refused = exc
    async with reading(storage) as sql:
        if (await sql.fetch(_HAS_PGVECTOR))[0][0]:
            return None
    if refused is None:
        return VectorsUnavailable(f"This server's pgvector is too old: 0.7 or newer is needed, {_INSTEAD}")
    return VectorsUnavailable(f"Let an administrator run CREATE EXTENSION vector here, {_INSTEAD} ({refused})")
