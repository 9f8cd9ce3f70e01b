"""The simulated month: nothing outdated stays in force, and inventions are marked."""

import argparse
import re

from bench import month


async def test_a_few_rooms_hold_what_was_said_last(capsys):
    await month.run(argparse.Namespace(rooms=4, days=8, seed=2, show=False))
    told = capsys.readouterr().out
    rows = re.findall(r"\| (\w.*?) \| (.*) \|", told)
    figures = {name: [int(one) for one in re.findall(r"\d+", cells)] for name, cells in rows}
    spoken = figures["subjects that people spoke of"][0]
    assert spoken > 20
    assert figures["held more than once"][0] <= 0.1 * spoken
    assert figures["with an outdated value in force"] == [0]
    assert figures["inventions in force: marked, not marked"][1] == 0


def test_every_wording_is_read_back():
    for subject, wordings in month._WORDINGS.items():
        assert {month.subject_of(one.format(7)) for one in wordings} == {(subject, "7")}
