"""Audiences, windows of presence, and the decision who may know what."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.audience import (
    ALWAYS,
    BEGINNING,
    END,
    EVERYONE,
    EvidenceRoom,
    EvidenceTable,
    Member,
    PastKind,
    Presence,
    RoomKind,
    RoomPeople,
    Stay,
    View,
    Viewer,
    Window,
    audience_of,
    check_room_kind,
    check_share,
    check_viewer,
    covers,
    evidence_of,
    kinds_before,
    may_see,
    next_change,
    people_of,
    rooms_named,
    view_of,
    windows_of,
)
from roomlore.core.errors import InvalidInput

DAY = datetime(2026, 3, 1, tzinfo=UTC)
NOW = DAY + timedelta(days=100)
PEOPLE = ("ann", "bo", "小李")


def day(number: float) -> datetime:
    return DAY + timedelta(days=number)


@dataclass(frozen=True)
class Fact:
    evidence: tuple[EvidenceRoom, ...] = ()
    shared_with: tuple[str, ...] = ()


def said(room_id: str, at: datetime) -> Fact:
    return Fact((EvidenceRoom(room_id, at, at),))


def direct(room_id: str, *people: str) -> RoomPeople:
    spoke = Presence(spoke=Window(day(1), day(2)))
    return RoomPeople(room_id, RoomKind.DIRECT, people=dict.fromkeys(people, spoke))


def group(
    room_id: str, *, complete: bool = True, kind: RoomKind | None = RoomKind.PRIVATE, **stays: Stay
) -> RoomPeople:
    people = {name: Presence((stay,)) for name, stay in stays.items()}
    return RoomPeople(room_id, kind, complete, people)


def view(viewer: str, own: RoomPeople | None, rooms: Iterable[RoomPeople], now: datetime = NOW) -> View:
    whom = check_viewer(viewer)
    people = people_of(whom, own, now)
    return view_of(whom, {room.room_id: windows_of(room, people) for room in rooms}, now)


def seen(fact: Fact, own: RoomPeople, *others: RoomPeople) -> bool:
    return may_see(fact, view(f"room:{own.room_id}", own, others))


ALL_ALONG = Stay(told_at=day(0), joined_at=day(0))


def test_what_was_said_alone_stays_out_of_a_group() -> None:
    alone = direct("dm", "ann")
    team = group("team", ann=ALL_ALONG, bo=ALL_ALONG)
    assert not seen(said("dm", day(1)), team, alone)


def test_what_was_said_in_a_group_is_known_to_somebody_of_it_alone() -> None:
    team = group("team", ann=ALL_ALONG, bo=ALL_ALONG)
    assert seen(said("team", day(5)), direct("dm", "ann"), team)
    assert not seen(said("team", day(5)), direct("dm", "eve"), team)


def test_a_smaller_group_knows_what_all_of_it_heard() -> None:
    large = group("large", ann=ALL_ALONG, bo=ALL_ALONG, eve=ALL_ALONG)
    small = group("small", ann=ALL_ALONG, bo=ALL_ALONG)
    assert seen(said("large", day(5)), small, large)
    assert not seen(said("small", day(5)), large, small)


def test_a_room_knows_its_own_whatever_is_known_of_it() -> None:
    for room in (direct("here"), RoomPeople("here"), RoomPeople("here", RoomKind.PUBLIC)):
        assert seen(said("here", day(5)), room)
    assert may_see(said("new", day(5)), view("room:new", None, []))


def test_a_public_room_is_for_all_and_knows_only_what_is_public() -> None:
    square = RoomPeople("square", RoomKind.PUBLIC, people={"ann": Presence((ALL_ALONG,))})
    assert seen(said("square", day(5)), RoomPeople("unknown"), square)
    assert not seen(said("dm", day(1)), replace(square, complete=True), direct("dm", "ann"))


def test_a_room_of_unknown_kind_is_private_and_its_members_are_unknown() -> None:
    unknown = RoomPeople("old", people={"ann": Presence(spoke=Window(day(1), day(9)))})
    assert not seen(said("dm", day(1)), unknown, direct("dm", "ann"))
    assert not seen(said("old", day(5)), direct("dm", "bo"), unknown)


def test_who_spoke_before_and_after_was_there_meanwhile() -> None:
    untold = RoomPeople("old", people={"ann": Presence(spoke=Window(day(1), day(9)))})
    alone = direct("dm", "ann")
    assert seen(said("old", day(5)), alone, untold)
    assert not seen(said("old", day(10)), alone, untold)


def test_late_joiners_and_those_who_left_know_what_they_heard() -> None:
    team = group("team", ann=Stay(day(0), day(10), day(20)), bo=ALL_ALONG)
    for at, known in ((9, False), (10, True), (15, True), (20, True), (21, False)):
        assert seen(said("team", day(at)), direct("dm", "ann"), team) is known
    assert not seen(Fact((EvidenceRoom("team", day(9), day(15)),)), direct("dm", "ann"), team)


def test_a_late_joiner_narrows_what_a_group_knows() -> None:
    team, board = group("team", ann=ALL_ALONG, bo=ALL_ALONG), group("board", ann=ALL_ALONG, bo=ALL_ALONG)
    fact = said("board", day(5))
    assert seen(fact, team, board)
    assert not seen(fact, replace(team, people={**team.people, "eve": Presence((ALL_ALONG,))}), board)


def test_who_left_no_longer_counts_unless_they_spoke_again() -> None:
    left = Stay(day(0), day(0), day(20))
    room = group("team", ann=ALL_ALONG, bo=left)
    assert audience_of(room, NOW) == {"ann"}
    assert audience_of(room, day(10)) == {"ann", "bo"}
    again = {**room.people, "bo": Presence((left,), Window(day(1), day(30)))}
    assert audience_of(replace(room, people=again), NOW) == {"ann", "bo"}


def test_somebody_who_speaks_is_in_the_audience_although_not_told() -> None:
    room = group("team", ann=ALL_ALONG)
    guest = {**room.people, "eve": Presence(spoke=Window(day(1), day(1)))}
    assert audience_of(replace(room, people=guest), NOW) == {"ann", "eve"}


def test_a_join_of_unknown_time_counts_from_when_it_was_told() -> None:
    stay = Stay(told_at=day(50))
    team = group("team", ann=stay)
    assert not seen(said("team", day(40)), direct("dm", "ann"), team)
    assert seen(said("team", day(60)), direct("dm", "ann"), team)
    spoke = RoomPeople("team", RoomKind.PRIVATE, True, {"ann": Presence((stay,), Window(day(30), day(31)))})
    assert seen(said("team", day(40)), direct("dm", "ann"), spoke)


def test_nobody_is_no_audience() -> None:
    """`all()` of nobody is true, and a room of agents alone would know everything."""
    for empty in (direct("dm"), group("team"), group("team", ann=Stay(day(0), day(0), day(1)))):
        assert audience_of(empty, NOW) is None
        assert not seen(said("other", day(1)), empty, direct("other", "ann"))
    assert windows_of(direct("other", "ann"), []) == ()


def test_every_piece_of_evidence_counts() -> None:
    both = Fact((EvidenceRoom("dm", day(1), day(1)), EvidenceRoom("team", day(5), day(5))))
    team = group("team", ann=ALL_ALONG, bo=ALL_ALONG)
    assert seen(both, direct("dm", "ann"), team)
    assert not seen(both, team, direct("dm", "ann"))


def test_a_memory_without_evidence_is_for_all() -> None:
    assert seen(Fact(), RoomPeople("any"))


def test_shares_reach_their_room_everyone_and_nobody_else() -> None:
    alone, team, other = direct("dm", "ann"), group("team", ann=ALL_ALONG, bo=ALL_ALONG), RoomPeople("other")
    fact = said("dm", day(1))
    assert seen(replace(fact, shared_with=("room:team",)), team, alone)
    assert not seen(replace(fact, shared_with=("room:team",)), other, alone, team)
    assert seen(replace(fact, shared_with=(EVERYONE,)), other, alone)


def test_a_person_knows_what_they_heard_and_what_reached_their_rooms() -> None:
    team = group("team", ann=ALL_ALONG, bo=Stay(day(0), day(0), day(20)))
    rooms = [team, direct("dm", "ann")]
    ann, bo, eve = (view(f"user:{name}", None, rooms) for name in ("ann", "bo", "eve"))
    assert [may_see(said("dm", day(1)), one) for one in (ann, bo)] == [True, False]
    assert [may_see(said("team", day(at)), bo) for at in (5, 25)] == [True, False]
    shared = replace(said("dm", day(1)), shared_with=("room:team",))
    assert [may_see(shared, one) for one in (ann, bo, eve)] == [True, False, False]


def test_evidence_is_joined_by_room() -> None:
    known = (EvidenceRoom("b", day(3), day(4)),)
    found = evidence_of([("a", day(9)), ("b", day(1)), ("a", day(7))], known)
    assert found == (EvidenceRoom("a", day(7), day(9)), EvidenceRoom("b", day(1), day(4)))
    assert rooms_named([Fact(found, ("room:c", EVERYONE))]) == {"a", "b", "c"}


@pytest.mark.parametrize("text", ["", "room", "room:", "agent:bot", "anna", 3, None, "room:" + "x" * 513])
def test_a_viewer_is_a_room_or_a_person(text: object) -> None:
    with pytest.raises(InvalidInput, match="viewer"):
        check_viewer(text)


@pytest.mark.parametrize("text", ["", "all", "room:", "user:ann", None])
def test_a_share_names_a_room_or_everyone(text: object) -> None:
    with pytest.raises(InvalidInput, match="shared"):
        check_share(text)


def test_names_may_hold_colons_and_any_script() -> None:
    assert check_viewer("room:a:b") == Viewer("room", "a:b")
    assert str(check_viewer("user:小李")) == "user:小李"
    assert check_share("room:项目组") == "room:项目组"
    assert (check_room_kind(None), check_room_kind("public")) == (None, RoomKind.PUBLIC)
    with pytest.raises(InvalidInput, match="direct, private, public"):
        check_room_kind("secret")


times = st.integers(0, 12).map(day)
maybe = st.none() | times
stays = st.builds(Stay, told_at=times, joined_at=maybe, left_at=maybe)
spans = st.tuples(times, times).map(sorted)
windows = spans.map(lambda pair: Window(*pair))
presences = st.builds(Presence, stays=st.lists(stays, max_size=3).map(tuple), spoke=st.none() | windows)
everybody = st.dictionaries(st.sampled_from(PEOPLE), presences, max_size=3)
kinds = st.none() | st.sampled_from(list(RoomKind))


pasts = st.lists(st.tuples(times, kinds), max_size=2, unique_by=lambda one: one[0]).map(
    lambda found: tuple(PastKind(kind, until) for until, kind in sorted(found, key=lambda one: one[0]))
)


def room_named(name: str) -> st.SearchStrategy[RoomPeople]:
    return st.builds(RoomPeople, st.just(name), kinds, st.booleans(), everybody, pasts)


rooms = st.tuples(*map(room_named, "abc"))
evidence = st.lists(st.tuples(st.sampled_from("abc"), times), max_size=4).map(evidence_of)
targets = st.lists(st.sampled_from([EVERYONE, "room:a", "room:b"]), max_size=1).map(tuple)
facts = st.builds(Fact, evidence, targets)


@given(rooms, st.lists(facts, max_size=8), st.sampled_from(["room:a", "room:new", "user:ann"]))
def test_the_table_decides_as_one_decision_does(rooms: tuple[RoomPeople, ...], facts: list[Fact], viewer: str) -> None:
    own = rooms[0] if viewer == "room:a" else None
    limits = view(viewer, own, rooms)
    assert EvidenceTable(facts).visible(limits).tolist() == [may_see(fact, limits) for fact in facts]


@given(rooms, st.sampled_from(["room:a", "user:ann"]), times, times)
def test_a_view_stays_the_same_until_its_next_change(
    rooms: tuple[RoomPeople, ...], viewer: str, now: datetime, later: datetime
) -> None:
    own, whom = (rooms[0] if viewer == "room:a" else None), check_viewer(viewer)
    before = view(viewer, own, rooms, now)
    until = next_change(whom, own, before, now)
    assert until >= now
    if now <= later < until:
        assert people_of(whom, own, later) == people_of(whom, own, now)
        assert view(viewer, own, rooms, later) == before


@given(rooms, facts)
def test_more_people_in_a_private_room_never_know_more(rooms: tuple[RoomPeople, ...], fact: Fact) -> None:
    own = replace(rooms[0], kind=RoomKind.PRIVATE, complete=True)
    more = replace(own, people={**own.people, "guest": Presence((ALL_ALONG,))})
    if audience_of(own, NOW) is not None and seen(fact, more, *rooms):
        assert seen(fact, own, *rooms)


@given(rooms, facts, evidence)
def test_more_evidence_is_never_shown_to_more(
    rooms: tuple[RoomPeople, ...], fact: Fact, more: tuple[EvidenceRoom, ...]
) -> None:
    wider = replace(fact, evidence=evidence_of((), (*fact.evidence, *more)))
    if seen(wider, rooms[0], *rooms):
        assert seen(fact, rooms[0], *rooms)


@given(rooms, facts)
def test_everybody_of_the_audience_was_there(rooms: tuple[RoomPeople, ...], fact: Fact) -> None:
    """The rule, told once more: by people instead of windows."""
    own, by_name = rooms[0], {room.room_id: room for room in rooms}
    fact = replace(fact, shared_with=())
    if not seen(fact, own, *rooms):
        return
    people = audience_of(own, NOW)
    for one in fact.evidence:
        room = by_name[one.room_id]
        if room is own or all(kind_at(room, at) is RoomKind.PUBLIC for at in (one.first, one.last)):
            continue
        assert people
        for person in people:
            assert any(its.start <= one.first and one.last <= its.end for its in windows_of(room, [person]))


def kind_at(room: RoomPeople, at: datetime) -> RoomKind | None:
    return next((one.kind for one in room.past_kinds if at < one.until), room.kind)


@given(room_named("a"), times)
def test_what_is_said_while_a_room_is_public_is_heard_by_all(room: RoomPeople, at: datetime) -> None:
    public = kind_at(room, at) is RoomKind.PUBLIC
    assert covers(windows_of(room, None), at, at) is public
    assert covers(windows_of(room, ["somebody"]), at, at) is public


@given(kinds, pasts, kinds, maybe, times)
def test_a_kind_that_is_told_changes_no_other_time(
    kind: RoomKind | None, past: tuple[PastKind, ...], told: RoomKind | None, since: datetime | None, now: datetime
) -> None:
    before = RoomPeople("a", kind, past_kinds=past)
    after = RoomPeople("a", told, past_kinds=kinds_before(kind, past, told, since, now))
    begin = since or (now if kind else past[-1].until if past else BEGINNING)
    for at in map(day, (-1, 0, 0.5, 3, 6.5, 9, 12, 40)):
        assert kind_at(after, at) is (told if at >= begin else kind_at(before, at))
    untils = [one.until for one in after.past_kinds]
    assert untils == sorted(set(untils))


def test_a_room_of_two_that_becomes_a_group_keeps_apart_what_was_said_in_each() -> None:
    people = {"ann": Presence(spoke=Window(day(1), day(6))), "bo": Presence((Stay(day(5), day(5)),))}
    room = RoomPeople("a", RoomKind.PRIVATE, True, people, (PastKind(RoomKind.DIRECT, day(4)),))
    assert windows_of(room, ["ann"]) == (Window(BEGINNING, day(6)),)
    assert windows_of(room, ["ann", "bo"]) == (Window(day(5), day(6)),)


def test_who_heard_everything_of_a_room_that_becomes_public_sees_all_of_it() -> None:
    people = {"ann": Presence((Stay(BEGINNING),)), "bo": Presence(spoke=Window(day(6), day(6)))}
    room = RoomPeople("a", RoomKind.PUBLIC, True, people, (PastKind(RoomKind.PRIVATE, day(4)),))
    assert windows_of(room, ["ann"]) == ALWAYS
    assert windows_of(room, ["bo"]) == (Window(day(4), END),)


@given(presences, times)
def test_windows_of_a_person_are_in_order_and_apart(presence: Presence, at: datetime) -> None:
    room = RoomPeople("a", RoomKind.PRIVATE, True, {"ann": presence})
    found = windows_of(room, ["ann"])
    assert list(found) == sorted(found)
    assert all(before.end < after.start for before, after in pairwise(found))
    assert all(BEGINNING <= one.start <= one.end <= END for one in found)


def test_a_view_of_nothing_shows_nothing() -> None:
    assert not may_see(said("a", day(1)), View())
    assert Member("ann") == Member("ann", None, None)
