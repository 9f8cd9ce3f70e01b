"""Work that goes on where a killed process left it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

Json = Mapping[str, Any]
WorkStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
RETRIABLE: tuple[WorkStatus, ...] = ("failed", "cancelled")
ENDED: tuple[WorkStatus, ...] = ("done", *RETRIABLE)
"""How work stands that nobody goes on with by themselves; some of it may be begun again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """A piece of work as it stands. `progress`: what it last said of itself, '' if nothing. `error`: why it failed, ''
    unless it did. `attempts`: how often it was begun."""

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


@dataclass(frozen=True, slots=True)
class Dropped:
    """`count`: pieces of work that are gone. `running`: the ids of those that would be, but run just now."""

    count: int = 0
    running: tuple[str, ...] = ()


class Steps(Protocol):
    """What a piece of work is given to divide itself with."""

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        """Does the step, or, where an earlier attempt finished it, gives what it gave then.

        A name stands for one step of its work, whatever came before it. What a step gives must be plain JSON; it comes
        back as it will be read again. A step that a kill broke off is done again: it must bear that. An error of the
        step's is raised as it is and not remembered. Steps are done one after another.
        """

    async def report(self, progress: str) -> None:
        """Says how far the work is, for people to read."""


Work = Callable[[Steps, Json], Awaitable[None]]
"""Given its steps and its arguments. Raises where it failed; it is then tried again, later each time, three times in
all, and stays `failed` until somebody retries it."""


class DurableWork(Protocol):
    """Runs work at least once, one at a time in each partition, over every process that shares its database.

    Every call may raise `StorageUnavailable`.
    """

    def define(self, name: str, work: Work) -> None:
        """Says what work of this name does, before `open`. Ids and numbers go into arguments, never objects."""

    async def open(self, *, working: bool) -> None:
        """Begins; `working`: whether this process does work too, or only hands it in and looks at it.

        Raises `Conflict` where this process can do no work of this store's beside what it does already.
        """

    def works(self) -> bool:
        """Whether this process does work now: it is open and working, and stands by for no other process."""

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        """Hands work in; False where work of this id is there already, whatever became of it.

        In which order the work of a partition is done is not promised. Raises `InvalidInput` for an empty id or
        partition and for arguments that are no plain JSON.
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
        """Work, the newest first, to the second; no names: of any name. `prefix`: what its id begins with."""

    async def retry(self, work_id: str) -> bool:
        """Begins failed or cancelled work again, keeping the steps that were finished; False where there is none."""

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        """The state once the work is done, failed or cancelled, or as it stands after so many seconds."""

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        """Forgets work whose id begins like this, that waits or has ended, with all that is kept of it, where `tells`
        is true of any text of it: its id, partition, arguments, progress and error, and what its steps gave. What runs
        stays. Work of such an id can be handed in again."""

    async def expire(self, *, before: datetime) -> int:
        """Forgets work that is done and was last changed before this time; how many pieces."""

    async def compact(self) -> None:
        """Gives back the free pages of a database of its own, so that nothing of forgotten work can be read there."""

    async def close(self) -> None:
        """Stops taking work, lets running steps come to their next pause, and ends."""
