"""What the main calls may cost at most, counted: a change that makes one dearer is seen here, and raises its number."""

import pytest
from bench.work import FIGURES, calls_of, counts

CALLS = 8
CEILINGS = {
    # statements, round trips, hops, calls of Python and of C, JSON encoded and decoded, blocks kept, peak KiB
    "sqlite": {
        "add": (8, 0, 0, 625, 545, 0, 0, 190, 45),
        "batch of 100": (10, 0, 7, 23_500, 38_500, 0, 0, 2_300, 680),
        "context": (1, 0, 0, 910, 630, 0, 0, 200, 45),
        "search": (1, 0, 0, 620, 575, 0, 0, 200, 210),
    },
    "postgresql": {
        "add": (9, 3, 0, 1_650, 975, 0, 0, 220, 70),
        "batch of 100": (10, 5, 5, 42_500, 51_000, 0, 0, 2_500, 680),
        "context": (2, 2, 0, 1_110, 720, 0, 0, 230, 45),
        "search": (2, 2, 0, 965, 775, 0, 0, 200, 210),
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
