"""The newest messages that are added to a context."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.context import PAUSE, filled, follows_pause
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import Link, LinkKind, StoredMessage

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
BEFORE = [
    StoredMessage(id=f"m{n}", room_id="r", sender_id=f"u{n % 3}", text=f"line {n}", sent_at=NINE, arrival=n)
    for n in range(1, 41)
]
picks = st.dictionaries(st.integers(1, 40), st.floats(0.01, 1), max_size=20)


def link(parent: int | None) -> Link:
    kind = LinkKind.NEW if parent is None else LinkKind.GUESS
    return Link(kind=kind, thread=1, parent=parent, thread_candidates=ThreadCandidates.ascending([], []))


@given(picks, st.integers(0, 12), st.integers(1, 20), st.data())
def test_after_a_pause_the_newest_are_always_shown(chosen, least, most, data):
    parent = data.draw(st.sampled_from(sorted(chosen))) if chosen else None
    chosen, least = dict(list(chosen.items())[:most]), min(least, most)
    shown = filled(chosen, BEFORE, least, link(parent), most=most, paused=True)
    assert set(range(41 - least, 41)) <= shown.keys()
    assert len(shown) == max(least, min(most, len(shown.keys() | chosen.keys())))
    assert shown.items() >= {one: chance for one, chance in chosen.items() if one > 40 - least}.items()
    left = [chance for one, chance in chosen.items() if one not in shown and one != parent]
    kept = [chosen[one] for one in shown if one in chosen and one <= 40 - least and one != parent]
    assert min(kept, default=1) >= max(left, default=0), "the likeliest stay"
    assert parent not in chosen or parent in shown or least == most


@given(picks, st.integers(0, 12), st.integers(1, 20))
def test_without_a_pause_the_newest_fill_what_is_left(chosen, least, most):
    chosen, least = dict(list(chosen.items())[:most]), min(least, most)
    shown = filled(chosen, BEFORE, least, link(None), most=most, paused=False)
    assert shown.items() >= chosen.items()
    assert len(shown) == max(least, len(chosen))
    added = shown.keys() - chosen.keys()
    assert added == set(sorted(set(range(1, 41)) - chosen.keys(), reverse=True)[: len(added)])


def test_a_pause_is_a_time_in_which_nothing_was_said():
    assert follows_pause(NINE + PAUSE, NINE)
    assert not follows_pause(NINE + PAUSE - timedelta(seconds=1), NINE)
    assert not follows_pause(NINE, NINE + timedelta(hours=1))
    assert not follows_pause(NINE, None)
