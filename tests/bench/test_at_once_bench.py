"""The bench of single calls: it times each kind alone and at once, and stores what it adds."""

import argparse

import pytest
from bench.at_once import kinds, run

import roomlore


async def test_each_kind_is_told_with_its_times(capsys, tmp_path):
    await run(argparse.Namespace(messages=20, calls=12, turns=2, database=f"sqlite:///{tmp_path}/a.db"))
    rows = [line.split("|")[1:5] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert [(name.strip(), how.strip()) for name, how, *_ in rows] == [
        (name, how) for how in ("alone", "at once") for name in ("add", "context", "search")
    ]
    assert all(float(wall) > 0 and float(processor) >= 0 for *_, wall, processor in rows)


@pytest.mark.parametrize("together", [False, True])
async def test_what_it_adds_is_there(together):
    async with roomlore.open("sqlite://", background=False) as lore:
        (adds,) = [kind for kind in kinds(lore) if kind.name == "add" and kind.together is together]
        await adds.turn(20)
        assert sum([room.messages for room in await lore.rooms.page()]) == 20
