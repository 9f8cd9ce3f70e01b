"""What `Leases` must do."""

import asyncio
from datetime import timedelta

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START
from roomlore.testing.contracts.filling import TENANT
from roomlore.testing.contracts.texts import HARD_TEXTS

NAME = "evolution group:tea"
MINUTES_HELD = 10


async def take(
    storage: Storage, holder: str, *, minutes: int = 0, held: int = MINUTES_HELD, name: str = NAME, tenant: str = TENANT
) -> bool:
    """`minutes`: when it is taken, after START. `held`: minutes from then."""
    now = START + timedelta(minutes=minutes)
    until = now + timedelta(minutes=held)
    async with storage.writing() as work:
        return await work.leases.take(tenant=tenant, name=name, holder=holder, now=now, until=until)


async def free(storage: Storage, holder: str, *, name: str = NAME, tenant: str = TENANT) -> None:
    async with storage.writing() as work:
        await work.leases.free(tenant=tenant, name=name, holder=holder)


class LeasesContract:
    async def test_what_one_holds_nobody_else_takes(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert not await take(storage, "b")
        assert not await take(storage, "b", minutes=MINUTES_HELD - 1)

    async def test_a_lease_that_ran_out_is_free(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "b", minutes=MINUTES_HELD)
        assert not await take(storage, "a", minutes=MINUTES_HELD), "it is b's now"

    async def test_its_holder_holds_it_for_longer(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "a", minutes=9)
        assert not await take(storage, "b", minutes=18)
        assert await take(storage, "b", minutes=19)

    async def test_its_holder_may_hold_it_for_less(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "a", held=2)
        assert await take(storage, "b", minutes=2)

    async def test_what_is_given_back_is_free(self, storage: Storage) -> None:
        assert await take(storage, "a")
        await free(storage, "a")
        assert await take(storage, "b")

    async def test_nobody_gives_back_what_another_has(self, storage: Storage) -> None:
        assert await take(storage, "a")
        await free(storage, "b")
        await free(storage, "a", name="another")
        await free(storage, "a", tenant="other")
        assert not await take(storage, "b")
        await free(storage, "a", name="never taken")

    async def test_leases_of_other_names_and_tenants(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "b", name="evolution group:茶")
        assert await take(storage, "b", tenant="other")
        assert not await take(storage, "a", tenant="other")

    @pytest.mark.parametrize("ran_out", [False, True], ids=["new", "ran out"])
    async def test_of_many_at_once_one_takes_it(self, storage: Storage, ran_out: bool) -> None:
        if ran_out:
            assert await take(storage, "earlier")
        outcomes = await asyncio.gather(*(take(storage, holder, minutes=MINUTES_HELD) for holder in "abcd"))
        assert sorted(outcomes) == [False, False, False, True]

    async def test_what_is_rolled_back_was_not_taken(self, storage: Storage) -> None:
        with pytest.raises(StopError):
            await _take_and_stop(storage)
        assert await take(storage, "b")

    async def test_they_are_taken_and_freed_only_while_writing(self, storage: Storage) -> None:
        until = START + timedelta(minutes=1)
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.leases.take(tenant=TENANT, name=NAME, holder="a", now=START, until=until)
            with pytest.raises(InvalidInput):
                await work.leases.free(tenant=TENANT, name=NAME, holder="a")

    async def test_odd_names_are_told_apart(self, storage: Storage) -> None:
        for text in HARD_TEXTS:
            assert await take(storage, text, name=text, tenant=text)
        for text in HARD_TEXTS:
            assert not await take(storage, text + "x", name=text, tenant=text)
            await free(storage, text, name=text, tenant=text)
            assert await take(storage, "b", name=text, tenant=text)


class StopError(Exception):
    """Raised inside a unit of work."""


async def _take_and_stop(storage: Storage) -> None:
    until = START + timedelta(minutes=1)
    async with storage.writing() as work:
        assert await work.leases.take(tenant=TENANT, name=NAME, holder="a", now=START, until=until)
        raise StopError
