"""Whether processes that ended left work, asked without loading DBOS and without making its tables."""

from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.exc import SQLAlchemyError

from roomlore.adapters.dbos.places import Place, place_of
from roomlore.core.errors import StorageUnavailable

_UNFINISHED = "SELECT 1 FROM {table} WHERE status IN ('ENQUEUED', 'DELAYED', 'PENDING') LIMIT 1"


def work_is_left(url: str) -> bool:
    """Whether work is kept for the database at `url` that waits or runs, here or elsewhere.

    Blocks; raises `InvalidInput` for a database in memory, `StorageUnavailable`.
    """
    place = place_of(url)
    if place.on_a_file and not Path(str(place.url.database)).exists():
        return False
    try:
        return _is_left(place)
    except SQLAlchemyError as error:
        raise StorageUnavailable("The database of durable work could not be looked at; it is tried again.") from error


def _is_left(place: Place) -> bool:
    schema = None if place.on_a_file else "dbos"
    engine = place.engine(connections=1)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table("workflow_status", schema=schema):
                return False
            table = f"{schema}.workflow_status" if schema else "workflow_status"
            return connection.execute(text(_UNFINISHED.format(table=table))).first() is not None
    finally:
        engine.dispose()
