"""Nothing comes out that was said among few, in invented worlds written from the specification alone."""

import pytest
from bench.audience import cases, judge, told

OPEN = "kind-when-said"
"""A reading of the specification that roomlore does not follow: what a room is now counts."""


@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in cases() if one.get("reading") != OPEN])
async def test_what_few_heard_stays_among_them(case):
    found = await judge(case)
    assert not found.leaked, told(found)
    assert not found.missing, told(found)
