"""The reasons why a memory is shown or not."""

from roomlore.core.audience import View, Viewer
from roomlore.core.visibility import visibilities
from roomlore_testkit.builders import memory


def test_a_memory_that_a_later_one_replaces_is_not_shown():
    old, new = memory("f1"), memory("f2", parents=("f1",))
    found = visibilities([old, new], Viewer("room", "team"), View(), {})
    assert [(one.shown, [reason.kind for reason in one.reasons]) for one in found] == [
        (False, ["added", "replaced"]),
        (True, ["added"]),
    ]
