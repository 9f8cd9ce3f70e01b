"""Texts of a person compared with those of others, and those who spoke last, in SQL."""

import asyncio

import pytest
from plans import analyse, plan, without_statistics

from roomlore.core.models import Role
from roomlore.storage import connect
from roomlore.storage.people import _SAID_BY_OTHERS
from roomlore.storage.rooms import _speaker_statements
from roomlore_testkit import entry
from storage_contracts.texts import TENANT, fill

SAID = ("谢谢大家", "thanks all", "café ☕ e\u0301", 'he said "no\\yes"', "")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def filled_url(request: pytest.FixtureRequest) -> str:
    """The address of a database with a room of 300 messages that say what is in `SAID`, and others."""
    url = str(request.getfixturevalue(request.param))
    asyncio.run(_fill(url))
    return url


async def _fill(url: str) -> None:
    without_statistics(url)
    storage = await connect(url)
    await fill(storage, [entry(number, text=text) for number, text in enumerate([*SAID, *["hm"] * 295], 1)])
    await storage.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_many_texts_are_hashed_and_not_compared_one_by_one(filled_url, analysed):
    """With an array PostgreSQL compared every message with every text."""
    if analysed:
        analyse(filled_url)
    found = plan(filled_url, _SAID_BY_OTHERS)
    assert "hashed SubPlan" in found or "LIST SUBQUERY" in found
    assert "CORRELATED" not in found


def test_texts_of_both_languages_are_known_again(filled_url):
    async def common() -> set[str]:
        storage = await connect(filled_url)
        async with storage.reading(TENANT) as work:
            asked = [*SAID, "谢谢", "Thanks all"]
            found = await work.maintenance.said_by_others(user_id="nobody", texts=asked)
        await storage.close()
        return found

    assert asyncio.run(common()) == set(SAID)


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("address", ["sqlite_url", "postgres_url"])
def test_those_who_spoke_last_are_read_along_an_index(request, address, analysed):
    """Sorting 200,000 people took 0.3 s on SQLite and 0.14 s on PostgreSQL."""
    url = str(request.getfixturevalue(address))

    async def speak() -> None:
        storage = await connect(url)
        roles = [Role.USER] * 9 + [Role.ASSISTANT]
        said = [entry(number, sender_id=f"u{number}", role=roles[number % 10]) for number in range(1, 201)]
        await fill(storage, said)
        await storage.close()

    asyncio.run(speak())
    if analysed:
        analyse(url)
    found, _ = _speaker_statements(named=False, in_rooms=False)
    for statement in found:
        assert "ix_participants_last_spoke_at" in plan(url, statement)
