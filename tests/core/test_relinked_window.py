"""A window that takes in changed links is the one that is built from the entries."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from test_linking import MODEL, random_room

from roomlore.core.linking import room as rooms
from roomlore.core.linking.room import RoomState
from roomlore.core.models import Entry, Message, Room, StoredMessage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def messages(seed: int, length: int, block: int) -> Iterator[Message]:
    """Messages of which each block arrives newest first; nearly half are replies, to what comes before or after."""
    rng, said = np.random.default_rng(seed), random_room(seed, length)
    for start in range(0, length, block):
        for one in said[start : start + block][::-1]:
            away = int(rng.integers(-6, 40)) * int(rng.choice([1, 1, 9]))
            target = f"m{max(1, one.arrival - away)}" if rng.random() < 0.45 else None
            yield message_of(replace(one, reply_to=target))


def message_of(said: StoredMessage) -> Message:
    return Message(
        id=said.id, room_id="r", sender_id=said.sender_id, text=said.text, role=said.role, sent_at=said.sent_at,
        reply_to=said.reply_to, root_id=said.root_id,
    )  # fmt: skip


def taken(batch: list[Message], cut: int) -> tuple[list[Entry], RoomState]:
    """Add the messages in two batches. What the first leaves waiting is not known to the second."""
    state = RoomState(model=MODEL, room=Room(tenant="t", room_id="r", created_at=NOW), participants={}, entries=())
    found: list[Entry] = []
    for part in (batch[:cut], batch[cut:]):
        arrivals = state.begin((), ())
        arrivals.absorb(part, tokens=[1] * len(part), now=NOW + timedelta(days=400))
        found += arrivals.entries
    return found, state


@pytest.mark.parametrize(("length", "block"), [(90, 90), (700, 700), (700, 60), (520, 7)])
@pytest.mark.parametrize("seed", [1, 2])
def test_changed_links_are_taken_in_as_if_the_window_were_built_anew(monkeypatch, seed, length, block):
    batch = list(messages(seed, length, block))
    found, state = taken(batch, length // 2)
    built: list[int] = []
    window_of = rooms.RoomWindow.of
    monkeypatch.setattr(rooms, "_FEW_LINKS", -1)
    monkeypatch.setattr(rooms.RoomWindow, "of", lambda *given: built.append(1) or window_of(*given))
    expected, other = taken(batch, length // 2)
    assert len(built) > length // 30, "many messages are adopted"
    assert found == expected
    assert [one.features for one in found] == [one.features for one in expected]
    mine, its = state.window, rooms.RoomWindow.of(other.entries)
    # Of the oldest rows a window that is built knows less: what they answer is not among its entries.
    known = min(mine.alive, 150)
    for name in ("thread", "at", "latest", "began", "across", "lean", "speakers", "gaps", "facts", "kin"):
        left, right = (getattr(one, name)[..., one.end - known : one.end] for one in (mine, its))
        if name == "kin":
            left, right = left[mine.end - known : mine.end], right[its.end - known : its.end]
        assert left.tobytes() == right.tobytes(), name
    assert mine.answering >> mine.end - known == its.answering >> its.end - known
    assert {rows >> mine.end - known for rows in mine.answered.values()} - {0} == {
        rows >> its.end - known for rows in its.answered.values()
    } - {0}
