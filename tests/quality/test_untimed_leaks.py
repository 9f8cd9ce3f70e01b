"""What was said without a time comes out to nobody who was not there, through whatever face it came; and who was there
is shown it."""

import pytest
from bench.untimed import FACES, played, stories


@pytest.mark.parametrize("face", FACES)
async def test_forty_stories_without_times(face):
    shown = [one for story in stories() for one in await played(story, face)]
    assert {f"{one.story} {one.viewer}": one.leaks for one in shown if one.leaks} == {}
    missing = {f"{one.story} {one.viewer}": one.missing for one in shown if one.missing}
    heard = sum(len(one.heard) for one in shown)
    assert heard > 150, "the stories tell their viewers something"
    assert sum(map(len, missing.values())) <= heard * 0.05, missing
