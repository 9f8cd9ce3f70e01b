"""What the main calls may cost at most, counted: a change that makes one dearer is seen here, and raises its number."""

import pytest
from bench.work import FIGURES, calls_of, counts

CALLS = 8
CEILINGS = {
    # statements, round trips, hops, calls of Python and of C, JSON encoded and decoded, blocks kept, peak KiB
    "sqlite": {
        "add": (10, 0, 1, 1_100, 1_270, 0, 0, 260, 230),
        "batch of 100": (10, 0, 9, 37_000, 68_000, 0, 0, 2_600, 680),
        "context": (2, 0, 0, 1_150, 950, 0, 1, 320, 45),
        "search": (3, 0, 0, 930, 820, 0, 2, 230, 130),
    },
    "postgresql": {
        "add": (10, 5, 0, 2_350, 1_650, 0, 0, 300, 230),
        "batch of 100": (10, 5, 4, 55_000, 79_000, 0, 0, 2_900, 680),
        "context": (2, 2, 0, 1_450, 1_080, 0, 1, 290, 45),
        "search": (3, 3, 0, 1_400, 1_030, 0, 2, 230, 130),
    },
}


@pytest.mark.parametrize("engine", CEILINGS)
async def test_no_call_costs_more_than_it_may(engine, request, tmp_path):
    url = request.getfixturevalue("postgres_url") if engine == "postgresql" else f"sqlite:///{tmp_path}/a.db"
    async with calls_of(url, 4 * (CALLS + 1)) as kinds:
        told = {kind: await counts(calls, CALLS) for kind, calls in kinds.items()}
    most = {kind: dict(zip(FIGURES, ceilings, strict=True)) for kind, ceilings in CEILINGS[engine].items()}
    over = {
        f"{kind}: {figure}": f"{counted:,.1f} of at most {most[kind][figure]:,}"
        for kind, figures in told.items()
        for figure, counted in figures.items()
        if counted > most[kind][figure]
    }
    assert over == {}
    assert _counted(told) == _counted(most), "what is counted nowhere cannot grow unseen"


def _counted(kinds):
    return {figure for figures in kinds.values() for figure, count in figures.items() if count}
