"""Linking a message: what must hold for any room, and what a reader would expect of a few."""

import struct
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.adapters.weights import load_link_model
from roomlore.core.analysis import Participants, analyse
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.linking.clock import RoomClock
from roomlore.core.linking.features import PAIR, SELF, view
from roomlore.core.linking.model import MAX_FOR_NEW, answers, likeliest, link, select
from roomlore.core.linking.room import RoomState
from roomlore.core.linking.window import SIZE, RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, Message, MessageFeatures, Role, Room, StoredMessage

MODEL = load_link_model()
START = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)
PEOPLE = ("anna", "bo", "陈晨", "dora", "李雷", "finn", "greta", "汉娜")
LINES = (
    "how do I mount the new disk?",
    "{name}: try mount /dev/sdb1 /mnt",
    "thanks, that worked",
    "请问怎么安装这个驱动？",
    "@{name} 先装 build-essential 再编译",
    "谢谢，可以了",
    "lol",
    "",
    "anyone here using btrfs v1.2 on https://example.org/x ?",
    "但是我的日志里还有报错",
)


def said(arrival: int, sender: str, text: str, seconds: float = 0.0, **more: object) -> StoredMessage:
    return StoredMessage(
        id=f"m{arrival}", room_id="r", sender_id=sender, text=text, arrival=arrival,
        sent_at=START + timedelta(seconds=seconds or arrival * 20), **more,
    )  # fmt: skip


def random_room(seed: int, length: int, gap: float = 30) -> list[StoredMessage]:
    """Return messages with a mean gap of so many seconds; in a slow room now and then a silence of days."""
    rng = np.random.default_rng(seed)
    room, seconds = [], 1.0
    for arrival in range(1, length + 1):
        seconds += float(rng.exponential(gap)) - (40 if rng.random() < 0.05 else 0)
        if gap > 60 and rng.random() < 0.02:
            seconds += float(rng.exponential(100_000))
        text = LINES[rng.integers(len(LINES))].format(name=PEOPLE[rng.integers(len(PEOPLE))])
        more: dict[str, object] = {}
        if rng.random() < 0.08:
            more["reply_to"] = f"m{max(1, arrival + int(rng.integers(-500, 3)))}"
        if rng.random() < 0.05:
            more["root_id"] = f"m{max(1, arrival - int(rng.integers(0, 120)))}"
        if rng.random() < 0.3:
            more["role"] = Role.SYSTEM
        room.append(said(arrival, PEOPLE[rng.integers(len(PEOPLE))], text, max(seconds, 1.0), **more))
    return room


def follow(messages: list[StoredMessage]) -> list[Entry]:
    window, people, entries = RoomWindow(), Participants(), []
    for message in messages:
        features = analyse(message, people)
        entries.append(Entry(message=message, features=features, link=link(MODEL, window, message, features)))
        window.push(entries[-1])
        people.see(message.sender_id, message.sender_name)
    return entries


LONG = follow(random_room(7, 1500))
SLOW = follow(
    [replace(m, sender_id="iris", role=Role.USER) if m.arrival % 391 == 0 else m for m in random_room(8, 1500, gap=600)]
)
"""Of iris, the only message in the window is an old one."""
SPARSE = follow([replace(m, role=Role.USER if m.arrival % 6 == 0 else Role.SYSTEM) for m in random_room(9, 1500, 900)])
"""Five of six entries are system lines."""


@pytest.mark.parametrize("room", [LONG, SLOW, SPARSE], ids=["long", "slow", "sparse"])
@pytest.mark.parametrize("place", [1, 3, 99, 250, 399, 400, 401, 640, 799, 800, 801, 1150, 1203, 1499])
def test_a_window_rebuilt_from_the_store_links_to_the_last_bit_as_one_that_never_left_memory(
    room: list[Entry], place: int
) -> None:
    stored = [
        replace(e, link=replace(e.link, thread_candidates=ThreadCandidates(e.link.thread_candidates.pack())))
        for e in room[:place]
    ]
    window = RoomWindow.of(stored)
    for entry in room[place : place + 30]:
        assert link(MODEL, window, entry.message, entry.features) == entry.link
        window.push(entry)


@pytest.mark.parametrize("room", [LONG, SLOW, SPARSE], ids=["long", "slow", "sparse"])
def test_what_a_rebuilt_window_shows_is_the_same_to_the_last_bit(room: list[Entry]) -> None:
    window = RoomWindow()
    for place, entry in enumerate(room):
        if place > 700 and (place % 23 == 0 or entry.message.sender_id == "iris"):
            again = RoomWindow.of(room[:place])
            ours, theirs = (view(one, entry.message, entry.features) for one in (window, again))
            assert np.array_equal(ours.own, theirs.own)
            assert np.array_equal(ours.open, theirs.open)
            assert np.array_equal(ours.pairs[:, ours.open], theirs.pairs[:, ours.open])
            if entry.message.sender_id == "iris":
                assert ours.own[SELF.index("silent_messages")] > 5.5, "her last message is far back"
        window.push(entry)


@pytest.mark.parametrize("gap", [30, 600])
@pytest.mark.parametrize("late", [0, 40])
def test_the_clock_shows_the_same_as_one_made_anew(gap: float, late: int) -> None:
    window, now = RoomWindow(), 0.0
    for entry in follow([replace(m, role=Role.USER) for m in random_room(5, 900, gap)]):
        now = max(now - late, entry.message.at.timestamp())
        sent_at = datetime.fromtimestamp(now, UTC)
        window.push(replace(entry, message=replace(entry.message, sent_at=sent_at)))
        if window.pushed % 7 == 0:
            newest = slice(window.end - min(window.alive, 300), window.end)
            anew = RoomClock.at(now + 50, window.at[newest], window.pace())
            since = window.clock(now + 50) - window.counted[:, newest]
            assert since == pytest.approx(anew.since(window.heard[:, newest]), abs=1e-6)


def test_of_equally_likely_thread_candidates_the_newest_are_kept() -> None:
    shares = np.full(SIZE, 0.25, np.float32)
    shares[:10], shares[-3:] = 0.5, 0.0
    assert likeliest(shares).tolist() == [*range(10), *range(SIZE - 3 - 54, SIZE - 3)]
    assert likeliest(shares[:20]).tolist() == list(range(20))


def test_a_room_of_mostly_system_lines_survives_rebuilding() -> None:
    rng = np.random.default_rng(3)
    room = [replace(m, role=Role.USER if rng.random() < 0.1 else Role.SYSTEM) for m in random_room(11, 1000)]
    entries = follow(room)
    window = RoomWindow.of(entries[:900])
    for entry in entries[900:]:
        assert link(MODEL, window, entry.message, entry.features) == entry.link
        window.push(entry)


OF_SCRIPTS = ("foreign", "kin_foreign", "habit_foreign")


def of_scripts(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return what the last message sees of scripts: of the open candidates, and of itself."""
    *before, last = follow([said(place, PEOPLE[place % 3], text) for place, text in enumerate(texts, 1)])
    seen = view(RoomWindow.of(before), last.message, last.features)
    pairs = seen.pairs[[name.startswith(OF_SCRIPTS) for name in PAIR]][:, seen.open]
    return pairs, seen.own[[name.startswith(OF_SCRIPTS) for name in SELF]]


@pytest.mark.parametrize(
    "lines", [["the disk is full", "ok", "42", "which one?"], ["磁盘满了", "42", "好", "哪一个？"]]
)
def test_in_a_room_of_one_script_nothing_is_foreign(lines: list[str]) -> None:
    pairs, own = of_scripts(lines * 5)
    assert not pairs.any()
    assert not own.any()


def test_what_is_written_in_another_script_is_foreign() -> None:
    pairs, own = of_scripts(["the disk is full", "磁盘满了", "42", "which one of them is it?"])
    foreign = pairs[[name for name in PAIR if name.startswith(OF_SCRIPTS)].index("foreign")]
    assert foreign[1] > 0.2
    assert not foreign[[0, 2]].any()
    assert own.any()


def test_two_talks_in_two_languages_are_told_apart() -> None:
    room = [
        ("ann", "the pump on line 2 leaks again"),
        ("li", "周五聚餐去哪儿？"),
        ("bob", "ann: since when?"),
        ("wang", "火锅吧，谁带羊肉？"),
        ("ann", "since the night shift, the seal is gone"),
        ("li", "羊肉我带"),
        ("bob", "I have a spare one, I will fix it tonight"),
    ]
    last = follow([said(place, who, text, 60.0 * place) for place, (who, text) in enumerate(room, 1)])[-1]
    assert {arrival for arrival, _ in select(last.link, 20)} == {1, 3, 5}


def test_probabilities_are_shared_out_among_the_candidates_and_something_new() -> None:
    window = RoomWindow.of(LONG[:500])
    for entry in LONG[500:540]:
        chances, new = answers(MODEL, view(window, entry.message, entry.features))
        assert chances.min() >= 0
        assert chances.sum() + new == pytest.approx(1)
        window.push(entry)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(0, 20))
def test_thread_candidates_and_selections_are_earlier_few_and_likely(seed: int, length: int, most: int) -> None:
    entries = follow(random_room(seed, length))
    by_arrival = {e.message.arrival: e.message for e in entries}
    for entry in entries:
        found = entry.link
        assert 0 <= found.parent_probability <= 1
        assert 0 <= found.new_probability <= 1
        assert all(a < entry.message.arrival for a in found.thread_candidates.arrivals.tolist())
        if found.kind is not LinkKind.PLATFORM and entry.message.root_id is None:  # those the platform knows better
            assert all(by_arrival[a].at <= entry.message.at for a in found.thread_candidates.arrivals.tolist())
        chosen = select(found, most)
        assert len(chosen) <= most
        assert len({a for a, _ in chosen}) == len(chosen)
        assert {a for a, _ in chosen} <= set(found.thread_candidates.arrivals.tolist())
        if found.kind is LinkKind.GUESS and most:
            assert found.parent in {a for a, _ in chosen}


@given(st.lists(st.floats(0.01, 1), max_size=40), st.integers(1, 20))
def test_a_selection_ends_where_expected_f1_peaks(shares: list[float], most: int) -> None:
    thread_candidates = ThreadCandidates.of(range(1, len(shares) + 1), shares)
    chosen = select(Link(kind=LinkKind.PLATFORM, thread=1, thread_candidates=thread_candidates), most)
    ordered = sorted(thread_candidates.probabilities.tolist(), reverse=True)
    gains = [sum(ordered[:n]) / (n + sum(ordered)) for n in range(1, min(most, len(ordered)) + 1)]
    assert [p for _, p in chosen] == ordered[: len(chosen)]
    if gains:
        assert gains[len(chosen) - 1] == pytest.approx(max(gains))


def test_who_starts_something_new_gets_little() -> None:
    thread_candidates = ThreadCandidates.of(range(1, 31), [0.1] * 30)
    found = Link(
        kind=LinkKind.NEW,
        thread=31,
        parent=30,
        parent_probability=0.1,
        new_probability=0.9,
        thread_candidates=thread_candidates,
    )
    assert len(select(found, 20)) <= MAX_FOR_NEW


def test_among_equals_the_newer_is_shown() -> None:
    thread_candidates = ThreadCandidates.of(range(1, 41), [1.0] * 40)
    found = Link(
        kind=LinkKind.PLATFORM, thread=1, parent=1, parent_probability=1.0, thread_candidates=thread_candidates
    )
    assert {a for a, _ in select(found, 20)} == {1, *range(22, 41)}


def test_a_selection_holds_the_likeliest_parent_unless_something_new_is_likelier() -> None:
    thread_candidates = ThreadCandidates.of([1, 2, 3, 4], [0.9, 0.9, 0.9, 0.2])
    guess = Link(kind=LinkKind.GUESS, thread=1, parent=4, parent_probability=0.2, thread_candidates=thread_candidates)
    assert 4 in {a for a, _ in select(guess, 3)}
    assert len(select(guess, 3)) == 3
    assert 4 not in {a for a, _ in select(replace(guess, kind=LinkKind.NEW), 3)}
    assert select(guess, 0) == []


def as_distances(shares: dict[int, int]) -> ThreadCandidates:
    """Return the candidates in the form of an older store, with eight bytes for each distance."""
    first = min(shares, default=0)
    distances = b"".join(struct.pack("<Q", at - first) for at in sorted(shares))
    packed = struct.pack("<qB", first, 8) + distances + b"".join(struct.pack("<H", shares[at]) for at in sorted(shares))
    return ThreadCandidates(packed if shares else b"")


@given(
    st.sampled_from([60, 400, 2_100, 70_000, 2**62]).flatmap(
        lambda most: st.dictionaries(st.integers(1, most), st.integers(0, 65535), max_size=64)
    )
)
def test_packed_thread_candidates_come_back(shares: dict[int, int]) -> None:
    arrivals = sorted(shares)
    built = ThreadCandidates.of(list(shares), [share / 65535 for share in shares.values()])
    read = ThreadCandidates(built.pack())
    assert read == built == as_distances(shares)
    assert hash(read) == hash(as_distances(shares))
    assert len(read) == len(built) == len(shares)
    assert read.arrivals.tolist() == built.arrivals.tolist() == arrivals
    assert read.probabilities.tolist() == built.probabilities.tolist() == [shares[at] / 65535 for at in arrivals]
    assert read.by_arrival() == built.by_arrival() == as_distances(shares).by_arrival()


@pytest.mark.parametrize(("last", "form"), [(2_039, 0), (2_040, 2)])
def test_thread_candidates_are_packed_as_bits_of_at_most_255_bytes(last: int, form: int) -> None:
    arrivals = [*range(400), last]
    built = ThreadCandidates.of(arrivals, [1.0] * 401)
    assert built.pack()[8] == form
    assert built.arrivals.tolist() == arrivals


def test_thread_candidates_that_an_older_store_names_twice_come_back() -> None:
    arrivals = [*range(1, 60), 59]
    built = ThreadCandidates.of(arrivals, [share / 65535 for share in range(60)])
    assert len(built) == len(built.probabilities) == 60
    assert built.arrivals.tolist() == arrivals


def test_thread_candidates_close_together_are_packed_as_bits_and_equal_those_that_an_older_store_holds() -> None:
    near = ThreadCandidates.of(range(1_000, 1_060), [share / 65535 for share in range(60)])
    older = ThreadCandidates(
        struct.pack("<qB", 1_000, 1) + bytes(range(60)) + b"".join(struct.pack("<H", share) for share in range(60))
    )
    assert (len(near.pack()), len(older.pack())) == (9 + 1 + 8 + 120, 9 + 60 + 120)
    assert (near, hash(near), len(near)) == (older, hash(older), len(older))
    assert near.by_arrival() == older.by_arrival() == {1_000 + share: share / 65535 for share in range(60)}
    assert near != ThreadCandidates.of(range(1_001, 1_061), [share / 65535 for share in range(60)])
    assert near != ThreadCandidates.of(range(1_000, 1_060), [0.5] * 60)
    assert len(ThreadCandidates.of([1, 300], [1, 1]).pack()) == 9 + 4 + 4, "two far apart are shorter as distances"


def test_a_platform_reply_is_certain_and_brings_its_targets_thread_candidates() -> None:
    entries = follow([said(1, "anna", "disk full?"), said(2, "bo", "hello all"), said(3, "bo", "df -h", reply_to="m1")])
    found = entries[2].link
    assert (found.kind, found.parent, found.parent_probability, found.thread) == (LinkKind.PLATFORM, 1, 1.0, 1)
    assert (
        dict(
            zip(found.thread_candidates.arrivals.tolist(), found.thread_candidates.probabilities.tolist(), strict=True)
        )[1]
        == 1.0
    )


def test_a_target_outside_the_window_can_be_handed_in() -> None:
    far = replace(
        LONG[5], link=replace(LONG[5].link, thread=2, thread_candidates=ThreadCandidates.of([2, 4], [0.9, 0.4]))
    )
    message = said(1501, "anna", "yes", reply_to="m6")
    found = link(MODEL, RoomWindow.of(LONG), message, MessageFeatures(), far)
    assert (found.kind, found.parent, found.thread) == (LinkKind.PLATFORM, 6, 2)
    assert found.thread_candidates == ThreadCandidates.of([2, 4, 6], [0.9, 0.4, 1.0])


def test_siblings_of_a_platform_reply_are_its_thread_candidates() -> None:
    room = [said(1, "anna", "lunch?"), said(2, "bo", "yes", reply_to="m1"), said(3, "dora", "no", reply_to="m1")]
    assert follow(room)[2].link.thread_candidates == ThreadCandidates.of([1, 2], [1.0, 1.0])


def test_a_reply_whose_target_came_later_names_only_earlier_thread_candidates() -> None:
    entries = follow([said(1, "anna", "one"), said(2, "bo", "yes", reply_to="m3"), said(3, "anna", "two?")])
    assert entries[1].link.kind is not LinkKind.PLATFORM
    found = link(MODEL, RoomWindow.of(entries), entries[1].message, entries[1].features, entries[2])
    assert (found.kind, found.parent) == (LinkKind.PLATFORM, 3)
    assert all(a < 2 for a in found.thread_candidates.arrivals.tolist())


def test_replies_in_a_circle_and_to_oneself_do_no_harm() -> None:
    room = [said(1, "a", "x", reply_to="m2"), said(2, "b", "y", reply_to="m1"), said(3, "c", "z", reply_to="m3")]
    entries = follow(room)
    assert [e.link.parent for e in entries[:2]] == [None, 1]
    assert entries[2].link.kind is not LinkKind.PLATFORM


def test_a_platform_thread_is_kept_to() -> None:
    room = [said(n, PEOPLE[n % 5], "what about the parser error in the log?") for n in range(1, 30)]
    room += [said(30, "anna", "same parser error here", root_id="m4")]
    room += [said(31, "bo", "parser error fixed in the log", root_id="m4"), said(32, "dora", "?", root_id="gone")]
    entries = follow(room)
    alone, either = entries[29].link, entries[30].link
    assert (alone.kind, alone.parent, alone.parent_probability) == (LinkKind.GUESS, 4, 1.0), "nothing else is there"
    assert (either.kind, either.new_probability) == (LinkKind.GUESS, 0.0)
    assert either.parent in (4, 30)
    assert 0.5 <= either.parent_probability < 1.0, "that it is in the thread says not which message it answers"
    assert (either.is_certain, either.has_certain_thread) == (False, True)
    assert entries[30].link.thread == entries[3].link.thread
    assert entries[31].link.kind is LinkKind.NEW


def test_a_reply_in_a_platform_thread_is_a_guess_until_its_target_is_seen() -> None:
    room = [said(1, "anna", "disk full?"), said(2, "bo", "lunch?"), said(3, "dora", "yes", root_id="m1", reply_to="m9")]
    assert (follow(room)[2].link.kind, follow(room)[2].link.parent) == (LinkKind.GUESS, 1)


def test_a_platform_thread_is_kept_to_when_its_messages_are_far_back() -> None:
    room = [said(n, PEOPLE[n % 8], LINES[n % 4].format(name="bo")) for n in range(1, 330)]
    entries = follow([*room, said(330, "newcomer", "and this?", root_id="m9")])
    assert (entries[-1].link.kind, entries[-1].link.parent) == (LinkKind.GUESS, 9)
    room[10] = said(11, "bo", "yes", root_id="m9")
    both = follow([*room, said(330, "newcomer", "and this?", root_id="m9")])[-1].link
    assert (both.kind, both.parent, both.parent_probability, both.new_probability) == (LinkKind.GUESS, 11, 0.5, 0.0)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 90), min_size=1, max_size=6))
def test_links_stay_in_topics_however_messages_are_batched(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    room = [
        replace(one, reply_to=None, root_id=None, topic_id=(None, "a", "b")[rng.integers(3)])
        for one in random_room(seed, 2 * SIZE)
    ]
    found: list[Entry] = []
    state = state_of(found)
    while len(found) < len(room):
        state = state_of(found) if rng.random() < 0.3 else state
        arrivals = state.begin((), ())
        for message in room[len(found) : len(found) + sizes[len(found) % len(sizes)]]:
            arrivals.take(message)
        found += arrivals.entries
    topics = {one.arrival: one.topic_id for one in room}
    for entry in found:
        others = [entry.link.parent, *entry.link.thread_candidates.arrivals.tolist()]
        assert {topics[one] for one in others if one is not None} <= {entry.message.topic_id}
    window = RoomWindow()
    for entry in found:
        assert link(MODEL, window, entry.message, entry.features) == entry.link
        window.push(entry)


def test_a_topic_whose_messages_have_left_the_window_begins_anew() -> None:
    room = [said(1, "anna", "disk full?", topic_id="a"), *(said(n, PEOPLE[n % 8], "hi all") for n in range(2, 420))]
    last = follow([*room, said(420, "bo", "disk full too?", topic_id="a")])[-1].link
    assert (last.kind, last.parent) == (LinkKind.NEW, None)


def test_messages_that_are_read_ahead_know_what_they_know_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roomlore.core.linking.room.WINDOW", 12)
    monkeypatch.setattr("roomlore.core.linking.room._READ_AT_ONCE", 10)
    rng = np.random.default_rng(5)
    back = rng.integers(1, 16, 90).tolist()
    room = [
        Message(id=f"m{n}", room_id="r", sender_id=PEOPLE[n % 7], text=LINES[n % 9], reply_to=f"m{n - back[n]}")
        for n in range(90)
    ]

    def features_by(count: int) -> list[MessageFeatures]:
        arrivals = state_of([]).begin((), ())
        for first in range(0, len(room), count):
            batch = room[first : first + count]
            arrivals.absorb(batch, tokens=[1] * len(batch), now=START)
        return [entry.features for entry in arrivals.entries]

    assert features_by(90) == features_by(7) == features_by(1)
    assert sum(len(one.partners) for one in features_by(1)) > 20


def state_of(entries: list[Entry]) -> RoomState:
    room = Room(tenant="t", room_id="r", created_at=START, next_arrival=len(entries) + 1)
    people = {one.message.sender_id: one.message.sender_name for one in entries}
    return RoomState(model=MODEL, room=room, participants=people, entries=entries[-SIZE:], learning=False)


def test_a_platform_reply_is_certain_also_into_another_topic() -> None:
    room = [
        said(1, "anna", "disk full?", topic_id="a"),
        said(2, "bo", "disk full too", topic_id="b", reply_to="m1"),
        said(3, "dora", "yes", topic_id="b", reply_to="m4"),
        said(4, "anna", "late", topic_id="a"),
    ]
    arrivals = state_of([]).begin((), ())
    for message in room:
        arrivals.take(message)
    links = [one.link for one in arrivals.entries]
    assert [(one.kind, one.parent) for one in (links[1], links[2])] == [(LinkKind.PLATFORM, 1), (LinkKind.PLATFORM, 4)]


def test_an_empty_room_a_system_line_and_a_picture() -> None:
    entries = follow([said(1, "anna", ""), said(2, "sys", "joined", role=Role.SYSTEM), said(3, "bo", "")])
    assert entries[0].link == Link(kind=LinkKind.NEW, thread=1)
    assert entries[1].link == Link(kind=LinkKind.NEW, thread=2)
    assert 2 not in entries[2].link.thread_candidates.arrivals.tolist()


def test_a_clock_that_runs_backwards_leaves_nothing_to_answer() -> None:
    entries = follow([said(n, "anna", "hello there", 1000 - n) for n in range(1, 20)])
    assert all(e.link.kind is LinkKind.NEW and not len(e.link.thread_candidates) for e in entries)


def test_a_huge_text_costs_little_and_links() -> None:
    huge = "error " * 200_000 + "怎么办？" * 50_000
    entries = follow([said(1, "anna", huge), said(2, "bo", huge), said(3, "anna", "anna: ok")])
    assert len(entries[1].link.thread_candidates) == 1


@pytest.mark.parametrize("text", ["@bot hi" + " " * 300_000 + "x", "x " + "@bot " * 100_000, "@bot " * 100_000])
def test_calls_and_blanks_without_end_cost_little(text: str) -> None:
    started = time.process_time()
    follow([said(1, "anna", "hi"), said(2, "bo", text)])
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("room", "parents"),
    [
        (
            [("anna", "how do I mount an ntfs disk?"), ("bo", "does anybody know a good editor for python?"),
             ("dora", "bo: vim is great for python"), ("finn", "anna: use ntfs-3g for that disk"),
             ("anna", "thanks finn"), ("bo", "dora: ok, I will try vim")],
            {3: 2, 4: 1, 5: 4, 6: 3},
        ),
        (
            [("小红", "请问怎么挂载 ntfs 硬盘？"), ("小明", "有人知道好用的编辑器吗？"),
             ("老王", "@小明 写代码可以试试 vim"), ("阿强", "@小红 硬盘用 ntfs-3g 挂载"),
             ("小红", "@阿强 谢谢"), ("小明", "@老王 好的，我试试 vim")],
            {3: 2, 4: 1, 5: 4, 6: 3},
        ),
    ],
    ids=["english", "chinese"],
)  # fmt: skip
def test_two_talks_at_once_are_told_apart(room: list[tuple[str, str]], parents: dict[int, int]) -> None:
    entries = follow([said(n, who, text) for n, (who, text) in enumerate(room, 1)])
    assert {n: entries[n - 1].link.parent for n in parents} == parents
    assert entries[1].link.kind is LinkKind.NEW
    assert entries[4].link.thread == 1
    assert entries[5].link.thread == 2


@pytest.mark.parametrize("call", ["@helper {}", "@助手 {}", " @helper, {}", "{} @helper", "@helper @other {}"])
@pytest.mark.parametrize("text", ["who brings the cards?", "谁带牌？", "and the second question"])
def test_a_call_of_somebody_who_never_spoke_changes_no_link(call: str, text: str) -> None:
    room = [
        said(1, "anna", "who brings the cards on Friday?"),
        said(2, "bo", "周五谁带牌？"),
        said(3, "dora", "I bring the cake"),
    ]
    plain = follow([*room, said(4, "finn", text, 40_000)])[-1].link
    assert follow([*room, said(4, "finn", call.format(text), 40_000)])[-1].link == plain


def test_a_call_of_somebody_who_spoke_says_whom_the_message_is_for() -> None:
    room = [said(1, "anna", "my disk is full"), said(2, "bo", "the cake is ready"), said(3, "dora", "the lift is slow")]
    for name, arrival in (("anna", 1), ("bo", 2)):
        assert follow([*room, said(4, "finn", f"@{name} really?")])[-1].link.parent == arrival


AGENT = "nova"


def with_agent(rows: list[tuple[str, str, float]], **more: dict[int, str]) -> list[StoredMessage]:
    """Messages of (sender, text, seconds); `replies`: arrival to the id of the message it answers on the platform."""
    replies = more.get("replies", {})
    return [
        said(
            n, who, text, seconds, role=Role.ASSISTANT if who == AGENT else Role.USER,
            **({"reply_to": replies[n]} if n in replies else {}),
        )
        for n, (who, text, seconds) in enumerate(rows, 1)
    ]  # fmt: skip


TWO_AT_ONCE = [
    ("anna", "@nova how do I make a sourdough starter from rye flour?", 1),
    ("bo", "@nova which trains go from Berlin to Prague on Sunday?", 4),
    (AGENT, "Mix rye flour and water, keep the sourdough starter warm and feed it every day.", 12),
    (AGENT, "From Berlin to Prague there is a train every two hours on Sunday, the first at 6:28.", 20),
    ("bo", "@nova and how long does that train take?", 60),
    (AGENT, "The train from Berlin to Prague takes four hours and a quarter.", 70),
    ("anna", "@nova how warm should the starter be, and can I use the fridge?", 75),
]
同时两个 = [
    ("王敏", "@nova 红烧肉怎么做才不腻？", 1),
    ("李雷", "@nova 周日从北京到上海有哪些高铁？", 4),
    (AGENT, "红烧肉先焯水，再用小火炖，加一点山楂就不腻。", 12),
    (AGENT, "周日北京到上海的高铁每半小时一班，最早六点。", 20),
    ("李雷", "@nova 那高铁要坐多久？", 60),
    (AGENT, "北京到上海的高铁最快四个半小时。", 70),
    ("王敏", "@nova 红烧肉要炖多长时间？山楂什么时候放？", 75),
]


class TestRoomsWithAnAgent:
    @pytest.mark.parametrize("rows", [TWO_AT_ONCE, 同时两个], ids=["english", "chinese"])
    @pytest.mark.parametrize("replies", [{}, {3: "m1", 4: "m2", 6: "m5"}], ids=["unlinked", "linked"])
    def test_what_is_between_one_person_and_the_agent_is_kept_apart(self, rows, replies):
        entries = follow(with_agent(rows, replies=replies))
        first, second = entries[4].link, entries[6].link
        assert (first.parent, second.parent) == (4, 3)
        assert {a for a, _ in select(first, 20)} == {2, 4}
        assert {a for a, _ in select(second, 20)} == {1, 3}

    @pytest.mark.parametrize("rows", [TWO_AT_ONCE, 同时两个], ids=["english", "chinese"])
    def test_an_agent_answers_who_addressed_it_and_waits(self, rows):
        entries = follow(with_agent(rows))
        assert [entries[n - 1].link.parent for n in (3, 4, 6)] == [1, 2, 5]

    def test_a_person_goes_on_hours_later(self):
        rows = [
            ("anna", "@nova please plan three days in Lisbon for my parents", 1),
            (AGENT, "Day one: Alfama and the castle of Lisbon. Day two: Belem. Day three: Sintra.", 9),
            *((PEOPLE[1 + n % 4], LINES[n % 3].format(name="bo"), 600.0 + 40 * n) for n in range(40)),
            ("anna", "@nova can we swap Belem and Sintra in the plan for Lisbon?", 16_000),
        ]
        found = follow(with_agent(rows, replies={2: "m1"}))[-1].link
        assert {1, 2} <= {a for a, _ in select(found, 20)}

    def test_one_who_comes_for_the_first_time_gets_little(self):
        rows = [*TWO_AT_ONCE, ("dora", "@nova what is the derivative of x squared times sine x?", 130)]
        assert len(select(follow(with_agent(rows))[-1].link, 20)) <= 2
