"""Forgetting a person, counting what that would remove, and checking what is stored, as work that HTTP and the console
share: asked for both ways it is done once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from roomlore.core.privacy.report import ForgetReport
from roomlore.core.soundness.report import VerifyReport
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore

T = TypeVar("T")
Name = tuple[str, str, str]

_WITH_WORDS = " and the same words"
MOST_AT_A_TIME = 3
"""Counts, and likewise checks, that are under way at a time for one tenant: each reads all that is stored."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What was asked for. `report`: None where it is still being made, or, with `full`, where too much else is."""

    report: T | None
    full: bool = False


def forgetting(lore: Lore, user_id: str, *, same_words: bool = False) -> Name:
    """Return the name of forgetting a person."""
    return "forget" + _WITH_WORDS * same_words, lore.tenant, user_id


async def forget(
    work: LongWork, lore: Lore, user_id: str, *, seconds: float, anew: bool = False, same_words: bool = False
) -> ForgetReport | None:
    """As `LongWork.wait`. Nothing is kept of a count, nor of a check, from before: it may name the person."""

    async def begin() -> ForgetReport:
        try:
            return await lore.privacy.forget(user_id, same_words=same_words)
        finally:
            for words in (False, True):
                work.drop(*_counting(lore, user_id, same_words=words))
            work.drop("verify", lore.tenant)

    name = forgetting(lore, user_id, same_words=same_words)
    return await work.wait(name, begin, seconds=seconds, anew=anew)


async def would_forget(
    work: LongWork, lore: Lore, user_id: str, *, seconds: float, same_words: bool = False
) -> Asked[ForgetReport]:
    """Return what forgetting a person would remove."""

    async def count() -> ForgetReport:
        return await lore.privacy.forget(user_id, dry_run=True, same_words=same_words)

    return await _where_there_is_room(work, _counting(lore, user_id, same_words=same_words), count, seconds)


async def verify(work: LongWork, lore: Lore, scope: str | None, *, seconds: float) -> Asked[VerifyReport]:
    """What a check of a scope finds, or, without one, of all that the tenant has."""
    name = ("verify", lore.tenant, scope or "")
    return await _where_there_is_room(work, name, lambda: lore.privacy.verify(scope), seconds)


def _counting(lore: Lore, user_id: str, *, same_words: bool) -> Name:
    """Both kinds count as one against the most at a time, so the option stands in the last part."""
    return "would forget", lore.tenant, user_id + _WITH_WORDS * same_words


async def _where_there_is_room(
    work: LongWork, name: Name, begin: Callable[[], Awaitable[T]], seconds: float
) -> Asked[T]:
    """Work of one kind counts against the others of its kind, by the first two parts of the name."""
    if not work.knows(name) and work.under_way(*name[:2]) >= MOST_AT_A_TIME:
        return Asked(None, full=True)
    return Asked(await work.wait(name, begin, seconds=seconds))
