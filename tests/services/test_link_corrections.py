"""Links that people correct: what follows at once, the log, undoing, and what later work makes of it."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import roomlore
from engines import ENGINES
from meddling import Meddled
from relink_rig import EARLIER, ROOM, START, TODAY, opened, relinked, stored, told
from roomlore import Conflict, InvalidInput, LinkKind, Message, NotFound, Role
from roomlore.core.models import CorrectedEntry, Entry
from roomlore.services import links


@pytest.fixture(params=ENGINES)
def url(request) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def lore(url):
    async with roomlore.open(url, background=False) as opened_lore:
        yield opened_lore


def said(number: int, sender: str, text: str, **more: object) -> Message:
    given = {
        "id": f"m{number}",
        "room_id": ROOM,
        "sender_id": sender,
        "text": text,
        "sent_at": START + timedelta(seconds=20 * number),
    }
    return Message(**(given | more))


TALK = [
    said(1, "ann", "服务器又挂了，谁看过日志？"),
    said(2, "bob", "anyone for lunch today?"),
    said(3, "eve", "I looked at the server log, it ran out of memory"),
    said(4, "li", "noodles at twelve?"),
    said(5, "ann", "内存不够，加到 8G 吧"),
    said(6, "bob", "yes"),
    said(7, "li", "then see you there"),
]


def plain(corrected: CorrectedEntry) -> Entry:
    return Entry(message=corrected.message, features=corrected.features, link=corrected.link)


async def links_of(lore) -> dict[str, Entry]:
    async with lore.storage.reading(lore.tenant) as work:
        found = await work.messages.tail(room_id=ROOM, limit=10_000)
    return {entry.message.id: entry for entry in found}


async def thread_of(lore, message_id: str) -> list[str]:
    return [entry.message.id for entry in await lore.rooms.thread(ROOM, message_id)]


async def test_what_is_said_holds_whatever_the_model_thought(lore):
    await lore.messages.add(TALK)
    entry = await lore.links.correct(ROOM, "m6", answers="m5")
    assert (entry.link.kind, entry.link.parent, entry.link.parent_probability) == (LinkKind.CORRECTED, 5, 1.0)
    assert entry.link.new_probability == 0.0
    assert plain(entry) == await lore.messages.get(ROOM, "m6")
    assert {"m5", "m6"} <= set(await thread_of(lore, "m6"))
    built = await lore.context.build(ROOM, "m6")
    assert built.parent == "m5"
    reasons = {one.message.id: (one.score, one.reason) for one in built.messages}
    assert reasons["m5"] == (1.0, "directly answered (corrected by a person)")
    entry = await lore.links.correct(ROOM, "m6", answers="m4")
    built = await lore.context.build(ROOM, "m6")
    assert built.parent == "m4"
    assert [one.number for one in await lore.links.corrections(ROOM)] == [2, 1]


async def test_what_answers_nothing_has_no_context_and_a_thread_of_its_own(lore):
    await lore.messages.add(TALK)
    before = await lore.links.correct(ROOM, "m5", answers="m3")
    assert before.link.thread_candidates.by_arrival()
    entry = await lore.links.correct(ROOM, "m5", answers=None)
    assert (entry.link.kind, entry.link.parent, entry.link.thread) == (LinkKind.CORRECTED, None, 5)
    assert not entry.link.thread_candidates.by_arrival()
    built = await lore.context.build(ROOM, "m5", min_messages=0)
    assert (built.messages, built.parent, built.degraded) == ((), None, None)
    assert "m3" not in await thread_of(lore, "m5")


async def test_later_messages_follow(lore):
    """A reply that the platform states goes with what it replies to, and a guess sees the new thread."""
    await lore.messages.add([*TALK, said(8, "eve", "8G is in", reply_to="m5"), said(9, "ann", "great", reply_to="m8")])
    await lore.links.correct(ROOM, "m5", answers="m3")
    assert {"m3", "m5", "m8", "m9"} <= set(await thread_of(lore, "m9"))
    entries = await links_of(lore)
    assert entries["m9"].link.thread_candidates.by_arrival()[3] > 0.99
    await lore.links.correct(ROOM, "m5", answers=None)
    assert set(await thread_of(lore, "m9")) == {"m5", "m8", "m9"}
    assert 3 not in (await links_of(lore))["m9"].link.thread_candidates.by_arrival()


async def test_a_correction_taken_back_leaves_no_trace_in_links(lore):
    await lore.messages.add(TALK)
    before, room = await links_of(lore), await lore.rooms.get(ROOM)
    await lore.links.correct(ROOM, "m6", answers="m5")
    await lore.links.correct(ROOM, "m6", answers="m1")
    undone = await lore.links.undo(ROOM, "m6")
    assert plain(undone) == before["m6"]
    assert await links_of(lore) == before
    assert (await lore.rooms.get(ROOM)).linked == room.linked
    kinds = [(one.kind, one.answers, one.standing) for one in await lore.links.corrections(ROOM)]
    assert kinds == [("undone", None, False), ("answers", "m1", False), ("answers", "m5", False)]
    assert plain(await lore.links.undo(ROOM, "m6")) == before["m6"]
    assert len(await lore.links.corrections(ROOM)) == 3


async def test_the_log_names_who_and_when(lore):
    await lore.messages.add(TALK)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await lore.links.correct(ROOM, "m6", answers="m5", by="王敏", at=at)
    await lore.links.correct(ROOM, "m7", answers=None)
    first, second = reversed(await lore.links.corrections(ROOM))
    assert (first.message_id, first.answers, first.by, first.at, first.standing) == ("m6", "m5", "王敏", at, True)
    assert (second.message_id, second.kind, second.answers, second.by) == ("m7", "nothing", None, "caller")
    assert await lore.links.corrections(ROOM, before=2) == [first]
    assert await lore.links.corrections(ROOM, limit=1) == [second]
    assert await lore.links.in_force() == [first, second]
    assert await lore.links.in_force(after=(ROOM, 1)) == [second]
    assert await lore.for_tenant("other").links.in_force() == []


async def test_saying_it_again_changes_nothing(lore):
    await lore.messages.add(TALK)
    await lore.links.correct(ROOM, "m6", answers="m5")
    room = await lore.rooms.get(ROOM)
    await lore.links.correct(ROOM, "m6", answers="m5")
    assert await lore.rooms.get(ROOM) == room
    assert len(await lore.links.corrections(ROOM)) == 1


async def test_the_platform_is_overruled(lore):
    await lore.messages.add([*TALK, said(8, "eve", "8G is in", reply_to="m7")])
    await lore.links.correct(ROOM, "m8", answers="m5")
    for strategy in ("threaded", "weighted"):
        built = await lore.context.build(ROOM, "m8", strategy=strategy)
        signals = {one.message.id: one.signals.reply_chain for one in built.messages}
        assert signals["m5"] == 1.0, strategy
        assert signals.get("m7", 0.0) < 1.0, strategy
    assert (await lore.links.undo(ROOM, "m8")).link.kind is LinkKind.PLATFORM


async def test_what_cannot_be(lore):
    await lore.messages.add([*TALK, said(8, "sys", "eve joined", role=Role.SYSTEM), said(9, "li", "hi eve")])
    for message_id, answers, why in (
        ("m3", "m3", "came after"),
        ("m3", "m5", "came after"),
        ("m8", "m7", "answer nothing"),
        ("m8", None, "answer nothing"),
    ):
        with pytest.raises(Conflict, match=why):
            await lore.links.correct(ROOM, message_id, answers=answers)
    with pytest.raises(InvalidInput, match="id of an earlier message"):
        await lore.links.correct(ROOM, "m3", answers=5)
    for room_id, message_id, answers in (("none", "m1", None), (ROOM, "none", None), (ROOM, "m3", "none")):
        with pytest.raises(NotFound):
            await lore.links.correct(room_id, message_id, answers=answers)
    for by in ("", "x" * 201, None):
        with pytest.raises(InvalidInput, match="by is"):
            await lore.links.correct(ROOM, "m3", answers=None, by=by)
    with pytest.raises(NotFound):
        await lore.links.corrections("none")
    assert await lore.links.corrections(ROOM) == []


async def test_messages_that_come_later_see_it(lore):
    await lore.messages.add(TALK[:5])
    await lore.links.correct(ROOM, "m5", answers="m3")
    await lore.messages.add(TALK[5:])
    fresh_links = await links_of(lore)
    assert fresh_links["m5"].link.kind is LinkKind.CORRECTED
    async with roomlore.open("sqlite://", background=False) as other:
        await other.messages.add(TALK)
        await other.links.correct(ROOM, "m5", answers="m3")
        again = await links_of(other)
    assert {name: one.link.thread for name, one in again.items()} == {
        name: one.link.thread for name, one in fresh_links.items()
    }


async def test_a_late_target_does_not_take_the_link_back(lore):
    await lore.messages.add([*TALK, said(8, "eve", "8G is in", reply_to="m20")])
    await lore.links.correct(ROOM, "m8", answers="m5")
    await lore.messages.add([said(20, "li", "what is in?", sent_at=START)])
    assert (await lore.messages.get(ROOM, "m8")).link.parent == 5
    assert (await lore.links.undo(ROOM, "m8")).link.parent == 9


async def test_edits_keep_it_and_deletion_ends_it(lore):
    await lore.messages.add(TALK)
    await lore.links.correct(ROOM, "m6", answers="m5")
    await lore.links.correct(ROOM, "m7", answers="m6")
    await lore.messages.edit(ROOM, "m6", text="yes, 8G")
    assert (await lore.messages.get(ROOM, "m6")).link.parent == 5
    await lore.messages.delete(ROOM, "m6")
    (left,) = await lore.links.corrections(ROOM)
    assert (left.message_id, left.kind, left.answers, left.standing) == ("m7", "answers", None, True)
    assert (await lore.links.undo(ROOM, "m7")).link.kind is not LinkKind.CORRECTED


async def test_another_link_model_keeps_it(url):
    """Links are made anew, message by message: what a person said is as certain as before."""
    async with opened(url, EARLIER) as lore:
        await lore.messages.add([told(number) for number in range(40)])
        await lore.links.correct(ROOM, "20", answers="11")
        await lore.links.correct(ROOM, "31", answers=None)
    async with opened(url, TODAY) as lore:
        assert await relinked(lore) == 40
        entries, calibration = await stored(lore)
        assert (entries["20"].link.kind, entries["20"].link.parent) == (LinkKind.CORRECTED, 12)
        assert (entries["31"].link.kind, entries["31"].link.parent) == (LinkKind.CORRECTED, None)
        await lore.links.undo(ROOM, "20")
        await lore.links.undo(ROOM, "31")
        _, without = await stored(lore)
        replies = sum(one.message.reply_to is not None for one in entries.values())
        assert calibration.replies == replies + 1, "what it answers is heard as a reply is, nothing is not"
        assert without.replies == replies


async def test_the_same_as_if_it_had_been_known(url):
    """Linking a room anew with the correction gives what the correction gave at once."""
    async with roomlore.open(url, background=False) as lore:
        await lore.messages.add(TALK)
        await lore.links.correct(ROOM, "m5", answers=None)
        at_once = await stored(lore)
    async with opened(url, EARLIER) as lore:
        assert await relinked(lore) == len(TALK)
    async with opened(url, TODAY) as lore:
        assert await relinked(lore) == len(TALK)
        assert await stored(lore) == at_once


async def test_a_room_calibrates_by_it(lore):
    await lore.messages.add(TALK)
    assert (await lore.rooms.get(ROOM)).linked.calibration.asked == 0
    await lore.links.correct(ROOM, "m6", answers="m5")
    first = (await lore.rooms.get(ROOM)).linked.calibration
    assert (first.replies, first.asked) == (1, 1)
    assert sum(first.errors) > 0
    await lore.links.correct(ROOM, "m7", answers=None)
    assert (await lore.rooms.get(ROOM)).linked.calibration == first, "of nothing there is nothing to learn"
    await lore.links.correct(ROOM, "m6", answers="m1")
    assert (await lore.rooms.get(ROOM)).linked.calibration.asked == 1, "the earlier one is taken back"


async def test_tuning_learns_from_it(lore):
    await lore.messages.add([said(n, ("ann", "bob", "eve")[n % 3], f"topic {n % 4} 话题") for n in range(1, 41)])
    for number in range(11, 31):
        answers = None if number % 7 == 0 else f"m{number - 4}"
        await lore.links.correct(ROOM, f"m{number}", answers=answers)
    report = await lore.tuning.run(folds=2)
    assert report.targets == 20
    assert report.weights.keyword_overlap > report.weights.mention_relation
    with pytest.raises(InvalidInput, match="nothing to learn"):
        await lore.tuning.run(rooms=["other"], folds=2)


async def test_two_who_correct_at_once(lore, monkeypatch):
    monkeypatch.setattr(links, "_TRIES", 2)
    await lore.messages.add(TALK)
    wanted = [("m4", "m1"), ("m5", "m2"), ("m6", "m3"), ("m7", None), ("m3", None)]
    await asyncio.gather(*(lore.links.correct(ROOM, one, answers=other) for one, other in wanted))
    found = {one.message_id: one.answers for one in await lore.links.in_force()}
    assert found == dict(wanted)
    entries = await links_of(lore)
    for one, other in wanted:
        assert entries[one].link.parent == (entries[other].message.arrival if other else None)
    assert sorted(one.number for one in await lore.links.corrections(ROOM)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("change", ["correct", "undo"])
async def test_the_newest_message_is_deleted_while_it_is_corrected(lore, change):
    """A regression: IndexError was raised."""
    await lore.messages.add(TALK)
    await lore.links.correct(ROOM, "m7", answers="m1")
    lore.links._storage = meddled = Meddled(lore.storage, "messages.tail", partial(lore.messages.delete, ROOM, "m7"))
    with pytest.raises(NotFound):
        await (lore.links.correct(ROOM, "m7", answers="m2") if change == "correct" else lore.links.undo(ROOM, "m7"))
    assert meddled.happened


async def test_a_room_that_is_written_to_all_the_time(lore, monkeypatch):
    monkeypatch.setattr(links, "_TRIES", 0)
    await lore.messages.add(TALK)
    assert (await lore.links.correct(ROOM, "m6", answers="m5")).link.parent == 5
    await lore.links.correct(ROOM, "m6", answers="m5")
    assert (await lore.links.undo(ROOM, "m6")).link.kind is not LinkKind.CORRECTED


async def test_a_room_of_many_messages_is_corrected_at_its_beginning(lore):
    """Messages after the window's end keep their links, and their threads follow."""
    await lore.messages.add([told(number) for number in range(1200)])
    before = await links_of(lore)
    await lore.links.correct(ROOM, "100", answers=None)
    after = await links_of(lore)
    assert after["100"].link.thread == after["100"].message.arrival
    changed = [name for name in after if after[name].link.thread_candidates != before[name].link.thread_candidates]
    assert max(map(int, changed)) <= 500
    for entry in after.values():
        link = entry.link
        if link.parent is not None and link.kind is not LinkKind.NEW:
            assert after[str(link.parent - 1)].link.thread == link.thread
