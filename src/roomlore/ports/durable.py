"""Durable work that continues after a process is killed: the names of work, the port, and schedules, of which each
time is handled once, whichever process looks.

Names of work begin with the owner, so that a tenant's work can be found.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from roomlore.core.errors import InvalidInput
from roomlore.core.json_values import json_copy
from roomlore.ports.coordination import Clock
from roomlore.storage.values import RoomBehind

if TYPE_CHECKING:
    from roomlore.storage import Storage

_AS_THEY_ARE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-._~")


def owner_prefix(tenant: str) -> str:
    """Return the prefix of the ids of all work of this tenant, and of no other tenant's, even under case-insensitive
    comparison, as SQLite does in a prefix search."""
    escaped = (
        chr(byte) if byte in _AS_THEY_ARE else f"%{byte:02X}" for byte in tenant.encode("utf-8", "surrogatepass")
    )
    return f"{''.join(escaped)}:"


def work_name(tenant: str, kind: str, own: str) -> str:
    """Return the id of work, or of a partition of it: 'tenant:kind:own'."""
    return f"{owner_prefix(tenant)}{kind}:{own}"


def checked_arguments(arguments: Mapping[str, Any], *, work_id: str, partition: str) -> dict[str, Any]:
    """Return the arguments of work as they will be read again. Raise `InvalidInput` if they are not plain JSON, or if
    the work has no id or no partition."""
    if not work_id.strip() or not partition:
        raise InvalidInput("work_id_missing")
    return json_copy(arguments, what="The arguments of work")


Json = Mapping[str, Any]
WorkStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
RETRIABLE: tuple[WorkStatus, ...] = ("failed", "cancelled")
ENDED: tuple[WorkStatus, ...] = ("done", *RETRIABLE)
"""The final states of work; some of it can be retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """The state of a piece of work. `progress`: its last report, '' if none. `error`: the reason of its failure, else
    ''. `attempts`: the number of starts. `result`: what it returned, in the answers of `find` and `wait`."""

    work_id: str
    name: str
    partition: str
    arguments: Json
    status: WorkStatus
    attempts: int
    progress: str
    error: str
    created_at: datetime
    updated_at: datetime
    result: Json | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of dropping work. `count`: pieces removed. `running`: the ids that match but are running."""

    count: int = 0
    running: tuple[str, ...] = ()


class Steps(Protocol):
    """Divides a piece of work into steps."""

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        """Run the step or, if an earlier attempt finished it, return its stored result.

        A name stands for one step of its work, whatever came before it. The result must be plain JSON; it is returned
        as it will be read again. A step interrupted by a kill is repeated, so it must be idempotent. An error of the
        step is raised unchanged and not stored. Steps run one after another.
        """

    async def report(self, progress: str) -> None:
        """Record the progress of the work, for people to read."""


Work = Callable[[Steps, Json], Awaitable[Json | None]]
"""Takes the steps and the arguments, returns its result as plain JSON, if any, and raises on failure. Failed work is
retried with growing delays, three times in all, and then stays `failed` until somebody retries it."""


class DurableWork(Protocol):
    """Runs work at least once, one at a time in each partition, over every process that shares its database.

    Every call may raise `StorageUnavailable`.
    """

    def define(self, name: str, work: Work) -> None:
        """Register the function for work of this name, before `open`. Arguments are ids and numbers, never objects."""

    async def open(self, *, working: bool) -> None:
        """Start. `working`: True if this process runs work too; otherwise it only submits and inspects it.

        Raises `Conflict` if this process cannot run this store's work beside other work it runs already.
        """

    def works(self) -> bool:
        """Return True if this process runs work now: it is open and working, and not on standby for another process."""

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        """Submit work. Return False if work with this id exists already, in any state.

        The order of work in a partition is not guaranteed. Raises `InvalidInput` for an empty id or partition and for
        arguments that are not plain JSON.
        """

    async def find(self, work_id: str) -> WorkState | None: ...

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        """Return work, the newest first, to the second; without names, of any name. `prefix`: of its id."""

    async def retry(self, work_id: str) -> bool:
        """Restart failed or cancelled work, keeping its finished steps. Return False if there is none."""

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        """Return the state once the work is done, failed or cancelled, or its present state after this many seconds."""

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        """Delete work with this id prefix that waits or has ended, with everything stored of it, if `tells` returns
        True for any text of it: its id, partition, arguments, progress and error, its result and those of its steps.
        Running work stays. The ids can be used again."""

    async def expire(self, *, before: datetime) -> int:
        """Delete work that is done and was last changed before this time. Return the number of pieces."""

    async def compact(self) -> None:
        """Free unused pages of a separate database, so that no deleted work can be read there."""

    async def close(self) -> None:
        """Stop accepting work, let running steps reach their next pause, and end."""


_PAGE = 100
_NOWHERE = ""
"""The tenant of the watermarks of schedules."""


Times = Callable[[datetime], datetime]
"""The times of a schedule. Return the last one at or before this time, UTC."""


@dataclass(frozen=True, slots=True)
class DueTick:
    """A scheduled time that was not handled. `tick`: the time, in seconds since 1970. `mark`: the one handled last."""

    tick: int
    mark: int


class Ticks:
    """The times of one schedule. `times`: None if there is no schedule. `mark`: the name of the watermark of the last
    time that was handled."""

    def __init__(self, *, storage: "Storage", clock: Clock, times: Times | None, mark: str) -> None:
        self._storage = storage
        self._clock = clock
        self._times = times
        self._mark = mark

    async def due(self) -> DueTick | None:
        """Return the last scheduled time, unless it was handled. A new database begins with the next one."""
        if self._times is None:
            return None
        async with self._storage.reading(_NOWHERE) as work:
            mark = (await work.progress.marks(room_id="", names=[self._mark])).get(self._mark)
        if mark is None:
            await self._move(int(self._clock.now().timestamp()), was=0)
            return None
        tick = int(self._times(self._clock.now()).timestamp())
        return DueTick(tick, mark) if tick > mark else None

    async def handled(self, due: DueTick) -> None:
        """Move the mark; do nothing if another process moved it."""
        await self._move(due.tick, was=due.mark)

    async def _move(self, tick: int, *, was: int) -> None:
        async with self._storage.writing(_NOWHERE) as work:
            await work.progress.move_mark(room_id="", name=self._mark, arrival=tick, was=was, now=self._clock.now())


async def rooms_behind(storage: "Storage", name: str, least: int) -> AsyncIterator[RoomBehind]:
    """Yield the rooms of all tenants with so many messages above their mark of this name."""
    after = ("", "")
    while True:
        async with storage.reading() as work:
            page = await work.progress.rooms_behind(name=name, least=least, after=after, limit=_PAGE)
        for room in page:
            yield room
        if len(page) < _PAGE:
            return
        after = (page[-1].tenant, page[-1].room_id)
