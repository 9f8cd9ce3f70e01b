"""Work that survives its process, kept by DBOS beside our database. `dbos` is loaded when it is opened, not before."""

from collections.abc import Sequence
from importlib.util import find_spec

from roomlore.core.errors import InvalidInput
from roomlore.ports.durable import DurableWork

PAUSES_SECONDS = (1.0, 5.0)


def can_keep_work(url: str) -> bool:
    """Whether the extra is installed and the database one that outlives the process."""
    from roomlore.adapters.dbos.places import place_of

    try:
        place_of(url)
    except InvalidInput:
        return False
    return find_spec("dbos") is not None


def is_work_left(url: str) -> bool:
    """Whether work is kept for the database at `url` that waits or runs, here or in any process.

    Asks the database, and makes nothing in it. Blocks. Raises `InvalidInput` for a database in memory,
    `StorageUnavailable`.
    """
    from roomlore.adapters.dbos.left import work_is_left

    return work_is_left(url)


def open_dbos(
    url: str,
    *,
    at_once: int = 4,
    pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    poll_seconds: float = 0.2,
    sweep_seconds: float = 2.0,
    grace_seconds: float = 10.0,
) -> DurableWork:
    """Work on the database at `url`: for `sqlite:///x.db` it lies in `x.dbos.db` beside it, for PostgreSQL in the
    schema `dbos` of the same database. Nothing is asked of the database yet.

    `at_once`: pieces of work each process does at a time. It lies in the database: who opened last decides for all.
    `pauses_seconds`: between one attempt and the next, so one more attempt than pauses. `poll_seconds`: how often each
    process looks for work. `sweep_seconds`: how often it looks for work of processes that died. `grace_seconds`: how
    long `close` waits for steps before it breaks them off.

    A process works for one database at a time: `open(working=True)` for a second one raises `Conflict`, as it does
    where the program runs DBOS for itself. Opened twice for one database, both share. Raises `InvalidInput` for a
    database in memory and where the extra is not installed.
    """
    if find_spec("dbos") is None:
        raise InvalidInput("Durable work needs the extra: pip install 'roomlore[durable]'.")
    from roomlore.adapters.dbos.places import place_of
    from roomlore.adapters.dbos.runtime import Rules
    from roomlore.adapters.dbos.work import DbosWork

    rules = Rules(
        at_once=at_once,
        pauses_seconds=tuple(pauses_seconds),
        poll_seconds=poll_seconds,
        sweep_seconds=sweep_seconds,
        grace_seconds=grace_seconds,
    )
    return DbosWork(place_of(url), rules)
