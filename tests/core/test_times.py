"""When a message was said that has no time, or one that cannot be right, and who heard it."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.audience import BEGINNING, Member, Presence, RoomPeople, added, removed, windows_of
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import Estimates, Limits, as_stored, carried, check, content_hash, is_estimated
from roomlore.core.linking.room import is_seen
from roomlore.core.models import Message, StoredMessage
from roomlore.core.records import Record, from_record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAR = datetime(2099, 1, 1, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def said(number: int, at: datetime | None = None, room: str = "r") -> Message:
    return Message(id=f"m{number}", room_id=room, sender_id="ann", text=f"text {number}", sent_at=at)


def live(*messages: Message, now: datetime = NOW) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    for arrival, message in enumerate(messages, start=1):
        previous = found[-1] if found else None
        found.append(as_stored(message, arrival=arrival, tokens=0, previous=previous, now=now))
    return found


def imported(*messages: Message, before: StoredMessage | None = None) -> list[StoredMessage]:
    found = [before] if before else []
    for arrival, message in enumerate(Estimates().fill(messages, NOW), start=1):
        previous = found[-1] if found else None
        found.append(as_stored(message, arrival=arrival, tokens=0, previous=previous, now=NOW))
    return found[1:] if before else found


def times(message: StoredMessage) -> tuple[datetime | None, datetime, datetime]:
    return message.sent_at, message.origin.first, message.origin.last


def test_a_live_message_without_a_time_was_said_now_whatever_came_before():
    first, second, third = live(said(1, ago(9999)), said(2), said(3, FAR))
    assert (times(second), second.sent_at_estimated) == ((NOW, NOW, NOW), True)
    assert (times(third), third.sent_at_estimated) == ((FAR, NOW, NOW), True)
    assert (times(first), first.sent_at_estimated) == ((ago(9999),) * 3, False)
    assert times(live(said(1, FAR), said(2))[1]) == (NOW, NOW, NOW)


def test_a_time_up_to_a_day_ahead_is_believed():
    near = NOW + timedelta(days=1)
    assert [one.sent_at_estimated for one in live(said(1, near), said(2, near + timedelta(microseconds=1)))] == [
        False,
        True,
    ]


def test_an_import_gives_the_time_before_and_takes_all_until_the_time_after():
    found = imported(said(1, ago(60)), said(2), said(3), said(4, ago(30)), said(5), said(6, FAR), said(7))
    assert times(found[1]) == times(found[2]) == (ago(60), ago(60), ago(30))
    assert times(found[4]) == times(found[6]) == (ago(30), ago(30), NOW)
    assert times(found[5]) == (FAR, ago(30), NOW)
    assert [one.sent_at_estimated for one in found] == [False, True, True, False, True, True, True]


def test_times_of_other_rooms_tell_nothing():
    found = imported(said(1, ago(60)), said(2, ago(50), "s"), said(3), said(4, ago(40), "s"), said(5, ago(30)))
    assert times(found[2]) == (ago(60), ago(60), ago(30))


def test_what_an_import_begins_with_was_said_at_any_time_before_or_after_what_the_room_has():
    assert [times(one) for one in imported(said(1), said(2, ago(60)))] == [
        (ago(60), BEGINNING, ago(60)),
        (ago(60),) * 3,
    ]
    (before,) = live(said(0, ago(90)))
    assert times(imported(said(1), said(2, ago(60)), before=before)[0]) == (ago(90), ago(90), ago(60))
    (later,) = live(said(0, ago(5)))
    assert times(imported(said(1), said(2, ago(60)), before=later)[0]) == (ago(60), BEGINNING, ago(60))


def test_an_import_without_any_time_was_said_when_it_was_imported():
    assert [times(one) for one in imported(said(1), said(2))] == [(NOW, NOW, NOW)] * 2
    (before,) = live(said(0, ago(90)))
    assert times(imported(said(1), before=before)[0]) == (ago(90), ago(90), NOW)


def test_where_the_times_run_backwards_it_was_said_at_any_of_them_or_later():
    found = imported(said(1, ago(30)), said(2), said(3, ago(60)))
    assert times(found[1]) == (ago(60), ago(60), NOW)


def test_a_batch_after_another_goes_on_from_its_last_time():
    estimates = Estimates()
    estimates.fill([said(1, ago(60)), said(2)], NOW)
    (third, _) = estimates.fill([said(3), said(4, ago(20))], NOW)
    assert isinstance(third, StoredMessage)
    assert (third.sent_at, third.heard_from, third.heard_until) == (ago(60), ago(60), ago(20))
    assert estimates.made == 2


def test_an_estimate_of_an_older_export_widens_to_the_times_around_it():
    old = carried(Record(message=said(2, ago(50)), sent_at_estimated=True))
    assert times(imported(said(1, ago(60)), old, said(3, ago(40)))[1]) == (ago(50), ago(60), ago(40))
    assert times(live(old)[0]) == (ago(50), ago(50), NOW)


@pytest.mark.parametrize("at", [None, ago(5), FAR])
@pytest.mark.parametrize("way", [live, imported])
def test_a_message_is_the_same_when_it_is_given_again_or_exported(way, at):
    given = said(1, at)
    (stored,) = way(given)
    assert content_hash(stored) == content_hash(given)
    assert is_estimated(stored) is (at is None)
    (again,) = way(stored)
    assert again == stored
    plain = Message(**{one.name: getattr(stored, one.name) for one in fields(Message)})
    heard = (stored.heard_from, stored.heard_until) if stored.heard_from and stored.heard_until else None
    (back,) = imported(carried(Record(message=plain, sent_at_estimated=stored.sent_at_estimated, heard=heard)))
    assert back == stored


@pytest.mark.parametrize(
    "wrong",
    [
        {"heard_from": NOW},
        {"heard_until": NOW},
        {"heard_from": NOW, "heard_until": ago(1)},
        {"heard_from": NOW.replace(tzinfo=None), "heard_until": NOW},
        {"heard_from": NOW, "heard_until": NOW, "sent_at_estimated": False},
    ],
)
def test_a_time_of_hearing_that_makes_no_sense_is_refused(wrong):
    (stored,) = live(said(1))
    odd = replace(stored, **{"heard_from": None, "heard_until": None, **wrong})
    with pytest.raises(InvalidInput, match="heard_from of message 'm1'"):
        check([odd], Limits())


MOVES = st.lists(st.tuples(st.sampled_from(["in", "out", "said", "unsure", "far"]), st.integers(1, 3)), max_size=25)


@given(MOVES)
def test_who_was_not_there_all_the_time_never_sees_it_and_who_was_does(moves):
    """Bo comes and goes; Ann says things, some without a time. In an import all that is known of such a message is what
    was said before and after it."""
    now, stays, told, there = ago(10_000), {}, [], {}
    for place, (kind, minutes) in enumerate(moves):
        now += timedelta(minutes=minutes)
        if kind == "in":
            stays = added(stays, [Member("bo")], now)
        elif kind == "out" and "bo" in stays:
            stays = removed(stays, ["bo"], now)
        elif kind != "out":
            told.append((said(place, {"said": now, "unsure": None, "far": FAR}[kind]), now))
        there[now] = any(stay.left_at is None for stay in stays.get("bo", ()))
    people = RoomPeople("r", people={"bo": Presence(tuple(stays.get("bo", ())))})
    windows = windows_of(people, ["bo"])
    for message, at in told:
        assert is_seen(live(message, now=at)[0], windows) is there[at], message
    for stored, (_, at) in zip(imported(*(message for message, _ in told)), told, strict=True):
        first, last = stored.origin.first, stored.origin.last
        assert first <= at <= last or first == NOW, "it was said within the time that is known"
        within = [one for when, one in there.items() if first <= when <= last] or list(there.values())[-1:]
        assert is_seen(stored, windows) is (first > BEGINNING and all(within)), stored


def test_an_unreadable_time_of_hearing_is_refused_of_every_message():
    record = {"id": "1", "room_id": "r", "sender_id": "ann", "text": "hi", "sent_at": "2026-01-01"}
    record["heard_until"] = 253402300800 * 10**9
    for estimated in (True, False):
        with pytest.raises(InvalidInput, match="heard_until must be ISO 8601"):
            from_record(record | {"sent_at_estimated": estimated})
