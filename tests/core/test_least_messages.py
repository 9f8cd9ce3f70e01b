"""The newest messages that are added to a context."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.context import MORE_ANSWERS, PAUSE, filled, follows_pause
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


@given(picks, picks, st.integers(0, 12), st.integers(1, 20), st.booleans(), st.data())
def test_what_is_shown_is_bounded_and_the_likely_come_first(chosen, answers, least, most, paused, data):
    parent = data.draw(st.sampled_from(sorted(chosen))) if chosen else None
    chosen, least = dict(list(chosen.items())[:most]), min(least, most)
    answers = dict(sorted(answers.items(), key=lambda one: -one[1]))
    shown, found = filled(chosen, BEFORE, least, link(parent), most=most, paused=paused, answers=answers)
    assert least <= len(shown) <= min(most, max(least, len(chosen) + 8) + MORE_ANSWERS)
    stay = {*list(answers)[:MORE_ANSWERS], parent}
    assert chosen.keys() & stay <= shown.keys(), "the best that search found, and the parent, stay"
    if not paused:
        assert len(chosen.keys() - shown.keys()) <= (most // 4 if answers else 0)
    left = [chance for one, chance in chosen.items() if one not in shown]
    kept = [chosen[one] for one in shown if one in chosen and one not in stay and one <= 32]
    assert min(kept, default=1) >= max(left, default=0), "of the thread the likeliest stay"
    assert len(found) <= 2 * MORE_ANSWERS, "the best, and as many that are added"
    assert found <= answers.keys()
    expected = {**answers, **chosen}
    assert all(chance == expected.get(one, 0.0) for one, chance in shown.items())


@given(picks, st.integers(1, 8))
def test_after_a_pause_the_newest_are_shown(chosen, least):
    shown = filled(chosen, BEFORE, least, link(None), most=20, paused=True).chances
    assert set(range(41 - least, 41)) <= shown.keys()


@given(picks, st.integers(0, 12))
def test_without_a_pause_the_newest_fill_what_is_left(chosen, least):
    shown = filled(chosen, BEFORE, least, link(None), most=20).chances
    assert shown.items() >= chosen.items()
    assert len(shown) == max(least, len(chosen))
    added = shown.keys() - chosen.keys()
    assert added == set(sorted(set(range(1, 41)) - chosen.keys(), reverse=True)[: len(added)])


def test_what_search_found_is_added_after_the_newest():
    answers = {5: 0.3, 9: 0.2, 2: 0.1, 7: 0.09, 3: 0.08, 4: 0.07}
    shown, found = filled({40: 0.5}, BEFORE, 8, link(40), most=20, answers=answers)
    assert list(shown) == [40, 39, 38, 37, 36, 35, 34, 33, 5, 9, 2, 7, 3]
    assert found == {5, 9, 2, 7, 3}
    few = filled({40: 0.5}, BEFORE, 8, link(40), most=8, answers=answers).chances
    assert list(few) == [40, 39, 38, 37, 36, 35, 5, 9]


def test_the_newest_are_not_found_by_search_unless_they_are_among_the_best():
    answers = {5: 0.3, 39: 0.2, 2: 0.1, 7: 0.09, 3: 0.08, 38: 0.001}
    shown, found = filled({40: 0.5}, BEFORE, 8, link(40), most=20, paused=True, answers=answers)
    assert {39, 38} <= shown.keys()
    assert found == {5, 39, 2, 7, 3}


def test_a_pause_is_a_time_in_which_nothing_was_said():
    assert follows_pause(NINE + PAUSE, NINE)
    assert not follows_pause(NINE + PAUSE - timedelta(seconds=1), NINE)
    assert not follows_pause(NINE, NINE + timedelta(hours=1))
    assert not follows_pause(NINE, None)
