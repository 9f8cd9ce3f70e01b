"""What moves below a message to another thread, in SQL."""

import asyncio
import re

import pytest
from plans import analyse, plan, without_statistics

from roomlore.storage import connect
from roomlore.storage.writer import _MOVE
from roomlore_testkit import entry, link
from storage_contracts.texts import fill


async def _fill(url: str) -> None:
    without_statistics(url)
    storage = await connect(url)
    await fill(storage, [entry(1), *(entry(number, link=link(1, number - 1)) for number in range(2, 400))])
    await storage.close()


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("address", ["sqlite_url", "postgres_url"])
def test_each_step_of_a_chain_reads_what_answers_it(request, address, analysed):
    """Reading the whole thread at each step took 30 s and more in a chain of 10,000."""
    url = str(request.getfixturevalue(address))
    asyncio.run(_fill(url))
    if analysed:
        analyse(url)
    found = plan(url, _MOVE)
    searched = [line for line in found.splitlines() if "Filter" not in line]
    assert not re.search(r"\bthread ?= ?[$?]", "\n".join(searched)), found
    assert "ix_message_features_parent" in found
