"""The members of a room as exports tell them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.audience import (
    NOTHING_TOLD,
    Move,
    Presence,
    RoomFacts,
    RoomKind,
    RoomPeople,
    Stay,
    TimedMove,
    Window,
    kind_learned,
    moves_by_id,
    stays_learned,
    windows_of,
)
from roomlore_importers.whatsapp import moves_told
from roomlore_testkit.case_table import all_cases

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


MOVES = st.lists(st.builds(TimedMove, st.sampled_from("ab"), st.booleans(), st.integers(0, 30).map(day)), max_size=12)
FACTS = st.sampled_from([NOTHING_TOLD, RoomFacts(members=("a",)), RoomFacts(members=("a", "b")), RoomFacts(members=())])


@given(MOVES)
def test_reading_an_export_again_lets_nobody_see_more(moves):
    once = stays_learned({}, NOTHING_TOLD, moves, NOW)
    again = stays_learned(once, NOTHING_TOLD, moves, NOW)
    for person in "ab":
        before, after = (windows_of(_room(stays), [person]) for stays in (once, again))
        assert all(any(old.start <= new.start and new.end <= old.end for old in before) for new in after)


@given(MOVES, FACTS)
def test_whoever_is_not_listed_is_gone_and_whoever_is_listed_is_there(moves, facts):
    stays = stays_learned({"b": ()}, facts, moves, NOW)
    if facts.members is not None:
        there = {person for person, its in stays.items() if any(one.left_at is None for one in its)}
        assert there == set(facts.members)


@given(MOVES)
def test_nobody_is_there_after_the_last_time_they_went(moves):
    for person in "ab":
        its = [move for move in moves if move.person == person]
        last = max((move.at for move in its), default=None)
        if its and not any(move.came for move in its if move.at == last):
            windows = windows_of(_room(stays_learned({}, NOTHING_TOLD, moves, NOW)), [person])
            assert all(window.end <= last for window in windows)


def _room(stays) -> RoomPeople:
    return RoomPeople("r", RoomKind.PRIVATE, False, {person: Presence(its) for person, its in stays.items()})


def test_coming_back_is_a_second_stay():
    moves = [TimedMove("a", True, day(1)), TimedMove("a", False, day(2)), TimedMove("a", True, day(5))]
    assert windows_of(_room(stays_learned({}, NOTHING_TOLD, moves, NOW)), ["a"])[0] == Window(day(1), day(2))


def test_a_notice_gives_an_unknown_start():
    known = {"a": (Stay(NOW),)}
    assert stays_learned(known, NOTHING_TOLD, [TimedMove("a", True, day(1))], NOW) == {"a": (Stay(NOW, day(1)),)}


@pytest.mark.parametrize(
    ("known", "told", "then"),
    [
        (None, "public", "public"),
        ("public", "private", "private"),
        ("public", None, "public"),
        ("private", "public", "private"),
        ("direct", "public", "direct"),
    ],
)
def test_an_export_opens_no_room(known, told, then):
    assert kind_learned(known and RoomKind(known), told and RoomKind(told)) == then


def test_a_name_of_several_people_lets_all_go_and_none_come():
    names = {"1": "Ann", "2": "Ann", "3": "Ben"}

    def people(person: str, came: bool) -> set[str]:
        return {one.person for one in moves_by_id(Move(person, came, by_name=True), NOW, names)}

    assert (people("Ann", True), people("Ann", False)) == (set(), {"1", "2"})
    assert (people("Ben", True), people("Eve", True), people("3", True)) == ({"3"}, {"Eve"}, {"3"})


NOTICES = [
    ('Ann created group "Hikers"', "+Ann"),
    ("Ann added Bob and 小李", "+Bob +小李"),
    ("Bob joined using this group's invite link", "+Bob"),
    ("\u200e\u202aBob\u202c left", "-Bob"),
    ("~ Bob left", "-Bob"),
    ("You removed Bob", "-Bob"),
    ("You left", ""),
    ("Ann hat Bob hinzugefügt", "+Bob"),
    ("Bob hat die Gruppe verlassen", "-Bob"),
    ("Bob wurde entfernt", "-Bob"),
    ("王芳创建了群组“登山队”", "+王芳"),
    ("王芳添加了李雷、Tom", "+李雷 +Tom"),
    ("李雷 通过群组邀请链接加入了", "+李雷"),
    ("王芳將李雷移出了群組", "-李雷"),
    ("李雷退出了群组", "-李雷"),
    ("Messages and calls are end-to-end encrypted.", None),
    ("消息和通话都进行端到端加密。", None),
    ("Ann changed the subject", None),
    ("a added b " * 200, None),
]


def test_notices_of_whatsapp():
    with all_cases() as case:
        for notice, moves in NOTICES:
            with case(notice):
                told = moves_told(notice)
                assert (told is None) == (moves is None)
                assert " ".join(f"{'+' if one.came else '-'}{one.person}" for one in told or ()) == (moves or "")
