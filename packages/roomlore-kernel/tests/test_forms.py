"""The compiled linker equals that of numpy: links, features one by one, and the arrays of the window."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bench.chatter import chat
from comparison import COMPILED, NUMPY, Differences, compare
from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore_kernel
from roomlore.core.intake import as_stored
from roomlore.core.linking.calibration import Habits
from roomlore.core.linking.model import version_of
from roomlore.core.linking.window import RoomWindow
from roomlore.core.models import Entry, LinkKind, Role, StoredMessage

START = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)
WORDS = ("disk", "mount", "error", "btrfs", "kernel", "boot", "диск", "again", "磁盘", "挂载", "错误", "内核", "启动")
MANY = [f"w{number}ord" for number in range(400)]


def check(found: Differences) -> None:
    assert {name: apart for name, apart in found.features.items() if apart > 2e-5} == {}
    assert found.links == []
    assert found.shares < 1e-3


def room(
    seed: int, length: int, *, people: int, topics: int = 0, talk: float = 1.0, gap: float = 40
) -> list[StoredMessage]:
    """Return a made-up room in which everything happens that the linker looks at."""
    rng, seconds, told = random.Random(seed), 0.0, []
    names = [f"p{number}" for number in range(people)]
    for arrival in range(1, length + 1):
        seconds += rng.expovariate(1 / gap) * rng.choice((1, 1, 1, 1, 50)) - (90 if rng.random() < 0.1 else 0)
        words = rng.sample(MANY, 40) if rng.random() < 0.1 else rng.choices(WORDS, k=rng.randrange(9))
        text = " ".join(words) + rng.choice(("", "?", "!", " :)", " https://a.example/x", "…"))
        if rng.random() < 0.4:
            text = rng.choice(("@{} ", "{}: ", "{} ")).format(rng.choice(names)) + text
        role = rng.choice((Role.USER,) * 8 + (Role.ASSISTANT, Role.TOOL)) if rng.random() < talk else Role.SYSTEM
        told.append(
            StoredMessage(
                id=f"m{arrival}", room_id="r", sender_id=rng.choice(names), text=text, arrival=arrival, role=role,
                sent_at=START + timedelta(seconds=max(seconds, 0.0)),
                reply_to=f"m{rng.randrange(max(1, arrival - 450), arrival + 2)}" if rng.random() < 0.1 else None,
                root_id=f"m{rng.randrange(max(1, arrival - 120), arrival + 1)}" if rng.random() < 0.1 else None,
                topic_id=f"t{rng.randrange(topics)}" if topics and rng.random() < 0.7 else None,
            )
        )  # fmt: skip
    return told


@pytest.fixture(params=["plain", roomlore_kernel.form()])
def form(request):
    """Each form that runs on this processor."""
    before = roomlore_kernel.form()
    if request.param == "plain":
        roomlore_kernel.use_plain()
    yield request.param
    roomlore_kernel.use_best()
    assert roomlore_kernel.form() == before


def test_the_compiled_model_is_the_same_model():
    assert COMPILED.kernel is not None
    assert COMPILED == NUMPY
    assert version_of(COMPILED) == version_of(NUMPY)


@pytest.mark.parametrize(
    ("people", "topics", "talk"), [(1, 0, 1.0), (3, 3, 1.0), (12, 0, 0.3), (12, 0, 1.0), (200, 3, 0.6), (200, 0, 1.0)]
)
def test_long_rooms(form, people, topics, talk):
    check(compare(room(people, 600, people=people, topics=topics, talk=talk), every=17))


def test_a_chat_as_people_talk(form):
    told, previous = [], None
    for arrival, message in enumerate(chat("r", 600, seed=4), 1):
        previous = as_stored(message, arrival=arrival, tokens=3, previous=previous, now=START)
        told.append(previous)
    found = compare(told, every=7)
    assert found.messages == 600
    check(found)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    length=st.integers(1, 60),
    people=st.integers(1, 6),
    topics=st.integers(0, 2),
    gap=st.sampled_from((0.0001, 5, 600, 100_000)),
    habits=st.builds(
        Habits,
        temperature=st.floats(0.5, 2.8),
        distance=st.floats(-1, 0.5),
        own=st.floats(0.125, 4),
        own_aside=st.floats(0.06, 2),
    ),
)
def test_any_room_with_any_habits(seed, length, people, topics, gap, habits):
    check(compare(room(seed, length, people=people, topics=topics, gap=gap), habits=habits, every=3))


def test_empty_rooms_and_messages_of_which_nothing_is_known():
    message = StoredMessage(id="m1", room_id="r", sender_id="ann", text="", arrival=1, sent_at=START)
    check(compare([message]))
    check(compare([replace(message, role=Role.SYSTEM), replace(message, id="m2", arrival=2)]))
    check(compare([message, replace(message, id="m2", arrival=2, sent_at=START - timedelta(days=1))]))


def test_links_that_change_later_change_both_windows_alike():
    def changed(one: RoomWindow, other: RoomWindow, entry: Entry) -> None:
        if entry.message.arrival % 40:
            return
        old = one.find(f"m{entry.message.arrival - 3}")
        if old is not None and old.link.kind is not LinkKind.NEW:
            new = replace(old, link=replace(old.link, parent=old.message.arrival - 1, parent_probability=1.0))
            one.relink([new])
            other.relink([new])

    check(compare(room(5, 300, people=5), every=5, watched=changed))
