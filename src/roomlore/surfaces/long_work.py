"""Long work that a request waits for and that continues after the request: forgetting and checking."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from roomlore.core.errors import describe
from roomlore.core.integrity import VerifyReport
from roomlore.core.privacy import ForgetReport
from roomlore.wiring import Lore

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Work:
    """A running or finished piece of work. `told`: its result was returned to a caller. `until`: the timer that removes
    it."""

    task: asyncio.Task[Any]
    told: bool = False
    until: asyncio.TimerHandle | None = None


class LongWork:
    """Work by name; one name runs once at a time. It ends with the server, so it must tolerate being cancelled and
    restarted. A result that nobody waited for is kept for `kept_seconds`, for the next caller."""

    def __init__(self, *, kept_seconds: float = 120.0) -> None:
        self._kept_seconds = kept_seconds
        self._going: dict[Hashable, _Work] = {}
        self._kept: dict[Hashable, _Work] = {}

    async def wait(
        self, name: Hashable, begin: Callable[[], Awaitable[T]], *, seconds: float, anew: bool = False
    ) -> T | None:
        """Return the result; None if the work still runs after so many seconds. The next call with the name waits for
        the same work, or gets its result; with `anew` finished work is done again. Raises the errors of the work."""
        if anew:
            self._let_go(name)
        work = self._going.get(name) or self._kept.get(name) or self._begin(name, begin)
        await asyncio.wait([work.task], timeout=seconds)
        if not work.task.done():
            return None
        work.told = True
        if self._kept.get(name) is work:
            self._let_go(name)
        result: T = await work.task
        return result

    def goes_on(self, name: Hashable) -> bool:
        """Return True if this work is running."""
        return name in self._going

    def knows(self, name: Hashable) -> bool:
        """Return True if this work is running, or has finished and its result was not returned yet."""
        return name in self._going or name in self._kept

    def under_way(self, *beginning: Hashable) -> int:
        """Return how many works are running whose name, a tuple, begins with these parts."""
        return len(_beginning(self._going, beginning))

    def drop(self, *beginning: Hashable) -> None:
        """Remove results of work whose name, a tuple, begins with these parts. If it is running, its result goes only
        to callers who wait at the end."""
        for name in _beginning(self._kept, beginning):
            self._let_go(name)
        for name in _beginning(self._going, beginning):
            self._going[name].told = True

    @asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Cancel running work at the end of the block, and remove results."""
        try:
            yield
        finally:
            tasks = [work.task for work in self._going.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for name in tuple(self._kept):
                self._let_go(name)

    def _begin(self, name: Hashable, begin: Callable[[], Awaitable[Any]]) -> _Work:
        work = self._going[name] = _Work(asyncio.ensure_future(begin()))
        work.task.add_done_callback(lambda _: self._ended(name, work))
        return work

    def _ended(self, name: Hashable, work: _Work) -> None:
        self._going.pop(name, None)
        if work.task.cancelled():
            return
        if (error := work.task.exception()) is not None:
            log.warning("long work failed", extra={"why": describe(error)})
        if not work.told:
            self._keep(name, work)

    def _keep(self, name: Hashable, work: _Work) -> None:
        """Keep the result for a while. A caller who waits gets it right after this and removes it."""
        self._kept[name] = work
        work.until = asyncio.get_running_loop().call_later(self._kept_seconds, self._let_go, name)

    def _let_go(self, name: Hashable) -> None:
        work = self._kept.pop(name, None)
        if work is not None and work.until is not None:
            work.until.cancel()


def _beginning(names: Iterable[Hashable], beginning: tuple[Hashable, ...]) -> list[Hashable]:
    return [name for name in names if isinstance(name, tuple) and name[: len(beginning)] == beginning]


Name = tuple[str, str, str]

_WITH_WORDS = " and the same words"
MAX_AT_A_TIME = 3
"""Counts, and likewise checks, that may run at a time for one tenant: each reads all stored data."""


@dataclass(frozen=True, slots=True)
class WorkResult(Generic[T]):
    """The result of a request. `report`: None if it is not ready or, with `full`, if too many others are running."""

    report: T | None
    full: bool = False


def forgetting(lore: Lore, user_id: str, *, same_words: bool = False) -> Name:
    """Return the name of the work of forgetting a person."""
    return "forget" + _WITH_WORDS * same_words, lore.tenant, user_id


async def forget(
    work: LongWork,
    lore: Lore,
    user_id: str,
    *,
    seconds: float,
    anew: bool = False,
    same_words: bool = False,
) -> ForgetReport | None:
    """Return the result as `LongWork.wait` does; the work itself goes on after the server ends. Counts and checks from
    before are removed, as they may name the person. A name is not told from an id here: the same call waits for work
    that has removed the id already."""
    name = forgetting(lore, user_id, same_words=same_words)
    job_id = ""
    if anew or not work.knows(name):
        job_id = await lore.privacy.begin_forgetting(user_id, same_words=same_words, is_id=True)

    async def begin() -> ForgetReport:
        try:
            return await lore.privacy.forgotten(job_id, user_id, same_words=same_words)
        finally:
            for words in (False, True):
                work.drop(*_counting(lore, user_id, same_words=words))
            work.drop("verify", lore.tenant)

    return await work.wait(name, begin, seconds=seconds, anew=anew)


async def would_forget(
    work: LongWork, lore: Lore, user_id: str, *, seconds: float, same_words: bool = False
) -> WorkResult[ForgetReport]:
    """Return what forgetting a person would remove."""

    async def count() -> ForgetReport:
        return await lore.privacy.forget(user_id, dry_run=True, same_words=same_words, is_id=True)

    return await _within_limit(work, _counting(lore, user_id, same_words=same_words), count, seconds)


async def verify(work: LongWork, lore: Lore, scope: str | None, *, seconds: float) -> WorkResult[VerifyReport]:
    """Return the result of a check of a scope or, without one, of the whole tenant."""
    name = ("verify", lore.tenant, scope or "")
    return await _within_limit(work, name, lambda: lore.privacy.verify(scope), seconds)


def _counting(lore: Lore, user_id: str, *, same_words: bool) -> Name:
    """Return the name of a count. The option is its last part, as both kinds count together against the limit."""
    return "would forget", lore.tenant, user_id + _WITH_WORDS * same_words


async def _within_limit(work: LongWork, name: Name, begin: Callable[[], Awaitable[T]], seconds: float) -> WorkResult[T]:
    """Run work if fewer than the limit of its kind are running. The first two parts of the name are the kind."""
    if not work.knows(name) and work.under_way(*name[:2]) >= MAX_AT_A_TIME:
        return WorkResult(None, full=True)
    return WorkResult(await work.wait(name, begin, seconds=seconds))
