"""What DBOS and its drivers raise -> the project's errors; and what DBOS logs -> our log.

The text of SQLAlchemy's errors shows a statement's values, so only the driver's own first line is told on.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from dbos import error
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError

from roomlore.core.errors import InvalidInput, StorageUnavailable

log = logging.getLogger("roomlore.adapters.dbos")
_TOLD = 200


class Failed(Exception):
    """The work failed for good. Its text is what `describe` said of the last error."""


class Stopped(BaseException):
    """The work was broken off before its end. No `Exception`, so DBOS writes nothing: the work stays as it is."""


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except DataError as exc:
        raise InvalidInput(f"The database cannot hold this value: {_line(exc)}") from exc
    except (SQLAlchemyError, error.DBOSException, OSError, sqlite3.Error) as exc:
        raise StorageUnavailable(
            f"The database of durable work does not answer as it should: {_line(exc)}. Check that it runs and that its"
            " address is right, and try again. Beside a SQLite file it is the one that ends in .dbos.db, with its lock."
        ) from exc


def _line(exc: BaseException) -> str:
    told = exc.orig if isinstance(exc, DBAPIError) and exc.orig else exc
    return _first(str(told) or type(told).__name__)


def _first(said: str) -> str:
    return said.split("[SQL", 1)[0].partition("\n")[0][:_TOLD].strip()


class _Teller(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or not issubclass(kind, Failed):
            log.log(record.levelno, "the engine of durable work says", extra={"said": _first(record.getMessage())})


def quieten() -> None:
    """DBOS prints to the console unless somebody handles what it logs."""
    theirs = logging.getLogger("dbos")
    theirs.propagate = False
    if not any(isinstance(handler, _Teller) for handler in theirs.handlers):
        theirs.addHandler(_Teller(logging.WARNING))
