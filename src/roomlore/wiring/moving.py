"""Moving a whole store into another database, while the source may go on being used."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain

from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.vectors import PGVECTOR
from roomlore.adapters.vectors.rows import own_table
from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.moving import MOVING, OLDER, OTHERS, MovePlan, MoveReport, Row, batches, differences, left, minutes
from roomlore.core.search.hits import EmbeddingModel
from roomlore.ports.backends import VECTORS, Host
from roomlore.settings import Settings
from roomlore.storage import connect
from roomlore.storage.engine import translated
from roomlore.storage.moving import READ, PostgresSide, Side, copied_tables, open_side, side_name
from roomlore.storage.opening import open_as_it_is, parse
from roomlore.wiring.doctor import is_missing
from roomlore.wiring.lore import open_for_command
from roomlore.wiring.models import usable

_BATCH_ROWS, _BATCH_SIZE = 10_000, 32_000_000
_ROUNDS = 5
"""A source that goes on changing is followed so often, unless it is to be followed to the end."""
_REST_SECONDS = 2.0
_DONE = "done"
Told = Callable[[str, int, int], None]
"""Called with what is done, 'copying', 'comparing', 'finishing' or 'verifying', and with how many rows of how many; or
with 'waiting' and how many others have the source open."""


def plan_move(source: Settings, target: Settings) -> MovePlan:
    """Return what a move would do. Nothing is written: a source of an earlier version is counted as it is. Raise as
    `move`."""
    with translated(), ExitStack() as stack:
        here = open_side(_address_of_source(source, target))
        stack.callback(here.close)
        notices = [OLDER] if here.is_older() else []
        if not is_missing(target):
            there = open_side(target.database.database_url)
            stack.callback(there.close)
            _check(here, there)
            notices += _notices(there)
        rows = dict.fromkeys(copied_tables(), 0) | here.counts(here.existing(copied_tables()))
        return MovePlan(
            source=here.name,
            target=side_name(target.database.database_url),
            rows=rows,
            bytes=here.size(),
            minutes=minutes(rows),
            left=left(),
            notices=tuple(notices),
        )


def move(
    source: Settings, target: Settings, *, follow: bool = False, told: Told, noticed: Callable[[str], None]
) -> MoveReport:
    """Copy a whole store into a new database, or go on with that. The source is read only. `follow`: until no other
    program has it open. `noticed` is called at the beginning with what is to be known. Raise `Conflict` if the target
    has other data, `StorageBusy` during another move to it, `InvalidInput`, `NotFound` without a source,
    `StorageUnavailable`."""
    begun = SystemClock().monotonic()
    with translated(), ExitStack() as stack:
        url = _address_of_source(source, target)
        asyncio.run(_bring_on(url))
        here = open_side(url)
        stack.callback(here.close)
        there = open_side(target.database.database_url, writes=True)
        stack.callback(there.close)
        there.claim()
        there.bring_on()
        moved = _Move(here, there, target, told)
        for notice in moved.notices:
            noticed(notice)
        moved.begin()
        moved.copy()
        moved.catch_up(follow=follow)
        while moved.finish() and moved.rounds < _ROUNDS:
            moved.begin()
            moved.catch_up(follow=follow)
    told("verifying", 0, 0)
    faults = {side: asyncio.run(_faults(its)) for side, its in (("source", source), ("target", target))}
    with translated(), closing(open_side(source.database.database_url)) as here:
        newer = moved.is_newer(here)
    return moved.report(faults=faults, newer=newer, seconds=SystemClock().monotonic() - begun)


def _address_of_source(source: Settings, target: Settings) -> str:
    """Return the source's address. Raise `InvalidInput` if it is the target's, and `NotFound` if nothing is there."""
    url = source.database.database_url
    if side_name(url) == side_name(target.database.database_url):
        raise InvalidInput("move_to_itself")
    if is_missing(source):
        raise NotFound("database_missing", path=side_name(url))
    return url


async def _bring_on(url: str) -> None:
    await (await connect(url)).close()


def _check(here: Side, there: Side) -> bool:
    """Return True if the target is new, False if a move from this source into it has begun or has ended. Raise
    `Conflict` otherwise."""
    noted = there.noted()
    if noted and noted["source"] != here.name:
        raise Conflict("move_from_another_source", source=noted["source"])
    if "finished" in noted:
        with there.snapshot():
            if noted["finished"] != there.mark(without=READ):
                raise Conflict("move_target_was_used")
    if not noted and (filled := there.holds_data()):
        raise Conflict("move_target_not_empty", tables=", ".join(filled))
    return not noted


def _notices(there: Side) -> list[str]:
    return [OTHERS.format(count=count)] if isinstance(there, PostgresSide) and (count := there.others()) else []


class _Move:
    """A move between two sides."""

    def __init__(self, here: Side, there: Side, target: Settings, told: Told) -> None:
        self._here, self._there, self._target, self._told = here, there, target, told
        self.rounds = self._caught_up = self._copied = self._read = 0
        self.notices = _notices(there)
        self._rows: dict[str, tuple[int, int]] = {}
        self._clock = SystemClock()
        self._stands_at, self._mark = self._clock.now(), ""

    def begin(self) -> None:
        """Find out what the target is, and close it to all others."""
        fresh = _check(self._here, self._there)
        self._make_tables_of_vectors()
        if self._there.version() != MOVING:
            self._there.begin(self._here.name, fresh=fresh)

    def _make_tables_of_vectors(self) -> None:
        """Make those of pgvector that the target needs, and find out how both sides keep vectors."""
        here, there, kind = self._here, self._there, "sql"
        held = here.collections()
        if isinstance(there, PostgresSide):
            kept = {(name, generation): of for name, _, _, generation, of in there.collections()}
            missing = [its for its in held if kept.get((its[0], its[3])) != PGVECTOR.name]
            kind = asyncio.run(_ready_vectors(self._target, missing))
        here.vectors, there.vectors = next((of for *_, of in held), "sql"), kind
        for side in (here, there):
            side.vector_tables = {name: own_table(name) for name, *_ in held}
            side.vectors_there, side.vectors_alone = kind, PGVECTOR.name in (here.vectors, kind)

    def copy(self) -> None:
        """Copy each table that is not copied yet, a batch after the other. Each is noted with its rows, so that at most
        one is copied again."""
        with self._here.snapshot():
            self._count()
            for table in copied_tables():
                self._copy(table)

    def _copy(self, table: str) -> None:
        noted = self._there.noted().get(f"copied {table}", "null")
        if noted == _DONE:
            self._tell("copying", self._rows[table][0])
            return
        key, after = self._there.key_size(table), json.loads(noted)
        pages = self._here.pages(table, form=self._there.engine, after=after and tuple(after))
        with suppress(self._there.clash):  # another moment's rows are in the way: the comparison puts that right
            for batch in batches(pages, rows=_BATCH_ROWS, size=_BATCH_SIZE):
                self._there.put(table, batch, noted={f"copied {table}": json.dumps(batch[-1][:key])})
                self._copied += len(batch)
                self._tell("copying", len(batch))
        self._there.note(f"copied {table}", _DONE)

    def catch_up(self, *, follow: bool) -> None:
        """Compare the two, and copy and delete what differs, until nothing does."""
        while follow or self.rounds < _ROUNDS:
            others = self._here.others() if follow else 0  # before the round: what they wrote last is in it
            if not self._round():
                if not others and not self.is_newer(self._here):
                    return
                if follow:
                    self._told("waiting", others, 0)
                    time.sleep(_REST_SECONDS)

    def is_newer(self, here: Side) -> bool:
        """Return True if the source was changed since it was last compared."""
        with here.snapshot():
            return here.mark() != self._mark

    def _round(self) -> int:
        """Make the target as the source is at one moment. Return how many rows differed."""
        self._stands_at = self._clock.now()
        self._make_tables_of_vectors()
        with self._here.snapshot():
            self._mark, changed = self._here.mark(), 0
            self._count()
            for table in copied_tables():
                changed += self._align(table)
        self.rounds += 1
        self._caught_up += changed
        return changed

    def _align(self, table: str) -> int:
        here, there, form = self._here, self._there, self._there.engine
        with there.snapshot():
            read = self._counted(here.pages(table, form=form))
            between = differences(read, there.pages(table, form=form), key=there.key_size(table))
        there.drop(table, between.gone)
        stretches = (here.pages(table, form=form, first=first, last=last) for first, last in between.stretches)
        for batch in batches(chain.from_iterable(stretches), rows=_BATCH_ROWS, size=_BATCH_SIZE):
            there.put(table, batch)
        return between.rows

    def finish(self) -> bool:
        """Open the target to others. Return True if the source was changed since."""
        self._told("finishing", 0, 0)
        self._there.finish()
        theirs = self._there.counts(copied_tables())
        self._rows = {name: (count, theirs[name]) for name, (count, _) in self._rows.items()}
        return self.is_newer(self._here)

    def report(self, *, faults: Mapping[str, Mapping[str, Sequence[str]]], newer: bool, seconds: float) -> MoveReport:
        return MoveReport(
            source=self._here.name,
            target=self._there.name,
            rows=self._rows,
            stands_at=self._stands_at,
            newer=newer,
            rounds=self.rounds,
            caught_up=self._caught_up,
            copied=self._copied,
            seconds=seconds,
            faults=faults,
            left=left(),
            notices=tuple(self.notices),
        )

    def _count(self) -> None:
        self._rows = {name: (count, 0) for name, count in self._here.counts(copied_tables()).items()}
        self._read = 0

    def _counted(self, pages: Iterable[list[Row]]) -> Iterator[list[Row]]:
        for page in pages:
            self._tell("comparing", len(page))
            yield page

    def _tell(self, what: str, more: int) -> None:
        self._read += more
        self._told(what, self._read, sum(count for count, _ in self._rows.values()))


async def _ready_vectors(target: Settings, missing: Sequence[Row]) -> str:
    """Return how a PostgreSQL will keep vectors, and make the collections that pgvector lacks."""
    storage = open_as_it_is(parse(target.database.database_url))
    try:
        host = Host(url="", clock=SystemClock(), storage=storage)
        if (await usable(VECTORS, target, host))[0].name != PGVECTOR.name:
            return "sql"
        from roomlore.adapters.vectors.pgvector import PgVectors  # needs the extra `postgres`

        for name, model, dimensions, generation, _ in missing:
            its = EmbeddingModel(name=model, dimensions=dimensions)
            await PgVectors(storage).prepare(collection=name, model=its, generation=generation)
        return PGVECTOR.name
    finally:
        await storage.close()


async def _faults(settings: Settings) -> dict[str, list[str]]:
    """Return what `verify` finds, by tenant."""
    async with open_for_command(settings, tenant=DEFAULT_TENANT) as lore:
        by_tenant = {}
        for tenant in await lore.quotas.tenants():
            report = await lore.for_tenant(tenant).privacy.verify()
            by_tenant[tenant] = [f"{fault.check}: {fault.where}: {fault.found}" for fault in report.faults]
        return by_tenant
