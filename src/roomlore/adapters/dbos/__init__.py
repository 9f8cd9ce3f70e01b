"""Durable work with DBOS, stored beside the database. `dbos` is loaded when it is opened."""

from collections.abc import Sequence
from importlib.util import find_spec

from roomlore.core.errors import InvalidInput, RoomloreError
from roomlore.ports.backends import DURABLE, DurableBackend, Extra, Host, NoSettings
from roomlore.ports.durable import DurableWork

PAUSES_SECONDS = (1.0, 5.0)


def can_keep_work(url: str) -> bool:
    """Return True if the extra is installed and the database outlives the process."""
    from roomlore.adapters.dbos.locations import location_of

    try:
        location_of(url)
    except InvalidInput:
        return False
    return find_spec("dbos") is not None


def is_work_left(url: str) -> bool:
    """Return True if unfinished work, waiting or running, in any process, is stored for the database at `url`.

    Queries the database and creates nothing in it. Blocks. Raises `InvalidInput` for a database in memory, and
    `StorageUnavailable`.
    """
    from roomlore.adapters.dbos.locations import work_is_left

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
    """Return durable work for the database at `url`: for `sqlite:///x.db` it is stored in `x.dbos.db` beside it, for
    PostgreSQL in the schema `dbos` of the same database. No query is sent yet.

    `at_once`: pieces of work that a process does at a time. It is stored in the database; the last process that opened
    it sets it for all. `pauses_seconds`: the pauses between attempts, so there is one more attempt than pauses.
    `poll_seconds`: how often each process looks for work. `sweep_seconds`: how often it looks for work of dead
    processes. `grace_seconds`: how long `close` waits for steps before it cancels them.

    A process works for one database at a time: `open(working=True)` for a second one raises `Conflict`, also if the
    program uses DBOS itself. Two openings of one database share it. Raises `InvalidInput` for a database in memory and
    if the extra is not installed.
    """
    if find_spec("dbos") is None:
        raise InvalidInput("durable_not_installed")
    from roomlore.adapters.dbos.client import DbosWork
    from roomlore.adapters.dbos.engine import EngineRules
    from roomlore.adapters.dbos.locations import location_of

    rules = EngineRules(
        at_once=at_once,
        pauses_seconds=tuple(pauses_seconds),
        poll_seconds=poll_seconds,
        sweep_seconds=sweep_seconds,
        grace_seconds=grace_seconds,
    )
    return DbosWork(location_of(url), rules)


async def _refuses(_: NoSettings, host: Host) -> RoomloreError | None:
    if can_keep_work(host.url):
        return None
    return InvalidInput("durable_work_unavailable")


DBOS = DurableBackend(
    kind=DURABLE,
    name="dbos",
    open=lambda _, host: open_dbos(host.url, at_once=host.at_once),
    settings=NoSettings,
    refuses=_refuses,
    is_left=is_work_left,
    extra=Extra("durable", "dbos"),
)
