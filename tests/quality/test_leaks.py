"""Nothing comes out that was said among few, in invented worlds written from the specification alone."""

import pytest
from bench.audience import cases, judge, line_of


@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in cases()])
async def test_what_few_heard_stays_among_them(case):
    found = await judge(case)
    assert not found.leaked, line_of(found)
    assert not found.missing, line_of(found)
